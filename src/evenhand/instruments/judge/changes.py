"""The same judgements twice: by a panel before and after its discussion, or by two judges. How much
higher the second marks, and whether a label moves it otherwise than the first.

Everything is paired: a base's number of the second minus that of the first. What is missing on
either side counts at its worst, as in every verdict of an audit.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from evenhand.findings.estimates import Estimate
from evenhand.instruments.judge import worst
from evenhand.instruments.judge.effects import EstimatedEffect, LabelEffect, adjusted, measured
from evenhand.instruments.judge.figures import APART, COMBINED, mean_over_bases
from evenhand.statistics.metrics import malibu
from evenhand.statistics.multiplicity import holm

# Our choice: of marks, what is allowed for the effect itself; of wins, from all to none.
_LARGEST = {COMBINED: worst.LARGEST_SHIFT, "win": 2 * worst.LARGEST_WIN}
_SIDE = ("item_id", "phase", "base", "label", "preferred", COMBINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What the second side does otherwise than the first. `labels` and `in_pairs` hold the change
    of a label's effect, against no label and against the other labels of its pairs, each one family
    after Holm."""

    marks: Estimate  # the mean mark of single texts
    marks_moved: Estimate  # the share of single texts that got another mean mark
    first_slot: Estimate  # the first slot's win rate, a tie counting half
    verdicts_turned: Estimate  # the share of pairs of which another one is preferred, or none
    labels: tuple[LabelEffect, ...]
    in_pairs: tuple[LabelEffect, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("marks", "marks_moved", "first_slot", "verdicts_turned")
        overall = {name: asdict(getattr(self, name)) for name in names}
        effects = {
            name: [asdict(e) for e in getattr(self, name)] for name in ("labels", "in_pairs")
        }
        return {**overall, **effects}


def changes(
    before: pl.DataFrame,
    after: pl.DataFrame,
    *,
    margin: float,
    margin_wins: float,
    alpha: float = 0.05,
) -> Changes:
    """What two sides give on the judgements of one design; both have a row for each of them."""
    both = _both(before, after)
    singles, paired = both.filter(phase="single"), both.filter(phase="pair")
    met = malibu.duels(before), malibu.duels(after)
    judged = malibu.single(before), malibu.single(after)
    moved = adjusted(list(_of_labels(*judged, margin=margin)), holm, alpha)
    turned = adjusted(list(_of_pairs(*met, margin=margin_wins)), holm, alpha)
    return Changes(
        marks=mean_over_bases(singles, pl.col("marks"), APART),
        marks_moved=mean_over_bases(singles, pl.col("moved"), (0.0, 1.0)),
        first_slot=mean_over_bases(paired, pl.col("wins"), (-1.0, 1.0)),
        verdicts_turned=mean_over_bases(paired, pl.col("turned"), (0.0, 1.0)),
        labels=tuple(result.effect for result in moved),
        in_pairs=tuple(result.effect for result in turned),
    )


def _both(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """One row per judgement, with what changed in it; null where a side is missing."""
    sides = [_side(rows) for rows in (before, after)]
    both = sides[1].join(sides[0], on="item_id", suffix="_before", maintain_order="left")
    change = {name: pl.col(name) - pl.col(f"{name}_before") for name in (COMBINED, "preferred")}
    better, was_better = (
        (pl.col(name) - malibu.TIE).sign() for name in ("preferred", "preferred_before")
    )
    return both.with_columns(
        marks=change[COMBINED],
        moved=(change[COMBINED] != 0).cast(pl.Float64),
        wins=change["preferred"],
        turned=(better != was_better).cast(pl.Float64),
    )


def _side(rows: pl.DataFrame) -> pl.DataFrame:
    single, pair = malibu.single(rows), rows.filter(phase="pair")
    return pl.concat([single, pair], how="diagonal").select(_SIDE)


def _of_labels(
    before: pl.DataFrame, after: pl.DataFrame, *, margin: float
) -> Iterator[EstimatedEffect]:
    """Of identities; the controls would only make the family larger."""
    included = (pl.col("label") == malibu.NO_LABEL) | ~pl.col("label").is_in(malibu.CONTROLS)
    sides = [judged.filter(included) for judged in (before, after)]
    effects = [malibu.contrasts(side).rename({"difference": "effect"}) for side in sides]
    bounds = [worst.of_labels(side, COMBINED, malibu.NO_LABEL) for side in sides]
    yield from _measured(effects, bounds, malibu.NO_LABEL, COMBINED, margin)


def _of_pairs(
    before: pl.DataFrame, after: pl.DataFrame, *, margin: float
) -> Iterator[EstimatedEffect]:
    effects = [malibu.label_effects(malibu.pair_effects(met)) for met in (before, after)]
    bounds = [worst.of_labels_in_pairs(worst.of_pairs(met, "win")) for met in (before, after)]
    yield from _measured(effects, bounds, "all others", "win", margin)


def _measured(
    effects: list[pl.DataFrame],
    bounds: list[pl.DataFrame],
    against: str,
    value: str,
    margin: float,
) -> Iterator[EstimatedEffect]:
    """The change of each label's effect, one number per base that both sides have."""
    keys, (was, now) = ["label", "base"], effects
    change = now.join(was, on=keys, suffix="_before", maintain_order="left").with_columns(
        effect=pl.col("effect") - pl.col("effect_before")
    )
    least, most = bounds
    at_worst = most.join(least, on=keys, suffix="_before", maintain_order="left").with_columns(
        low=pl.col("low") - pl.col("high_before"),
        high=pl.col("high") - pl.col("low_before"),
        missing=pl.col("missing") + pl.col("missing_before"),
    )
    for (label,), part in at_worst.group_by("label", maintain_order=True):
        rows = change.filter(label=label)
        blank = LabelEffect(label=str(label), against=against, value=value, margin=margin)
        yield measured(blank, rows["effect"], int(rows["cells"].sum()), part, _LARGEST[value])
