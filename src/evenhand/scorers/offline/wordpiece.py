"""Text → pieces, as BERT's uncased WordPiece does, after undoing the usual ways round a filter."""

import re
import unicodedata
from collections.abc import Mapping

# Letters of other alphabets that look Latin. The model reads English only.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝмткнвгпαορνικτυχεηωßøłđı’‘`´",
    "aeopcyxijshdqwmtkhbrnaopviktuxenwboldi''''",
)
_LEET = str.maketrans("0134578@$!|", "oieastbasil")
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:([ .\-_*])[^\W\d_])(?:\1[^\W\d_])+(?![^\W_])")
_RUNS = re.compile(r"[a-z0-9@$!|]+")  # no look-ahead: a long text must not take forever
_SIGNS = re.compile(r"[0-9@$!|]")
_WORDS = re.compile(r"\w+|[^\w\s]")
_LONGEST = 40  # letters; a longer word is noise


class WordPiece:
    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._ids = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self._known: dict[str, tuple[int, ...]] = {}

    def pieces(self, text: str) -> list[int]:
        return [piece for word in _WORDS.findall(self.plain(text)) for piece in self._word(word)]

    def plain(self, text: str) -> str:
        text = unicodedata.normalize("NFKD", text).lower().translate(_LOOKALIKES)
        if not text.isascii():
            # Accents, and marks that are not seen, such as zero-width spaces.
            text = "".join(c for c in text if unicodedata.category(c) not in ("Mn", "Cf"))
        text = _SPACED.sub(self._joined, text)
        return _RUNS.sub(self._undisguised, text) if _SIGNS.search(text) else text

    def _joined(self, hit: re.Match[str]) -> str:
        word = re.sub(r"[ .\-_*]", "", hit.group())
        if len(word) > _LONGEST:
            return hit.group()
        if word not in self._ids and word[0] in "ia" and word[1:] in self._ids:
            return f"{word[0]} {word[1:]}"  # "i h a t e" is two words
        return word

    def _undisguised(self, hit: re.Match[str]) -> str:
        bare = hit.group().rstrip("!|")
        word = bare.translate(_LEET)
        # From four letters on: "1st" is no word in disguise.
        is_word = len(word) > 3 and word in self._ids and any(map(str.isalpha, bare))
        return word + hit.group()[len(bare) :] if is_word else hit.group()

    def _word(self, word: str) -> tuple[int, ...]:
        pieces = self._known.get(word)
        if pieces is None:
            pieces = self._split(word)
            if len(self._known) < 100_000:
                self._known[word] = pieces
        return pieces

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST:
            return (self._unknown,)
        pieces, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if start == 0 else "##" + word[start:end])
                if piece is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(piece)
            start = end
        return tuple(pieces)
