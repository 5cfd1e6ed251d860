"""Benchmarks whose items are a few texts, to be compared by how likely a model finds each.

CrowS-Pairs, StereoSet, WinoBias, Winogender and subtler_biases are all of this form.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import yaml

from evenhand.instruments.files import PinnedFiles

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSampling:
    """At most so many items of a set; None: all."""

    items: int | None = 1_600  # ours: all sets in ten minutes on two cores at 135 M parameters
    seed: int = 0

    def describe(self) -> dict[str, object]:
        return {"items": self.items or "all", "seed": self.seed}


def sample(items: Sequence[OptionItem], sampling: OptionSampling) -> list[OptionItem]:
    """Seeded, in equal shares from each group and spread over its clusters, in the data's order.

    A group with fewer items than its share gives all it has, and the rest goes to the others.
    """
    if sampling.items is None or sampling.items >= len(items):
        return list(items)
    rng = np.random.default_rng(sampling.seed)
    groups: dict[str, list[int]] = {}
    for place in rng.permutation(len(items)).tolist():
        groups.setdefault(items[place].group, []).append(place)
    shares = _shares({name: len(places) for name, places in groups.items()}, sampling.items)
    drawn = [
        place for name, places in groups.items() for place in _spread(places, items)[: shares[name]]
    ]
    return [items[place] for place in sorted(drawn)]


def _shares(sizes: Mapping[str, int], wanted: int) -> dict[str, int]:
    """The smallest groups first, each with an equal part of what is left to give."""
    shares, left = dict[str, int](), wanted
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    for number, name in enumerate(order):
        shares[name] = min(sizes[name], left // (len(order) - number))
        left -= shares[name]
    return shares


def _spread(places: Sequence[int], items: Sequence[OptionItem]) -> list[int]:
    """The first of every cluster, then the second of every cluster, and so on."""
    seen: dict[str, int] = {}
    turns = []
    for place in places:
        turn = seen[items[place].cluster] = seen.get(items[place].cluster, 0) + 1
        turns.append((turn, place))
    return [place for _, place in sorted(turns, key=lambda pair: pair[0])]


def fingerprint(items: Sequence[OptionItem]) -> str:
    """Of what is asked: ids and texts, in order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(orjson.dumps([item.id, item.given, dict(item.options)]))
    return digest.hexdigest()


@cache
def read_card(package: str) -> dict[str, Any]:
    text = resources.files(package).joinpath("card.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def pinned_files(package: str, local: Path | None, cache: Path) -> PinnedFiles:
    data = read_card(package)["data"]
    name = package.rpartition(".")[2]
    return PinnedFiles(
        name, data["url"], data["revision"], data["sha256"], local=local, cache=cache
    )
