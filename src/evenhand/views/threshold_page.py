"""The page of a threshold that was fitted to labeled texts."""

from evenhand.findings.fitted_threshold import FittedThreshold
from evenhand.views.blocks import Block, Grid, Line


def page(fit: FittedThreshold) -> list[Block]:
    """The blocks of a fitted threshold."""
    if fit.threshold is None:
        return [
            Line(
                f"No threshold: {fit.fitted_benign} benign texts set it, and "
                f"{fit.needed_benign} are needed for a false-positive rate of at most "
                f"{fit.max_fpr:g}. Add benign texts.",
                "bad",
            )
        ]
    rates = (
        ("false positives, of benign texts", fit.false_positives),
        ("false negatives, of harmful texts", fit.false_negatives),
    )
    rows = tuple(
        (what, f"{rate.estimate:.1%}", f"{rate.low:.1%} to {rate.high:.1%}", f"{rate.n:,}")
        for what, rate in rates
        if rate is not None
    )
    ranks = "" if fit.auc is None else f" AUC {fit.auc:.2f}."
    broken = (
        f"The held-out texts contradict the requested rate of {fit.max_fpr:g}: label more texts."
    )
    return [
        Line(f"Threshold {fit.threshold:g} for {fit.attribute} of {fit.scorer}", "strong"),
        Grid(("on held-out texts", "rate", "95% CI", "texts"), rows),
        *([] if fit.holds else [Line(broken, "bad")]),
        Line(
            f"At most {fit.max_fpr:g} of benign texts reach it, with {fit.confidence:.0%} "
            f"confidence, from {fit.fitted_benign:,} benign texts.{ranks}"
        ),
        Line(f"StarDTox: --set bias_brain=rule --set harm_below={fit.threshold:g}"),
    ]
