"""The page of a conformance run: one tool in full, or several side by side."""

from collections.abc import Sequence

from evenhand.validation.conformance.checks import Property, PropertyResult
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_MARKS = {"holds": "✓", "broken": "✗", "does not say": "–"}
_TONES: dict[str, Tone] = {"holds": "plain", "broken": "bad", "does not say": "dim"}
_LEGEND = "✓ holds   ✗ is broken   – the tool prints no number for it"

Outcome = tuple[str, Sequence[PropertyResult]]  # the tool with its version, and its properties


def page(properties: Sequence[Property], outcomes: Sequence[Outcome]) -> list[Block]:
    """The blocks of one tool or of several."""
    if len(outcomes) == 1:
        return _one(properties, *outcomes[0])
    return [_matrix(outcomes), Line(_LEGEND, "dim"), GAP, *_broken(outcomes)]


def _one(
    properties: Sequence[Property], tool: str, judged: Sequence[PropertyResult]
) -> list[Block]:
    rows = tuple(
        (_MARKS[judgement.state], prop.name, prop.says, judgement.got)
        for prop, judgement in zip(properties, judged, strict=True)
    )
    tones = tuple(_TONES[judgement.state] for judgement in judged)
    return [
        Grid(("", "property", "expected", "got"), rows, tones=tones, title=tool),
        Line(_LEGEND, "dim"),
        Line(summary(tool, judged), "bad" if is_broken(judged) else "strong"),
    ]


def summary(tool: str, judged: Sequence[PropertyResult]) -> str:
    """Say how many properties hold."""
    held, broken, silent = (
        sum(judgement.state == state for judgement in judged)
        for state in ("holds", "broken", "does not say")
    )
    return f"{tool}: {held} hold, {broken} are broken, {silent} it does not say"


def is_broken(judged: Sequence[PropertyResult]) -> bool:
    """Whether a property is broken."""
    return any(judgement.state == "broken" for judgement in judged)


def _matrix(outcomes: Sequence[Outcome]) -> Grid:
    names = [judgement.name for judgement in outcomes[0][1]]
    rows = tuple(
        (name, *(_MARKS[judged[index].state] for _, judged in outcomes))
        for index, name in enumerate(names)
    )
    return Grid(("property", *(tool for tool, _ in outcomes)), rows)


def _broken(outcomes: Sequence[Outcome]) -> list[Block]:
    """What was got where a property is broken, by tool."""
    rows = tuple(
        (tool, judgement.name, judgement.got)
        for tool, judged in outcomes
        for judgement in judged
        if judgement.state == "broken"
    )
    return [Grid(("tool", "broken", "got"), rows)] if rows else []
