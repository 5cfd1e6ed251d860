"""A training run says how one training went, from its first steps to its last."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from evenhand.errors import UserError
from evenhand.findings.display import Shown
from evenhand.training import record
from evenhand.training.curve import read_steps
from evenhand.training.events import Step
from evenhand.training.outcome import steps_at_each_end


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
    stopped = said.get("stopped_at_kl")
    return TrainingRun(
        stage=str(said.get("stage", steps[-1].stage)),
        done=said.get("state") == "done",
        planned=steps[-1].steps,
        steps=steps,
        courses=tuple(course for one in QUANTITIES if (course := _course(one, steps)) is not None),
        resumed_from=tuple(one for one in said.get("resumed_from") or () if isinstance(one, int)),
        stopped_at_kl=stopped if isinstance(stopped, int) else None,
    )


def _course(quantity: Quantity, steps: Sequence[Step]) -> Course | None:
    values = [getattr(one, quantity.name) for one in steps]
    told = [
        (one.step, value) for one, value in zip(steps, values, strict=True) if value is not None
    ]
    if not told:
        return None
    points = tuple((step, value) for step, value in told if math.isfinite(value))
    each = steps_at_each_end(len(steps))
    return Course(
        quantity=quantity,
        points=points,
        not_numbers=len(told) - len(points),
        first=_mean(values[:each]),
        last=_mean(values[-each:]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; none where a value is missing or no number."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return fmean(known) if len(known) == len(values) else None
