"""The author of an instrument reads this: what an instrument is, and what it declares.

An instrument measures one thing. It brings its data and a sample of it as items, scores the rows of
a finished run, and declares the numbers to be computed. Reports, comparisons, the frontier, the
plan, dry runs, caps, resume and the command line follow from the declaration.

    class Titles(Instrument):
        name, title, clusters = "titles", "Job titles", "occupations"
        columns, facts = ("choice",), {"occupation": pl.String(), "gold": pl.Int64()}
        measures = (Measure(name="right", label="right", statistic=Mean(pl.col("right")),
                            better="higher", role="primary", margin=0.02, within=(0, 1)),)
        options = TitlesOptions

        def source(self, data, options): return TitlesSource(options.items)
        def outcomes(self, rows): return rows.select(...)

An audit is an instrument whose measures have bounds: `Measure(…, allowed=AuditBound(at_most=0.1))`
is a check. `evenhand audit NAME` runs it by the same code (`reward/` is the smallest).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import polars as pl
from pydantic import TypeAdapter, ValidationError

from evenhand.agents.agent import repairs_of
from evenhand.core import Item
from evenhand.core.errors import UserError, choices_for
from evenhand.findings.audit import Audit
from evenhand.findings.cluster_statistics import MeanOfClusters, OfMeans, OfTotals, ShareOfClusters
from evenhand.findings.display import RemarkOrText
from evenhand.findings.estimates import (
    BenchmarkSize,
    Cell,
    Estimate,
    Section,
    VerdictState,
    bounds_in_columns,
)
from evenhand.findings.measures import AuditBound, Grouping, Measure, PairedSpread, Statistic
from evenhand.findings.ratios import GroupResults, says
from evenhand.findings.report import Report
from evenhand.findings.scoring import ALWAYS, MISSING, SCORED, ScoringSpec, why_lost, with_facts
from evenhand.findings.summed_statistics import Mean, Ratio, Share, SumOfRatios
from evenhand.findings.totals import RunTotals
from evenhand.instruments._answers import AnsweredItems, fields_in, read_answers
from evenhand.instruments.files import InstrumentWords, card_of, score_of
from evenhand.interop import ExternalItem
from evenhand.methods import Method
from evenhand.runs.runners.source import ItemList, Source
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer

# -- how many items a method sent back ------------------------------------------------------------


MOST = 10  # our choice: later iterations are not told apart
_NAMES = tuple(f"refined_{k}" for k in range(1, MOST + 1))
_COLUMNS = ("items", "iteration", "refined", "low", "high", "of", "missing", "worst_low",
            "worst_high")  # fmt: skip


class _RevisionCounts(ScoringSpec):
    """Whether an item was sent back once, twice and so on."""

    name = "refined"
    title = "sent back"
    clusters = "clusters"
    columns = ()
    measures = tuple(
        Measure(name=name, label=name, statistic=Share(pl.col("iterations") >= k), within=(0, 1))
        for k, name in enumerate(_NAMES, start=1)
    )
    groups = (Grouping(column="part", measures=_NAMES),)


def keeps_drafts(run: RunReader) -> bool:
    """Say whether the run's method sends drafts back, so that its drafts are versions of one
    answer."""
    return repairs_of(run.record.method["name"]) is not None


def refined(instrument: ScoringSpec, run: RunReader) -> tuple[Section, ...]:
    """Give the share of items that were refined in each iteration, of all and of each part of the
    items: conditions, buckets. An item that failed may have been refined or not."""
    if not keeps_drafts(run):
        return ()
    totals = RunTotals.of(_RevisionCounts(), _counted(instrument, run))
    # One further than anybody went, so that "nobody" has its interval too.
    last = min(
        MOST, 1 + max((k for k, estimate in _estimates(totals) if estimate.value), default=0)
    )
    rows = [("all", k, *_cells(estimate)) for k, estimate in _estimates(totals, last)]
    for part in totals.values_of("part"):
        rows += [
            (part, k, *_cells(estimate)) for k, estimate in _estimates(totals, last, part=part)
        ]
    title = "share of items refined in each iteration"
    return (Section(name="refined", title=title, columns=_COLUMNS, rows=tuple(rows)),)


def _estimates(totals: RunTotals, last: int = MOST, **where: str) -> list[tuple[int, Estimate]]:
    """Give each iteration with the share of items that were refined in it."""
    counted = enumerate(_RevisionCounts.measures[:last], start=1)
    return [(k, totals.estimate(measure, **where)) for k, measure in counted]


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    worst = bounds_in_columns(estimate.bounds)
    ends = (
        (worst["worst_low"], worst["worst_high"])
        if estimate.bounds
        else (estimate.value, estimate.value)
    )
    return estimate.value, estimate.low, estimate.high, estimate.n, worst["missing"], *ends


def _counted(instrument: ScoringSpec, run: RunReader) -> Iterator[pl.DataFrame]:
    """Yield how often each item was sent back: its method says so, or has a draft for each time."""
    score = instrument.scoring(run)
    by = instrument.covered_by or next((grouping.column for grouping in instrument.groups), None)
    reported = score_of("scores_after", "iterations")
    answered = pl.col("status") == "answered"
    times = pl.coalesce(reported, pl.col("drafts").list.len().cast(pl.Float64) - 1)
    columns = (*ALWAYS, *instrument.columns, "tags", "scores_after", "drafts")
    for rows in run.result_batches(tuple(dict.fromkeys(columns))):
        sent = rows.select(
            "item_id",
            state=pl.when(answered).then(pl.lit(SCORED)).otherwise(pl.lit(MISSING)),
            iterations=pl.when(answered).then(times),
        )
        scored = score(with_facts(rows, instrument))
        part = pl.lit(None, pl.String) if by is None else pl.col(by)
        yield scored.select("item_id", "cluster", part=part).join(sent, on="item_id")


# -- items in memory ------------------------------------------------------------------------------


class ListedItems(ItemList):
    """The items of an instrument, listed in memory.

    >>> ListedItems(self, [Item(id="1", prompt="…", tags={"occupation": "nurse"})])

    `sampling` is what decided which items these are. Two runs can be compared where it is equal.
    `also` holds further fields of the record; a `sha256` in it replaces that of the items.
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


# -- the instrument -------------------------------------------------------------------------------


_WORDS = InstrumentWords(__package__)


def no_answers(name: str) -> str:
    """Say why a set of log-probabilities has no recorded answers."""
    return (
        f"{name} compares log-probabilities of texts and asks no question, so there are no answers "
        "to score. Omit --answers, or use a benchmark that asks, such as bbq or subtler_choices"
    )


__all__ = [
    "SCORED",
    "AuditBound",
    "DataFolder",
    "FurtherRun",
    "Grouping",
    "Instrument",
    "InstrumentWords",
    "Mean",
    "MeanOfClusters",
    "Measure",
    "OfGroups",
    "OfMeans",
    "OfTotals",
    "PairedSpread",
    "Ratio",
    "Services",
    "Share",
    "ShareOfClusters",
    "Statistic",
    "SumOfRatios",
    "card_of",
    "option",
    "tests_of",
    "thinking_option",
    "why_lost",
]


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The data folder says where data sets lie: a folder of the user's, and the cache that
    downloads go to."""

    local: Path | None
    cache: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of an instrument that has none."""


def option(default: Any, help_: str, *, least: float | None = None, flag: str | None = None) -> Any:
    """Declare a field of a benchmark's options, with its `--help` text.

    Args:
        default: Value if the user does not set the option.
        help_: One sentence that `--help` prints.
        least: Smallest allowed number. None: any.
        flag: Name on the command line, if it differs from the field's.

    Returns:
        A dataclass field, typed `Any` so that it can stand for the option's own type.
    """
    return field(default=default, metadata={"help": help_, "least": least, "flag": flag})


def thinking_option() -> Any:
    """Declare the option `thinking` of a benchmark whose models may think aloud. The caller of the
    benchmark scores it, and the report has a table of it."""
    return option(
        None,
        "Also score the model's reasoning, separately from its answer: offline, a scorer from"
        " the config, or KIND=URL.",
    )


class Services(Protocol):
    """Services that the caller provides to a benchmark."""

    def scorer(self, name: str) -> Scorer:
        """Give a scorer by its name: built in, of the config, or KIND=URL. The same name gives the
        same scorer."""
        ...

    async def close(self) -> None:
        """Close all scorers that were given out. The caller of the benchmark does this."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherRun:
    """A further run is a second run within the folder of the first, such as a judge of the texts
    that it made. It is recorded, resumed and capped as any run."""

    folder: str
    source: Source
    method: Method


class Instrument(ScoringSpec):
    """An instrument is a thing that measures, whole: data, items, outcomes and measures. See
    `ScoringSpec` for the half that reads a finished run."""

    options: ClassVar[type[Any]] = NoOptions  # a frozen dataclass; each field is made by `option`
    asks: ClassVar[Literal["answers", "likelihoods", "nobody"]] = "answers"
    # How the fields of a recorded answer name its item. None: `--answers` is read in another way.
    answer_id: ClassVar[str | None] = "{id}"
    every_item: ClassVar[Mapping[str, Any]] = {}  # the options that draw all items
    # The tag of items that are scored together: where one has a recorded answer, that of another
    # without one is missing.
    together: ClassVar[str | None] = None
    silence: ClassVar[bool] = False  # an empty answer says something, and is not missing
    answer_tokens: ClassVar[str | None] = None  # the option that says where an answer is cut
    elsewhere: ClassVar[tuple[str, ...]] = ()  # its names as a task of other tools: `import`
    asked_by: ClassVar[str] = "default"  # the method of its command where none is named
    must_pass: ClassVar[bool] = False  # `audit` ends with code 2 unless it passed
    asks_again: ClassVar[bool] = False  # equal words are asked several times, for several answers

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Add the option `answers` to an instrument that asks."""
        super().__init_subclass__(**kwargs)
        names = [spec.name for spec in fields(cls.options)]
        if cls.asks == "answers" and cls.answer_id is not None and "answers" not in names:
            of_rows = ", ".join(fields_in(cls.answer_id))
            logs = ", or a log of Inspect or lm-evaluation-harness" if cls.elsewhere else ""
            answers = option(
                None,
                f"Existing answers to score instead of asking: JSON lines with {of_rows} and "
                f"answer, or a run folder{logs}.",
            )
            cls.options = make_dataclass(
                cls.options.__name__, [("answers", Path | None, answers)], bases=(cls.options,),
                frozen=True, slots=True, kw_only=True,
            )  # fmt: skip

    def with_services(self, options: Any, services: Services) -> "Instrument":
        """Return the instrument with what it takes of the services before its items are drawn."""
        return self

    def source(self, data: DataFolder, options: Any) -> Source:
        """Give the items that are asked, drawn from the data by these options."""
        raise NotImplementedError

    def questions(self, data: DataFolder, options: Any) -> Source:
        """Give the items that are asked, or those that a file of recorded answers answers."""
        if self.answer_id is None or not self.stores_answers(options):
            return self.source(data, options)
        self.refuse_selection(options)
        return self.answered(data, options, options.answers)

    def refuse_selection(self, options: Any) -> None:
        """Refuse options that select items, where recorded answers do."""
        specs = {spec.name: spec for spec in fields(self.options)}
        chosen = [name for name in self.every_item if getattr(options, name) != specs[name].default]
        if chosen:
            flags = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise UserError(f"--answers selects the items. Omit {flags}")

    def answered(self, data: DataFolder, options: Any, file: Path) -> Source:
        """Give the items that a file has answers to.

        Args:
            data: Where the dataset is stored or downloaded to.
            options: Options of this benchmark.
            file: The recorded answers.

        Returns:
            The items, each with its answer.

        Raises:
            UserError: The file cannot be read, or an answer belongs to no item.
        """
        assert self.answer_id is not None
        answers = read_answers(file, self.name, self.answer_id)
        every = self.source(data, replace(options, **self.every_item))
        return AnsweredItems(every, answers, together=self.together, silence=self.silence)

    def no_sample(self, report: Report) -> str:
        """State that recorded answers to a part of the items are no sample of them."""
        stored = report.source["sampling"].get("stored")
        part = isinstance(stored, Mapping) and stored.get("items", 0) < stored.get("of", 0)
        return _WORDS("no_sample") if part else ""

    def stores_answers(self, options: Any) -> bool:
        """Say whether the items carry answers that exist already, so that nobody is asked."""
        return getattr(options, "answers", None) is not None

    def asked(self, run: RunReader, data: DataFolder) -> Mapping[str, ExternalItem] | None:
        """Give each item of a run as the data have it, by its name: what `export` needs for logs
        of other tools. None where the run folder holds all there is."""
        return None

    def worded(self, method: Method, options: Any) -> Method:
        """Give the method as these items want it asked, such as in their own language."""
        return method

    def players(self, options: Any, method: Method) -> Mapping[str, str | None]:
        """Name the models of the config that play the roles of an audit, and no others; None: who
        plays the role in the cast. Empty where the config alone says who plays what."""
        return {}

    def remarks(self, options: Any, items: int) -> tuple[str, ...]:
        """Tell what a person should know of the items before they are asked, such as their number
        where it is not the one that was named."""
        return ()

    def check(
        self, options: Any, method: Method, players: Mapping[str, str], services: Services
    ) -> None:
        """Refuse what must not be run, before any model call.

        Args:
            options: Options of this benchmark.
            method: Mitigation method that answers the items.
            players: Name of the model or scorer of every role that the method asks.
            services: Gives scorers by name.

        Raises:
            UserError: The method or a model does not fit this benchmark.
        """

    async def complete(self, run: RunReader, options: Any, services: Services) -> None:
        """Add to a finished run what scoring needs in addition to its answers; it may be called
        again.

        Args:
            run: The finished run. Additions are written into its directory.
            options: Options of this benchmark.
            services: Gives scorers by name.
        """

    def further(self, run: RunReader, options: Any) -> FurtherRun | None:
        """Give the second run that these options ask for, once the first has ended."""
        return None

    def must_certify(self, options: Any) -> Method | None:
        """Give the method of the second run whose judges must hold a certificate before the first
        run asks anything; None where they need none."""
        return None

    def certified_within(self, run: RunReader) -> tuple[RunReader, Method] | None:
        """Give the second run of a run, with its method, where its judges needed a certificate."""
        return None

    def keep(self, audit: Audit, options: Any, certificates: Path | None) -> None:
        """Save the result of an audit where later runs look for it.

        Args:
            audit: The audit, passed or not; `audit.more` names its run.
            options: Options of this benchmark.
            certificates: Directory of certificates from the config. None if it names none.
        """

    def sections_of_method(self, run: RunReader) -> tuple[Section, ...]:
        """Say how many items were sent back in each iteration, where the method does so."""
        return refined(self, run)

    def whole(self, report: Report) -> BenchmarkSize | None:
        """Return what the card says that the data hold, of a run over them."""
        if report.source.get("benchmark") != self.name:
            return None
        try:
            data = self.card().get("data", {})
        except (OSError, ImportError, ValueError):  # no data of its own
            return None
        items = data.get("items")
        return None if items is None else BenchmarkSize(items=items)

    def card(self) -> dict[str, Any]:
        """Read version, license, revision and checksums of the data from `card.yaml`, next to the
        code."""
        return card_of(type(self).__module__.rpartition(".")[0])

    def options_from(self, values: Mapping[str, Any]) -> Any:
        """Make the options with these values; an unknown name is refused with those that exist."""
        names = [spec.name for spec in fields(self.options)]
        unknown = sorted(set(values) - set(names))
        if "answers" in unknown and self.asks == "likelihoods":
            raise UserError(no_answers(self.name))
        if unknown:
            raise UserError(
                f"{self.name} has no option {unknown[0]!r}. {choices_for(unknown[0], names)}"
            )
        try:
            options = TypeAdapter(self.options).validate_python(dict(values))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UserError(f"{self.name}: {first['loc'][0]}: {first['msg']}") from None
        for spec in fields(self.options):
            least, value = spec.metadata.get("least"), getattr(options, spec.name)
            if least is not None and value is not None and value < least:
                raise UserError(
                    f"{self.name}: {spec.name} is {value}, but must be at least {least}"
                )
        return options


# -- instruments of groups: who is selected ------------------------------------------------------


class OfGroups(Instrument):
    """An instrument that judges who is selected: a measure and a rate for each group of a run."""

    measures = ()  # one for each group of a run: `for_run`
    whom = "ratios_"
    results: GroupResults | None = None  # of one run

    def estimate_of(self, name: str) -> Estimate | None:
        return None if self.results is None else self.results.estimate(name)

    def state_of(self, report: Report) -> VerdictState | None:
        return None if self.results is None else self.results.state

    def said(self, report: Report, selected: str) -> tuple[RemarkOrText, ...]:
        """State the main result. Empty if no rate could be computed."""
        if self.results is None or report.section("ratios_0") is None:
            return ()
        missing = report.coverage.n - report.coverage.scored
        return tuple(says(self.results, selected=selected, missing=missing))


def tests_of(results: GroupResults) -> list[tuple[str, float, float]]:
    """Give each grouping that was tested as a whole: its title, p and the adjusted p."""
    return [
        (grouping.title, grouping.p, grouping.p_adjusted)
        for grouping in results.groupings
        if grouping.p is not None and grouping.p_adjusted is not None
    ]
