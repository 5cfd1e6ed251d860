"""Runners take items through a method and give events. The kernel is `local.py`; every other runner
spreads it over more processes."""

from evenhand.runs.runners.local import StopSignal, answer_all, run
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.runners.progress import Progress
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.runners.replay import replay_of
from evenhand.runs.runners.source import ItemList, JsonlFile, Source

__all__ = [
    "ItemList",
    "JsonlFile",
    "Progress",
    "RunPlan",
    "Source",
    "SpendingCap",
    "StopSignal",
    "answer_all",
    "replay_of",
    "run",
]
