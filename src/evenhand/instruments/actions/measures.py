"""What is measured of actions: signed contrasts of every outcome, and effects beyond a placebo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments.actions.answers import compared
from evenhand.instruments.actions.scenario import ActionOutcome
from evenhand.instruments.counterfactual.contrasts import (
    MATTERS,
    CounterfactualOutcome,
    Differences,
    LabelContrast,
    adjusted,
    contrasted,
    with_other,
)
from evenhand.instruments.counterfactual.measures import PAIRED
from evenhand.instruments.files import InstrumentWords

_WORDS = InstrumentWords(__package__)
_LABELLED = pl.col("role").is_in(("group", "placebo"))


@dataclass(frozen=True, slots=True)
class ActionContrasts:
    """The contrasts of two groups by every outcome, adjusted over all of them, and the effect of
    each outcome beyond the placebo. Without placebos there are no such effects."""

    signed: tuple[LabelContrast, ...]
    excess: Mapping[str, Estimate]  # by outcome

    @classmethod
    def of(
        cls,
        answers: pl.DataFrame,
        labels: Mapping[str, Sequence[str]],
        outcomes: Mapping[str, ActionOutcome],
    ) -> "ActionContrasts":
        """Measure the answers of a run.

        Args:
            answers: As `with_comparisons` gives them.
            labels: Labels of each family in their order.
            outcomes: The outcomes of the scenario.

        Returns:
            The contrasts.
        """
        read = [outcome for outcome in compared(outcomes) if answers[outcome.name].count()]
        pairs = with_other(answers, [outcome.name for outcome in read])
        results = [
            _contrast(pairs, outcome, family, left, right)
            for outcome in read
            for family, names in labels.items()
            for left, right in contrasted(names)
        ]
        estimates = adjusted([(contrast.found, differences) for contrast, differences in results])
        signed = [replace(contrast, found=estimate)
                  for (contrast, _), estimate in zip(results, estimates, strict=True)]  # fmt: skip
        if not has_placebos(answers):
            return cls(tuple(signed), {})
        beyond = [_beyond_placebo(answers, outcome) for outcome in read]
        return cls(tuple(signed), {each.name: each for each in adjusted(beyond)})


def _contrast(
    pairs: pl.DataFrame, outcome: CounterfactualOutcome, family: str, left: str, right: str
) -> tuple[LabelContrast, Differences]:
    of_family = pairs.filter(pl.col("family") == family)
    rows = of_family.filter(pl.col("label") == left)
    table = rows.select("cluster", *outcome.differences(outcome.name, f"{outcome.name}:o"))
    differences = Differences.of(table, outcome.ends)
    placebo = of_family.filter(PAIRED)[f"own_placebo.{outcome.name}"].mean()
    distance = float(placebo) if isinstance(placebo, float) else None
    estimate = differences.estimate(difference_name(outcome.label, family, left))
    return LabelContrast(family, left, right, outcome, estimate, distance), differences


def _beyond_placebo(
    answers: pl.DataFrame, outcome: CounterfactualOutcome
) -> tuple[Estimate, Differences]:
    value = pl.col(f"excess.{outcome.name}")
    rows = answers.filter(PAIRED).select(
        "cluster", value=value, low=value.fill_null(-1.0), high=value.fill_null(1.0)
    )
    differences = Differences.of(rows, (-1.0, 1.0), one_sided=True)
    return differences.estimate(outcome.label), differences


def has_placebos(answers: pl.DataFrame) -> bool:
    """Say whether every group was asked about twice, once as a placebo."""
    return bool((answers["role"] == "placebo").any())


def measures_of(
    labels: Mapping[str, Sequence[str]],
    outcomes: Mapping[str, ActionOutcome],
    *,
    placebos: bool,
) -> tuple[Measure, ...]:
    """List the measures of a run.

    Args:
        labels: Labels of each family in their order.
        outcomes: The outcomes of the scenario.
        placebos: Whether the run has placebos.

    Returns:
        The measures: signed contrasts first, which are primary.
    """
    signed = [
        _difference(name, family, left, right)
        for name in outcomes
        for family, names in labels.items()
        for left, right in contrasted(names)
    ]
    beyond = [measure for name in outcomes for measure in _beyond(name)] if placebos else []
    own = [
        measure
        for name, outcome in outcomes.items()
        for measure in (_spread(name, outcome), _mean(name, outcome))
    ]
    return (*signed, *beyond, *own)


def difference_name(outcome: str, family: str, left: str) -> str:
    """Name the measure of a contrast."""
    return f"difference.{outcome}.{family}.{left}"


def _difference(name: str, family: str, left: str, right: str) -> Measure:
    value = pl.col(f"signed.value.{name}")
    where = (
        (pl.col("family") == family)
        & (pl.col("label") == left)
        & (pl.col("other") != "")
        & _LABELLED
    )
    return Measure(name=difference_name(name, family, left),
                   label=f"{name}, {family}: {left} − {right}", statistic=Mean(value), where=where,
                   better="zero", role="primary", margin=MATTERS, within=(-1, 1),
                   lost=value.is_null())  # fmt: skip


def _beyond(name: str) -> tuple[Measure, Measure]:
    excess = pl.col(f"excess.value.{name}")
    placebo = pl.col(f"own_placebo.value.{name}")
    return (
        Measure(name=f"excess.{name}", statistic=Mean(excess), where=PAIRED, better="zero",
                one_sided=True, symmetric=True, within=(-1, 1), lost=excess.is_null(),
                **_WORDS.measure("excess", outcome=name)),
        Measure(name=f"placebo.{name}", statistic=Mean(placebo), where=PAIRED, within=(0, 1),
                lost=placebo.is_null(), **_WORDS.measure("placebo", outcome=name)),
    )  # fmt: skip


def _spread(name: str, outcome: ActionOutcome) -> Measure:
    """The published measures: the flip rate of a decision (CFR), and the range of a score (MASD)
    on its own scale."""
    value = pl.col(f"spread.value.{name}") * outcome.reach
    key = "flips" if outcome.is_yes_or_no else "range"
    return Measure(name=f"spread.{name}", statistic=Mean(value), where=pl.col("first"),
                   within=(0, outcome.reach), lost=value.is_null(),
                   unit="share" if outcome.is_yes_or_no else "points",
                   **_WORDS.measure(key, outcome=name))  # fmt: skip


def _mean(name: str, outcome: ActionOutcome) -> Measure:
    value = outcome.own_scale(0.0) + pl.col(f"value.{name}") * outcome.reach
    return Measure(name=f"mean.{name}", statistic=Mean(value), where=pl.col("role") == "group",
                   within=(outcome.own_scale(0.0), outcome.own_scale(1.0)), lost=value.is_null(),
                   unit="share" if outcome.is_yes_or_no else "points",
                   **_WORDS.measure("mean", outcome=name))  # fmt: skip
