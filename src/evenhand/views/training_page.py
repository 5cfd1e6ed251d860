"""The page of a training: what each quantity was at first and at last."""

from evenhand.findings.training_run import Course, TrainingRun
from evenhand.views.blocks import Block, Grid, Line
from evenhand.views.pictures import Pictures


def page(found: TrainingRun, *, full: bool = False) -> list[Block]:
    """Make the blocks of a training; the long form has every step."""
    last = found.steps[-1].step
    blocks: list[Block] = [
        Line(f"{found.stage}: {last:,} of {found.planned:,} steps{_state(found)}", "strong")
    ]
    if found.absent:
        blocks.append(Line(f"{found.absent:,} of these {last:,} were not written down", "open"))
    if found.resumed_from:
        blocks.append(
            Line(
                f"went on from step {', '.join(f'{step:,}' for step in found.resumed_from)}", "dim"
            )
        )
    blocks.append(_courses(found))
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


def _state(found: TrainingRun) -> str:
    if found.stopped_at_kl is not None:
        return f", stopped at step {found.stopped_at_kl:,}: too far from where it began (KL)"
    if not found.done:
        return ", not at its end"
    return ", ended early" if found.steps[-1].step < found.planned else ""


def _courses(found: TrainingRun) -> Grid:
    each = found.ends
    of = "written down" if found.absent else "steps" if each > 1 else "step"
    ends: tuple[str, ...] = (f"first {each} {of}", f"last {each} {of}")
    if len(found.steps) == 1:  # the first is the last
        ends = ("the one step",)
    return Grid(
        ("", *ends, ""),
        tuple(_row(one, len(ends)) for one in found.courses),
        tuple("bad" if one.not_numbers else "plain" for one in found.courses),
    )


def _row(one: Course, ends: int) -> tuple[str, ...]:
    lost = f"{one.not_numbers:,} steps without a number" if one.not_numbers else ""
    return (one.quantity.label, *map(_number, (one.first, one.last)[:ends]), lost)


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
