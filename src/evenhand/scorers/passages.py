"""A text made ready to be scored: cut into passages, its encodings undone, its language told.

A scorer that reads a long text at once takes something like its mean: one hateful sentence among
five harmless ones disappears. So each sentence is read alone too, however the text is laid out.

Hiding words costs nothing, and a client may decode them: percent-encoding, HTML
entities, `\\xNN` escapes, Unicode tag characters, which nobody sees, and base64.

Whether a text is English is told by two things: the script, and how many of the words are among the
commonest of English. It only has to tell what a scorer of English can read from what it cannot.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from urllib.parse import unquote

from evenhand.core.package_data import word_sets

_LISTS = word_sets(__package__, "languages.toml")

LONGEST = 24  # our choice, in words: a longer sentence is read in overlapping stretches
_STEP = LONGEST // 2  # so whatever has at most so many words stands whole in one stretch
SHORTEST = 4  # words; shorter fragments are also read together with their neighbors
_LONGEST_WORD = 40  # characters; a longer run without a blank is cut
# Possessive: no hostile text makes it go back.
_LINE = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]++")
_END = re.compile(r"""(?<=[.!?…])["'”’)\]*_]*+\s++|(?<=[。！？])["'”’」』）]*+""")
_MARKER = re.compile(r"\s*+(?:[-*+•‣◦>#]++|\(?[0-9]{1,3}[.)]|\(?[A-Za-z][.)])\s++")
_FENCE = re.compile(r"\s*+(?:`{3,}|~{3,})\s*+\w*+\s*+")
_RULE = re.compile(r"[\s|:+=\-]*+")
_CELL = re.compile(r"\s*+[|\t]\s*+")
_LETTER = re.compile(r"[^\W\d_]")


def passages(text: str) -> list[str]:
    """Cut a text into passages that hold a letter, each once, in their order.

    They are sentences, lines and cells of tables, without the marks of lists. A sentence of more
    than `LONGEST` words is read in stretches that overlap by half. Fragments of fewer than
    `SHORTEST` words in a row are read alone and in such stretches too.
    """
    collected: dict[str, None] = {}
    for short, run in groupby(_fragments(text), key=lambda words: len(words) < SHORTEST):
        fragments = list(run)
        for words in fragments:
            collected |= dict.fromkeys(_stretches(words))
        if short and len(fragments) > 1:
            collected |= dict.fromkeys(_stretches([word for words in fragments for word in words]))
    return list(collected)


def ending(text: str, most: int) -> str:
    """The last sentences of a text, of at most so many characters. Of a sentence that is longer
    than that, its last words."""
    if len(text) <= most:
        return text
    tail = text[-most:]
    begins = _LINE.search(tail) or _END.search(tail)
    return tail[begins.end() :] if begins else tail[tail.find(" ") + 1 :]


def _fragments(text: str) -> Iterator[list[str]]:
    """The words of each sentence, line or cell."""
    for line in _LINE.split(text):
        if _FENCE.fullmatch(line) or _RULE.fullmatch(line):
            continue
        for cell in _CELL.split(line):
            marker = _MARKER.match(cell)
            for sentence in _END.split(cell[marker.end() :] if marker else cell):
                words = [piece for word in sentence.split() for piece in _pieces(word)]
                if _LETTER.search(sentence):
                    yield words


def _pieces(word: str) -> Iterator[str]:
    return (word[at : at + _LONGEST_WORD] for at in range(0, len(word), _LONGEST_WORD))


def _stretches(words: Sequence[str]) -> Iterator[str]:
    last = max(0, len(words) - LONGEST)
    for start in (*range(0, last, _STEP), last):
        yield " ".join(words[start : start + LONGEST])


LEAST = 8  # our choice, in words: with fewer, only a word that is not English tells
_RARE = 0.1  # our choice: the least share of common words in English; see docs/gateway.md
_SEVERAL = 2  # our choice: so many words of other languages are not names
_FOREIGN = 0.5  # our choice: the largest share of letters that are not Latin
_LANGUAGE_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff\uff21-\uff5a\U0001d400-\U0001d6a3]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_LETTERS = 0.8  # our choice: the least share of letters and blanks in a line of prose
# Common words of English that are not common in another language in Latin letters.
ENGLISH = _LISTS["english"]
# Common words of other languages in Latin letters that are not common in English.
OTHER = _LISTS["other"]


def is_english(text: str) -> bool | None:
    """Say whether a text is English; None where it has too few words to tell. Code, tables and JSON
    say nothing of it."""
    if _in_another_script(text):
        return False
    words = _words(_prose(text))
    english = sum(word in ENGLISH for word in words)
    other = sum(word in OTHER for word in words)
    if len(words) < LEAST:
        return False if other > english else None
    return english >= _RARE * len(words) and english > other


def is_another_language(passage: str) -> bool:
    """Say whether a passage of an English text is surely not English. Names, formulas and lists
    have few common words too: here only words of other languages count, or another script."""
    if _in_another_script(passage):
        return True
    words = _words(passage)
    other = len(OTHER.intersection(words))
    return other >= _SEVERAL and other > len(ENGLISH.intersection(words))


def _words(text: str) -> list[str]:
    return _LANGUAGE_WORD.findall(text.lower().replace("’", "'"))


def _in_another_script(text: str) -> bool:
    if text.isascii():
        return False
    letters = len(_LETTER.findall(text))
    return letters >= LEAST and len(_LATIN.findall(text)) < (1 - _FOREIGN) * letters


def _prose(text: str) -> str:
    """The lines of a text that are mostly letters and blanks, without code."""
    lines = _CODE.sub("", text).splitlines()
    plain = (sum(map(str.isalpha, line)) + sum(map(str.isspace, line)) for line in lines)
    pairs = zip(lines, plain, strict=True)
    return "\n".join(line for line, count in pairs if count >= _LETTERS * len(line))


_ROUNDS = 3  # our choice: what is encoded more often is not undone
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_HEX = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")  # shorter ones are words as a rule
_PRINTED = 0.95  # our choice: the least share of printable characters in what is text


def readings(text: str) -> tuple[str, ...]:
    """Give a text, and its decoded form where that is another.

    >>> readings("%59%6f%75 fool")
    ('%59%6f%75 fool', 'You fool')
    >>> readings("100% true")
    ('100% true',)
    """
    decoded = text
    for _ in range(_ROUNDS):
        before, decoded = decoded, _decoded(decoded)
        if decoded == before:
            break
    return (text,) if decoded == text else (text, decoded)


def _decoded(text: str) -> str:
    if not text.isascii():
        text = _TAGS.sub(lambda hit: " " + "".join(chr(ord(c) - 0xE0000) for c in hit[0]), text)
    if "%" in text:
        text = _PERCENT.sub(lambda hit: unquote(hit[0], errors="replace"), text)
    if "\\x" in text:
        text = _HEX.sub(_from_hex, text)
    if "&" in text:
        text = html.unescape(text)
    return _BASE64.sub(_from_base64, text)


def _from_hex(hit: re.Match[str]) -> str:
    return bytes.fromhex(hit[0].replace("\\x", "")).decode("utf-8", "replace")


def _from_base64(hit: re.Match[str]) -> str:
    """Give the text that it encodes, or the match itself if that is not text, as in an id."""
    body = hit[0].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return hit[0]
    printed = sum(sign.isprintable() or sign.isspace() for sign in text)
    return text if text and printed >= _PRINTED * len(text) else hit[0]
