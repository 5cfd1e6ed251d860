"""The page of a rate: the number, its interval beside that of the labels alone, and what it rests
on."""

from evenhand.findings.labelled import LabelledRate
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(found: LabelledRate, *, full: bool = False) -> list[Block]:
    """The blocks of a rate; there is no longer form of it."""
    del full
    sure = f"95 % sure it is within {found.low:.1%} to {found.high:.1%}"
    value = "not one number" if found.estimate is None else f"{found.estimate:.1%}"
    rows = (
        ("labels and predictions", value, f"{found.low:.1%} to {found.high:.1%}"),
        ("labels alone", "", "{:.1%} to {:.1%}".format(*found.labels_alone)),
    )
    return [
        Line(f"Label 1: {value} of {found.texts:,} texts ({sure}).", "strong"),
        *(Line(line, "bad") for line in _missing(found)),
        GAP,
        Grid(("", "rate", "95 %"), rows),
        Line(_rests_on(found), "dim"),
    ]


def _missing(found: LabelledRate) -> list[str]:
    lines = []
    if found.missing:
        lines.append(
            f"{found.missing} of {found.drawn} labels are missing: the interval holds all that "
            "they could make of it."
        )
    if found.without_prediction:
        lines.append(f"{found.without_prediction:,} texts have no prediction; that widens it.")
    return lines


def _rests_on(found: LabelledRate) -> str:
    said = f"{found.labels:,} labels of {found.drawn:,} drawn, predictions of {found.scorer}"
    if found.share_used == 0:
        return f"{said}, which are not used: too few labels, or they tell nothing"
    return f"{said}; as wide as {found.width_ratio:.0%} of labels alone"
