"""The questions of the probe, and the two agents that they are put through."""

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from evenhand.agents import Agent
from evenhand.agents.prompts import load
from evenhand.core import Item
from evenhand.core.package_data import read_text, read_toml
from evenhand.experiments.probe.verdicts import OPTIONS
from evenhand.methods.baselines.single_prompt import choice_agent
from evenhand.methods.stardtox import TEXT_JUDGE

READER = choice_agent(load("baselines/default_choice"), OPTIONS, temperature=0.0)


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A reading question as it is put."""

    item: Item
    right: int  # of its choices


@dataclass(frozen=True, slots=True)
class ProbeQuestions:
    """All that a probe asks."""

    told: tuple[ProbeQuestion, ...]
    untold: tuple[ProbeQuestion, ...]
    task: str
    blunt: tuple[str, ...]
    neutral: tuple[str, ...]
    sha256: str  # of the questions, and of the words and the form in which they are put

    def __len__(self) -> int:
        return sum(map(len, (self.told, self.untold, self.blunt, self.neutral)))


@cache
def questions() -> ProbeQuestions:
    """Read the questions that evenhand ships."""
    document = read_toml(__package__, "questions.toml")
    last = document["not_said"]
    by_kind = {
        kind: tuple(
            _question(f"{kind}-{n}", n, entry, last) for n, entry in enumerate(document[kind])
        )
        for kind in ("told", "untold")
    }
    return ProbeQuestions(
        told=by_kind["told"],
        untold=by_kind["untold"],
        task=document["task"],
        blunt=tuple(pair["blunt"] for pair in document["sentences"]),
        neutral=tuple(pair["neutral"] for pair in document["sentences"]),
        sha256=checksum(read_text(__package__, "questions.toml").encode(), READER, TEXT_JUDGE),
    )


def _question(name: str, number: int, entry: dict[str, Any], not_said: str) -> ProbeQuestion:
    """Put the options in an order in which the right one is A, B and C in turn: whoever always says
    the same letter is right on a third."""
    options = [*entry["things"], not_said]
    right, position = entry.get("right", len(options) - 1), number % len(options)
    turned = [options[(right - position + n) % len(options)] for n in range(len(options))]
    item = Item(id=name, prompt=entry["asks"], context=entry["text"], choices=tuple(turned))
    return ProbeQuestion(item, position)


def checksum(data: bytes, *agents: Agent[Any]) -> str:
    """Hash the questions with the words and the form in which the agents put them."""
    put = [
        [agent.prompt.sha256, agent.temperature, agent.reply.model_json_schema()]
        for agent in agents
    ]
    return hashlib.sha256(orjson.dumps([data.decode(), put])).hexdigest()
