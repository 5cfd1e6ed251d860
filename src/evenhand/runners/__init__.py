"""Runners take items through a method and give events. The kernel is `local.py`; every other runner
spreads it over more processes."""

from evenhand.runners.local import StopSignal, answer_all, run
from evenhand.runners.plan import RunPlan
from evenhand.runners.progress import Progress
from evenhand.runners.purse import SpendingCap
from evenhand.runners.replay import replay_of
from evenhand.runners.source import ItemList, JsonlFile, Source

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
