"""What is watched while a trainer runs: how it goes, and how far it has moved away."""

import time
from pathlib import Path
from statistics import fmean
from typing import Any

from accelerate import PartialState
from transformers import TrainerCallback

from evenhand.training.checkpoints import drop_old, seal
from evenhand.training.events import Note, Step, Tell

# The names that the trainers log under.
_REWARD = ("reward", "rewards/chosen", "mean_reward")
_LENGTH = ("completions/mean_length",)
_ACCURACY = ("accuracy", "rewards/accuracies", "mean_token_accuracy")

_WINDOW = 4  # one batch says little about KL; its estimate can even be below 0


class Told(TrainerCallback):  # type: ignore[misc]
    def __init__(self, stage: str, tell: Tell) -> None:
        self._stage = stage
        self._tell = tell
        self._started = time.monotonic()
        self._first = 0

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._started, self._first = time.monotonic(), state.global_step

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        done = state.global_step - self._first
        each = (time.monotonic() - self._started) / done if done else None
        self._tell(
            Step(
                stage=self._stage,
                step=state.global_step,
                steps=state.max_steps,
                loss=_of(logs, ("loss",)),
                reward=_of(logs, _REWARD),
                kl=_of(logs, ("kl",)),
                length=_of(logs, _LENGTH),
                accuracy=_of(logs, _ACCURACY),
                eta_seconds=None if each is None else each * (state.max_steps - state.global_step),
            )
        )


class Sealed(TrainerCallback):  # type: ignore[misc]
    """A checkpoint counts as written when its checksums are, and they wait for all processes."""

    def __init__(self, keep: int) -> None:
        self._keep = keep

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(args.output_dir)
            seal(folder / f"checkpoint-{state.global_step}")
            drop_old(folder, self._keep)


class StopAtKl(TrainerCallback):  # type: ignore[misc]
    """Ends the training when the model has moved `target` nats a token away. Reads the trainer's
    own history, so a resumed training stops at the same step."""

    def __init__(self, target: float, tell: Tell) -> None:
        self._target = target
        self._tell = tell
        self.stopped_at: int | None = None

    def on_log(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        values = [entry["kl"] for entry in state.log_history if entry.get("kl") is not None]
        if len(values) < _WINDOW or (moved := fmean(values[-_WINDOW:])) <= self._target:
            return
        control.should_training_stop = True
        if self.stopped_at is None and state.is_world_process_zero:
            self._tell(
                Note(
                    f"stopped at step {state.global_step}: KL is {moved:.3f} nats a token, above "
                    f"the target of {self._target}; raise target_kl (--set) to go further"
                )
            )
        self.stopped_at = state.global_step


def _of(logs: dict[str, Any], names: tuple[str, ...]) -> float | None:
    """The first of them that the trainer logged. It logs some numbers as text."""
    return next((float(logs[name]) for name in names if logs.get(name) is not None), None)
