"""A report of one run holds everything that may be said of it, computed once and typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import polars as pl

from evenhand.core.adapted import in_words
from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.findings import cost as costs
from evenhand.findings import thoughts
from evenhand.findings.decision_rules import in_unit
from evenhand.findings.display import Displayable, named
from evenhand.findings.estimates import (
    NO_VERDICT,
    Coverage,
    Estimate,
    Section,
    Verdict,
    bounds_in_columns,
)
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.findings.sequential import SequentialPlan, StoppingStatus, at_any_time, refuse, stand
from evenhand.findings.totals import RunTotals
from evenhand.findings.verdicts import of_report, of_stopped
from evenhand.interop import Origin
from evenhand.runs.store import RunReader
from evenhand.runs.store.run_record import shown_prompt

ALL, WITH_MASKED = "all", "with masked records"
Groups = Mapping[str, Mapping[str, tuple[Estimate, ...]]]  # column -> value -> estimates
_COLUMNS = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64, "undefined": pl.String,
            "p": pl.Float64, "p_holm": pl.Float64}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A side says which run a number is of: its folder, method, model and system prompt."""

    run: str
    method: dict[str, Any]
    model: str
    system: str = ""  # "" where no role got one
    params: str = ""  # fields of every request that the user set
    adapted: tuple[str, ...] = ()  # what the models did not accept, and what was done instead

    @property
    def asked(self) -> str:
        """Name who was asked: the model, with the system prompt and the parameters that it had, and
        what it did not accept."""
        system = [f"system prompt {shown_prompt(self.system)}"] if self.system else []
        named = ", ".join([self.model, *system, *([self.params] if self.params else [])])
        return f"{named} ({'; '.join(self.adapted)})" if self.adapted else named

    @classmethod
    def of(cls, *runs: RunReader) -> "Side":
        """Give the side that one run is, or several of one system: their folders with commas."""
        record = runs[0].record
        folders = ",".join(str(run.path) for run in runs)
        origin = Origin.of(record.source)
        model = origin.model if origin else models_of(record.cast)
        return cls(
            run=folders,
            method=record.method,
            model=model,
            system=system_prompt(record.cast),
            params=params_of(record.cast),
            adapted=adapted_in(*runs),
        )

    def picked_by_itself(self, source: Mapping[str, Any]) -> str:
        """Return how this very system answered the items that were picked by its answers; empty
        where nobody picked them, or the answers of another system did."""
        picked = source.get("sampling", {}).get("picked")
        if picked is None or picked["answered"] == "any":
            return ""
        same = (picked["method"], picked["model"]) == (self.method["name"], self.model)
        return str(picked["answered"]) if same else ""


def system_prompt(cast: dict[str, Any]) -> str:
    """Give the system prompt that the roles of a run got; several models may have one each."""
    return "\n\n".join(dict.fromkeys(str(s["system"]) for s in cast.values() if "system" in s))


# Kinds of role players other than language models.
_NO_MODEL = ("scorer", "search", "borrowed")


def params_of(cast: dict[str, Any]) -> str:
    """Give the fields of every request that the user set, of each model that has some."""
    each = {
        str(player["model"]): ", ".join(f"{k}={_plain(v)}" for k, v in player["params"].items())
        for player in cast.values()
        if player.get("params")
    }
    alone = len({player["model"] for player in cast.values()}) == 1
    return "; ".join(said if alone else f"{model}: {said}" for model, said in each.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def adapted_in(*runs: RunReader) -> tuple[str, ...]:
    """Say what the models of some runs did not accept, and what was done instead."""
    by_model: dict[str, dict[str, int]] = {}
    for run in runs:
        for model, words in run.totals().adapted.items():
            by_model.setdefault(model, {}).update(words)
    return tuple(
        sentence if len(by_model) == 1 else f"{model}: {sentence}"
        for model, words in by_model.items()
        for sentence in in_words(sorted(words))
    )


def models_of(cast: dict[str, Any]) -> str:
    """Name the models that a run asks: those of its roles, or the default one that plays them."""
    roles = {
        role: settings for role, settings in cast.items() if settings.get("kind") not in _NO_MODEL
    }
    models = [str(settings["model"]) for role, settings in roles.items() if role != "default"]
    return ", ".join(dict.fromkeys(models)) or str(cast["default"]["model"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Displayable):
    """A report says what one run showed.

    >>> found = evenhand.measure("bbq", model=model, out="runs/now")
    >>> found.verdict, found["s_amb"], found.frame()
    """

    instrument: ScoringSpec
    side: Side
    source: dict[str, Any]
    created: str
    versions: dict[str, str]
    not_run: int
    coverage: Coverage
    coverage_by: Mapping[str, Coverage]  # by the values of a column, such as the condition
    estimates: tuple[Estimate, ...]
    with_masked: tuple[Estimate, ...]
    masked_records: int
    clusters: int  # how many were seen, scored or not
    groups: Groups
    rows_by_group: Mapping[str, int]
    sums: Mapping[str, tuple[int, float]]  # of each mean: its rows and their sum
    tally: pl.DataFrame  # how often each combination of the instrument's tallied columns was seen
    cost: costs.Cost
    money: costs.Money
    further: Mapping[str, costs.FurtherCost]  # what runs within the folder took, by their names
    failed_by_reason: Mapping[str, int] = field(default_factory=dict)  # items without an answer
    failed_item: str | None = None  # of too little coverage: the first of the most frequent reason
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # what only this instrument has, for JSON
    verdict: Verdict = NO_VERDICT
    stopped: StoppingStatus | None = None  # of a run that may stop early: where it stands

    def __getitem__(self, name: str) -> Estimate:
        """Give the estimate of a measure over all items, by the measure's name."""
        return named(self.estimates, name, "measure")

    def section(self, name: str) -> Section | None:
        """Give the table of this name, if there is one."""
        return next((section for section in self.sections if section.name == name), None)

    def frame(self) -> pl.DataFrame:
        """Give one row per estimate: group, name, value, low, high, n, clusters, undefined, p,
        p_holm. The group is "all", a value such as "Age", or "with masked records"."""
        rows = [(ALL, estimate) for estimate in self.estimates]
        rows += [(WITH_MASKED, estimate) for estimate in self.with_masked]
        for values in self.groups.values():
            rows += [
                (value, estimate) for value, estimates in values.items() for estimate in estimates
            ]
        plain = [{"group": group, **_fields(estimate)} for group, estimate in rows]
        return pl.DataFrame(plain, schema_overrides=_COLUMNS, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain data, for JSON."""
        return {
            **self.more,
            "benchmark": self.instrument.name,
            "run": self.side.run,
            "method": self.side.method,
            "model": self.side.model,
            "system": self.side.system or None,
            "params": self.side.params or None,
            "adapted": self.side.adapted,
            "source": self.source,
            "created": self.created,
            "versions": self.versions,
            "not_run": self.not_run,
            "verdict": self.verdict,
            "stopped": self.stopped,
            "cost": self.cost,
            "money": self.money,
            "further": self.further,
            "scores": {
                "coverage": {
                    "n": self.coverage.n,
                    "scored": self.coverage.scored,
                    "by_reason": self.coverage.by_reason,
                    "failed_by_reason": self.failed_by_reason,
                    "coverage": self.coverage.coverage,
                    "by": self.coverage_by,
                },
                "estimates": self.estimates,
                "with_masked_records": self.with_masked,
                "masked_records": self.masked_records,
                "groups": self.groups,
                "sections": {section.name: section for section in self.sections},
                "notes": self.notes,
            },
        }


def _fields(estimate: Estimate) -> dict[str, Any]:
    plain = {
        name: getattr(estimate, name) for name in Estimate.__dataclass_fields__ if name != "bounds"
    }
    return plain | bounds_in_columns(estimate.bounds)


def report(instrument: ScoringSpec, run: RunReader, prices: Prices | None = None) -> Report:
    """Read a run once and report its results.

    Args:
        instrument: The benchmark that made the run.
        run: The run, complete or not.
        prices: The price table; None for a report without costs.

    Raises:
        UserError: If another benchmark made the run.
    """
    made_by(instrument, run)
    instrument = instrument.for_run(run)
    until = SequentialPlan.of(run)
    if until is not None:
        return _until(instrument, run, until, prices)
    totals = RunTotals.of(instrument, outcome_batches(instrument, run))
    result = _found(instrument, run, totals, prices)
    result = replace(result, groups=groups_of(instrument, totals))
    result = instrument.concluded(result, run)
    result = replace(
        result,
        sections=(
            *instrument.sections(result, run),
            *instrument.sections_of_method(run),
            *thoughts.section_of(instrument, run),
        ),
    )
    result = replace(result, notes=instrument.notes(result, run))
    return replace(result, verdict=of_report(result))


def _until(
    instrument: ScoringSpec, run: RunReader, until: SequentialPlan, prices: Prices | None
) -> Report:
    """Report a run that may stop early: what was asked up to the look that decided it, by intervals
    that hold at every look. What has none is left out: groups, tables, p-values."""
    stopped, table = stand(instrument, run, until)
    clusters = table["cluster"].to_list()
    batches = outcome_batches(instrument, run)
    if clusters:
        batches = (rows.filter(pl.col("cluster").is_in(clusters)) for rows in batches)
    result = _found(instrument, run, RunTotals.of(instrument, batches), prices)
    ended = stopped.ended and stopped.clusters > 0
    result = replace(
        result,
        source={**result.source, "until": {k: v for k, v in until.to_dict().items()
                                          if k not in ("order", "sizes", "rows")}},
        not_run=0 if ended else result.not_run,
        estimates=tuple(at_any_time(instrument.measure(estimate.name), estimate, table, until)
                        for estimate in result.estimates),
        with_masked=(),
        stopped=stopped,
    )  # fmt: skip
    estimate = result[until.measure] if until.measure else None
    verdict = of_stopped(instrument, stopped, estimate, result.side.run)
    return replace(result, verdict=verdict)


def _found(
    instrument: ScoringSpec, run: RunReader, totals: RunTotals, prices: Prices | None
) -> Report:
    """Give the numbers over all items, and what they took."""
    if not totals.rows:
        raise UserError(
            f"{run.path} has no finished item yet. Resume it with the command that started it."
        )
    record = run.record
    masked = [instrument.measure(name) for name in instrument.masked]
    coverage, failed = totals.coverage(), run.totals().failed
    return Report(
        instrument=instrument,
        side=Side.of(run),
        source=record.source,
        created=record.created,
        versions=record.versions,
        not_run=not_run(run),
        coverage=coverage,
        coverage_by=totals.coverage_by(),
        estimates=estimates_over_all(instrument, totals),
        with_masked=tuple(totals.with_masked(measure) for measure in masked),
        masked_records=totals.masked_rows,
        clusters=totals.clusters(),
        groups={},
        rows_by_group={
            value: totals.rows_in(grouping.column, value)
            for grouping in instrument.groups
            for value in totals.values_of(grouping.column)
        },
        sums=totals.sums(),
        tally=totals.tally(),
        cost=costs.cost(run),
        money=costs.money(run, prices),
        further=costs.further(run, instrument.further_runs, prices),
        failed_by_reason=failed,
        failed_item=_failed_item(run, failed) if coverage.below_floor else None,
    )


def _failed_item(run: RunReader, failed: Mapping[str, int]) -> str | None:
    """Give the id of the first item that failed for the most frequent reason."""
    if not failed:
        return None
    reason = max(failed, key=lambda cause: failed[cause])
    rows = run.results().filter(pl.col("reason") == reason).select("item_id").head(1).collect()
    return str(rows["item_id"][0]) if len(rows) else None


def estimates_over_all(instrument: ScoringSpec, totals: RunTotals) -> tuple[Estimate, ...]:
    """Estimate every measure over all items. The primary bias scores are tested together: p-values
    after Holm over them, and intervals at the levels at which Holm decides."""
    custom = {m.name: instrument.estimate_of(m.name) for m in instrument.measures}
    scores = [m for m in instrument.primary() if m.null is not None and custom[m.name] is None]
    tested = totals.tested([(m, reach(instrument, m), {}) for m in scores])
    by_name = {estimate.name: estimate for estimate in tested}
    return tuple(
        custom[m.name] or by_name.get(m.name) or totals.estimate(m, reach(instrument, m))
        for m in instrument.measures
    )


def reach(instrument: ScoringSpec, measure: Measure) -> float:
    """Give the smallest bias that matters, in the measure's own unit."""
    return in_unit(instrument.matters, measure)


def not_run(run: RunReader) -> int:
    """How many items of its plan a run has not come to yet."""
    return run.planned - run.totals().items


def require(instrument: ScoringSpec, run: RunReader) -> None:
    """Refuse a run that another instrument made, or that may stop early: it has no fixed size."""
    made_by(instrument, run)
    refuse(run)


def made_by(instrument: ScoringSpec, run: RunReader) -> None:
    """Refuse a run that another instrument made."""
    maker = run.record.source.get("benchmark")
    if maker != instrument.name:
        command = f"`evenhand measure {maker}`" if maker else "another command"
        raise UserError(
            f"{run.path} was made by {command}, not by `evenhand measure {instrument.name}`"
        )


def groups_of(instrument: ScoringSpec, totals: RunTotals) -> Groups:
    """Estimate each group of each grouping; one that no item belongs to is absent, as in an older
    run folder. A measure that has a value for "no bias" gets a p-value with
    Holm over the groups of all groupings at once, because all of them were looked at, and its
    intervals are at the errors at which Holm decides."""
    values = {
        grouping.column: grouping.ordered(totals.values_of(grouping.column))
        for grouping in instrument.groups
    }
    results: dict[tuple[str, str, str], Estimate] = {}
    for measure in instrument.measures:
        columns = [
            grouping.column for grouping in instrument.groups if measure.name in grouping.measures
        ]
        places = [(column, value) for column in columns for value in values[column]]
        far = 2 * reach(instrument, measure)  # our choice: a group is small, so twice is asked
        where = [{column: value} for column, value in places]
        estimates = (
            [totals.estimate(measure, far, **group) for group in where]
            if measure.null is None
            else totals.tested([(measure, far, group) for group in where])
        )
        for (column, value), estimate in zip(places, estimates, strict=True):
            results[column, value, measure.name] = estimate
    return {
        grouping.column: {
            value: tuple(results[grouping.column, value, name] for name in grouping.measures)
            for value in values[grouping.column]
        }
        for grouping in instrument.groups
        if values[grouping.column]
    }
