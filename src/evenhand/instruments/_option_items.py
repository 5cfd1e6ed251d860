"""Items that are a few texts, to be compared by how likely a model finds each, and a sample of
them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson

STEREOTYPE, ANTI, UNRELATED = "stereotype", "anti_stereotype", "unrelated"
FEMALE, MALE, NEUTRAL = "female", "male", "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionItem:
    """One text in several versions.

    `given` is what stands before each option and is not itself counted. `cluster` is the unit
    that intervals resample, `group` the stratum of a sample and a row of the report.
    """

    id: str
    group: str
    cluster: str
    options: Mapping[str, str]  # name → the whole text, with what is given
    given: str = ""
    topic: str = ""  # what a training pair made of this item has as its topic
    tags: Mapping[str, str] = field(default_factory=dict)


def sample(items: Sequence[OptionItem], size: int | None, seed: int) -> list[OptionItem]:
    """At most so many items, or all; seeded, in equal shares from each group and spread over its
    clusters, in the data's order.

    A group with fewer items than its share gives all it has, and the rest goes to the others.
    """
    if size is None or size >= len(items):
        return list(items)
    rng = np.random.default_rng(seed)
    groups: dict[str, list[int]] = {}
    for index in rng.permutation(len(items)).tolist():
        groups.setdefault(items[index].group, []).append(index)
    shares = _shares({name: len(places) for name, places in groups.items()}, size)
    chosen = [
        index for name, places in groups.items() for index in _spread(places, items)[: shares[name]]
    ]
    return [items[index] for index in sorted(chosen)]


def _shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """The smallest groups first, each with an equal part of what is left to give."""
    shares, left = dict[str, int](), total
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    for number, name in enumerate(order):
        shares[name] = min(sizes[name], left // (len(order) - number))
        left -= shares[name]
    return shares


def _spread(places: Sequence[int], items: Sequence[OptionItem]) -> list[int]:
    """The first of every cluster, then the second of every cluster, and so on."""
    counts: dict[str, int] = {}
    turns = []
    for index in places:
        turn = counts[items[index].cluster] = counts.get(items[index].cluster, 0) + 1
        turns.append((turn, index))
    return [index for _, index in sorted(turns, key=lambda pair: pair[0])]


def fingerprint(items: Sequence[OptionItem]) -> str:
    """The SHA-256 of what is asked: ids and texts, in order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(orjson.dumps([item.id, item.given, dict(item.options)]))
    return digest.hexdigest()
