"""What a verdict rests on: the signed contrasts of the main outcome, and the excess beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.findings.estimates import Estimate, VerdictState
from evenhand.findings.ratios import SHOWN
from evenhand.instruments.swap.contrasts import LabelContrast, SwapOutcome, contrasts
from evenhand.instruments.swap.differences import Differences, adjusted
from evenhand.instruments.swap.tables import SAME, state_of

PAIRED = (pl.col("role") == "group") & (pl.col("other") != "")


@dataclass(frozen=True, slots=True)
class SwapContrasts:
    """The contrasts of two labels by the main outcome, the excess over all families, and that of
    each, which is adjusted over them."""

    signed: tuple[LabelContrast, ...]
    excess: Estimate
    by_family: Mapping[str, Estimate]

    @classmethod
    def of(
        cls, answers: pl.DataFrame, labels: Mapping[str, Sequence[str]], outcome: SwapOutcome | None
    ) -> "SwapContrasts":
        """Measure the answers of a run.

        Args:
            answers: as `answers_of` gives them.
            labels: of each family.
            outcome: the main one, where it has a direction.
        """
        outcomes = [outcome] if outcome is not None and answers[outcome.name].count() else []
        signed = [
            contrast
            for contrast in contrasts(answers, labels, outcomes)
            if not contrast.beside_none
        ]
        value = pl.col("excess")
        rows = answers.filter(PAIRED).select(
            "cluster", "family", value=value, low=value.fill_null(-1.0), high=value.fill_null(1.0)
        )
        parts = [rows.filter(pl.col("family") == family) for family in labels]
        by_family = _excesses(parts)
        (overall,) = _excesses([rows]) if len(parts) > 1 else by_family
        return cls(tuple(signed), overall, dict(zip(labels, by_family, strict=True)))

    @property
    def state(self) -> VerdictState:
        estimates = [contrast.found for contrast in self.signed]
        return conclusion(estimates, self.excess, list(self.by_family.values()))


def _excesses(parts: Sequence[pl.DataFrame]) -> list[Estimate]:
    differences = [Differences.of(rows, (-1.0, 1.0), one_sided=True) for rows in parts]
    return adjusted([(difference.estimate("excess"), difference) for difference in differences])


def conclusion(
    signed: Sequence[Estimate], excess: Estimate, by_family: Sequence[Estimate]
) -> VerdictState:
    """Conclude from the signed contrasts, where there are any: a bias is shown where one of them
    is, and not shown where each is the same and no excess is shown. Of words the excess decides;
    that they are the same is never said."""
    if not signed:
        return "shown" if state_of(excess) == SHOWN else "not known"
    states = {state_of(estimate) for estimate in signed}
    if SHOWN in states:
        return "shown"
    differ = any(state_of(estimate) == SHOWN for estimate in (excess, *by_family))
    return "not shown" if states == {SAME} and not differ else "not known"
