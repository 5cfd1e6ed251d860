"""Which topics are trained on and which are held out, and texts that say nearly the same.

Two texts are alike if they share enough of their words, or of their runs of words. They are found
without comparing each with each: each is filed under its rarest ones only, as many as it needs to
meet every text that is alike at one of them.
"""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

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
    return _first_alike([_content(topic) for topic in topics])


def copies(texts: Sequence[str]) -> list[bool]:
    """For each text whether one before it, or one alike to that, says nearly the same."""
    return [first != at for at, first in enumerate(_first_alike([_runs(text) for text in texts]))]


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


def _first_alike(features: Sequence[frozenset[str]]) -> list[int]:
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


Side = Literal["train", "test"]
SIDES: tuple[Side, ...] = ("train", "test")
T = TypeVar("T")


def draw(*parts: object) -> float:
    """A number from 0 to 1 that depends on these words alone, on every machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def sides(topics: Iterable[tuple[str, str]], test_share: float, seed: int) -> dict[str, Side]:
    """Assign each topic to the training or the test split.

    Topics that say nearly the same are a family and stay together. A family is assigned by a hash
    of its words, so a topic stays where it is when others are added. Every bias type keeps at least
    one family to train on, and one held out if it has two.

    Args:
        topics: Each topic with its bias type.
        test_share: The share of topics to hold out, from 0 to 1.
        seed: The seed of the hash.

    Returns:
        The split of each topic.
    """
    distinct = set(topics)
    family = _families(topic for topic, _ in distinct)
    numbers = {first: draw(seed, "side", spelling(first)) for first in family.values()}
    held_out = {first for first, number in numbers.items() if number < test_share}
    sizes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for topic, bias_type in distinct:
        sizes[bias_type][family[topic]] += 1
    for bias_type in sorted(sizes):
        if held_out >= sizes[bias_type].keys():
            held_out.remove(max(sizes[bias_type], key=lambda first: (numbers[first], first)))
        if test_share > 0 and not held_out & sizes[bias_type].keys():
            held_out |= _held_out_of(sizes[bias_type], numbers)
    return {topic: "test" if first in held_out else "train" for topic, first in family.items()}


def trained(topics: Iterable[str], where: Mapping[str, Side]) -> set[str]:
    """The topics to train on: those on that side, and of those that have no side (without a pair)
    the ones that are of no family with something held out."""
    distinct = set(topics)
    family = _families(distinct)
    held_out = {family[topic] for topic, side in where.items() if side == "test"}
    return {
        topic
        for topic in distinct
        if (where[topic] == "train" if topic in where else family[topic] not in held_out)
    }


def _held_out_of(sizes: Counter[str], numbers: Mapping[str, float]) -> set[str]:
    """The family with the smallest number, but not one with most of the topics."""
    if len(sizes) < 2:
        return set()
    most = sizes.total() / 2
    small = [first for first, size in sizes.items() if size <= most]
    return {min(small, key=lambda first: (numbers[first], first))}


def _families(topics: Iterable[str]) -> dict[str, str]:
    """For each topic the first one of its family in the alphabet: their order changes nothing."""
    ordered = sorted(set(topics), key=lambda topic: (spelling(topic), topic))
    firsts = topic_families(ordered)
    return {topic: ordered[first] for topic, first in zip(ordered, firsts, strict=True)}


def in_turn(items: Sequence[T], topic: Callable[[T], str], most: int) -> list[T]:
    """Take at most `most` items, one per topic in turn.

    More topics are worth more than more pairs of one topic. Topics are ordered by their checksums:
    files are sorted by bias type, and the first type would be taken alone.

    Args:
        items: The items.
        topic: Gives the topic of an item.
        most: The number of items to take.

    Returns:
        The items that were taken.
    """
    by_topic: dict[str, list[T]] = {}
    for item in items:
        by_topic.setdefault(topic(item), []).append(item)
    order = sorted(by_topic, key=lambda name: hashlib.sha256(name.encode()).digest())
    turns = zip_longest(*(by_topic[name] for name in order))
    return [item for turn in turns for item in turn if item is not None][:most]
