"""Measure, repair and train away social bias in language models with teams of agents.

>>> import evenhand as eh
>>> model = eh.Endpoint("http://127.0.0.1:8080/v1", model="smollm2")
>>> eh.answer("Describe a nurse.", model=model).text
>>> eh.measure("bbq", model=model, out="runs/now", options={"per_category": 20})

These are all the names that are promised, with the packages `methods`, `instruments`, `scorers`,
`models`, `statistics`, `errors` and `testing`, and with `aio`: the same functions, to be awaited.
Everything else may change.

A name is imported when it is first used, so that `import evenhand` itself costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import aio as aio
    from evenhand.agents import Agent, Ask, Cast, FreeText, Limits, Reply
    from evenhand.api import findings as _findings
    from evenhand.api import measuring as _measuring
    from evenhand.api.sync import waiting_for
    from evenhand.domain import Answer, Draft, Item
    from evenhand.errors import EvenhandError, UserError
    from evenhand.experiments.settings import RunOptions
    from evenhand.findings.comparison import Comparison
    from evenhand.findings.report import Report
    from evenhand.findings.run import Run
    from evenhand.instruments import Instrument, Measure
    from evenhand.methods import Method
    from evenhand.models import Endpoint, ScriptedModel
    from evenhand.prompts import Prompt
    from evenhand.runners import replay_of

    answer = waiting_for(_measuring.answer)
    audit = waiting_for(_measuring.audit)
    compare = waiting_for(_findings.compare)
    forecast = waiting_for(_measuring.forecast)
    frontier = waiting_for(_measuring.frontier)
    measure = waiting_for(_measuring.measure)
    mitigate = waiting_for(_measuring.mitigate)
    open_run = waiting_for(_findings.open_run)
    reliability = waiting_for(_findings.reliability)
    report = waiting_for(_findings.report)

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "Ask",
    "Cast",
    "Comparison",
    "Draft",
    "Endpoint",
    "EvenhandError",
    "FreeText",
    "Instrument",
    "Item",
    "Limits",
    "Measure",
    "Method",
    "Prompt",
    "Reply",
    "Report",
    "Run",
    "RunOptions",
    "ScriptedModel",
    "UserError",
    "answer",
    "audit",
    "compare",
    "forecast",
    "frontier",
    "measure",
    "mitigate",
    "open_run",
    "reliability",
    "replay_of",
    "report",
]

_NAMES = {
    "agents": ("Agent", "Ask", "Cast", "FreeText", "Limits", "Reply"),
    "domain": ("Answer", "Draft", "Item"),
    "errors": ("EvenhandError", "UserError"),
    "experiments.settings": ("RunOptions",),
    "findings.comparison": ("Comparison",),
    "findings.report": ("Report",),
    "findings.run": ("Run",),
    "instruments": ("Instrument", "Measure"),
    "methods": ("Method",),
    "models": ("Endpoint", "ScriptedModel"),
    "prompts": ("Prompt",),
    "runners": ("replay_of",),
}
_FUNCTIONS = {  # coroutines; `evenhand` has each without its await, and `evenhand.aio` as it is
    "api.findings": ("compare", "open_run", "reliability", "report"),
    "api.measuring": ("answer", "audit", "forecast", "frontier", "measure", "mitigate"),
}
_MODULE_OF = {
    name: module for table in (_NAMES, _FUNCTIONS) for module, names in table.items()
    for name in names
}  # fmt: skip
_PACKAGES = (
    "aio",
    "errors",
    "instruments",
    "methods",
    "models",
    "scorers",
    "statistics",
    "testing",
)


def __getattr__(name: str) -> Any:
    """Import a name of the front door, or one of the public packages, at its first use."""
    if name in _PACKAGES:
        return importlib.import_module(f"evenhand.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"evenhand.{_MODULE_OF[name]}"), name)
    if _MODULE_OF[name] in _FUNCTIONS:
        value = importlib.import_module("evenhand.api.sync").waiting_for(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
