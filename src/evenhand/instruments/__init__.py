"""One folder is one thing that can be measured, whole: card, data, sample, items, outcomes and
measures."""

from collections.abc import Iterator
from contextlib import suppress

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    InstrumentWords,
    ListedItems,
    Mean,
    MeanOfClusters,
    Measure,
    OfMeans,
    OfTotals,
    Ratio,
    Share,
    ShareOfClusters,
    Statistic,
    SumOfRatios,
    option,
    why_lost,
)
from evenhand.runs.store import RunReader

__all__ = [
    "SCORED",
    "DataFolder",
    "Grouping",
    "Instrument",
    "InstrumentWords",
    "ListedItems",
    "Mean",
    "MeanOfClusters",
    "Measure",
    "OfMeans",
    "OfTotals",
    "Ratio",
    "Share",
    "ShareOfClusters",
    "Statistic",
    "SumOfRatios",
    "instrument_named",
    "instrument_of",
    "option",
    "same_instrument",
    "why_lost",
]


def instrument_named(name: str) -> Instrument:
    """The instrument or audit of this name, ours or of another package."""
    group: registry.Group = "audits" if name in registry.names("audits") else "instruments"
    instrument_class = registry.load(group, name)
    if not (isinstance(instrument_class, type) and issubclass(instrument_class, Instrument)):
        raise UserError(
            f"the plugin {name!r} is not a benchmark: it must be a subclass of "
            "evenhand.instruments._contract.Instrument. Update the package that provides it"
        )
    return instrument_class()


def loadable() -> Iterator[Instrument]:
    """Every instrument that can be loaded. One that cannot is refused when it is named; it must not
    take the others with it."""
    for name in registry.names("instruments"):
        with suppress(UserError):
            yield instrument_named(name)


def instrument_of(run: RunReader) -> Instrument:
    """The instrument that made a run."""
    made_by = run.record.source.get("benchmark")
    if not made_by:
        raise UserError(
            f"{run.path} was not created by `evenhand measure`. To inspect it: evenhand "
            f"runs show {run.path}"
        )
    if made_by not in (*registry.names("instruments"), *registry.names("audits")):
        raise UserError(
            f"{run.path} is a run of {made_by}, which is not installed, so it cannot be "
            f"reported or compared. To inspect it: evenhand runs show {run.path}"
        )
    return instrument_named(made_by)


def same_instrument(before: RunReader, after: RunReader) -> None:
    """Refuse to compare runs of two instruments."""
    kinds = [run.record.source.get("benchmark") or "no measurement" for run in (before, after)]
    if kinds[0] != kinds[1]:
        raise UserError(
            f"{before.path} is a run of {kinds[0]} and {after.path} of {kinds[1]}. Compare "
            "two runs of the same benchmark"
        )
