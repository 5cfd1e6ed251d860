"""The page of a rate: the number, its interval beside that of the labels alone, and what it rests
on."""

from evenhand.findings.labelled import LabelledRate
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(rate: LabelledRate, *, full: bool = False) -> list[Block]:
    """The blocks of a rate; there is no longer form of it."""
    del full
    sure = f"95 % sure it is within {rate.low:.1%} to {rate.high:.1%}"
    value = "not one number" if rate.estimate is None else f"{rate.estimate:.1%}"
    rows = (
        ("labels and predictions", value, f"{rate.low:.1%} to {rate.high:.1%}"),
        ("labels alone", "", "{:.1%} to {:.1%}".format(*rate.labels_alone)),
    )
    return [
        Line(f"Label 1: {value} of {rate.texts:,} texts ({sure}).", "strong"),
        *(Line(line, "bad") for line in _missing(rate)),
        GAP,
        Grid(("", "rate", "95 %"), rows),
        Line(_rests_on(rate), "dim"),
    ]


def _missing(rate: LabelledRate) -> list[str]:
    lines = []
    if rate.missing:
        lines.append(
            f"{rate.missing} of {rate.drawn} labels are missing: the interval holds all that "
            "they could make of it."
        )
    if rate.without_prediction:
        lines.append(f"{rate.without_prediction:,} texts have no prediction; that widens it.")
    return lines


def _rests_on(rate: LabelledRate) -> str:
    text = f"{rate.labels:,} labels of {rate.drawn:,} drawn, predictions of {rate.scorer}"
    if rate.share_used == 0:
        return f"{text}, which are not used: too few labels, or they tell nothing"
    return f"{text}; as wide as {rate.width_ratio:.0%} of labels alone"
