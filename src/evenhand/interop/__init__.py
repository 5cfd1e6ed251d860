"""Logs of other tools tell what a model answered elsewhere, so that it can be scored here without a
call."""

from pathlib import Path

from evenhand.interop.inspect_log import is_inspect, read_inspect
from evenhand.interop.lm_eval import is_lm_eval, read_lm_eval
from evenhand.interop.log import ExternalItem, Log, LoggedAnswer, Origin

__all__ = ["ExternalItem", "Log", "LoggedAnswer", "Origin", "read"]


def read(file: Path) -> Log | None:
    """Read the log of another tool, which is told by its content; None where it is none that we
    know."""
    if is_inspect(file):
        return read_inspect(file)
    return read_lm_eval(file) if is_lm_eval(file) else None
