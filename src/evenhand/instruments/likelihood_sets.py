"""The sets of `evenhand measure likelihood`, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import UserError
from evenhand.instruments import crows_pairs, stereoset, subtler_biases, winobias, winogender
from evenhand.instruments.option_sets import (
    OptionItem,
    OptionSampling,
    fingerprint,
    read_card,
    sample,
)

_SETS: dict[str, tuple[str, Callable[[Path | None, Path], list[OptionItem]]]] = {
    "crows_pairs": (crows_pairs.__name__, crows_pairs.items),
    "stereoset": (stereoset.__name__, stereoset.items),
    "winobias": (winobias.__name__, winobias.items),
    "winogender": (winogender.__name__, winogender.items),
    "subtler_biases": (subtler_biases.__name__, subtler_biases.items),
    "occupations": (winobias.__name__, winobias.occupations),
}
NAMES = tuple(_SETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSet:
    """The items of one set that are asked, and what they are."""

    name: str
    items: tuple[OptionItem, ...]
    sampling: OptionSampling
    left_out: int = 0  # items whose topic the weights were trained on

    def describe(self) -> dict[str, Any]:
        card = read_card(_SETS[self.name][0])
        return {
            "version": card["version"],
            "revision": card["data"]["revision"],
            "sampling": self.sampling.describe(),
            "items": len(self.items),
            "left_out": self.left_out,
            "sha256": fingerprint(self.items),
        }


class LikelihoodSets:
    """
    >>> sets = LikelihoodSets(local=Path("data"), cache=Path("cache"))
    >>> drawn = sets.draw("stereoset", OptionSampling(items=500))
    """

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._local = local
        self._cache = cache

    def draw(
        self, name: str, sampling: OptionSampling, trained: frozenset[str] = frozenset()
    ) -> DrawnSet:
        """A sample without the items whose topic is among the trained ones."""
        if name not in _SETS:
            raise UserError(f"there is no set {name!r}; there are: {', '.join(NAMES)}")
        every = _SETS[name][1](self._local, self._cache)
        kept = _unseen(every, trained)
        if not kept:
            raise UserError(f"the weights were trained on every topic of {name}; leave it out")
        drawn = tuple(sample(kept, sampling))
        return DrawnSet(name=name, items=drawn, sampling=sampling, left_out=len(every) - len(kept))

    def subtler_rows(self) -> list[dict[str, str]]:
        """The rows of subtler_biases as its file has them."""
        return subtler_biases.rows(self._local, self._cache)


def _unseen(items: Sequence[OptionItem], trained: frozenset[str]) -> list[OptionItem]:
    return [item for item in items if item.topic not in trained or not item.topic]
