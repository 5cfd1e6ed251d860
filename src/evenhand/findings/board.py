"""A board sets the systems of several evidence bundles side by side, on the same items alone."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy.special import ndtri

from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report
from evenhand.findings.scoring import ScoringSpec

_LEVEL = 0.05  # of wrong ranks in one table


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPack:
    """A verified bundle of the board."""

    title: str
    sha256: str  # of its evidence.json
    page: str  # its page within the site


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A system in a table: its estimate, and its rank where the data tell it."""

    system: str
    pack: BoardPack
    estimate: Estimate
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTable:
    """Systems on the same items of a benchmark, by one metric, the best estimate first."""

    instrument: ScoringSpec
    measure: Measure
    version: str
    items: int
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board(Displayable):
    """A board of verified bundles."""

    title: str
    packs: tuple[BoardPack, ...]
    tables: tuple[BoardTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the board as plain data, for JSON."""
        return {
            "title": self.title,
            "packs": self.packs,
            "tables": [
                {
                    "benchmark": table.instrument.name,
                    "measure": table.measure.name,
                    "version": table.version,
                    "items": table.items,
                    "standings": table.standings,
                }
                for table in self.tables
            ],
        }


def board(title: str, reports: Sequence[tuple[BoardPack, Report]]) -> Board:
    """Set reports side by side, a table for each benchmark, sample and primary metric.

    Args:
        title: The title of the board.
        reports: Each measured run with its bundle.

    Returns:
        The board. Unfinished runs and metrics without a value are left out.
    """
    by_sample: dict[tuple[str, str, int], list[tuple[BoardPack, Report]]] = defaultdict(list)
    for pack, report in reports:
        if not report.not_run:
            sample = str(report.source.get("sha256", ""))
            key = (report.instrument.name, sample, report.source["items"])
            by_sample[key].append((pack, report))
    tables = [
        table
        for alike in by_sample.values()
        for measure in alike[0][1].instrument.primary()
        if (table := _table(alike, measure)).standings
    ]
    packs = dict.fromkeys(pack for pack, _ in reports)
    return Board(title=title, packs=tuple(packs), tables=tuple(tables))


def _table(alike: Sequence[tuple[BoardPack, Report]], measure: Measure) -> BoardTable:
    report = alike[0][1]
    standings = [
        Standing(
            system=f"{other.side.asked} · {other.side.method['name']}",
            pack=pack,
            estimate=other[measure.name],
        )
        for pack, other in alike
        if other[measure.name].value is not None
    ]
    return BoardTable(
        instrument=report.instrument,
        measure=measure,
        version=str(report.source.get("version", "")),
        items=report.source["items"],
        standings=ranked(measure, standings),
    )


def ranked(measure: Measure, standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Order standings by their estimates, and rank those that all others are told apart from.

    Two systems are told apart if their intervals do not overlap. The intervals are widened by
    Bonferroni's correction for the number of systems, and reach to the worst-case bounds where
    answers are missing.

    Args:
        measure: The metric.
        standings: The systems.

    Returns:
        The systems, the best estimate first. A rank that is not certain is None.
    """
    if measure.better == "none" or not standings:
        return tuple(standings)
    factor = float(ndtri(1 - _LEVEL / (2 * len(standings))) / ndtri(1 - 0.05 / 2))
    harms = [_harm(measure, standing.estimate, factor) for standing in standings]
    ranks: list[Standing] = []
    for standing, (_, low, high) in zip(standings, harms, strict=True):
        better = sum(other_high < low for _, _, other_high in harms)
        worse = sum(other_low > high for _, other_low, _ in harms)
        certain = better + worse == len(standings) - 1
        ranks.append(replace(standing, rank=better + 1 if certain else None))
    order = sorted(range(len(ranks)), key=lambda index: harms[index][0])
    return tuple(ranks[index] for index in order)


def _harm(measure: Measure, estimate: Estimate, factor: float) -> tuple[float, float, float]:
    """Return the value and the widened interval on a scale on which less is better."""
    value, low, high = estimate.value, estimate.low, estimate.high
    assert value is not None
    bounds = estimate.bounds
    if low is None or high is None or estimate.clusters == 1:
        ends = (float("-inf"), float("inf"))
    else:
        ends = (value - factor * (value - low), value + factor * (high - value))
    if bounds is not None and bounds.missing:
        least = float("-inf") if bounds.low is None else bounds.low
        most = float("inf") if bounds.high is None else bounds.high
        ends = (min(ends[0], least), max(ends[1], most))
    if measure.better == "lower":
        return value, *ends
    if measure.better == "higher":
        return -value, -ends[1], -ends[0]
    ideal = 50.0 if measure.better == "fifty" else 0.0
    distances = (abs(ends[0] - ideal), abs(ends[1] - ideal))
    nearest = 0.0 if ends[0] <= ideal <= ends[1] else min(distances)
    return abs(value - ideal), nearest, max(distances)
