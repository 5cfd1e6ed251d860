"""How a training is shown: a line that renews itself on a terminal, a line a few seconds apart
elsewhere."""

import time
from typing import Any

from rich.live import Live
from rich.text import Text

from evenhand.cli.screen import err
from evenhand.views.numbers import duration

_PLAIN_LINE_SECONDS = 5.0


class TrainingDisplay:
    """Takes the events of a training. A context, so that the live line ends with it."""

    def __init__(self) -> None:
        self._live = Live(console=err, auto_refresh=False) if err.is_terminal else None
        self._last = -_PLAIN_LINE_SECONDS

    def __enter__(self) -> "TrainingDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Any) -> None:
        if hasattr(event, "text"):
            err.print(event.text, style="yellow", soft_wrap=True)
            return
        line = status(event)
        if self._live is not None:
            self._live.update(Text(line), refresh=True)
        elif event.step == event.steps or time.monotonic() - self._last >= _PLAIN_LINE_SECONDS:
            self._last = time.monotonic()
            err.print(line, soft_wrap=True)


def status(step: Any) -> str:
    """sft 12 of 40 · loss 2.031 · reward 0.12 · KL 0.010 · 84 tokens · 3 min left"""
    facts = [f"{step.stage} {step.step:,} of {step.steps:,}"]
    for name, value, form in (
        ("loss", step.loss, ".3f"),
        ("accuracy", step.accuracy, ".2f"),
        ("reward", step.reward, ".2f"),
        ("KL", step.kl, ".3f"),
    ):
        if value is not None:
            facts.append(f"{name} {value:{form}}")
    if step.length is not None:
        facts.append(f"{step.length:.0f} tokens")
    if step.eta_seconds is not None:
        facts.append(f"{duration(step.eta_seconds)} left")
    return " · ".join(facts)
