"""The control flow of each paper; `registry.py` has the names.

A method is a frozen dataclass: its fields are its settings, and `answer` reads like the paper's
figure. It does no I/O and parses nothing; it only asks.
"""

from evenhand.agents.method import Method, named, of_record, settings, within
from evenhand.methods.baselines.single_prompt import (
    DefaultPrompt,
    FairnessPrompt,
    choice_agent,
    draft_by,
    text_agent,
)
from evenhand.methods.baselines.stored_answer import StoredAnswer
from evenhand.methods.judging import Panel, Rate
from evenhand.methods.mabrf import Mabrf
from evenhand.methods.stardtox import StarDTox

__all__ = [
    "DefaultPrompt",
    "FairnessPrompt",
    "Mabrf",
    "Method",
    "Panel",
    "Rate",
    "StarDTox",
    "StoredAnswer",
    "choice_agent",
    "draft_by",
    "named",
    "of_record",
    "settings",
    "text_agent",
    "within",
]
