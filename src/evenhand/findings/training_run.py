"""A training run says how one training went, from its first steps to its last."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from evenhand.errors import UserError
from evenhand.findings.shown import Shown
from evenhand.training import record
from evenhand.training.curve import read_steps
from evenhand.training.events import Step

# Our choice: a tenth of the steps and at least four, as one batch alone says little.
_SHARE, _LEAST = 10, 4


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
class Course:
    """The course of a quantity: its points, and the mean of the first and of the last steps."""

    quantity: Quantity
    points: tuple[tuple[int, float], ...]  # step, value
    not_numbers: int  # steps at which it was infinite or no number
    first: float | None
    last: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(Shown):
    """How one training went. Nothing is tested: one training is one draw."""

    stage: str
    done: bool
    planned: int
    steps: tuple[Step, ...]
    courses: tuple[Course, ...]
    resumed_from: tuple[int, ...]

    @property
    def ends(self) -> int:
        """How many steps at each end are taken together."""
        return _ends(len(self.steps))

    def to_dict(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "done": self.done,
            "steps": len(self.steps),
            "planned": self.planned,
            "resumed_from": list(self.resumed_from),
            "steps_at_each_end": self.ends,
            "courses": {
                one.quantity.name: {
                    "first": one.first,
                    "last": one.last,
                    "not_numbers": one.not_numbers,
                    "points": [list(point) for point in one.points],
                }
                for one in self.courses
            },
        }


def training_run(out: Path) -> TrainingRun:
    """Read a training's folder."""
    said = record.load(out)
    if said is None:
        raise UserError(
            f"{out} holds no training: give the --out of `evenhand train sft` or the like"
        )
    steps = read_steps(out)
    if not steps:
        raise UserError(f"{out} has no step yet: look again when the training has made one")
    return TrainingRun(
        stage=str(said["stage"]),
        done=said["state"] == "done",
        planned=steps[-1].steps,
        steps=steps,
        courses=tuple(course for one in QUANTITIES if (course := _course(one, steps)) is not None),
        resumed_from=tuple(int(step) for step in said["resumed_from"]),
    )


def _course(quantity: Quantity, steps: Sequence[Step]) -> Course | None:
    told = [
        (one.step, value) for one in steps if (value := getattr(one, quantity.name)) is not None
    ]
    if not told:
        return None
    points = tuple((step, value) for step, value in told if math.isfinite(value))
    each = _ends(len(steps))
    return Course(
        quantity=quantity,
        points=points,
        not_numbers=len(told) - len(points),
        first=_mean([value for _, value in told[:each]]),
        last=_mean([value for _, value in told[-each:]]),
    )


def _mean(values: list[float]) -> float | None:
    """A mean with something in it that is no number is none."""
    return fmean(values) if all(map(math.isfinite, values)) else None


def _ends(steps: int) -> int:
    return min(max(_LEAST, steps // _SHARE), steps)
