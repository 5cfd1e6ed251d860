"""What a training tells while it runs. Only the command line shows it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimiser step. What a stage does not measure is None."""

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


Tell = Callable[[Step | Note], None]


def silent(_: Step | Note) -> None:
    return None
