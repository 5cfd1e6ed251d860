"""The page of a training: what each quantity was at first and at last."""

from evenhand.findings.training_run import Course, TrainingRun
from evenhand.views.blocks import Block, Grid, Line
from evenhand.views.pictures import Pictures


def page(found: TrainingRun, *, full: bool = False) -> list[Block]:
    """Make the blocks of a training; the long form has every step."""
    state = "" if found.done else ", not at its end"
    blocks: list[Block] = [
        Line(f"{found.stage}: {len(found.steps):,} of {found.planned:,} steps{state}", "strong")
    ]
    if found.resumed_from:
        blocks.append(
            Line(
                f"went on from step {', '.join(f'{step:,}' for step in found.resumed_from)}", "dim"
            )
        )
    each = found.ends
    columns = ("", f"first {each} steps", f"last {each} steps", "")
    blocks.append(
        Grid(
            columns,
            tuple(_row(one) for one in found.courses),
            tuple("bad" if one.not_numbers else "plain" for one in found.courses),
        )
    )
    blocks.append(
        Line(
            "One training is one draw: nothing here is tested. What it did: evenhand compare.",
            "dim",
        )
    )
    if full:
        pictures = Pictures()
        blocks += [*pictures.of(found, found.stage), *pictures.remarks(), _steps(found)]
    return blocks


def _row(one: Course) -> tuple[str, ...]:
    lost = f"{one.not_numbers:,} steps without a number" if one.not_numbers else ""
    return (one.quantity.label, _number(one.first), _number(one.last), lost)


def _steps(found: TrainingRun) -> Grid:
    at = [dict(one.points) for one in found.courses]
    return Grid(
        ("step", *(one.quantity.label for one in found.courses)),
        tuple(
            (f"{step.step:,}", *(_number(points.get(step.step)) for points in at))
            for step in found.steps
        ),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
