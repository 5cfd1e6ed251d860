"""A run is planned to stop when its question is decided: its clusters are drawn in an order and
asked in blocks."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError, choices_for
from evenhand.findings.scoring import ALWAYS, with_facts
from evenhand.findings.sequential import KEY, SequentialPlan, block_of, rows_planned, stand
from evenhand.instruments import Instrument
from evenhand.runs.runners import Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.tables import RESULTS
from evenhand.views import catalog


@dataclass(frozen=True, slots=True)
class InBlocks:
    """A source whose clusters are asked block by block, in a drawn order. Every item keeps its
    position, so that a run of all of them can be replayed into it."""

    source: Source
    until: SequentialPlan
    positions: tuple[tuple[int, ...], ...]  # of each cluster, in the drawn order

    def fingerprint(self) -> dict[str, Any]:
        return {**self.source.fingerprint(), KEY: self.until.to_dict()}

    def __len__(self) -> int:
        return len(self.source)

    def chunks(self) -> list[tuple[int, int]]:
        return self.source.chunks()

    def read(self, start: int, stop: int) -> Iterator[Item]:
        return self.source.read(start, stop)

    def block_after(self, clusters: int) -> frozenset[int]:
        """Give the positions of the block that comes after the first so many clusters."""
        block = self.positions[clusters : clusters + self.until.block]
        return frozenset(position for cluster in block for position in cluster)


class StoppingQuestion(NamedTuple):
    """The question that a run is to decide, as it was typed: "s_amb=0.05"."""

    text: str
    these: bool = False  # of these clusters alone


def measure_and_margin(text: str) -> tuple[str, float]:
    """Read "s_amb=0.05": a measure, and the margin around it."""
    name, _, margin_text = text.partition("=")
    try:
        margin = float(margin_text)
    except ValueError:
        margin = math.nan
    if not (name.strip() and margin > 0 and math.isfinite(margin)):
        raise UserError(
            f"--stop-when {text!r} is not a metric with a margin above 0, such as s_amb=0.05"
        )
    return name.strip(), margin


def until_decided(
    instrument: Instrument, source: Source, question: StoppingQuestion, *, seed: int | None
) -> InBlocks:
    """Plan a run that stops when a metric is shown to be within a margin, or beyond it.

    Args:
        instrument: The instrument.
        source: The items.
        question: The metric and its margin.
        seed: The seed of the order in which clusters are asked; None for 0.

    Returns:
        The source, split into blocks.

    Raises:
        UserError: If the instrument does not have the metric, or the margin covers its range.
    """
    name, margin = measure_and_margin(question.text)
    names = [measure.name for measure in instrument.measures]
    if name not in names:
        raise UserError(
            f"{instrument.name} has no measure {name!r}. {choices_for(name, names)}. "
            f"Write --stop-when {names[0]}=0.05"
        )
    measure = instrument.measure(name)
    planned = in_blocks(instrument, source, (name,), seed=seed, measure=name, margin=margin,
                        these=question.these)  # fmt: skip
    least, most = (end - (measure.null or 0.0) for end in measure.range)
    if margin >= max(most, -least):
        raise UserError(
            f"A margin of {margin:g} includes every value: {name} is at most "
            f"{max(most, -least):g}. Use a smaller margin."
        )
    return planned


def in_blocks(
    instrument: Instrument,
    source: Source,
    needed: Sequence[str],
    *,
    seed: int | None,
    **until_fields: Any,
) -> InBlocks:
    """Shuffle the clusters and split them into blocks, before anything is asked.

    Args:
        instrument: The instrument.
        source: The items.
        needed: The metrics that must have an anytime-valid interval.
        seed: The seed of the order of the clusters; None for 0.
        **until_fields: Further fields of the plan, such as the metric and its margin.

    Returns:
        The source, split into blocks.

    Raises:
        UserError: If one of the metrics does not have such an interval.
    """
    outcomes = _unasked(instrument, list(source.read(0, len(source))))
    rows, reasons = rows_planned(instrument, outcomes)
    for name in needed:
        if name not in rows:
            raise UserError(
                f"a run cannot stop by {name}, as {catalog.text(reasons[name])}; it can by: "
                f"{', '.join(rows) or 'none'}. Leave out --stop-when to ask all items"
            )
    places: dict[str, list[int]] = {}
    for position, cluster in enumerate(outcomes["cluster"]):
        places.setdefault(str(cluster), []).append(position)
    order_seed = seed or 0
    order = sorted(
        places, key=lambda cluster: hashlib.sha256(f"{order_seed}:{cluster}".encode()).digest()
    )
    until = SequentialPlan(
        order_seed=order_seed,
        block=block_of(len(order)),
        order=tuple(order),
        sizes=tuple(len(places[cluster]) for cluster in order),
        rows=rows,
        **until_fields,
    )
    return InBlocks(source, until, tuple(tuple(places[cluster]) for cluster in order))


def _unasked(instrument: Instrument, items: Sequence[Item]) -> pl.DataFrame:
    """Score items that nobody has answered, in their order: what they are about is known then."""
    if not items:
        raise UserError(
            "The dataset has no items, so there is nothing to run. Use a larger sample."
        )
    if not instrument.stops_early():
        raise UserError(
            f"{instrument.name} cannot stop early, because it scores answers only when all are "
            "complete. Leave out --stop-when."
        )
    schema = pl.Schema(RESULTS)
    rows = [
        {"position": position, "item_id": item.id, "status": "failed", "reason": "not_asked",
         "prompt": item.prompt,
         "tags": [{"name": name, "value": value} for name, value in item.tags.items()]}
        for position, item in enumerate(items)
    ]  # fmt: skip
    columns = (*ALWAYS, *instrument.columns, "tags")
    frame = pl.DataFrame(rows, schema={name: schema[name] for name in dict.fromkeys(columns)})
    outcomes = instrument.outcomes(with_facts(frame, instrument))
    return frame.select("item_id").join(outcomes, on="item_id", maintain_order="left")


def next_block(instrument: Instrument, source: InBlocks, out: str) -> frozenset[int]:
    """Choose the positions to ask next.

    Args:
        instrument: The instrument.
        source: The items, in blocks.
        out: The folder of the run.

    Returns:
        The positions; empty if the question is decided or every item was asked.
    """
    if not open_folder(out).exists("run.json"):
        return source.block_after(0)
    run = RunReader(out)
    stopped, _ = stand(instrument.for_run(run), run, source.until)
    return frozenset() if stopped.ended else source.block_after(stopped.clusters)
