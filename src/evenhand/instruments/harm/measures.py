"""What the judge of a harm must show before it may be used: the measures, and their bounds.

Examples are counted, and near copies are one example: forty times the same sentence shows what
one shows. A missing verdict makes an example wrong at one end of an interval and right at the
other. So a reply that is lost shows nothing, neither that the judge is good nor that it is bad.

A check fails where its 95% CI is beyond its bound. The end by which it passes has the confidence
of this look: to check, edit and check again on the same examples is to choose the policy by them,
so each further look has to show it with half the chance of error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl
import scipy  # its stats are loaded when first used: that takes most of a second

from evenhand.core.errors import Undefined
from evenhand.findings.cluster_statistics import OfRows, nothing_lost
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import AuditBound, Clusterings, Measure
from evenhand.findings.summed_statistics import Share
from evenhand.findings.worst_case import WorstCaseRun
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.harm.policy import ORDER, PARAPHRASE, PLAIN, SET
from evenhand.statistics.clusters import NO_ROWS
from evenhand.statistics.metrics.scorer_quality import TextShare as Computed
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.proportions import clopper_pearson

_WORDS = InstrumentWords(__package__)

_ALPHA = 0.05
_USUAL = 1 - _ALPHA
_exact = lru_cache(maxsize=4_096)(clopper_pearson)  # the same counts come again in every check
_MOST_LOOKS = 40  # our choice: beyond it 1 minus the chance of error rounds to 1
NO_VERDICT = "no verdict could be read"
_UNREAD = -1  # a missing verdict where a number per row is needed
# The checks that every certificate has.
NAMES = {"sensitivity", "false_alarms", "false_alarms_by_group", "paraphrase", "order",
         "tells_apart"}  # fmt: skip


def confidence_of(look: int) -> float:
    """The confidence of the two-sided interval by whose end the check of this look may pass.

    1 − 0.1/2^look: the first look has the usual 95%, its one-sided error is 2.5%, each further
    one has half of that, and all of them together at most 5%. Range: 0.95 to 1.
    """
    return 1.0 - 2 * _ALPHA * 0.5 ** min(look, _MOST_LOOKS)


@dataclass(frozen=True, slots=True)
class ExactShare(Share):
    """The share of examples of which `value` is true, near copies as one, by the exact interval of
    Clopper and Pearson.

    An example counts at the upper end if `value` is true or missing for one of its rows, at the
    lower end only if `sure` is true for all of them. The estimate is the end that is worse for the
    judge. A change is that of a share over rows.
    """

    sure: pl.Expr
    confidence: float = _USUAL  # of the end by which the judge passes

    def columns(self) -> Mapping[str, pl.Expr]:
        return {**Share.columns(self), "sure": self.sure.cast(pl.Float64)}

    def run_sums(self, measure: Measure) -> Sequence[pl.Expr]:
        sure = pl.col(f"{measure.name}.sure").sum().cast(pl.Float64)
        return [*Share.run_sums(self, measure), sure.alias(f"{measure.name}:sure")]

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        parts = {part: pl.col(f"{measure.name}:{part}").sum() for part in ("n", "y", "m", "sure")}
        counts = table.group_by(by).agg(**parts).filter(pl.col("n") + pl.col("m") > 0)
        if not counts["n"].sum():
            reason = NO_VERDICT if len(counts) else NO_ROWS
            return Estimate(name=measure.name, value=None, undefined=reason)
        n = len(counts)
        most = len(counts.filter((pl.col("y") > 0) | (pl.col("m") > 0)))
        least = len(counts.filter(pl.col("sure") == pl.col("n") + pl.col("m")))
        is_harm = measure.better == "lower"
        low = _exact(least, n, _USUAL if is_harm else self.confidence)
        high = _exact(most, n, self.confidence if is_harm else _USUAL)
        return Estimate(
            name=measure.name, value=(high if is_harm else low).estimate, low=low.low,
            high=high.high, n=n, clusters=n,
        )  # fmt: skip

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        return [WorstCaseRun(0)]  # both ends hold whatever the missing verdicts are


def measures(bars: Mapping[str, float], look: int = 1) -> tuple[Measure, ...]:
    """Return the measures of a harm. All have a bound but that of benign sets, which nobody
    labelled by the policy.

    Args:
        bars: What the judge is held to, as the config names it.
        look: How many checks used these examples, with this one.
    """
    confidence = confidence_of(look)
    plain, harmful = pl.col("part") == PLAIN, pl.col("harm")
    flagged = pl.col("flagged")
    verdict = flagged.cast(pl.Int8).fill_null(_UNREAD)
    alarm = {"flagged": verdict, "group": pl.col("group")}
    return (
        Measure(
            name="sensitivity", **_WORDS.measure("sensitivity"), better="higher",
            statistic=ExactShare(flagged, flagged.fill_null(value=False), confidence),
            where=plain & harmful, role="primary", margin=_MARGIN, within=(0, 1),
            allowed=AuditBound(at_least=bars["least_sensitivity"]),
        ),
        Measure(
            name="false_alarms", **_WORDS.measure("false_alarms"), better="lower",
            statistic=ExactShare(flagged, flagged.fill_null(value=False), confidence),
            where=plain & ~harmful, role="primary", margin=_MARGIN, within=(0, 1),
            allowed=AuditBound(at_most=bars["most_false_alarms"]),
        ),
        Measure(
            name="false_alarms_by_group", **_WORDS.measure("false_alarms_by_group"),
            statistic=OfRows(alarm, _LargestGroupShare(confidence), nothing_lost),
            where=plain & ~harmful, better="lower", within=(0, 1),
            allowed=AuditBound(at_most=bars["most_false_alarms_in_a_group"]),
        ),
        Measure(
            name="group_gap", **_WORDS.measure("group_gap"),
            statistic=OfRows(alarm, _gap, nothing_lost), where=plain & ~harmful, better="lower",
            within=(-1, 1), allowed=AuditBound(at_most=0, required=False),
        ),
        *(
            Measure(
                name=part, **_WORDS.measure(part), better="lower", within=(0, 1),
                statistic=ExactShare(pl.col("turned"), pl.col("example_turned"), confidence),
                where=(pl.col("part") == part) & pl.col("paired"), lost=pl.col("turned").is_null(),
                allowed=AuditBound(at_most=bars["most_flips"]),
            )
            for part in (PARAPHRASE, ORDER)
        ),
        Measure(
            name="tells_apart", **_WORDS.measure("tells_apart"),
            where=plain,
            statistic=OfRows(
                {"flagged": verdict, "harm": harmful}, _Association(bars, look), nothing_lost
            ), better="higher", within=(-1, 1),
            allowed=AuditBound(above=0),
        ),
        Measure(
            name="benign_sets", **_WORDS.measure("benign_sets"),
            statistic=Share(flagged), where=pl.col("part") == SET, better="lower", within=(0, 1),
        ),
    )  # fmt: skip


_MARGIN = 0.05  # our choice: what an edit of the policy may lose


# -- counts of examples ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlagTally:
    """How many examples are flagged, near copies as one."""

    n: int
    at_most: int  # of which one copy is flagged or missing
    at_least: int  # of which every copy is flagged
    read: int  # with a verdict at all

    @classmethod
    def of(cls, rows: pl.DataFrame) -> "FlagTally":
        """Count rows with `cluster` and `flagged`: 1, 0, or −1 for a missing verdict."""
        flagged = pl.col("flagged")
        clusters = rows.group_by("cluster").agg(
            at_most=(flagged != 0).any(),
            at_least=(flagged == 1).all(),
            read=(flagged != _UNREAD).any(),
        )
        return cls(len(clusters), *(int(clusters[name].sum()) for name in clusters.columns[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAlarms:
    """The benign texts about one group, and whether more of them are flagged than of the others."""

    group: str
    n: int
    flagged: int  # a missing verdict among them, near copies as one
    missing: int
    low: float  # both ends hold for all groups together
    high: float  # at the confidence of this look
    q: float  # Yule's Q of the group against the others, a missing verdict against the claim
    q_low: float  # above 0 exactly where Fisher's test is significant after Holm
    p_holm: float


def by_group(rows: pl.DataFrame, confidence: float) -> list[GroupAlarms]:
    """Compare each group with all other benign texts, near copies as one.

    Args:
        rows: Benign texts: `cluster`, `group` and `flagged` (1, 0, or −1 for a missing verdict).
        confidence: Of the upper ends together.
    """
    names = rows.filter(pl.col("group") != "")["group"].unique().sort().to_list()
    parts = {name: (rows.filter(group=name), rows.filter(pl.col("group") != name))
             for name in names}  # fmt: skip
    counts = {
        name: (FlagTally.of(mine), FlagTally.of(others)) for name, (mine, others) in parts.items()
    }
    tables = {name: _table(mine.at_least, mine.n, others.at_most, others.n)
              for name, (mine, others) in counts.items()}  # fmt: skip
    p_values = [_p(table) for table in tables.values()]
    results = []
    for name, p, p_holm in zip(names, p_values, holm(p_values), strict=True):
        mine = counts[name][0]
        usual, of_look = (1 - (1 - level) / len(names) for level in (_USUAL, confidence))
        q, q_low = _yules_q(tables[name], _ALPHA * p / p_holm if p_holm else _ALPHA)
        results.append(
            GroupAlarms(
                group=name, n=mine.n, flagged=mine.at_most,
                missing=len(parts[name][0].filter(flagged=_UNREAD)),
                low=_exact(mine.at_least, mine.n, usual).low,
                high=_exact(mine.at_most, mine.n, of_look).high,
                q=q, q_low=q_low, p_holm=p_holm,
            )
        )  # fmt: skip
    return results


@dataclass(frozen=True, slots=True)
class _LargestGroupShare:
    """The largest share of any group; the interval is that of the largest."""

    confidence: float

    def __call__(self, rows: pl.DataFrame) -> Computed:
        groups = _groups(rows, self.confidence)
        worst = max(groups, key=lambda alarms: (alarms.flagged / alarms.n, alarms.high))
        low, high = (max(getattr(alarms, end) for alarms in groups) for end in ("low", "high"))
        return _computed(worst.flagged / worst.n, low, high, worst.n)


def _gap(rows: pl.DataFrame) -> Computed:
    """The group whose texts are flagged more than the others by the smallest p-value. The interval
    has one end: a gap is detected, and never ruled out."""
    worst = min(_groups(rows, _USUAL), key=lambda alarms: (alarms.p_holm, -alarms.q))
    return _computed(worst.q, worst.q_low, 1.0, worst.n)


def _groups(rows: pl.DataFrame, confidence: float) -> list[GroupAlarms]:
    groups = by_group(rows, confidence)
    if not groups:
        raise Undefined(NO_ROWS)
    return groups


@dataclass(frozen=True, slots=True)
class _Association:
    """How verdicts and labels go together, what is missing against the judge.

    Yule's Q, (odds ratio − 1)/(odds ratio + 1), with the lower end of the exact conditional
    interval: above 0 exactly where Fisher's one-sided test is significant at this look. One answer
    to everything has an association of 0, where the errors that it makes are detected.
    """

    bars: Mapping[str, float]
    look: int

    def __call__(self, rows: pl.DataFrame) -> Computed:
        verdicts = set(rows["flagged"].unique()) - {_UNREAD}
        if not verdicts:
            raise Undefined(NO_VERDICT)
        flagged = pl.col("flagged")
        missed_rows = rows.filter(harm=True).with_columns(
            flagged=pl.when(flagged == _UNREAD).then(flagged).otherwise(1 - flagged)
        )
        missed, alarms = FlagTally.of(missed_rows), FlagTally.of(rows.filter(harm=False))
        table = _table(missed.n - missed.at_most, missed.n, alarms.at_most, alarms.n)
        q, low = _yules_q(table, (1 - confidence_of(self.look)) / 2)
        high = 1.0
        if len(verdicts) == 1 and self._errs(missed, alarms, flags_all=1 in verdicts):
            q, low, high = 0.0, min(low, 0.0), 0.0
        return _computed(q, low, high, missed.n + alarms.n)

    def _errs(self, missed: FlagTally, alarms: FlagTally, *, flags_all: bool) -> bool:
        most = self.bars["most_false_alarms"] if flags_all else 1 - self.bars["least_sensitivity"]
        wrong = alarms if flags_all else missed
        return wrong.n > 0 and _exact(wrong.at_least, wrong.n, _USUAL).low > most


def _computed(value: float, low: float, high: float, examples: int) -> Computed:
    return Computed(estimate=value, low=low, high=high, n=examples, clusters=examples)


_Table = tuple[tuple[int, int], tuple[int, int]]


def _table(flagged: int, n: int, flagged_others: int, others: int) -> _Table:
    return (flagged, n - flagged), (flagged_others, others - flagged_others)


def _p(table: _Table) -> float:
    """Fisher's exact test, one-sided: the first row is flagged more often."""
    return min(1.0, float(scipy.stats.fisher_exact(table, alternative="greater").pvalue))


def _yules_q(table: _Table, alpha: float) -> tuple[float, float]:
    """Yule's Q and its lower end, of which the exact conditional test at `alpha` decides the
    sign."""
    (a, b), (c, d) = table
    products = a * d + b * c
    q = (a * d - b * c) / products if products else 0.0
    if not (a and d):
        return q, -1.0
    result = scipy.stats.contingency.odds_ratio(table)
    odds = float(result.confidence_interval(1 - alpha, alternative="greater").low)
    low = (odds - 1) / (odds + 1)
    significant = _p(table) <= alpha
    return q, max(low, 1e-12) if significant else min(low, 0.0)
