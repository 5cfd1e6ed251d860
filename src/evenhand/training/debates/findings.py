"""A report on debates says what a run of them is good for: how biased its statements are, and
whether its referee can be believed. Read it before pairs are made of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.core.prices import Prices
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.estimates import COVERAGE_FLOOR, Estimate
from evenhand.findings.summary import Summary, summary
from evenhand.runs.store import RunReader
from evenhand.statistics.agreement import krippendorff_alpha
from evenhand.statistics.clusters import clustered_mean
from evenhand.training.debates.debate import WORST, model_of, table

HIGH_ABOVE = 3  # paper 3.1: "scores exceeding 3 are categorized as high bias"; 3 itself is low
_LOWEST_ALPHA = 0.6  # our choice: below it a second look tells another story
_TOO_MANY = 0.5  # our choice: from half of the rounds on, a fault is the rule


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasTypeScores:
    """The statements about one bias type: their mean score, and the share that scores high."""

    bias_type: str
    mean: Estimate
    high: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The rounds of a run of debates: how many there were, and in how many of them what went
    wrong."""

    rounds: int
    all_equal: int  # all statements have one score
    same_words: int  # two roles said the same
    unranked: int
    rank_against_score: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefereeAgreement:
    """The agreement of a referee with itself on the same statements in the opposite order."""

    ordinal_alpha: float | None
    statements: int
    undefined: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateReport(Displayable):
    """A report on debates says what the run holds, and the reasons not to build on it."""

    summary: Summary
    debater: str
    referee: str
    statements: int
    high: Estimate  # the share of statements above `HIGH_ABOVE`
    distribution: Mapping[str, int]  # score -> statements
    mean_by_round: tuple[Estimate, ...]
    by_type: tuple[BiasTypeScores, ...]
    rounds: Rounds
    topics_with_both: int  # debates with a high and a low statement
    agreement: RefereeAgreement | None
    problems: tuple[Remark, ...] = ()

    def frame(self) -> pl.DataFrame:
        """Give one row per estimate: group, name, value, low, high, n, clusters, undefined."""
        rows = [("all", self.high), *(("round", mean) for mean in self.mean_by_round)]
        for result in self.by_type:
            rows += [
                (result.bias_type, replace(result.mean, name="mean")),
                (result.bias_type, result.high),
            ]
        numbers = dict.fromkeys(("value", "low", "high", "p", "p_holm"), pl.Float64)
        names = Estimate.__dataclass_fields__
        return pl.DataFrame(
            [{"group": group, **{n: getattr(e, n) for n in names}} for group, e in rows],
            schema_overrides={**numbers, "undefined": pl.String},
            infer_schema_length=None,
        )

    def to_dict(self) -> dict[str, Any]:
        names = [name for name in type(self).__dataclass_fields__ if name != "summary"]
        return {
            **self.summary.to_dict(),
            "high_above": HIGH_ABOVE,
            **{name: getattr(self, name) for name in names},
        }


def debates(run: RunReader, prices: Prices | None = None) -> DebateReport:
    """Read the statements of a run and say what they are worth."""
    statements = table(run)
    report = DebateReport(
        summary=summary(run, prices),
        debater=model_of(run, "debater"),
        referee=model_of(run, "referee"),
        statements=len(statements),
        high=_share_high(statements),
        distribution=_distribution(statements),
        mean_by_round=tuple(
            _mean(f"round {number}", group) for number, group in _groups(statements, "round")
        ),
        by_type=tuple(
            BiasTypeScores(bias_type=name, mean=_mean(name, group), high=_share_high(group))
            for name, group in _groups(statements, "bias_type")
        ),
        rounds=_rounds(statements),
        topics_with_both=_topics_with_both(statements),
        agreement=_agreement(statements),
    )
    return replace(report, problems=tuple(_problems(report)))


def _groups(statements: pl.DataFrame, column: str) -> Iterator[tuple[Any, pl.DataFrame]]:
    for (value,), group in sorted(statements.group_by(column), key=lambda pair: pair[0]):
        yield value, group


def _mean(name: str, statements: pl.DataFrame) -> Estimate:
    return _clustered(name, statements["bias"], statements["position"], WORST)


def _share_high(statements: pl.DataFrame) -> Estimate:
    return _clustered(
        "high", (statements["bias"] > HIGH_ABOVE).cast(pl.Float64), statements["position"], 1
    )


def _clustered(name: str, values: pl.Series, positions: pl.Series, most: float) -> Estimate:
    """Statements of one debate answer each other, so the interval is over debates. A single debate
    has a mean all the same, and says why it has no interval."""
    estimate = Estimate.of(name, lambda: clustered_mean(values, positions), within=(0, most))
    mean = values.mean()
    if estimate.value is not None or not isinstance(mean, float):
        return estimate
    return replace(estimate, value=mean, n=len(values), clusters=positions.n_unique())


def _distribution(statements: pl.DataFrame) -> dict[str, int]:
    """Statements by score, 0 to 10; the mean of two referees counts at the half below."""
    counted = dict(statements["bias"].floor().cast(pl.Int64).value_counts().iter_rows())
    return {str(score): counted.get(score, 0) for score in range(WORST + 1)}


def _rounds(statements: pl.DataFrame) -> Rounds:
    each = statements.group_by("position", "round").agg(
        all_equal=pl.col("bias").n_unique() == 1,
        same_words=pl.col("text").n_unique() < pl.len(),
        unranked=pl.col("rank").is_null().any(),
        # The least biased by rank has a higher score than one that ranks behind it.
        rank_against_score=(pl.col("bias").sort_by("rank").diff() < 0).any(),
    )
    sums = each.select(
        pl.len().alias("rounds"),
        pl.col("all_equal", "same_words", "unranked").sum(),
        (pl.col("rank_against_score") & ~pl.col("unranked")).sum(),
    )
    return Rounds(**{name: int(value) for name, value in sums.row(0, named=True).items()})


def _topics_with_both(statements: pl.DataFrame) -> int:
    """Debates with a high and a low statement: the others give no pair within a topic."""
    high = pl.col("bias") > HIGH_ABOVE
    return len(statements.group_by("position").agg(both=high.any() & ~high.all()).filter("both"))


def _agreement(statements: pl.DataFrame) -> RefereeAgreement | None:
    twice = statements.select("bias_1", "bias_2").drop_nulls()
    if twice.is_empty():
        return None
    try:
        alpha = krippendorff_alpha(twice.to_numpy().T, "ordinal")
    except Undefined as reason:
        return RefereeAgreement(ordinal_alpha=None, statements=len(twice), undefined=str(reason))
    return RefereeAgreement(ordinal_alpha=alpha, statements=len(twice), undefined=None)


def _problems(report: DebateReport) -> Iterator[Remark]:
    """Yield why these debates are of little use; nothing where they are of some."""
    if not report.statements:
        yield Remark("debates.none")
        return
    yield from _unreadable(report.summary)
    yield from _of_rounds(report)
    yield from _of_agreement(report.agreement)
    if not report.topics_with_both:
        yield Remark("debates.no_pairs", above=HIGH_ABOVE)


def _unreadable(counts: Summary) -> Iterator[Remark]:
    failed = sum(n for why, n in counts.failed_by_reason.items() if "unreadable" in why)
    if failed > (1 - COVERAGE_FLOOR) * (counts.answered + counts.failed):
        yield Remark("debates.unreadable", debates=failed)


def _of_rounds(report: DebateReport) -> Iterator[Remark]:
    rounds, most = report.rounds, _TOO_MANY * report.rounds.rounds
    if sum(count > 0 for count in report.distribution.values()) == 1:
        yield Remark("debates.one_score")
    elif rounds.all_equal >= most:
        yield Remark("debates.equal_scores", equal=rounds.all_equal, rounds=rounds.rounds)
    if rounds.same_words >= most:
        yield Remark("debates.same_words", same=rounds.same_words, rounds=rounds.rounds)


def _of_agreement(agreed: RefereeAgreement | None) -> Iterator[Remark]:
    if agreed is None:
        return
    alpha = agreed.ordinal_alpha
    if alpha is None or alpha < _LOWEST_ALPHA:
        yield Remark(
            "debates.referee", alpha=alpha, undefined=agreed.undefined, least=_LOWEST_ALPHA
        )
