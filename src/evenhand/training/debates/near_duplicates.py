"""Texts that say nearly the same, found without comparing each with each.

Two texts are alike if they share enough of their words, or of their runs of words. Each is filed
under its rarest ones only: as many as it needs to meet every text that is alike at one of them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

ALIKE = 0.7  # our choice: of the words, or runs of three, that either has, both have so many
_RUN = 3

# Words that two wordings of one topic differ in.
_SMALL_WORDS = frozenset(
    """a an the is are was were be been being am do does did has have had will would can could may
    might must shall should it its this that these those he she they we you i his her their our
    your my him them us me of to in on at for from by with as and or if than then so not no about
    into there""".split()
)


def words(text: str) -> list[str]:
    """Lower case, without punctuation: what two spellings of a text have in common."""
    return re.findall(r"\w+", text.lower().replace("’", "'").replace("'", ""))


def spelling(text: str) -> str:
    return " ".join(words(text))


def topic_families(topics: Sequence[str]) -> list[int]:
    """For each topic the place of the first one of its family: those that are alike, and those
    that are alike to them."""
    return _families([_content(topic) for topic in topics])


def copies(texts: Sequence[str]) -> list[bool]:
    """For each text whether one before it, or one alike to that, says nearly the same."""
    return [first != at for at, first in enumerate(_families([_runs(text) for text in texts]))]


def _content(topic: str) -> frozenset[str]:
    tokens = words(topic)
    content = frozenset(_singular(word) for word in tokens if word not in _SMALL_WORDS)
    return content or frozenset(tokens)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _runs(text: str) -> frozenset[str]:
    tokens = words(text)
    last = max(1, len(tokens) - _RUN + 1)
    return frozenset(" ".join(tokens[at : at + _RUN]) for at in range(last))


def _families(features: Sequence[frozenset[str]]) -> list[int]:
    """The places of the first members. Equal sets are met in one step, however many they are."""
    first_with: dict[frozenset[str], int] = {}
    parent = [first_with.setdefault(feature_set, at) for at, feature_set in enumerate(features)]
    uses = Counter(word for feature_set in first_with for word in feature_set)
    filed: defaultdict[str, list[int]] = defaultdict(list)
    for feature_set, at in first_with.items():
        for word in _rarest(feature_set, uses):
            for other in filed[word]:
                ours, theirs = _root(parent, at), _root(parent, other)
                if ours != theirs and _alike(feature_set, features[other]):
                    parent[max(ours, theirs)] = min(ours, theirs)
            filed[word].append(at)
    return [_root(parent, at) for at in range(len(parent))]


def _rarest(feature_set: frozenset[str], uses: Counter[str]) -> list[str]:
    """Two sets that share `ALIKE` of their words miss fewer than the others here, so they meet."""
    shared_at_least = math.ceil(ALIKE * len(feature_set) - 1e-9)
    return sorted(feature_set, key=lambda word: (uses[word], word))[
        : len(feature_set) - shared_at_least + 1
    ]


def _alike(first: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(first & other)
    return shared >= ALIKE * (len(first) + len(other) - shared) - 1e-9


def _root(parent: list[int], at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at
