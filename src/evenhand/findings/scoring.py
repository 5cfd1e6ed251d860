"""This is what findings need to know of an instrument: how its rows are scored and what is
computed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl

from evenhand.core.errors import REFUSAL, UnreadableReply, UserError
from evenhand.findings.display import RemarkOrText
from evenhand.findings.estimates import (
    BenchmarkSize,
    Estimate,
    GuardrailTest,
    Section,
    VerdictState,
)
from evenhand.findings.measures import Grouping, Measure, MeasureSeries, PairedSpread
from evenhand.runs.store import RunReader

if TYPE_CHECKING:
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.report import Report

Scoring = Callable[[pl.DataFrame], pl.DataFrame]

# What is read of a run's rows in addition to the columns that an instrument asks for.
ALWAYS = ("position", "item_id", "status", "reason", "calls", "prompt_tokens", "completion_tokens")
SCORED = "scored"
REFUSED, UNREADABLE, MISSING = "refused", "unreadable", "missing"


def why_lost() -> pl.Expr:
    """Say of a row without an answer why: the model refused, its reply could not be read, or there
    is none. A refusal is an outcome of its own, and never one of the options."""
    reason = pl.col("reason")
    return (
        pl.when(reason == f"{UnreadableReply.reason}:{REFUSAL}")
        .then(pl.lit(REFUSED))
        .when(reason.str.starts_with(UnreadableReply.reason))
        .then(pl.lit(UNREADABLE))
        .otherwise(pl.lit(MISSING))
    )


class ScoringSpec:
    """A scored instrument is the half of an instrument that reads a finished run. It needs the run
    folder alone.

    `outcomes` turns a run's rows into one row per item with the columns `item_id`, `cluster`,
    `state` ("scored", or why the score is missing), those that `groups` and `also_clusters` name,
    and whatever the measures read. A value that is not known is null, never 0.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    clusters: ClassVar[str]  # what a cluster is, in the plural: "templates"
    all_clusters: ClassVar[int | None] = None  # how many of them the data have
    columns: ClassVar[tuple[str, ...]]  # of the results that `outcomes` reads: "choice", "text"
    facts: ClassVar[
        Mapping[str, pl.DataType]
    ]  # what the source tagged each item with, and its type
    later_facts: ClassVar[tuple[str, ...]] = ()  # those that older run folders lack: null there
    measures: ClassVar[tuple[Measure, ...]]
    groups: ClassVar[tuple[Grouping, ...]] = ()
    series: ClassVar[tuple[MeasureSeries, ...]] = ()  # measures of one number in order: a chart
    also_clusters: ClassVar[tuple[str, ...]] = ()  # further columns of alike rows: widest interval
    covered_by: ClassVar[str | None] = None  # the column by which coverage is also given
    masked: ClassVar[tuple[str, ...]] = ()  # measures that leave out rows whose `masked` is true
    masked_because: ClassVar[str] = "records that the instrument masks"
    whom: ClassVar[str | None] = None  # how names of sections begin that say who is affected
    tallied: ClassVar[tuple[str, ...]] = ()  # columns whose combinations a report counts
    transitions: ClassVar[str | None] = None  # the column whose changes a comparison counts
    anchors: ClassVar[
        Mapping[str, Mapping[str, float]]
    ] = {}  # "random guessing" -> measure -> value
    further_runs: ClassVar[tuple[str, ...]] = ()  # folders of runs within a run, such as a judge's
    harm: ClassVar[str | None] = None  # the measure that a remedy is to lower
    utility: ClassVar[str | None] = None  # the measure that it must not cost
    prevented: ClassVar[str | None] = None  # the share that "one prevented" counts; harm without it
    overdone: ClassVar[bool] = False  # it measures no bias, but what remedies spoil
    matters: ClassVar[float] = 0.05  # our choice: the smallest change of harm that matters
    references: ClassVar[tuple[str, ...] | None] = None  # what a frontier holds methods against
    spread: ClassVar[PairedSpread | None] = None  # how much a paired change varies, for `plan`
    # Where it makes ratios of groups: one of several is selected each time, or each for itself.
    selects: ClassVar[Literal["one", "each"] | None] = None
    of_people: ClassVar[bool] = False  # it audits what was decided about people; no model is known

    def for_run(self, run: RunReader) -> "ScoringSpec":
        """Give the instrument as it reads this run: itself, or one with more measures where the
        run's method has stored more than its answers."""
        del run
        return self

    def for_pair(self, before: RunReader, after: RunReader) -> "ScoringSpec":
        """Give the instrument as it compares these runs: itself, or one whose measures are those of
        the groups that the runs have."""
        del before, after
        return self

    def estimate_of(self, name: str) -> Estimate | None:
        """Give the estimate of a measure by a test of the instrument's own; None where the usual
        one is right."""
        del name
        return None

    def state_of(self, report: "Report") -> VerdictState | None:
        """Give the state of the verdict where the instrument's own tests decide it, so that the
        headline is what its tables say."""
        del report
        return None

    def judged_by_default(self, group: tuple[str, str] | None) -> tuple[Measure, ...]:
        """Give the measures that a gate judges where a check names none: the harm, or else the
        first primary one. `group` is the column and the value that the check is about."""
        del group
        name = self.harm or next((measure.name for measure in self.primary()), None)
        return tuple(measure for measure in self.measures if measure.name == name)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Score rows of results, whose facts are columns of their declared type already."""
        raise NotImplementedError

    def scoring(self, run: RunReader) -> Scoring:
        """Give the function that scores this run's rows; one that needs more of the folder loads
        it."""
        del run
        return self.outcomes

    def stops_early(self) -> bool:
        """Say whether answers are scored as they come, so that a run may stop before its end."""
        return type(self).scoring is ScoringSpec.scoring

    def scorings(self, before: RunReader, after: RunReader) -> tuple[Scoring, Scoring]:
        """Give the functions that score two runs which are compared: both by the same rule."""
        return self.scoring(before), self.scoring(after)

    def judge_of(self, run: RunReader) -> str | None:
        """Name who marked the answers of this run, where a judge did; two judges are two scales."""
        del run
        return None

    def audited(self, report: "Report") -> str:
        """Name who an audit is of."""
        return report.side.model

    def notes(self, report: "Report", run: RunReader) -> tuple[str, ...]:
        """Write what a reader must know before using the numbers."""
        del report, run
        return ()

    def concluded(self, report: "Report", run: RunReader) -> "Report":
        """Give the report with what this instrument computes by a test of its own, before tables
        and verdict are made of it."""
        del run
        return report

    def says(self, report: "Report") -> tuple[RemarkOrText, ...]:
        """Say the main result in one or two sentences of plain words."""
        del report
        return ()

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        """Make the tables that only this instrument has."""
        del report, run
        return ()

    def whole(self, report: "Report") -> BenchmarkSize | None:
        """Return the size of the whole benchmark; None where it has no end, or nobody counted."""
        del report
        return None

    def no_sample(self, report: "Report") -> str:
        """Return why the items are not a sample, and so exclude no bias; empty if they are one."""
        del report
        return ""

    def sections_of_method(self, run: RunReader) -> tuple[Section, ...]:
        """Make the tables that follow from how the run's method works, whatever is measured."""
        del run
        return ()

    def notes_of_pair(self, before: RunReader, after: RunReader) -> tuple[str, ...]:
        """Write what a reader must know before using the numbers of a comparison."""
        del before, after
        return ()

    def sections_of_pair(self, before: RunReader, after: RunReader) -> tuple[Section, ...]:
        """Make the tables of a comparison that only this instrument has."""
        del before, after
        return ()

    def guardrails(
        self, comparison: "Comparison", before: RunReader, after: RunReader
    ) -> tuple[GuardrailTest, ...]:
        """Add guardrails beyond the metrics' own margins.

        Args:
            comparison: The comparison so far.
            before: The baseline.
            after: The other run.

        Returns:
            The additional guardrails; none by default.
        """
        del comparison, before, after
        return ()

    def measure(self, name: str) -> Measure:
        """Give the measure of this name."""
        return next(measure for measure in self.measures if measure.name == name)

    def compared_with(self) -> tuple[str, ...]:
        """Return the methods to compare every other one with. The first is the plain prompt. A vote
        (self-consistency) needs options to vote among, so free text is not compared with one."""
        if self.references is not None:
            return self.references
        plain = ("default", "fairness")
        return (*plain, "self_consistency") if "choice" in self.columns else plain

    def primary(self) -> tuple[Measure, ...]:
        return tuple(measure for measure in self.measures if measure.role == "primary")


def outcome_batches(
    instrument: ScoringSpec, run: RunReader, scoring: Scoring | None = None
) -> Iterator[pl.DataFrame]:
    """Yield the outcomes of a run batch by batch, so that memory does not grow with the run.

    Args:
        instrument: The benchmark, whose `outcomes` are computed.
        run: The run to read.
        scoring: Replaces the benchmark's own scoring of the run.

    Raises:
        UserError: If the benchmark does not return one outcome per item.
    """
    score = scoring or instrument.scoring(run)
    for rows in run.result_batches((*ALWAYS, *instrument.columns, "tags")):
        outcomes = score(with_facts(rows, instrument))
        if len(outcomes) != len(rows):
            raise UserError(
                f"{instrument.name} made {len(outcomes)} outcomes of {len(rows)} answers: give "
                "`outcomes` one row per item; a row that is not to count has a null, or is masked"
            )
        yield outcomes


def outcomes_of(instrument: ScoringSpec, run: RunReader) -> pl.DataFrame:
    """Give all outcomes of a run at once, in the order of its items: for a run that fits in
    memory."""
    batches = list(outcome_batches(instrument, run))
    if not batches:
        raise UserError(
            f"{run.path} has no finished item yet. Resume it with the command that started it."
        )
    order = run.results().select("item_id").collect()
    return order.join(pl.concat(batches), on="item_id", maintain_order="left")


def with_facts(rows: pl.DataFrame, instrument: ScoringSpec) -> pl.DataFrame:
    """Give the rows with each declared fact as a typed column instead of the list of tags.

    Nearly always every item has the same tags in the same order, so each is taken by its place:
    exploding them would hold all of them at once. A fact that has the name of a column of the
    results, such as "text", becomes `tag.text`.
    """
    tag_names = pl.col("tags").list.eval(pl.element().struct.field("name")).list.join(",")
    kinds = rows.select(tag_names)["tags"].unique().to_list()
    alike = len(kinds) == 1
    tag_sets = [set(kind.split(",")) if kind else set() for kind in kinds]
    names = (
        kinds[0].split(",")
        if alike and kinds[0]
        else sorted(set.intersection(*tag_sets, *tag_sets))
    )
    missing = sorted(set(instrument.facts) - set(names) - set(instrument.later_facts))
    if missing and len(rows):
        raise UserError(
            f"this run is not over {instrument.title}: its items lack {', '.join(missing)}"
        )
    values = {}
    for name, kind in instrument.facts.items():
        if name not in names:
            value = pl.lit(None, pl.String)
        elif alike:
            value = pl.col("tags").list.get(names.index(name)).struct[1]
        else:
            value = value_named("tags", name)  # slower, and seldom
        column = f"tag.{name}" if name in rows.columns else name
        values[column] = value.cast(kind, strict=False)
    return rows.with_columns(**values).drop("tags")


def value_named(column: str, name: str) -> pl.Expr:
    """The value of this name in a column of lists of names and values; null where there is none."""
    element = pl.element()
    matching = element.filter(element.struct.field("name") == name).struct.field("value")
    return pl.col(column).list.eval(matching).list.first()


MASKED = "masked"


def keys_of(instrument: ScoringSpec, groups: Sequence[Grouping] | None = None) -> list[str]:
    """List the columns that rows are summed by: groups and clusters."""
    grouped = [grouping.column for grouping in (instrument.groups if groups is None else groups)]
    return list(dict.fromkeys([MASKED, *grouped, "cluster", *instrument.also_clusters]))


def row_values(outcomes: pl.DataFrame, instrument: ScoringSpec) -> pl.DataFrame:
    """Give one row per item with nothing but its keys and the numbers that the measures need."""
    if MASKED not in outcomes.columns:
        outcomes = outcomes.with_columns(pl.lit(False).alias(MASKED))
    outcomes = outcomes.with_columns(pl.col(MASKED).fill_null(False))  # not known is not masked
    numbers = {name: expr for m in instrument.measures for name, expr in m.columns().items()}
    for measure in instrument.measures:
        numbers |= {missing_of(measure): _is_missing(measure), **_missing_in_parts(measure)}
    if numbers.keys() <= set(outcomes.columns):
        return outcomes  # they are such rows already: means over several runs
    further = [name for name in (instrument.transitions, instrument.covered_by) if name]
    names = dict.fromkeys(["item_id", "state", *keys_of(instrument), *further])
    return outcomes.select(*names, **numbers)


def values_per_item(instrument: ScoringSpec, run: RunReader) -> pl.DataFrame:
    """Give columns item_id, state, and one for each measure that has a number per item: null where
    it is missing, where the measure is not about the item, and where the item is masked for it. A
    ratio of sums has none, nor has what is counted over the texts of a cluster."""
    rows = row_values(outcomes_of(instrument, run), instrument)
    values = {}
    for measure in instrument.measures:
        column = f"{measure.name}.value"
        kind = rows.schema.get(column)
        if kind is not None and (kind.is_numeric() or kind == pl.Boolean):
            counts = rows_of(instrument, measure, {}) & ~pl.col(missing_of(measure))
            values[measure.name] = pl.when(counts).then(pl.col(column).cast(pl.Float64))
    return rows.select("item_id", "state", **values)


def rows_of(instrument: ScoringSpec, measure: Measure | None, where: Mapping[str, str]) -> pl.Expr:
    """Return a filter for the rows that a metric is computed from.

    Args:
        instrument: The benchmark, which names the metrics that leave out masked rows.
        measure: The metric; None to keep masked rows.
        where: The value that each grouping column must have.
    """
    masks = measure is not None and measure.name in instrument.masked
    rows = ~pl.col(MASKED) if masks else pl.lit(value=True)
    for column, value in where.items():
        rows &= pl.col(column) == value
    return rows


def missing_of(measure: Measure) -> str:
    """Name the column that says whether a row's value is missing."""
    return f"{measure.name}.missing"


def _is_missing(measure: Measure) -> pl.Expr:
    """A value is missing where the row has no score, or the measure says that it was lost, and the
    measure is about it, or may be: whether it is can depend on the answer."""
    lost = pl.col("state") != SCORED
    if measure.lost is not None:
        lost |= measure.lost.fill_null(False)
    return lost if measure.where is None else lost & measure.where.fill_null(True)


def _missing_in_parts(measure: Measure) -> dict[str, pl.Expr]:
    """A missing row belongs to a share if what is known of it does not say otherwise."""
    lost = _is_missing(measure)
    return {
        f"{missing_of(measure)}{index}": lost & (below.cast(pl.Float64) != 0).fill_null(True)
        for index, below in enumerate(measure.statistic.denominators())
    }
