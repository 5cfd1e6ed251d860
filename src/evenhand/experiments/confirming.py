"""A winner is measured again on a fresh sample: what was chosen as the best of several looks better
than it is."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from evenhand.errors import UserError
from evenhand.experiments.caps import left_for
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.running import Ended
from evenhand.experiments.sweep import Listed, Series
from evenhand.findings.frontier import Frontier, confirm, frontier
from evenhand.instruments._contract import DataFolder
from evenhand.runners import Source

FOLDER = "confirm"  # of its runs, within that of the sweep


def fresh_sample(measurement: Measurement, data: DataFolder) -> Measurement:
    """The same measurement with the next sample seed, on items that the first does not have as far
    as the instrument can draw them; refused where that draws no other items."""
    name, options = measurement.instrument.name, measurement.options
    if not hasattr(options, "sample_seed"):
        raise UserError(
            f"{name} has no option sample_seed, so that no fresh sample can be drawn to confirm a "
            "winner: leave out --confirm"
        )
    seed = options.sample_seed
    unlike = {"exclude_sample": seed} if hasattr(options, "exclude_sample") else {}
    fresh = replace(measurement, options=replace(options, sample_seed=seed + 1, **unlike))
    if _ids(fresh.items(data)) <= _ids(measurement.items(data)):
        raise UserError(
            f"another seed draws the same items of {name}: leave out --confirm, or take a sample "
            "that is smaller than all there is"
        )
    return fresh


async def confirmed(
    series: Series,
    chosen: Sequence[Listed],
    first_frontier: Frontier,
    fresh: Measurement,
    data: DataFolder,
) -> tuple[Ended, Frontier]:
    """The frontier with its winner and the references measured on the fresh sample; as it is where
    no method is worth it, or where the runs ended early. Caps are for the first runs and these."""
    winner = first_frontier.winner()
    if winner is None:
        series.watch.note("no method is worth it: there is nothing to confirm")
        return Ended(), first_frontier
    lender = next(arm.lender for arm in chosen if arm.name == winner.name)
    names = {*first_frontier.instrument.compared_with(), winner.name, lender}
    again = [arm for arm in chosen if arm.name in names]
    source = await asyncio.to_thread(fresh.items, data)
    ids = await asyncio.to_thread(_ids, source)
    shared = len(ids & await asyncio.to_thread(_ids, series.request.source))
    overlap = f"{shared:,} of them were in the first, too" if shared else "none was in the first"
    series.watch.note(f"confirming {winner.name} on a fresh sample: {len(ids):,} items, {overlap}")
    spent, request = series.spent(chosen), series.request
    request = replace(
        request,
        source=source,
        out=f"{request.out}/{FOLDER}",
    )
    second = replace(series, request=left_for(request, request, spent), measurement=fresh)
    ended = await second.run(again)
    if ended.early:
        return ended, first_frontier
    arms = await second.arms(again)
    measured = frontier(
        first_frontier.instrument, arms, calls=first_frontier.calls, prices=request.prices
    )
    return ended, confirm(first_frontier, measured, shared=shared)


def _ids(source: Source) -> set[str]:
    return {item.id for item in source.read(0, len(source))}
