"""What a training tells while it runs. Only the command line shows it.

`steps.jsonl`: how a training went, one line for each step, so that it can be looked at later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from evenhand.core.errors import UserError

STEPS = "steps.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One optimiser step. What a stage does not measure is None."""

    # JSON has no word for NaN or infinity; such a loss must not look unmeasured.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="strings")

    stage: str
    step: int
    steps: int
    loss: float | None
    reward: float | None = None
    kl: float | None = None  # nats a token, against the model it started from
    length: float | None = None  # tokens of an answer
    accuracy: float | None = None  # share of pairs in the right order; in SFT, of tokens
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know: a checkpoint passed over, a stop before the end."""

    text: str


Tell = Callable[[TrainingStep | Note], None]


def silent(_: TrainingStep | Note) -> None:
    return None


_STEP = TypeAdapter(TrainingStep)


def kept(out: Path, tell: Tell) -> Tell:
    """Give a listener that writes each step down before it hands it on. Half a line that a kill
    left is taken away first, so that the next one stands by itself."""
    file = out / STEPS
    if file.is_file():
        with file.open("r+b") as opened:
            opened.truncate(opened.read().rfind(b"\n") + 1)

    def heard(event: TrainingStep | Note) -> None:
        if isinstance(event, TrainingStep):
            with file.open("a") as opened:
                opened.write(_STEP.dump_json(event, exclude={"eta_seconds"}).decode() + "\n")
        tell(event)

    return heard


def read_steps(out: Path) -> tuple[TrainingStep, ...]:
    """Read the steps of a training in their order. What was done again after a stop counts as it
    was done last, and half a line that a kill left counts not at all."""
    try:
        lines = (out / STEPS).read_text("utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(
            f"{out} has no {STEPS}: the folder of `evenhand train sft` and the like has one, if it "
            "was made by this version"
        ) from None
    except UnicodeDecodeError:
        raise UserError(
            f"{out / STEPS} is not a text file, so no training wrote it. Pass the --out of a "
            "training."
        ) from None
    steps: list[TrainingStep] = []
    for number, line in enumerate(lines[:-1], 1):  # behind the last line end is nothing, or a part
        try:
            step = _STEP.validate_json(line)
        except ValidationError:
            raise UserError(
                f"{out / STEPS}, line {number} is not a step of a training. Pass the --out of a "
                "training."
            ) from None
        while steps and steps[-1].step >= step.step:
            steps.pop()
        steps.append(step)
    return tuple(steps)
