"""Measure, repair and train away social bias in language models with teams of agents.

>>> import evenhand
>>> model = evenhand.Endpoint("http://127.0.0.1:8080/v1", model="smollm2")
>>> evenhand.answer_sync("Describe a nurse.", model=model).text

A name is imported when it is first used, so that `import evenhand` itself costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.agents import Agent, Ask, Cast, Limits, Reply
    from evenhand.api import answer, answer_sync, mitigate
    from evenhand.domain import Answer, Draft, Item, Turn
    from evenhand.errors import EvenhandError, ModelError, StoreError, UnreadableReply, UserError
    from evenhand.methods import DefaultPrompt, FairnessPrompt, Method, StarDTox
    from evenhand.models import Endpoint, ScriptedModel
    from evenhand.runners import replay_of
    from evenhand.scorers import ScorerModel, WordList
    from evenhand.store import RunReader

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "Ask",
    "Cast",
    "DefaultPrompt",
    "Draft",
    "Endpoint",
    "EvenhandError",
    "FairnessPrompt",
    "Item",
    "Limits",
    "Method",
    "ModelError",
    "Reply",
    "RunReader",
    "ScorerModel",
    "ScriptedModel",
    "StarDTox",
    "StoreError",
    "Turn",
    "UnreadableReply",
    "UserError",
    "WordList",
    "answer",
    "answer_sync",
    "mitigate",
    "replay_of",
]

_NAMES = {
    "agents": ("Agent", "Ask", "Cast", "Limits", "Reply"),
    "api": ("answer", "answer_sync", "mitigate"),
    "domain": ("Answer", "Draft", "Item", "Turn"),
    "errors": ("EvenhandError", "ModelError", "StoreError", "UnreadableReply", "UserError"),
    "methods": ("DefaultPrompt", "FairnessPrompt", "Method", "StarDTox"),
    "models": ("Endpoint", "ScriptedModel"),
    "runners": ("replay_of",),
    "scorers": ("ScorerModel", "WordList"),
    "store": ("RunReader",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name of the front door, or one of the packages it comes from, at its first use."""
    if name in _NAMES:
        return importlib.import_module(f"evenhand.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"evenhand.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
