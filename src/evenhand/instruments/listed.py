"""Items that an instrument has at hand, as a source that a comparison can recognise."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.core import Item
from evenhand.findings.scoring import ScoringSpec
from evenhand.runs.runners.source import ItemList


class ListedItems(ItemList):
    """The items of an instrument, listed in memory.

    >>> ListedItems(self, [Item(id="1", prompt="…", tags={"occupation": "nurse"})])

    `sampling` is what decided which items these are. Two runs can be compared where it is equal.
    `also` is what the record keeps beside; a `sha256` there stands for that of the items.
    """

    def __init__(
        self,
        instrument: ScoringSpec,
        items: Sequence[Item],
        *,
        sampling: Mapping[str, Any] | None = None,
        version: str = "1",
        also: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(items)
        self._said = {
            "kind": "benchmark",
            "benchmark": instrument.name,
            "version": version,
            "sampling": dict(sampling or {}),
            **(also or {}),
        }

    def fingerprint(self) -> dict[str, Any]:
        return {**super().fingerprint(), **self._said}
