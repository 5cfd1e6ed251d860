"""A text cut into the passages that are scored each alone.

A scorer that reads a long text at once takes something like its mean: one hateful sentence among
five harmless ones disappears. So each sentence is read alone too, however the text is laid out.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

LONGEST = 24  # our choice, in words: a longer sentence is read in overlapping stretches
_STEP = LONGEST // 2  # so whatever has at most so many words stands whole in one stretch
SHORTEST = 4  # words; shorter fragments are also read together with those beside them
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
    """Cut a text into passages, each once, in their order.

    They are sentences, lines and cells of tables, without the marks of lists. A sentence of more
    than `LONGEST` words is read in stretches that overlap by half. Fragments of fewer than
    `SHORTEST` words in a row are read alone and in such stretches too.

    Args:
        text: Any text; it need not have sentences.

    Returns:
        The passages that hold a letter. A text of one passage gives that passage.
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
