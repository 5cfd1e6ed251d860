"""A reproduction is a table of a paper with the paper's numbers next to ours, each of ours with its
interval; a catalogue says which tables there are and what each needs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit
from evenhand.findings.display import Displayable
from evenhand.findings.estimates import (
    COVERAGE_FLOOR,
    NO_SPREAD,
    Bounds,
    Estimate,
    bounds_in_columns,
)
from evenhand.findings.papers import (
    NEEDS,
    PAPERS,
    Paper,
    Size,
    Table,
    TableLine,
    UncoveredFigure,
    number,
    paper_named,
)
from evenhand.findings.report import Report

Found = Report | Audit
REFINED = "refined_"  # with a number: the share of items that were refined so many times
ITEMS = "items"  # in the place of a measure: how many there are
_FLAT = ("row", "column", "source", "value", "sd", "low", "high", "n", "why", "missing",
         "worst_low", "worst_high")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OurNumber:
    """One of our numbers, in the unit that the paper prints. `why` says why the value is
    missing, or that all clusters gave the same one. `bounds` is what it could be if the missing
    answers were known. Of repeats the value is the mean, `sd` their standard deviation (n − 1), and
    `n` how many they are."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    why: str = ""
    bounds: Bounds | None = None
    sd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCells:
    """The cells that the paper prints for one of its systems, as printed."""

    system: str
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCells:
    """Our cells for one model."""

    model: str
    cells: tuple[tuple[OurNumber, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run says what stands behind our numbers: whose, how many items, how many not yet."""

    model: str
    run: str
    method: str
    items: int
    scored: int
    not_run: int
    sample: str = ""  # how the items were drawn, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Displayable):
    """A reproduction shows one table of a paper, the published numbers next to ours.

    It names no folder and no date: the same runs, played back, give the same bytes.
    """

    paper: str
    table: str
    title: str
    where: str
    shows: str
    size: Size
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    published: tuple[PrintedCells, ...]
    read_off: bool
    ours: tuple[ModelCells, ...]
    runs: tuple[RunFacts, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, written: bytes) -> "Reproduction":
        """Read a reproduction that was saved as JSON."""
        return TypeAdapter(cls).validate_json(written)

    @property
    def below_floor(self) -> bool:
        """Too little could be scored in at least one of the runs."""
        counts = [(run.scored, run.items - run.not_run) for run in self.runs]
        return any(scored < COVERAGE_FLOOR * n for scored, n in counts)

    def cell(self, model: str, row: str, column: str) -> OurNumber:
        """Return our number for one cell of the table.

        Args:
            model: The model that ran.
            row: The title of the row.
            column: The title of the column.
        """
        cells = next(result.cells for result in self.ours if result.model == model)
        return cells[self.rows.index(row)][self.columns.index(column)]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def frame(self) -> pl.DataFrame:
        """Give one row per number: the paper's, whose source begins with "paper: ", and ours."""
        records: list[tuple[Any, ...]] = []
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                for printed in self.published:
                    value = number(printed.cells[i][j])
                    nothing = (None, None, None, 0, "", 0, None, None)
                    records.append((row, column, f"paper: {printed.system}", value, *nothing))
                for result in self.ours:
                    mine = result.cells[i][j]
                    worst = bounds_in_columns(mine.bounds)
                    ends = (mine.value, mine.sd, mine.low, mine.high, mine.n, mine.why)
                    records.append(
                        (row, column, result.model, *ends, *(worst[k] for k in _FLAT[-3:]))
                    )
        numbers = dict.fromkeys(
            ("value", "sd", "low", "high", "worst_low", "worst_high"), pl.Float64
        )
        return pl.DataFrame(records, schema=_FLAT, schema_overrides=numbers, orient="row")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """An entry of the catalogue: a table or figure, whether it can be run, and what it needs."""

    paper: str
    table: str
    title: str
    where: str
    result: bool  # False: a drawing, a formula, a prompt, without numbers to reproduce
    runnable: bool
    needs: tuple[str, ...]
    reason: str  # why it cannot be run; empty where it can


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue(Displayable):
    """A catalogue lists every table and figure of the papers."""

    entries: tuple[CatalogueEntry, ...]

    @property
    def results(self) -> tuple[CatalogueEntry, ...]:
        """The tables and figures that hold measured numbers."""
        return tuple(entry for entry in self.entries if entry.result)

    @property
    def share(self) -> float:
        """How many of the results can be run, given what they need."""
        return sum(entry.runnable for entry in self.results) / len(self.results)

    def to_dict(self) -> dict[str, Any]:
        return {"tables": [asdict(entry) for entry in self.entries], "share_runnable": self.share}

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame([asdict(entry) for entry in self.entries])


def catalogue(papers: Sequence[str] = PAPERS) -> Catalogue:
    """List the tables and figures of papers, in the order of each."""
    entries = [
        _entry(paper, name)
        for paper in map(paper_named, papers)
        for name in paper.order
    ]  # fmt: skip
    return Catalogue(entries=tuple(entries))


def _entry(paper: Paper, name: str) -> CatalogueEntry:
    table = paper.table(name)
    exhibit: Table | UncoveredFigure = table or next(
        fig for fig in paper.figures if fig.table == name
    )
    return CatalogueEntry(
        paper=paper.name,
        table=name,
        title=exhibit.title,
        where=exhibit.where,
        result=table is not None or (isinstance(exhibit, UncoveredFigure) and exhibit.result),
        runnable=table is not None and not table.reason,
        needs=exhibit.needs,
        reason=exhibit.reason,
    )


def in_words(needs: Sequence[str]) -> str:
    """Say what a table needs."""
    return "; ".join(NEEDS[need] for need in needs) or "nothing"


def reproduction(
    paper: Paper,
    table: Table,
    size: Size,
    results: Mapping[tuple[str, str], Found],
    missing: Mapping[tuple[str, str], str],
    models: Sequence[str],
    repeats: int = 1,
) -> Reproduction:
    """Lay out a table of a paper with the results of its runs.

    Args:
        paper: The paper.
        table: The table of the paper.
        size: The size of the sample.
        results: What each run showed, by model and name of the run.
        missing: Why a run is missing, by model and name of the run.
        models: The models, in the order of the table.
        repeats: How many of them after each other are one model, run again.
    """
    cells = {
        model: tuple(
            tuple(_ours(table.address(row, column), model, results, missing)
                  for column in table.columns)
            for row in table.rows
        )
        for model in models
    }  # fmt: skip
    ran = [
        _ran(model, name, results[model, name])
        for model in models
        for name in table.runs()
        if (model, name) in results
    ]
    whys = [f"{model}: {name} is not run: {missing[model, name]}"
            for model in models for name in table.runs() if (model, name) in missing]  # fmt: skip
    return Reproduction(
        paper=paper.name,
        table=table.name,
        title=table.title,
        where=table.where,
        shows=table.shows,
        size=size,
        rows=tuple(row.title for row in table.rows),
        columns=tuple(column.title for column in table.columns),
        published=tuple(
            PrintedCells(system=printed.system, cells=tuple(map(tuple, printed.cells())))
            for printed in table.published
        ),
        read_off=table.read_off,
        ours=tuple(
            ModelCells(
                model=models[first],
                cells=_averaged([cells[model] for model in models[first : first + repeats]]),
            )
            for first in range(0, len(models), repeats)
        ),
        runs=tuple(ran),
        differs=table.differs,
        notes=tuple(whys),
    )


def _ours(
    line: TableLine,
    model: str,
    results: Mapping[tuple[str, str], Found],
    missing: Mapping[tuple[str, str], str],
) -> OurNumber:
    if line.run is None or line.measure is None:
        return OurNumber(why="not measured here")
    key = (model, line.run)
    if key not in results:
        return OurNumber(why="not run" if key not in missing else "not run, see above")
    estimate = estimate_of(results[key], line.measure, line.group)
    times = line.times or 1.0
    if estimate.value is None:
        return OurNumber(n=estimate.n, why=estimate.undefined or "no value")
    low, high = (None if end is None else times * end for end in (estimate.low, estimate.high))
    alike = "no spread" if estimate.undefined == NO_SPREAD else ""
    bounds = estimate.bounds and _scaled(estimate.bounds, times)
    return OurNumber(
        value=times * estimate.value, low=low, high=high, n=estimate.n, why=alike, bounds=bounds
    )


def _averaged(
    repeats: Sequence[tuple[tuple[OurNumber, ...], ...]],
) -> tuple[tuple[OurNumber, ...], ...]:
    """The cells of one model over its repeats; those of a single run as they are."""
    if len(repeats) == 1:
        return repeats[0]
    by_row = (zip(*rows, strict=True) for rows in zip(*repeats, strict=True))
    return tuple(tuple(map(_mean, row)) for row in by_row)


def _mean(repeats: Sequence[OurNumber]) -> OurNumber:
    """No mean where a repeat has no value: the others would be the mean of another setting."""
    values = [number.value for number in repeats if number.value is not None]
    if len(values) < len(repeats):
        return next(replace(number, n=0) for number in repeats if number.value is None)
    return OurNumber(value=fmean(values), sd=stdev(values), n=len(values))


def _scaled(bounds: Bounds, times: float, shift: float = 0.0) -> Bounds:
    """Bounds of a number that is multiplied and shifted; a negative factor turns them round."""
    ends = [None if end is None else times * end + shift for end in (bounds.low, bounds.high)]
    low, high = ends if times > 0 else ends[::-1]
    return Bounds(missing=bounds.missing, low=low, high=high)


def estimate_of(result: Found, measure: str, group: str | None) -> Estimate:
    """Find one number of a run.

    Args:
        result: The report or audit of the run.
        measure: The name of the metric.
        group: The group to read; None for all items.

    Returns:
        The estimate; without a value where the run has no item for it.
    """
    if measure == ITEMS:
        return Estimate(name=measure, value=_items(result, group))
    if measure.startswith(REFINED):
        return _refined(result, int(measure.removeprefix(REFINED)), group)
    if isinstance(result, Audit):
        return _of_judge(result.more, measure, group)
    if group is None:
        estimates: Sequence[Estimate] = result.estimates
    else:
        by_value = [values[group] for values in result.groups.values() if group in values]
        estimates = [estimate for part in by_value for estimate in part]
    estimate = next((estimate for estimate in estimates if estimate.name == measure), None)
    return estimate or Estimate(name=measure, value=None, undefined="no item of it")


def _of_judge(more: Mapping[str, Any], measure: str, group: str | None) -> Estimate:
    """Read a number of a judge's audit: the mean mark of a label ("mean:METRIC"), the difference of
    two ("A - B"), or how often a label wins."""
    name, _, metric = measure.partition(":")
    sign, shift = 1.0, 0.0
    if name == "mean":
        means = more["figures"]["means"]
        rows = [row for row in means if (row["label"], row["metric"]) == (group, metric)]
    elif name == "difference":
        label, _, other = (group or "").partition(" - ")
        gaps = {(row["label"], row["other"]): row for row in more["figures"]["differences"]}
        sign = 1.0 if (label, other) in gaps else -1.0
        difference = gaps.get((label, other) if sign > 0 else (other, label))
        rows = [difference] if difference else []
    else:  # the audit has what a label adds to one half
        shift = 0.5
        alone = [row for row in more["exploratory"] if row["against"] == "all others"]
        wins = [row for row in alone if (row["label"], row["value"]) == (group, "win")]
        rows = [{**row, "value": row["estimate"], "n": row["cells"]} for row in wins]
    if not rows or rows[0]["value"] is None:
        why = (rows[0]["undefined"] if rows else None) or "not asked about"
        return Estimate(name=measure, value=None, undefined=why)
    ends = [
        None if rows[0][end] is None else sign * rows[0][end] + shift for end in ("low", "high")
    ]
    low, high = ends if sign > 0 else ends[::-1]
    value = sign * rows[0]["value"] + shift
    raw_bounds = rows[0].get("bounds")
    bounds = _scaled(Bounds(**raw_bounds), sign, shift) if raw_bounds else None
    return Estimate(name=measure, value=value, low=low, high=high, n=rows[0]["n"], bounds=bounds)


def _refined(result: Found, times: int, group: str | None) -> Estimate:
    """Read how many items were refined so many times. The table ends with the first iteration that
    nobody reached: what holds of it holds of the later ones."""
    name = f"{REFINED}{times}"
    table = result.section("refined")
    if table is None:
        return Estimate(name=name, value=None, undefined="its method sends no draft back")
    rows = [row for row in table.rows if row[0] == (group or "all")]
    if not rows:
        return Estimate(name=name, value=None, undefined="no item of it")
    row = next((row for row in rows if row[1] == times), rows[-1])
    value, low, high, n, missing, worst_low, worst_high = (
        None if cell is None else float(cell) for cell in row[2:]
    )
    bounds = Bounds(missing=int(missing), low=worst_low, high=worst_high) if missing else None
    return Estimate(name=name, value=value, low=low, high=high, n=int(n or 0), bounds=bounds)


def _items(result: Found, group: str | None) -> float | None:
    """Count the items of a run, or of a group of them."""
    if isinstance(result, Audit):
        return None if result.coverage is None else result.coverage.n
    return result.coverage.n if group is None else result.rows_by_group.get(group, 0)


def _ran(model: str, name: str, result: Found) -> RunFacts:
    if isinstance(result, Report):
        method, items, coverage = result.side.method, result.source["items"], result.coverage
        not_run = result.not_run
    else:
        if result.coverage is None:
            raise UserError(f"{name}: this audit does not say how much it could score")
        method, coverage = result.more["method"], result.coverage
        items, not_run = coverage.n, 0
    return RunFacts(
        model=model,
        run=name,
        method=str(method["name"]),
        items=items,
        scored=coverage.scored,
        not_run=not_run,
        sample=_sample(result),
    )


def _sample(result: Found) -> str:
    """How a run drew its items, from its own record: "per_category 4, seed 0"."""
    sampling = result.source.get("sampling") if isinstance(result, Report) else None
    if not isinstance(sampling, Mapping):
        return ""
    plain = {
        name: value for name, value in sorted(sampling.items()) if isinstance(value, str | int)
    }
    parts = [name if value is True else f"{name} {value}" for name, value in plain.items()]
    return ", ".join([*parts, *(name for name in sorted(sampling) if name not in plain)])
