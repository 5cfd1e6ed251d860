"""Measure, repair and train away social bias in language models with teams of agents.

>>> import evenhand
>>> model = evenhand.Endpoint("http://127.0.0.1:8080/v1", model="smollm2")
>>> evenhand.answer_sync("Describe a nurse.", model=model).text
"""

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
