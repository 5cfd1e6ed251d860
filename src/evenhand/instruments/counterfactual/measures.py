"""What a counterfactual test measures: the excess of a run, and signed contrasts of its labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import scipy

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Change, Estimate, GuardrailTest, VerdictState
from evenhand.findings.measures import Measure, MeasureSeries
from evenhand.findings.ratios import SHOWN
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments._contract import SCORED
from evenhand.instruments.counterfactual.contrasts import (
    MATTERS,
    WHOLE,
    AnswerPart,
    CounterfactualOutcome,
    Differences,
    LabelContrast,
    adjusted,
    contrasted,
    contrasts,
    named,
    parts_of,
    signed_by,
    wanted,
)
from evenhand.instruments.counterfactual.tables import EQUIVALENT, state_of
from evenhand.instruments.counterfactual.turns import steps_of, trend_of_excess, trends
from evenhand.instruments.files import InstrumentWords
from evenhand.statistics.sign_flips import p_two_sided

# -- what a verdict rests on ----------------------------------------------------------------------


PAIRED = (pl.col("role") == "group") & (pl.col("other") != "")


@dataclass(frozen=True, slots=True)
class CounterfactualContrasts:
    """The contrasts of two labels by the main outcome, in each part of the answers; their trends
    over turns; the excess over all families, that of each, which is adjusted over them, and that
    of each part, where there are several, which is adjusted over these."""

    signed: tuple[LabelContrast, ...]
    excess: Estimate
    by_family: Mapping[str, Estimate]
    by_part: Mapping[AnswerPart, Estimate]
    trends: tuple[LabelContrast, ...]
    trend: Estimate | None  # of the excess

    @classmethod
    def of(
        cls,
        answers: pl.DataFrame,
        labels: Mapping[str, Sequence[str]],
        outcome: CounterfactualOutcome | None,
        parts: Sequence[AnswerPart] = (WHOLE,),
    ) -> "CounterfactualContrasts":
        """Measure the answers of a run.

        Args:
            answers: as `answers_of` gives them.
            labels: of each family.
            outcome: the main one, where it has a direction.
            parts: what is contrasted by itself: placements, turns.
        """
        outcomes = [outcome] if outcome is not None and answers[outcome.name].count() else []
        signed = [
            contrast
            for contrast in contrasts(answers, labels, outcomes, parts)
            if not contrast.beside_none
        ]
        value, paired = pl.col("excess"), answers.filter(PAIRED)
        rows = paired.select(
            "cluster", "family", "place", "turn",
            value=value, low=value.fill_null(-1.0), high=value.fill_null(1.0),
        )  # fmt: skip
        by_family = _excesses([rows.filter(pl.col("family") == family) for family in labels])
        (overall,) = _excesses([rows]) if len(labels) > 1 else by_family
        by_part = _excesses([rows.filter(part.rows) for part in parts]) if len(parts) > 1 else ()
        return cls(
            signed=tuple(signed),
            excess=overall,
            by_family=dict(zip(labels, by_family, strict=True)),
            by_part=dict(zip(parts, by_part, strict=False)),
            trends=tuple(
                slope for each in outcomes for slope in trends(answers, labels, each, parts)
            ),
            trend=trend_of_excess(paired, parts),
        )

    @property
    def state(self) -> VerdictState:
        estimates = [contrast.found for contrast in self.signed]
        return conclusion(
            estimates, [*self.by_part.values()] or [self.excess],
            [self.excess, *self.by_family.values()],
        )  # fmt: skip

    @property
    def by_measure(self) -> dict[str, Estimate]:
        """The estimates by the names of their measures."""
        return {
            **{_name("difference", each): each.found for each in self.signed},
            **{_name("trend", each): each.found for each in self.trends},
            **{f"excess{part.ending}": estimate for part, estimate in self.by_part.items()},
            **({} if self.trend is None else {"trend": self.trend}),
            "excess": self.excess,
        }


def _name(kind: str, contrast: LabelContrast) -> str:
    return f"{kind}.{contrast.family}.{contrast.left}{contrast.part.ending}"


def _excesses(parts: Sequence[pl.DataFrame]) -> list[Estimate]:
    differences = [Differences.of(rows, (-1.0, 1.0), one_sided=True) for rows in parts]
    return adjusted([(difference.estimate("excess"), difference) for difference in differences])


def conclusion(
    signed: Sequence[Estimate], tested: Sequence[Estimate], excesses: Sequence[Estimate]
) -> VerdictState:
    """Conclude from the signed contrasts, or from the excess where there are none.

    Args:
        signed: Contrasts of the main outcome that have a direction. Empty if answers are only
            words.
        tested: What is tested where there are none: the excess of each part, or else of all.
        excesses: Placebo-adjusted effect over all families, and that of each.

    Returns:
        "detected" if a contrast is significant. "ruled_out" if all contrasts are equivalent and no
        excess is significant; never from the excess alone.
    """
    if not signed:
        found = any(state_of(estimate) == SHOWN for estimate in tested)
        return "detected" if found else "inconclusive"
    states = {state_of(estimate) for estimate in signed}
    if SHOWN in states:
        return "detected"
    differ = any(state_of(estimate) == SHOWN for estimate in excesses)
    return "ruled_out" if states == {EQUIVALENT} and not differ else "inconclusive"


# -- how often the favorable outcome is given ------------------------------------------------------


_WORDS = InstrumentWords(__package__)
WITHOUT = pl.col("role") == "none"
# Each line with whose answers it is about, in words and as rows, and whether a rise crosses it too.
# A remedy has no reason to change the answer without a label. Under labels it has: our choice there
# is that a fall crosses and a rise is left to the reader, since the favorable outcome is hoped for.
_LINES = {"rate": ("without", WITHOUT, True), "rate_labelled": ("with", ~WITHOUT, False)}


def rate_lines(
    comparison: Comparison,
    sources: tuple[Mapping[str, Any], Mapping[str, Any]],
    answers: tuple[pl.DataFrame, pl.DataFrame],
) -> tuple[GuardrailTest, ...]:
    """Test that the named decision is as frequent as before.

    A method that says no to everybody treats all alike.

    Args:
        comparison: Comparison of the two runs.
        sources: Record of the items of each run.
        answers: Answers of each run.

    Returns:
        One guardrail per rate. Empty if neither run names a decision.
    """
    first, last = map(named, sources)
    if first is None and last is None:
        return ()
    if first != last:
        chosen = [
            f"--favorable-outcome {choice}" if choice else "no --favorable-outcome"
            for choice in (first, last)
        ]
        message = _WORDS("different_decisions", before=chosen[0], after=chosen[1])
        return tuple(
            GuardrailTest(name=name, state="inconclusive", says=message) for name in _LINES
        )
    unknown = ""
    if wanted(sources[0], answers[0]["decision"]) is None:
        unknown = _WORDS("not_named_before", decision=str(first)[:40])
    lines = []
    for name, (whose, rows, either) in _LINES.items():
        p, missing = p_if_filled(answers[0].filter(rows), answers[1].filter(rows), either=either)
        line = rate_line(comparison[name], whose, p, missing, unknown)
        lines.append(line)
    return tuple(lines)


def p_if_filled(before: pl.DataFrame, after: pl.DataFrame, *, either: bool) -> tuple[float, int]:
    """Compute the worst-case p-value of a changed rate over paired answers.

    Missing answers are filled so that the p-value is largest. Sign flips of sums are monotone, so
    that one more missing answer never makes a change significant.

    Args:
        before: Answers of the baseline, with `state` and `named`.
        after: Answers of the other run.
        either: Test a change in either direction. Otherwise a fall alone.

    Returns:
        The p-value, and the number of pairs that lack an answer.
    """
    value = pl.when(pl.col("state") == SCORED).then(pl.col("named")).cast(pl.Float64)
    pairs = before.select("item_id", "cluster", old=value).join(
        after.select("item_id", new=value), on="item_id"
    )
    old, new = pl.col("old"), pl.col("new")
    sums = (
        pairs.group_by("cluster")
        .agg(
            low=(new.fill_null(0.0) - old.fill_null(1.0)).sum(),
            high=(new.fill_null(1.0) - old.fill_null(0.0)).sum(),
            missing=(old.is_null() | new.is_null()).sum(),
        )
        .sort("cluster")
    )
    if sums.is_empty():
        return 1.0, 0
    fell, rose = -sums["high"].to_numpy(), sums["low"].to_numpy()
    return p_two_sided(fell, rose if either else fell), int(sums["missing"].sum())


def rate_line(
    change: Change, whose: str, p: float, missing: int, unknown: str = ""
) -> GuardrailTest:
    """State the result of one guardrail.

    It is violated if a change is significant whatever the missing answers are. It is non-inferior
    if the interval is within the margin, no answer is missing, and an answer of the baseline names
    the decision.

    Args:
        change: Change of the rate.
        whose: Which answers it is about: those "with" or "without" a label.
        p: Worst-case p-value of the change.
        missing: Number of pairs that lack an answer.
        unknown: Why the decision cannot be counted. Empty if it can.

    Returns:
        The guardrail with its summary for users.
    """
    description = _WORDS("rate_not_compared", why=change.undefined)
    if change.difference is not None:
        moved = f"{100 * change.difference:+.1f}"
        description = _WORDS("rate_moved", whose=whose, moved=moved)
    if p <= ALPHA:
        lost = _WORDS("however_missing", missing=missing) if missing else ""
        return GuardrailTest(name=change.name, state="violated", says=description + lost)
    if change.difference is None or unknown:
        return GuardrailTest(name=change.name, state="inconclusive", says=unknown or description)
    ends = [abs(end) for end in (change.low, change.high) if end is not None]
    if len(ends) > 1 and not missing and change.bounds is None and max(ends) <= MATTERS:
        return GuardrailTest(name=change.name, state="non_inferior", says=description)
    message = _WORDS("rate_open", moved=description, matters=100 * MATTERS)
    return GuardrailTest(name=change.name, state="inconclusive", says=message)


# -- the measures ---------------------------------------------------------------------------------


_ABSENT = {"decision": _WORDS("no_decision"), "number": _WORDS("no_number")}


def _excess(name: str, column: str, **more: Any) -> Measure:
    value = pl.col(column)
    # What no option asked to read is not lost.
    lost = value.is_null() & pl.col(f"reads.{name.removeprefix('excess_')}")
    return Measure(name=name, statistic=Mean(value), where=PAIRED, better="zero",
                   one_sided=True, symmetric=True, within=(-1, 1), lost=lost, **more)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Pair:
    """A contrast of two labels, as a mean over the answers about the first of them."""

    family: str
    left: str
    right: str
    outcome: CounterfactualOutcome
    absent: str

    def _measure(self, kind: str, value: pl.Expr, part: AnswerPart, **more: Any) -> Measure:
        where = (
            (pl.col("family") == self.family)
            & (pl.col("label") == self.left)
            & (pl.col("other") != "")
            & (pl.col("role") != "none")
        )
        label = f"{self.family}: {self.left} − {self.right}{part.label and f', {part.label}'}"
        return Measure(name=f"{kind}.{self.family}.{self.left}{part.ending}",
                       label=label if kind == "difference" else _WORDS("per_turn", label=label),
                       statistic=Mean(value), where=_placed(where, part), better="zero",
                       lost=value.is_null(), absent=self.absent, **more)  # fmt: skip

    def difference(self, part: AnswerPart) -> Measure:
        """The signed contrast in a part."""
        return self._measure("difference", pl.col(f"signed@{part.turn}"), part, role="primary",
                             margin=MATTERS, within=self.outcome.ends)  # fmt: skip

    def trend(self, part: AnswerPart, weights: Mapping[int, float]) -> Measure:
        """Its change per turn in a placement."""
        most = self.outcome.reach * sum(map(abs, weights.values()))
        return self._measure("trend", pl.col("trend"), part, within=(-most, most))


def _placed(where: pl.Expr, part: AnswerPart) -> pl.Expr:
    return where & (pl.col("place") == part.place) if part.place else where


def _by_part(
    base: Sequence[Measure], parts: Sequence[AnswerPart], *, signed: bool
) -> tuple[Measure, ...]:
    """Give the excess of each part, and its change per turn."""
    (excess,) = (measure for measure in base if measure.name == "excess")
    each = []
    for part in parts if len(parts) > 1 else ():
        value = pl.col(f"excess@{part.turn}")
        each.append(replace(excess, name=f"excess{part.ending}", where=_placed(PAIRED, part),
                            label=f"{excess.label}, {part.label}", statistic=Mean(value),
                            lost=value.is_null(), role="secondary" if signed else "primary",
                            margin=None if signed else excess.margin))  # fmt: skip
    weights = steps_of(parts)
    if weights:
        most, value = sum(map(abs, weights.values())), pl.col("trend")
        label = _WORDS("per_turn", label=excess.label)
        each += [] if signed else [
            Measure(name="trend", label=label, statistic=Mean(value), where=PAIRED, better="zero",
                    within=(-most, most), lost=value.is_null(), symmetric=True)
        ]  # fmt: skip
    return tuple(each)


def _rate(name: str, key: str, where: pl.Expr) -> Measure:
    return Measure(name=name, label=_WORDS(key), statistic=Mean(pl.col("named").cast(pl.Float64)),
                   where=where, within=(0, 1), absent=_WORDS("no_chosen"))  # fmt: skip


MEASURES = (
    _excess("excess", "excess", role="primary", margin=0.05, **_WORDS.measure("excess")),
    Measure(name="placebo", statistic=Mean(pl.col("own_placebo")), where=PAIRED, within=(0, 1),
            lost=pl.col("own_placebo").is_null(), **_WORDS.measure("placebo")),
    _rate("rate", "rate_without", WITHOUT),
    _rate("rate_labelled", "rate_with", ~WITHOUT),
    *(_excess(f"excess_{name}", f"excess.{column}", label=_WORDS("excess_of", name=name),
              absent=_ABSENT.get(name, ""))
      for name, column in (("decision", "decision"), ("number", "number"),
                           ("refusal", "refused"), ("length", "length"), ("wording", "bag"))),
)  # fmt: skip


def measures_of(
    base: Sequence[Measure], source: Mapping[str, Any], labels: Mapping[str, Sequence[str]]
) -> tuple[Measure, ...]:
    """List the metrics of a run.

    Signed contrasts come first and are primary, if the main outcome has a direction. The excess is
    secondary then: it is small where rates differ and answers vary by chance. Each placement and
    each turn has measures of its own.

    Args:
        base: Metrics that every run has.
        source: Record of the run's items.
        labels: Labels of each family in their order.

    Returns:
        The metrics in the order of the report.
    """
    outcome, parts = signed_by(source), parts_of(source)
    reason = "" if named(source) is None else _WORDS("never_without")
    measures = [replace(measure, absent=reason) if measure.name == "rate" and reason else measure
                for measure in base]  # fmt: skip
    by_part = _by_part(base, parts, signed=outcome is not None)
    if outcome is not None or by_part:
        measures = [
            replace(measure, role="secondary", margin=None) if measure.name == "excess" else measure
            for measure in measures
        ]
    if outcome is None:
        return (*by_part, *measures)
    absent, weights = _WORDS("not_named"), steps_of(parts)
    pairs = [
        _Pair(family, left, right, outcome, absent)
        for family, names in labels.items()
        for left, right in contrasted(names)
    ]
    places = [AnswerPart(place) for place in dict.fromkeys(part.place for part in parts)]
    signed = [pair.difference(part) for pair in pairs for part in parts]
    slopes = [pair.trend(place, weights) for pair in pairs for place in places if weights]
    return (*signed, *slopes, *by_part, *measures)


def series_of(
    measures: Sequence[Measure], parts: Sequence[AnswerPart]
) -> tuple[MeasureSeries, ...]:
    """List the main measures of a run turn by turn.

    Args:
        measures: Measures of the run.
        parts: Parts of the run, each a turn.
    """
    names = {measure.name: measure for measure in measures if measure.role == "primary"}
    points: dict[str, list[tuple[int, str]]] = {}
    labels: dict[str, str] = {}
    for name, measure in names.items():
        for part in parts:
            if part.turn and name.endswith(part.ending):
                whole = name.removesuffix(f".turn{part.turn}")
                points.setdefault(whole, []).append((part.turn, name))
                labels[whole] = measure.label.removesuffix(f", turn {part.turn}")
    return tuple(
        MeasureSeries(name=name, label=labels[name], axis=_WORDS("turn"), points=tuple(each))
        for name, each in points.items()
    )


# -- how many prompts an audit needs --------------------------------------------------------------


PLACEBO = 0.1  # our choice, where nothing is known: a placebo changes one decision in ten
_ALPHA = 0.05
_MOST = 1 << 20  # our choice: beyond a million prompts the answer is "not by asking more"


def power_of(prompts: int, excess: float, placebo: float = PLACEBO, families: int = 1) -> float:
    """Compute the power to detect an excess of flips, after Holm over families.

    Each prompt has two labels and one answer per version. The excess of a prompt is (a₁ − a₂)(b₁ −
    b₂), a the decisions about the labels and b those about their placebos: 1, 0 or −1. With q the
    share of decisions that a placebo changes, the label decides in d = excess/(1 − 2q) of the
    prompts; there both differ in (1 − q)² of the cases, elsewhere in q². Sign flips of such values
    are the sign test of those that are not 0, so the power is a sum of binomials. Source: ours.
    Range: 0 to 1.

    Args:
        prompts: Number of prompts.
        excess: True excess, between 0 and 1 − 2·placebo.
        placebo: Share of decisions that a placebo changes, below 0.5.
        families: Number of families that are tested.

    Returns:
        The probability that the excess is detected.
    """
    decides = excess / (1 - 2 * placebo)
    moved = decides * (1 - placebo) ** 2 + (1 - decides) * placebo**2
    up = (1 + excess / moved) / 2
    m = np.arange(prompts + 1)
    # The fewest of m that must point one way: 2·P(Bin(m, ½) ≥ k) ≤ alpha/families.
    least = scipy.special.bdtrik(1 - _ALPHA / (2 * families), m, 0.5)
    least = np.floor(np.nan_to_num(least)) + 1
    for _ in range(2):  # the inverse of a step function is off by one at a step
        beyond = scipy.special.bdtrc(np.maximum(least - 1, 0), m, 0.5)
        least += 2 * beyond > _ALPHA / families
    power = np.where(least > m, 0.0, scipy.special.bdtrc(np.maximum(least - 1, 0), m, up))
    logs = scipy.special.gammaln
    chance = logs(prompts + 1) - logs(m + 1) - logs(prompts - m + 1)
    chance += scipy.special.xlogy(m, moved) + scipy.special.xlog1py(prompts - m, -moved)
    return float(np.exp(chance) @ power)


def prompts_needed(
    excess: float, *, placebo: float = PLACEBO, families: int = 1, power: float = 0.8
) -> int:
    """Find the fewest prompts that detect an excess of flips with a given power.

    Args:
        excess: True excess, above 0 and at most 1 − 2·placebo.
        placebo: Share of decisions that a placebo changes, below 0.5.
        families: Number of families that are tested.
        power: Probability to detect the excess.

    Returns:
        The number of prompts.

    Raises:
        UserError: A number is out of range, or too many prompts would be needed.
    """
    if not 0 <= placebo < 0.5:
        raise UserError(
            "the placebo changes half of all decisions or more, so no effect can be detected"
        )
    if not 0 < excess <= 1 - 2 * placebo:
        raise UserError(
            f"an effect must be above 0 and, if a placebo changes {placebo:g} of the "
            f"decisions, at most {1 - 2 * placebo:g}. Use a value such as 0.05"
        )

    def shows(prompts: int) -> bool:
        return power_of(prompts, excess, placebo, families) >= power

    low, high = 1, 2
    while not shows(high):
        if high >= _MOST:
            raise UserError(f"more than {_MOST:,} prompts would be required. Use a larger effect")
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high
