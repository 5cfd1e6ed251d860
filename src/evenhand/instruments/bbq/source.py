"""BBQ records as items. Options are shown in an order drawn per item, and the order is stored."""

import hashlib
from collections.abc import Iterator
from typing import Any

import polars as pl

from evenhand.core import Item
from evenhand.instruments.bbq.data import STRATUM, card
from evenhand.instruments.bbq.editions import ENGLISH, Edition
from evenhand.instruments.bbq.sample import BbqSampling, spread
from evenhand.interop import Origin

_ENGLISH = Edition(ENGLISH)
_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


class BbqSource:
    """A sample of BBQ as a source of items.

    The tags of an item hold all that scoring needs, in the order shown: which option is the gold
    one, the stereotyped one and the unknown one. So a run folder can be scored without the data.
    """

    def __init__(
        self,
        records: pl.DataFrame,
        sampling: BbqSampling,
        order_seed: int | None = None,
        *,
        edition: Edition = _ENGLISH,
        origin: Origin | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        # Of the sample, not of its order; and the items without their answers, so that two files
        # of answers to the same items can be compared.
        self._sha256 = _sha256(records.select("category", "example_id"))
        self._answers = _sha256(records.select("answer")) if "answer" in records.columns else None
        self._drawn = spread(_with_weights(records), sampling.seed)
        self._sampling = sampling
        self._edition = edition
        # Of answers that were given elsewhere: where, and what a reader must know of it.
        facts = {} if origin is None else {"origin": origin.to_dict(), "notes": list(notes)}
        self._told: dict[str, Any] = facts
        self._order_seed = sampling.seed if order_seed is None else order_seed

    def fingerprint(self) -> dict[str, Any]:
        answers = {} if self._answers is None else {"answers_sha256": self._answers}
        # The order of options is a condition and no part of the sample: runs that differ in it
        # alone are compared. It is said only where it is not the sample's: so earlier records stay.
        own_order = self._order_seed != self._sampling.seed
        return {
            "kind": "benchmark",
            "benchmark": "bbq",
            "version": card()["version"],
            "revision": self._edition.card["data"]["revision"],
            "sampling": self._sampling.describe(),
            "items": len(self._drawn),
            "order": "spread",
            "sha256": self._sha256,
            **answers,
            **self._told,
            **({"order_seed": self._order_seed} if own_order else {}),
            **self._language(),
        }

    def _language(self) -> dict[str, Any]:
        """The language is a condition as well, said of all but English."""
        if self._edition.language == ENGLISH:
            return {}
        untargeted = self._drawn["biased"].null_count()
        return {"language": self._edition.language, "untargeted": untargeted}

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self._drawn))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            yield _item(row, self._order_seed)


def _item(row: dict[str, Any], seed: int) -> Item:
    name = f"{row['category']}/{row['example_id']}"
    order = _ORDERS[_draw(f"{seed}:{name}") % len(_ORDERS)]
    tags = {
        "category": row["category"],
        "template": f"{row['category']}/{row['question_index']}",
        "condition": row["condition"],
        "polarity": row["polarity"],
        "names": str(int(row["names"])),
        "masked": str(int(row["masked"])),
        "order": "".join(map(str, order)),  # order[k] is the data's option at place k
        "gold": str(order.index(row["label"])),
        "unknown": str(order.index(row["unknown"])),
        "biased": "" if row["biased"] is None else str(order.index(row["biased"])),
        "group": row.get("against") or "",
        "stands_for": repr(row.get("stands_for") or 1.0),
    }
    return Item(
        id=name,
        answer=row.get("answer") or "",
        prompt=row["question"],
        context=row["context"],
        choices=tuple(row["options"][option] for option in order),
        tags=tags,
    )


def _with_weights(records: pl.DataFrame) -> pl.DataFrame:
    """Add how many records of the data each drawn one stands for: those of its template, alignment
    and condition, divided by how many of them were drawn."""
    if "alike" not in records.columns:
        return records
    return records.with_columns(stands_for=pl.col("alike") / pl.len().over(STRATUM))


def _sha256(keys: pl.DataFrame) -> str:
    return hashlib.sha256(keys.write_csv(include_header=False).encode()).hexdigest()


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
