"""Text with the usual ways round a filter undone, and any scorer made to read it that way too."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evenhand.models.base import ModelRequest, together
from evenhand.scorers.base import Scorer, Scores, Unscored, requests_of

# Letters of other alphabets that look Latin. For English: Greek or Russian words come out wrong.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝмткнвАЕОРСУХІЈЅМТКНВαορνικτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwmtkhbAEOPCYXIJSMTKHBaopviktuxABEZHIKMNOPTYX",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_RUNS = re.compile(r"[A-Za-z0-9@$!|]+")  # no look-ahead: a long text must not take forever
_SPACED = re.compile(r"(?<!\w)[^\W\d_](?:([ .\-_*])[^\W\d_])(?:\1[^\W\d_])+(?!\w)")
_NO_WORD = re.compile(r"\W+")
_SEPARATORS = re.compile(r"[ .\-_*]")
_UNSEEN = frozenset({"Mn", "Cf"})  # accents put upon letters; zero-width and other format signs


def canonical(text: str) -> str:
    """What a reader sees: full-width and look-alike letters, accents, invisible signs, spaced-out
    words and digits for letters as plain Latin ones."""
    plain = unicodedata.normalize("NFKD", text).translate(_LOOKALIKES)
    plain = "".join(sign for sign in plain if unicodedata.category(sign) not in _UNSEEN)
    plain = _SPACED.sub(lambda hit: _SEPARATORS.sub("", hit[0]), plain)
    return _RUNS.sub(_letters, plain)


def _letters(hit: re.Match[str]) -> str:
    """A number is a number; only among letters does a digit stand for one."""
    body = hit[0].rstrip("!|")
    letters = body.translate(_LEET) if any(map(str.isalpha, body)) else body
    return letters + hit[0][len(body) :]


def _words(text: str) -> str:
    """Dashes and quotation marks of another make hide nothing."""
    return _NO_WORD.sub(" ", text).strip()


def _differs(plain: str, text: str) -> bool:
    return _words(plain) not in ("", _words(text))


class Canonicalised:
    """Another scorer, which also reads each text as `canonical` has it: an attribute is the higher
    of the two. So digits that are meant ("mp3") can cost a second look, never a missed insult."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        return f"{self._scorer.name}+canonical1"

    @property
    def attributes(self) -> tuple[str, ...]:
        return self._scorer.attributes

    def describe(self) -> dict[str, Any]:
        return {**self._scorer.describe(), "canonical": 1}

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        plain = canonical(text)
        readings = (text, plain) if _differs(plain, text) else (text,)
        return tuple(
            request for reading in readings for request in requests_of(self._scorer, reading)
        )

    async def close(self) -> None:
        await self._scorer.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        plain = [canonical(text) for text in texts]
        differ = [i for i, text in enumerate(texts) if _differs(plain[i], text)]
        scored = await self._scorer.score([*texts, *(plain[i] for i in differ)])
        outcomes = scored[: len(texts)]
        for index, second in zip(differ, scored[len(texts) :], strict=True):
            outcomes[index] = _higher(outcomes[index], second)
        return outcomes


def _higher(first: Scores | Unscored, second: Scores | Unscored) -> Scores | Unscored:
    """Half an answer is none: the reading that is missing may have been the toxic one. Both are
    paid."""
    usage = together(first.usage, second.usage)
    if isinstance(first, Unscored):
        return replace(first, usage=usage)
    if isinstance(second, Unscored):
        return replace(second, usage=usage)
    values = {
        name: max(value, second.values.get(name, 0.0)) for name, value in first.values.items()
    }
    because = first.because if first.toxicity >= second.toxicity else second.because
    return Scores(values, because, usage)
