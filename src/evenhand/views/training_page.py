"""The page of a training: what each quantity was at first and at last."""

from evenhand.training.record import QuantityCourse, TrainingRun
from evenhand.views.blocks import Block, Grid, Line
from evenhand.views.charts import Pictures


def page(training: TrainingRun, *, full: bool = False) -> list[Block]:
    """Make the blocks of a training; the long form has every step."""
    last = training.steps[-1].step
    blocks: list[Block] = [
        Line(
            f"{training.stage}: {last:,} of {training.planned:,} steps{_state(training)}", "strong"
        )
    ]
    if training.absent:
        blocks.append(Line(f"{training.absent:,} of these {last:,} were not written down", "open"))
    if training.resumed_from:
        blocks.append(
            Line(
                f"went on from step {', '.join(f'{step:,}' for step in training.resumed_from)}",
                "dim",
            )
        )
    blocks.append(_courses(training))
    blocks.append(
        Line(
            "One training is one draw: nothing here is tested. What it did: evenhand compare.",
            "dim",
        )
    )
    if full:
        pictures = Pictures()
        blocks += [*pictures.of(training, training.stage), *pictures.remarks(), _steps(training)]
    return blocks


def _state(training: TrainingRun) -> str:
    if training.stopped_at_kl is not None:
        return f", stopped at step {training.stopped_at_kl:,}: too far from where it began (KL)"
    if not training.done:
        return ", not at its end"
    return ", ended early" if training.steps[-1].step < training.planned else ""


def _courses(training: TrainingRun) -> Grid:
    each = training.ends
    of = "written down" if training.absent else "steps" if each > 1 else "step"
    ends: tuple[str, ...] = (f"first {each} {of}", f"last {each} {of}")
    if len(training.steps) == 1:  # the first is the last
        ends = ("the one step",)
    return Grid(
        ("", *ends, ""),
        tuple(_row(course, len(ends)) for course in training.courses),
        tuple("bad" if course.not_numbers else "plain" for course in training.courses),
    )


def _row(course: QuantityCourse, ends: int) -> tuple[str, ...]:
    lost = f"{course.not_numbers:,} steps without a number" if course.not_numbers else ""
    return (course.quantity.label, *map(_number, (course.first, course.last)[:ends]), lost)


def _steps(training: TrainingRun) -> Grid:
    at = [dict(course.points) for course in training.courses]
    return Grid(
        ("step", *(course.quantity.label for course in training.courses)),
        tuple(
            (f"{step.step:,}", *(_number(points.get(step.step)) for points in at))
            for step in training.steps
        ),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
