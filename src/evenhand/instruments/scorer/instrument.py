"""The audit of a scorer as an instrument: labelled texts, what the scorer gives for them, and the
measures of that. No language model is asked unless the scorer does.

    evenhand.audit("scorer", options={"scorer": "wordlist"}, out="runs/wordlist")

A custom scorer is audited from Python by its name among the scorers of the call:

    evenhand.audit("scorer", options={"scorer": "mine"}, scorers={"mine": Mine()}, out="runs/mine")
"""

import asyncio
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import polars as pl

from evenhand.agents import Agent, Ask
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import ScorerFailed, UserError
from evenhand.findings.estimates import Cell, Estimate, Section
from evenhand.findings.scoring import ALWAYS, Scoring, outcomes_of, with_facts
from evenhand.instruments._contract import (
    SCORED,
    DataFolder,
    Grouping,
    Instrument,
    ListedItems,
    Measure,
    Services,
    option,
    why_lost,
)
from evenhand.instruments.files import InstrumentWords, names_in, score_of
from evenhand.instruments.scorer.measures import BENIGN_SETS, HATEFUL_SETS, MEASURES
from evenhand.instruments.scorer.sets import (
    DISGUISED,
    OF_SET,
    SAMPLE,
    TAGS,
    AuditTexts,
    ToxicitySets,
    gathered,
)
from evenhand.methods import Method
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer, Scores, Unscored
from evenhand.scorers.base import TOXICITY, score_all
from evenhand.statistics.metrics import scorer_intervals as intervals
from evenhand.statistics.metrics import scorer_quality as quality

_WORDS = InstrumentWords(__package__)

if TYPE_CHECKING:
    from evenhand.findings.report import Report

_SCORE = "score"
_GATHERING = 0.005  # seconds in which the items in flight join a batch
_MOST_ROWS = 8  # of kinds and groups, on a page; the JSON has all
_TRAINED = {"all": " (trained on)", "held_out": " (held-out fifth)"}
_Groups = Mapping[str, Mapping[str, Sequence[Estimate]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerOptions:
    scorer: str | None = option(
        None, "Scorer to audit: a name from `evenhand scorers list`, or KIND=URL[#MODEL]."
    )
    sets: str | None = option(
        None, "Datasets, comma-separated. Default: all available English datasets."
    )
    sample: int = option(
        SAMPLE, "Number of texts per dataset. Smaller datasets are used completely.", least=1
    )
    threshold: float = option(0.5, "Minimum score at which a text counts as toxic.", least=0)
    attribute: str = option(TOXICITY, "Attribute of the scorer to compare with the labels.")
    unseen_by: str | None = option(
        None,
        "Other scorers, comma-separated. Use only texts that none of them was trained on, so "
        "that audits are comparable.",
    )


@dataclass(frozen=True, kw_only=True)
class ScoreTexts:
    """Scores each text with one scorer. A text without a score fails for the scorer's reason."""

    name: ClassVar[str] = "score_texts"
    calls_an_item: ClassVar[str] = "0"

    scorer: str
    attribute: str
    described: Mapping[str, Any]

    @classmethod
    def of(cls, scorer: Scorer, attribute: str) -> Method:
        method = cls(scorer=scorer.name, attribute=attribute, described=scorer.describe())
        vars(method)["_batches"] = _Batches(scorer)  # not of the record
        return method

    def agents(self) -> tuple[Agent[Any], ...]:
        return ()

    async def answer(self, item: Item, ask: Ask) -> Answer:
        outcome: Scores | Unscored = await vars(self)["_batches"].score(item.prompt)
        if not isinstance(outcome, Unscored) and self.attribute not in outcome.values:
            outcome = Unscored("no_such_score", f"the answer has no {self.attribute}")
        if isinstance(outcome, Unscored):
            failure = ScorerFailed(f"{self.scorer}: {outcome.message}")
            vars(failure)["reason"] = outcome.reason
            raise failure
        scores = {_SCORE: outcome.values[self.attribute]}
        draft = Draft(text="; ".join(outcome.because), scores=scores)
        return Answer(drafts=(draft,), stopped="single_pass")


class _Batches:
    """Scores the texts of all items in flight at once: most scorers are much faster so."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._waiting: list[tuple[str, asyncio.Future[Scores | Unscored]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def score(self, text: str) -> Scores | Unscored:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Scores | Unscored] = loop.create_future()
        self._waiting.append((text, future))
        if len(self._waiting) == 1:
            task = loop.create_task(self._flush())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await future

    async def _flush(self) -> None:
        await asyncio.sleep(_GATHERING)
        waiting, self._waiting = self._waiting, []
        try:
            outcomes = (await score_all(self._scorer, [text for text, _ in waiting])).outcomes
        except Exception as error:  # a scorer never raises for a text: it is each item's failure
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), outcome in zip(waiting, outcomes, strict=True):
            if not future.done():
                future.set_result(outcome)


class ScorerAudit(Instrument):
    """Audits a scorer on labelled texts: where it can be trusted, and where not.

    AUC and calibration, harmless mentions of groups that it calls toxic, hateful texts that it
    misses, and texts in disguise. The labelled sets are fetched once, or read from the folder that
    EVENHAND_DATA names."""

    name = "scorer"
    title = "Scorer"
    clusters = "templates"
    asks = "nobody"
    columns = ("scores_after",)
    facts: ClassVar = dict.fromkeys(TAGS, pl.String())
    options = ScorerOptions
    measures: ClassVar[tuple[Measure, ...]] = MEASURES
    groups: ClassVar = (
        Grouping(
            column="set",
            measures=("false_positives", "misses", "auc", "kappa", "calibration_error",
                      "rank_correlation"),
            says_whom=False,
        ),
        *(
            Grouping(column=f"{which}_{part}", measures=(measure,), says_whom=False)
            for which, measure in (("harmless", "false_positives"), ("hateful", "misses"))
            for part in ("kind", "group")
        ),
        Grouping(column="trick", measures=("caught_in_disguise",), says_whom=False, compared=False),
    )  # fmt: skip
    harm = "misses"

    def __init__(self, texts: AuditTexts | None = None) -> None:
        """Make the audit.

        Args:
            texts: The texts. Default: those that the options name.
        """
        self._texts = texts
        self._scorer: Scorer | None = None
        self._unseen: frozenset[str] = frozenset()

    def with_services(self, options: ScorerOptions, services: Services) -> Self:
        """Return the audit of the scorer that the options name."""
        if options.scorer is None:
            raise UserError(
                "No scorer is named. Add --scorer NAME; `evenhand scorers list` lists them."
            )
        if options.threshold > 1:
            raise UserError(
                f"The threshold is {options.threshold:g}, and scores end at 1. Use --threshold 1 "
                "or less."
            )
        bound = copy.copy(self)
        scorer = bound._scorer = services.scorer(options.scorer)
        if options.attribute not in scorer.attributes:
            has = ", ".join(scorer.attributes)
            raise UserError(
                f"{scorer.name} has no score {options.attribute!r}. "
                f"Use --attribute with one of: {has}."
            )
        others = [services.scorer(name) for name in names_in(options.unseen_by)]
        bound._unseen = frozenset(
            name
            for each in (scorer, *others)
            for name, part in _trained_on(each).items()
            if part == "held_out"
        )
        return bound

    def source(self, data: DataFolder, options: ScorerOptions) -> ListedItems:
        if self._scorer is None:
            raise UserError(
                "This audit has no scorer yet. Call `with_services` first, or use "
                '`evenhand.audit("scorer", ...)`.'
            )
        texts, left_out = self._texts, dict[str, str]()
        if texts is None:
            sets = ToxicitySets(local=data.local, cache=data.cache)
            tables, left_out = gathered(sets, names_in(options.sets))
            texts = AuditTexts.sampled(tables, options.sample, self._unseen)
        return ListedItems(
            self,
            list(texts.items()),
            sampling={
                "sets": {name: len(table) for name, table in texts.tables.items()},
                "sample": options.sample,
                "unseen": sorted(self._unseen & texts.tables.keys()),
            },
            also={
                "threshold": options.threshold,
                "trained_on": _trained_on(self._scorer),
                "left_out": left_out,
            },
        )

    def worded(self, method: Method, options: ScorerOptions) -> Method:
        """Ask the scorer, whatever method was named."""
        assert self._scorer is not None
        return ScoreTexts.of(self._scorer, options.attribute)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return one row per text, with the text that it disguises."""
        return outcomes_at(rows, 0.5, {})

    def scoring(self, run: RunReader) -> Scoring:
        """Pair each disguised text with the plain one, which may be in another part of the run."""
        source = run.record.source
        threshold, trained = float(source["threshold"]), source["trained_on"]
        rows = with_facts(run.results().select(*ALWAYS, *self.columns, "tags").collect(), self)
        plain = _plain(_flagged(rows, threshold))
        return lambda part: _outcomes(_flagged(part, threshold), plain=plain, trained=trained)

    def stops_early(self) -> bool:
        return True  # the forms of a text are one cluster, so they are asked together

    def audited(self, report: "Report") -> str:
        return str(report.side.method["settings"]["scorer"])

    def notes(self, report: "Report", run: RunReader) -> tuple[str, ...]:
        """Codes of the sets that could not be had."""
        return tuple(f"left_out:{name}" for name in report.source["left_out"])

    def sections(self, report: "Report", run: RunReader) -> tuple[Section, ...]:
        """Labels and recorded scores, the two kinds of mistakes, and disguises, the worst first."""
        outcomes, groups = outcomes_of(self, run), report.groups
        tables = (
            _labels(outcomes, groups),
            _shares("false_positives", "harmless", groups),
            _shares("misses", "hateful", groups),
            _tricks(outcomes, groups),
            *curves(outcomes),
        )
        return tuple(section for section in tables if section.rows)

    def sections_of_pair(self, before: RunReader, after: RunReader) -> tuple[Section, ...]:
        """How far two scorers agree on the texts of a set that both scored."""
        sides = [outcomes_of(self, run) for run in (before, after)]
        return (_WORDS.table("agreement", agreement(sides[0], sides[1]), in_short=True),)


def _trained_on(scorer: Scorer) -> dict[str, str]:
    trained: Mapping[str, str] = scorer.describe().get("trained_on", {})
    return dict(trained)


# -- outcomes --------------------------------------------------------------------------------------


def outcomes_at(rows: pl.DataFrame, threshold: float, trained: Mapping[str, str]) -> pl.DataFrame:
    """Score all rows of a run at once.

    Args:
        rows: The results, with the facts of each text as columns.
        threshold: Minimum score at which a text counts as toxic.
        trained: How much of a set the scorer was trained on: "all" or "held_out".
    """
    flagged = _flagged(rows, threshold)
    return _outcomes(flagged, plain=_plain(flagged), trained=trained)


def _flagged(rows: pl.DataFrame, threshold: float) -> pl.DataFrame:
    scored = rows.with_columns(score=score_of("scores_after", _SCORE).cast(pl.Float64))
    return scored.with_columns(flagged=pl.col("score") >= threshold)


def _plain(rows: pl.DataFrame) -> pl.DataFrame:
    """Return which texts are caught in plain writing; null where that is not known."""
    texts = rows.filter(pl.col("part") == DISGUISED, pl.col("trick") == "")
    return texts.select("plain", flagged_plain="flagged")


def _outcomes(
    rows: pl.DataFrame, *, plain: pl.DataFrame, trained: Mapping[str, str]
) -> pl.DataFrame:
    toxic = pl.col("label") == str(True)
    groups = {
        f"{which}_{part}": _where(
            pl.col("set").is_in(sets) & label & (pl.col(part) != ""),
            pl.format("{}: {}", "set", part),
        )
        for which, sets, label in (
            ("harmless", BENIGN_SETS, ~toxic),
            ("hateful", HATEFUL_SETS, toxic),
        )
        for part in ("kind", "group")
    }
    joined = rows.join(plain, on="plain", how="left", maintain_order="left")
    return joined.select(
        "item_id", "position", "cluster", "part", "score", "flagged", "flagged_plain",
        set=_where(pl.col("set") != "", pl.col("set")),
        trick=_where(pl.col("trick") != "", pl.col("trick")),
        toxic=toxic,
        trained=pl.col("set").replace_strict(trained, default="", return_dtype=pl.String),
        recorded=pl.col("recorded").cast(pl.Float64, strict=False),
        state=pl.when(pl.col("score").is_null()).then(why_lost()).otherwise(pl.lit(SCORED)),
        **groups,
    )  # fmt: skip


def _where(condition: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(value)


# -- tables ----------------------------------------------------------------------------------------


def _labels(outcomes: pl.DataFrame, groups: _Groups) -> Section:
    scored = outcomes.filter(state=SCORED)
    rows: list[tuple[Cell, ...]] = []
    for name, estimates in groups.get("set", {}).items():
        values = {estimate.name: _ranged(estimate) for estimate in estimates}
        texts = scored.filter(set=name)
        trained = outcomes.filter(set=name)["trained"][0]
        rows.append((
            name + _TRAINED.get(trained, ""), len(texts), int(texts["toxic"].sum()),
            *(values[figure] for figure in ("auc", "kappa", "calibration_error",
                                            "rank_correlation")),
        ))  # fmt: skip
    return _WORDS.table("labels", rows, in_short=True)


def _ranged(estimate: Estimate) -> Cell:
    value, low, high = estimate.value, estimate.low, estimate.high
    return value if value is None or low is None else f"{value:.2f} ({low:.2f} to {high:.2f})"


def _shares(name: str, which: str, groups: _Groups) -> Section:
    """The sets, and the worst kinds and groups."""

    def of(column: str) -> Iterator[tuple[str, Estimate]]:
        for value, estimates in groups.get(column, {}).items():
            yield from ((value, each) for each in estimates if each.name == name and each.n)

    def worst(pair: tuple[str, Estimate]) -> float:
        return -(pair[1].value or 0.0)

    parts = sorted([*of(f"{which}_kind"), *of(f"{which}_group")], key=worst)
    rows = (
        (value, each.value, each.low, each.high, each.n, each.clusters)
        for value, each in [*sorted(of("set"), key=worst), *parts[:_MOST_ROWS]]
    )
    return _WORDS.table(name, rows, in_short=True)


def _tricks(outcomes: pl.DataFrame, groups: _Groups) -> Section:
    tried = outcomes.filter(pl.col("flagged").is_not_null() & pl.col("flagged_plain").is_not_null())
    rows: list[tuple[Cell, ...]] = []
    for trick, (estimate,) in groups.get("trick", {}).items():
        texts = tried.filter(trick=trick)
        plain = texts.filter("flagged_plain")
        caught = int(plain["flagged"].sum())
        rows.append((trick, f"{len(plain)} of {len(texts)}", caught, _ranged(estimate)))
    emoji = outcomes.filter(pl.col("part") == "emoji")
    if len(emoji):
        scored = emoji["flagged"].drop_nulls()
        rows.append(("harmless, with emoji", "", f"{scored.sum()} of {len(scored)}", None))
    return _WORDS.table("tricks", rows, in_short=True)


def curves(outcomes: pl.DataFrame) -> Iterator[Section]:
    """Yield the reliability curve of each set that has recorded scores."""
    recorded = outcomes.filter(pl.col("recorded").is_not_null() & pl.col("score").is_not_null())
    for (name,), rows in recorded.group_by("set", maintain_order=True):
        steps = quality.reliability(rows["score"].to_numpy(), rows["recorded"].to_numpy())
        curve = ((s.low, s.high, s.n, s.score, s.target) for s in steps)
        yield _WORDS.table(f"reliability_{name}", curve, like="reliability", name=name)


def agreement(first: pl.DataFrame, second: pl.DataFrame) -> tuple[tuple[Cell, ...], ...]:
    """Measure how far two scorers agree on the texts of each dataset that both scored.

    Args:
        first: The outcomes of one scorer.
        second: Those of the other, of the same texts.

    Returns:
        For each set its name, the texts, Spearman and kappa, each with its interval.
    """
    sides = [
        side.filter(pl.col("part") == OF_SET, pl.col("state") == SCORED) for side in (first, second)
    ]
    both = sides[0].join(sides[1], on="item_id", suffix="_after").sort("position")
    return tuple(
        (str(name), len(rows), *_agreement(rows))
        for (name,), rows in both.group_by("set", maintain_order=True)
    )


def _agreement(rows: pl.DataFrame) -> Iterator[Cell]:
    """Spearman of the scores and kappa at the thresholds, each with its interval."""
    clusters = rows["cluster"].to_list()
    first, second = (rows[name].to_numpy() for name in ("score", "score_after"))
    ranked = intervals.spearman(first, second, clusters)
    yield quality.defined(quality.spearman, first, second)
    yield from (ranked.low, ranked.high) if ranked else (None, None)
    first, second = (
        rows[name].cast(pl.Float64).to_numpy() for name in ("flagged", "flagged_after")
    )
    agreed = intervals.kappa_at(first, second, 0.5, clusters)
    yield quality.defined(quality.kappa_at, first, second, 0.5)
    yield from (agreed.low, agreed.high) if agreed else (None, None)
