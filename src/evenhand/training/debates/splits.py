"""Which topics are trained on and which are held out."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

from evenhand.training.debates.near_duplicates import spelling, topic_families

Side = Literal["train", "test"]
SIDES: tuple[Side, ...] = ("train", "test")
T = TypeVar("T")


def draw(*parts: object) -> float:
    """A number from 0 to 1 that depends on these words alone, on every machine."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def sides(topics: Iterable[tuple[str, str]], test_share: float, seed: int) -> dict[str, Side]:
    """The side of each topic, given with its bias type. Topics that say nearly the same are a
    family, and on the same side.

    A family is drawn by a hash of its words, so a topic stays where it is when others join. A bias
    type has one family to train on at least, and one held out if there are two of its own.
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
    """At most so many, topics in turn: topics tell more than further pairs of the same topic. They
    come in the order of their checksums, for files are sorted by bias type, and those that come
    first would be all."""
    by_topic: dict[str, list[T]] = {}
    for item in items:
        by_topic.setdefault(topic(item), []).append(item)
    order = sorted(by_topic, key=lambda name: hashlib.sha256(name.encode()).digest())
    turns = zip_longest(*(by_topic[name] for name in order))
    return [item for turn in turns for item in turn if item is not None][:most]
