"""A training run says how one training went, from its first steps to its last."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from evenhand.core.errors import UserError
from evenhand.findings.display import Displayable
from evenhand.training import record
from evenhand.training.events import TrainingStep, read_steps
from evenhand.training.record import steps_at_each_end


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that is measured at each step of a training."""

    name: str  # of the field of a step
    label: str


QUANTITIES = (
    Quantity("loss", "loss"),
    Quantity("accuracy", "accuracy"),
    Quantity("reward", "reward"),
    Quantity("kl", "KL to where it began, nats a token"),
    Quantity("length", "tokens of an answer"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityCourse:
    """The course of a quantity: its points, and the mean of the first and of the last steps."""

    quantity: Quantity
    points: tuple[tuple[int, float], ...]  # step, value
    not_numbers: int  # steps at which it was infinite or no number
    first: float | None
    last: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(Displayable):
    """How one training went. Nothing is tested: one training is one draw."""

    stage: str
    done: bool
    planned: int
    steps: tuple[TrainingStep, ...]
    courses: tuple[QuantityCourse, ...]
    resumed_from: tuple[int, ...]
    stopped_at_kl: int | None  # the step at which it was stopped: too far from where it began

    @property
    def absent(self) -> int:
        """How many steps up to the last were not written down."""
        return self.steps[-1].step - len(self.steps)

    @property
    def ends(self) -> int:
        """How many steps at each end are taken together."""
        return steps_at_each_end(len(self.steps))

    def to_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "done": self.done,
            "steps": len(self.steps),
            "planned": self.planned,
            "absent": self.absent,
            "resumed_from": list(self.resumed_from),
            "stopped_at_kl": self.stopped_at_kl,
            "steps_at_each_end": self.ends,
            "courses": {
                course.quantity.name: {
                    "first": course.first,
                    "last": course.last,
                    "not_numbers": course.not_numbers,
                    "points": [list(point) for point in course.points],
                }
                for course in self.courses
            },
        }


def training_run(out: Path) -> TrainingRun:
    """Read a training's folder."""
    stored = record.load(out)
    if stored is None:
        raise UserError(
            f"{out} holds no training: give the --out of `evenhand train sft` or the like"
        )
    steps = read_steps(out)
    if not steps:
        raise UserError(f"{out} has no step yet: look again when the training has made one")
    stopped = stored.get("stopped_at_kl")
    return TrainingRun(
        stage=str(stored.get("stage", steps[-1].stage)),
        done=stored.get("state") == "done",
        planned=steps[-1].steps,
        steps=steps,
        courses=tuple(
            course for quantity in QUANTITIES if (course := _course(quantity, steps)) is not None
        ),
        resumed_from=tuple(
            step for step in stored.get("resumed_from") or () if isinstance(step, int)
        ),
        stopped_at_kl=stopped if isinstance(stopped, int) else None,
    )


def _course(quantity: Quantity, steps: Sequence[TrainingStep]) -> QuantityCourse | None:
    values = [getattr(step, quantity.name) for step in steps]
    present = [
        (step.step, value) for step, value in zip(steps, values, strict=True) if value is not None
    ]
    if not present:
        return None
    points = tuple((step, value) for step, value in present if math.isfinite(value))
    each = steps_at_each_end(len(steps))
    return QuantityCourse(
        quantity=quantity,
        points=points,
        not_numbers=len(present) - len(points),
        first=_mean(values[:each]),
        last=_mean(values[-each:]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; none where a value is missing or no number."""
    present = [value for value in values if value is not None and math.isfinite(value)]
    return fmean(present) if len(present) == len(values) else None
