"""The control flow of a paper, one file each, and a name for each.

A method is a frozen dataclass: its fields are its settings, and `answer` reads like the paper's
figure. It does no I/O and parses nothing; it only asks.
"""

from dataclasses import fields
from typing import Any, ClassVar, Protocol

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.methods.baselines.best_of_n import BestOfN
from evenhand.methods.baselines.chain_of_thought import ChainOfThought
from evenhand.methods.baselines.default_prompt import DefaultPrompt
from evenhand.methods.baselines.detect_first import DetectFirst
from evenhand.methods.baselines.dummies import AlwaysStereotyped, AlwaysUnknown, UniformRandom
from evenhand.methods.baselines.fair_thinking import FairThinking
from evenhand.methods.baselines.fairness_prompt import FairnessPrompt
from evenhand.methods.baselines.search_first import SearchFirst
from evenhand.methods.baselines.self_consistency import SelfConsistency
from evenhand.methods.baselines.self_debiasing_explanation import SelfDebiasExplanation
from evenhand.methods.baselines.self_debiasing_gen import SelfDebiasGen
from evenhand.methods.baselines.self_debiasing_reprompting import SelfDebiasReprompting
from evenhand.methods.baselines.self_refine import SelfRefine
from evenhand.methods.baselines.stored_answer import StoredAnswer
from evenhand.methods.judging import Rate
from evenhand.methods.mabrf import Mabrf
from evenhand.methods.panel import Panel
from evenhand.methods.stardtox import StarDTox


class Method(Protocol):
    """What a runner needs of a method."""

    name: ClassVar[str]

    def agents(self) -> tuple[Agent[Any], ...]:
        """Every agent it may ask: the run record keeps the hashes of their prompts."""
        ...

    async def answer(self, item: Item, ask: Ask) -> Answer: ...


METHODS: dict[str, type[Any]] = {
    method.name: method
    for method in (
        DefaultPrompt,
        FairnessPrompt,
        ChainOfThought,
        SelfConsistency,
        SelfDebiasExplanation,
        SelfDebiasReprompting,
        SelfDebiasGen,
        FairThinking,
        DetectFirst,
        SelfRefine,
        BestOfN,
        SearchFirst,
        StarDTox,
        Mabrf,
        Rate,
        Panel,
        StoredAnswer,
        AlwaysUnknown,
        AlwaysStereotyped,
        UniformRandom,
    )
}


def settings(method: Any) -> dict[str, Any]:
    """The fields of a method, for the run record."""
    return {field.name: getattr(method, field.name) for field in fields(method)}


def within(method: Any, calls: int) -> Any:
    """The method with the largest setting whose worst case fits a number of calls an item; the
    method itself where no setting of it decides that number."""
    return method.within(calls) if hasattr(method, "within") else method


__all__ = [
    "METHODS",
    "DefaultPrompt",
    "FairnessPrompt",
    "Mabrf",
    "Method",
    "Panel",
    "Rate",
    "StarDTox",
    "StoredAnswer",
    "settings",
    "within",
]
