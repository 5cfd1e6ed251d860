"""A comparison of two runs over the same items says what changed, what got worse, and what could
not be told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings import cost as costs
from evenhand.findings.conditions import ORDER, WORDING, conditions, require_one_system
from evenhand.findings.decision_rules import (
    adjusted,
    direction,
    exploratory,
    guardrail,
    missing_line,
)
from evenhand.findings.display import Displayable, Remark, RemarkOrText, named
from evenhand.findings.estimates import (
    NO_VERDICT,
    Change,
    Coverage,
    Flips,
    GuardrailTest,
    Section,
    Verdict,
    bounds_in_columns,
)
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairedBin, PairTotals
from evenhand.findings.report import Side, not_run, require
from evenhand.findings.scoring import (
    SCORED,
    Scoring,
    ScoringSpec,
    keys_of,
    missing_of,
    outcome_batches,
    row_values,
)
from evenhand.findings.verdicts import of_comparison
from evenhand.interop import Origin
from evenhand.runs.store import RunReader
from evenhand.runs.store.run_record import FieldDiff

_COLUMNS = {name: pl.Float64 for name in ("before", "after", "difference", "low", "high", "p",
                                          "p_holm", "p_bh")}  # fmt: skip
_FIELDS = [f for f in Change.__dataclass_fields__ if f not in ("bounds", "limits", "test")]


VARIES = "varies"  # in place of a word, such as which option was picked, that the runs disagree on


Runs = tuple[RunReader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Displayable):
    """A comparison says what changed from one run to the other, on the items that both answered.

    >>> diff = evenhand.compare("runs/before", "runs/after")
    >>> diff.guardrails, diff["s_amb"].p_holm, diff.frame()
    """

    instrument: ScoringSpec
    before: Side
    after: Side
    differ: tuple[FieldDiff, ...]  # what differs between the two runs apart from their answers
    items: int
    primary: tuple[Change, ...]  # with Holm over them
    secondary: tuple[Change, ...]  # exploratory, with Benjamini-Hochberg over them
    groups: Mapping[str, Mapping[str, tuple[Change, ...]]]  # column -> value -> primary changes
    regressions: Mapping[str, tuple[str, ...]]  # value of a group -> measures that got worse
    flips: Mapping[str, Flips]
    transitions: tuple[tuple[str, str, int], ...]
    places: Mapping[
        str, tuple[PairedBin, ...]
    ]  # the first primary measure -> where its clusters lie
    coverage: tuple[Coverage, Coverage]  # of each run, over the items that both have ended
    coverage_by: Mapping[str, tuple[Coverage, Coverage]]  # by a column, such as the condition
    not_run: tuple[int, int]  # items that a run has not come to yet
    cost: tuple[costs.Cost, costs.Cost]
    repairs: bool = False  # the second run repaired the answers of the first: its cost is on top
    sections: tuple[Section, ...] = ()
    notes: tuple[RemarkOrText, ...] = ()
    guardrails: tuple[GuardrailTest, ...] = ()
    verdict: Verdict = NO_VERDICT

    def __getitem__(self, name: str) -> Change:
        """Give the change of a measure over all items, by the measure's name."""
        return named((*self.primary, *self.secondary), name, "change of")

    @property
    def same(self) -> bool:
        """Whether every item has a result in both runs, and the same one."""
        changes = [
            change for change in (*self.primary, *self.secondary) if change.difference is not None
        ]
        complete = all(side.scored == side.n for side in self.coverage)
        complete = complete and not any(change.bounds for change in changes)
        moved = any(old != new for old, new, _ in self.transitions)
        alike = all(change.se == 0 == change.difference for change in changes)
        return bool(changes) and complete and alike and not moved

    def judged(self) -> Iterator[tuple[Change, Measure]]:
        """Yield the primary changes, each with the measure that says which way is better; of an
        instrument that has none, all of its changes, each after the correction of its family."""
        by_name = {measure.name: measure for measure in self.instrument.measures}
        for change in self.primary or self.secondary:
            if change.name in by_name:
                yield change, by_name[change.name]

    def frame(self) -> pl.DataFrame:
        """Give one row per change: its role, group and name, the values before and after, the
        difference with its interval and p-values, n, clusters, and why it has no value."""
        rows = [("primary", "all", change) for change in self.primary]
        rows += [("secondary", "all", change) for change in self.secondary]
        for values in self.groups.values():
            rows += [
                ("group", value, change) for value, changes in values.items() for change in changes
            ]
        plain = [
            {"role": role, "group": group}
            | {f: getattr(change, f) for f in _FIELDS}
            | bounds_in_columns(change.bounds)
            for role, group, change in rows
        ]
        return pl.DataFrame(plain, schema_overrides=_COLUMNS, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        old, new = self.cost
        return {
            "benchmark": self.instrument.name,
            "before": self.before,
            "after": self.after,
            "differ": [difference._asdict() for difference in self.differ],
            "items": self.items,
            "not_run": {"before": self.not_run[0], "after": self.not_run[1]},
            "coverage": {"before": self.coverage[0], "after": self.coverage[1]},
            "coverage_by": {
                value: {"before": old, "after": new}
                for value, (old, new) in self.coverage_by.items()
            },
            "verdict": self.verdict,
            "guardrails": self.guardrails,
            "primary": self.primary,
            "secondary": self.secondary,
            "answers": self.flips,
            "transitions": self.transitions,
            "places": self.places,
            "groups": self.groups,
            "regressions": self.regressions,
            "sections": {section.name: section for section in self.sections},
            "notes": self.notes,
            "cost": {"before": old, "after": new},
            **({"repairs": True} if self.repairs else {}),
        }


def _repairs(before: RunReader, after: RunReader) -> bool:
    """Say whether the second run repaired the very answers of the first."""
    origin = Origin.of(after.record.source)
    if origin is None or not _is_repair(after):
        return False
    return origin.sha256 == before.digests()["answers"]


def _is_repair(run: RunReader) -> bool:
    """Say whether a run repaired stored answers, which cost nothing in it."""
    return bool(run.record.method["settings"].get("first") == "stored")


def _differences(before: RunReader, after: RunReader) -> tuple[FieldDiff, ...]:
    """Name what two runs have otherwise; of a run that repaired the answers of the other, only the
    method, as the model, the limits and the seed are those of the answers."""
    differences = before.record.told_apart(after.record)
    if not _repairs(before, after):
        return differences
    return tuple(difference for difference in differences if difference.part == "method")


def compare(
    instrument: ScoringSpec,
    before: RunReader | Sequence[RunReader],
    after: RunReader | Sequence[RunReader],
) -> Comparison:
    """Read both runs once, side by side, and test what changed. A side of several runs is their
    mean, item by item.

    Args:
        instrument: The benchmark that both sides ran.
        before: The baseline, as one run or several.
        after: The run or runs to compare with the baseline.

    Returns:
        The changes of all metrics, with their tests.

    Raises:
        UserError: If the runs do not share their benchmark and sample.
    """
    old, new = _sides(instrument, before, after)
    first, last = old[0], new[0]
    instrument = instrument.for_pair(first, last)
    pairs = _paired(instrument, old, new)
    single = len(old) == len(new) == 1  # an instrument's own tables are of two runs
    primary = adjusted([pairs.change(measure) for measure in instrument.primary()])
    secondary = [m for m in instrument.measures if m.role != "primary"]
    guardrails = adjusted([pairs.change(m) for m in secondary if m.margin is not None])
    others = exploratory([pairs.change(m) for m in secondary if m.margin is None])
    by_name = {change.name: change for change in (*guardrails, *others)}
    groups = {
        grouping.column: _group(instrument, pairs, grouping.column)
        for grouping in instrument.groups
        if grouping.compared
    }
    comparison = Comparison(
        instrument=instrument,
        before=Side.of(*old),
        after=Side.of(*new),
        differ=_differences(first, last),
        repairs=_repairs(first, last),
        items=pairs.items,
        primary=tuple(primary),
        secondary=tuple(by_name[m.name] for m in secondary),
        groups=groups,
        regressions=_regressions(instrument, groups),
        flips={m.name: pairs.flips(m) for m in instrument.measures if m.counts_flips},
        transitions=_in_order(pairs),
        places={m.name: pairs.places(m) for m in instrument.primary()[:1]},
        coverage=pairs.coverage(),
        coverage_by=pairs.coverage_by(),
        not_run=(sum(map(not_run, old)), sum(map(not_run, new))),
        cost=(costs.cost_of_runs(old), costs.cost_of_runs(new)),
        sections=instrument.sections_of_pair(first, last) if single else (),
        notes=(*_notes_of(old, new), *(instrument.notes_of_pair(first, last) if single else ())),
    )
    comparison = replace(comparison, guardrails=_guardrails(comparison, first, last))
    return replace(comparison, verdict=of_comparison(comparison))


def change_between(
    instrument: ScoringSpec, before: RunReader, after: RunReader, name: str
) -> Change:
    """Read both runs and test one measure alone, as `compare` does before any adjustment.

    Args:
        instrument: The benchmark of both runs.
        before: The baseline.
        after: The run to compare with the baseline.
        name: The measure.

    Returns:
        The change of the measure, not adjusted.

    Raises:
        UserError: If the runs do not share their benchmark and sample.
    """
    old, new = _sides(instrument, before, after)
    instrument = instrument.for_pair(before, after)
    return _paired(instrument, old, new).change(instrument.measure(name))


def _sides(
    instrument: ScoringSpec,
    before: RunReader | Sequence[RunReader],
    after: RunReader | Sequence[RunReader],
) -> tuple[Runs, Runs]:
    """Give the runs of both sides, checked to be comparable."""
    old, new = [(side,) if isinstance(side, RunReader) else tuple(side) for side in (before, after)]
    for side in (old, new):
        _check(instrument, side, old)
    return old, new


def _paired(instrument: ScoringSpec, old: Runs, new: Runs) -> PairTotals:
    """Sum up the rows of both sides, item by item."""
    ours = [instrument.scorings(run, new[0])[0] for run in old]
    theirs = [instrument.scorings(old[0], run)[1] for run in new]
    return PairTotals.of(
        instrument, _rows_of(instrument, old, ours), _rows_of(instrument, new, theirs)
    )


def together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Adjust comparisons that are looked at at once, with Holm over the primary changes of all of
    them."""
    family = iter(adjusted([change for comparison in comparisons for change in comparison.primary]))
    results = []
    for comparison in comparisons:
        changed = replace(comparison, primary=tuple(islice(family, len(comparison.primary))))
        judged = {m.name: guardrail(c, m) for c, m in changed.judged() if m.margin is not None}
        lines = tuple(judged.get(line.name, line) for line in comparison.guardrails)
        changed = replace(changed, guardrails=lines)
        results.append(replace(changed, verdict=of_comparison(changed)))
    return results


def _check(instrument: ScoringSpec, side: Runs, before: Runs) -> None:
    if not side:
        raise UserError("a comparison needs a run on each side: `evenhand compare RUN_A RUN_B`")
    for run in side:
        require(instrument, run)
        same_sample(before[0], run)
        refuse_who_picked(run)
    _require_averages(instrument, side)


def refuse_who_picked(run: RunReader) -> None:
    """Refuse to compare a system on items that were picked because it failed on them: any other
    system, and the same one asked again, does better on them by chance alone."""
    who = Side.of(run)
    answered = who.picked_by_itself(run.record.source)
    if answered:
        raise UserError(
            f"these items were picked because {who.model} ({who.method['name']}) answered them "
            f"{answered}: whatever is compared with it on them looks better by chance "
            "alone. Compare two other systems on them, or both on a sample that nobody picked"
        )


def same_sample(before: RunReader, after: RunReader) -> None:
    """Refuse two runs that do not ask the same things. The order in which options are shown is a
    condition and no part of the sample; nor is how a sample was drawn, where one side is answers
    that were stored: those say which items they answer, and not how they came to be those."""
    ours, theirs = before.record.source, after.record.source
    samplings = ours["sampling"], theirs["sampling"]
    alike = samplings[0] == samplings[1] or (
        any("stored" in sampling for sampling in samplings)
        and samplings[0].get("of") == samplings[1].get("of")
    )
    if ours["sha256"] != theirs["sha256"] or not alike:
        raise UserError(
            "the two runs are over different samples; repeat one with the sampling of the other: "
            f"{ours['sampling']} and {theirs['sampling']}"
        )


def _group(
    instrument: ScoringSpec, pairs: PairTotals, column: str
) -> dict[str, tuple[Change, ...]]:
    grouping = next(group for group in instrument.groups if group.column == column)
    values = grouping.ordered(pairs.values_of(column))
    primary = instrument.primary()
    return {v: tuple(pairs.change(m, **{column: v}) for m in primary) for v in values}


def _regressions(
    instrument: ScoringSpec, groups: Mapping[str, Mapping[str, tuple[Change, ...]]]
) -> dict[str, tuple[str, ...]]:
    """Look for regressions in every group at once, with Holm over all of them."""
    tested = [
        (value, change)
        for values in groups.values()
        for value, changes in values.items()
        for change in changes
    ]
    after_holm = adjusted([change for _, change in tested])
    regressions: dict[str, tuple[str, ...]] = {}
    for (value, _), change in zip(tested, after_holm, strict=True):
        measure = instrument.measure(change.name)
        if direction(change, measure) == "regressed":
            regressions[value] = (*regressions.get(value, ()), change.name)
    return regressions


def _in_order(pairs: PairTotals) -> tuple[tuple[str, str, int], ...]:
    ordered = sorted(pairs.transitions.items(), key=lambda pair: (-pair[1], *map(str, pair[0])))
    return tuple((old, new, n) for (old, new), n in ordered)


def _guardrails(
    comparison: Comparison, before: RunReader, after: RunReader
) -> tuple[GuardrailTest, ...]:
    """Collect the guardrails: every measure with a margin, the missing answers, each group that got
    worse, and what the instrument adds; those that are crossed come first."""
    instrument = comparison.instrument
    lines = [guardrail(comparison[m.name], m) for m in instrument.measures if m.margin is not None]
    lines.append(missing_line({"": comparison.coverage, **comparison.coverage_by}))
    for measure in instrument.primary():
        worse = [value for value, names in comparison.regressions.items() if measure.name in names]
        if worse:
            remark = Remark("guardrail.by_group", measure=measure.label, groups=tuple(worse))
            lines.append(
                GuardrailTest(name=f"{measure.name}_by_group", state="violated", says=remark)
            )
    lines += instrument.guardrails(comparison, before, after)
    once: dict[RemarkOrText, GuardrailTest] = {}  # several measures may lack the same
    for line in lines:
        once.setdefault(line.says, line)
    order = ("violated", "inconclusive", "non_inferior")
    return tuple(sorted(once.values(), key=lambda line: order.index(line.state)))


def _require_averages(instrument: ScoringSpec, runs: Runs) -> None:
    """Refuse to average what has no mean over runs: those of two systems, and a measure of a whole
    cluster such as a maximum, which is another number for means than for answers."""
    if len(runs) < 2:
        return
    require_one_system(runs)
    for measure in instrument.measures:
        if not measure.statistic.averages:
            raise UserError(
                f"{instrument.name} cannot average runs, because of: {measure.label}. It is a "
                f"number of all answers to one of the {instrument.clusters}; compare one run with "
                "one, and let each ask more"
            )


def _rows_of(
    instrument: ScoringSpec, runs: Runs, scorings: Sequence[Scoring]
) -> Iterator[pl.DataFrame]:
    """Yield the outcomes of a side's one run, or the mean of its several ones item by item.

    An item counts where every run has come to it. It has a value where every run has an answer: one
    that is missing once is missing. A measure that is not about every answer (such as those that
    name somebody) is averaged over the answers that it is about. Several runs are held in memory.
    """
    batches = [
        outcome_batches(instrument, run, scoring)
        for run, scoring in zip(runs, scorings, strict=True)
    ]
    if len(runs) == 1:
        yield from batches[0]
        return
    rows = pl.concat([row_values(batch, instrument) for each in batches for batch in each])
    keys = ["item_id", *keys_of(instrument)]
    lost = pl.col("state").filter(pl.col("state") != SCORED)
    complete = {name: lost.len() == 0 for name in rows.columns}
    for (
        measure
    ) in instrument.measures:  # of which a value may be missing even where the score is not
        complete |= dict.fromkeys(measure.columns(), ~pl.col(missing_of(measure)).any())
    means = rows.group_by(keys, maintain_order=True).agg(
        pl.len().alias("asked"),
        pl.coalesce(lost.first(), pl.lit(SCORED)).alias("state"),
        *(
            _mean(rows[name], complete[name])
            for name in rows.columns
            if name not in (*keys, "state")
        ),
    )
    yield means.filter(pl.col("asked") == len(runs)).drop("asked")


def _mean(column: pl.Series, complete: pl.Expr) -> pl.Expr:
    value = pl.col(column.name)
    if column.dtype == pl.Boolean:
        return value.any()
    if column.dtype.is_numeric():
        return pl.when(complete).then(value.mean())
    return pl.when(value.n_unique() == 1).then(value.first()).otherwise(pl.lit(VARIES))


def _notes_of(before: Runs, after: Runs) -> tuple[Remark, ...]:
    """Return of how many runs each side is the mean, and what the two sides were shown
    otherwise. A repair was shown nothing: it took the answers."""
    remarks = []
    if len(before) > 1 or len(after) > 1:
        remarks.append(Remark("comparison.averaged", before=len(before), after=len(after)))
    if _repairs(before[0], after[0]):
        return tuple(remarks)
    if any(_is_repair(run) for run in (*before, *after)):
        remarks.append(Remark("comparison.cost_of_repair"))
    for facet in (ORDER, WORDING):
        old, new = (_levels(side, facet) for side in (before, after))
        if old and new and old != new:
            remarks.append(Remark("comparison.other_condition", facet=facet, before=old, after=new))
    return tuple(remarks)


def _levels(runs: Runs, facet: str) -> list[int]:
    levels = {conditions(run.record)[facet] for run in runs}
    return sorted(level for level in levels if level is not None)
