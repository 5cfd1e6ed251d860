"""A control as a model: it reads a prompt as it was sent, and replies in the form it asks for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import orjson
import polars as pl

from evenhand.agents import Agent, Ask, OptionReply
from evenhand.agents.prompts import Prompt
from evenhand.core import Answer, Item
from evenhand.core.errors import UserError
from evenhand.instruments import DataFolder
from evenhand.instruments.bbq.instrument import Bbq, BbqOptions
from evenhand.methods import Method
from evenhand.methods.baselines.single_prompt import ask_for_choice, choice_agent
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import Source
from evenhand.validation.controls.items import records
from evenhand.validation.controls.policies import Control, Facts

_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.MULTILINE)
REFUSAL = "I'm sorry, but I can't help with that."


def control_model(
    control: Control,
    source: Source,
    records: pl.DataFrame,
    seed: int | str,
    remedies: Mapping[str, Control] | None = None,
) -> ScriptedModel:
    """Make a model that answers the items of a source as a control does.

    It knows the questions from the records, and finds what it picks by its words in the prompt. It
    does not read the tags that the score rests on, so that a fault in them is detected. Every
    wording of the task and every vote is sampled separately; all remedies share their random
    numbers, so that two of them differ only in what they do.

    Args:
        control: The control.
        source: The items.
        records: The questions, with the facts that the control decides by.
        seed: The seed of its answers.
        remedies: Controls that take over where the system message is their name.

    Returns:
        The model.
    """
    ids = [item.id for item in source.read(0, len(source))]
    rows = {f"{row['category']}/{row['example_id']}": row for row in records.iter_rows(named=True)}

    def reply(request: ModelRequest) -> str:
        row, system = rows[ids[request.position]], request.messages[0].content
        options = _shown(request, row)
        remedy = (remedies or {}).get(system)
        wording = system if remedy is None else "a remedy"
        draw_key = f"{seed}:{wording}:{request.occurrence}"
        picked = (remedy or control).answers(Facts.of_record(row, list(options)), draw_key)
        return REFUSAL if picked is None else _in_form(request, list(options.values())[picked])

    return ScriptedModel(reply, name=control.name)


def _shown(request: ModelRequest, row: Mapping[str, Any]) -> dict[str, str]:
    """The options as the prompt shows them, each with its letter."""
    prompt = next(
        (message.content for message in request.messages if row["question"] in message.content), ""
    )
    if row["context"] not in prompt:
        raise UserError(f"a prompt does not hold the text and the question of {row['example_id']}")
    return {text: letter for letter, text in _OPTION.findall(prompt)}


def _in_form(request: ModelRequest, letter: str) -> str:
    fields = request.schema.body["properties"] if request.schema else {}
    reply = {name: letter if name == "answer" else "It says so." for name in fields}
    return orjson.dumps(reply).decode() if reply else letter


@dataclass(frozen=True, kw_only=True)
class ControlMethod:
    """A method of one call whose system message is its name, so that a control model knows it."""

    name: ClassVar[str] = "remedy"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (_remedy_agent(self.name),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        return await ask_for_choice(item, ask, _remedy_agent(self.name))


def remedy_named(name: str) -> Method:
    """Give a remedy of this name; a method's name belongs to its class, so each has its own."""
    remedy: Method = type("Remedy", (ControlMethod,), {"name": name})()
    return remedy


@cache
def _remedy_agent(name: str) -> Agent[OptionReply]:
    question = "{{ context }}\n{{ question }}\n{{ choices | lettered }}"
    form = 'Reply as JSON with one field, "answer": the letter alone.'
    return choice_agent(Prompt.of(f"{question}\n{form}", system=name), 3)


class ControlQuestions(Bbq):
    """Measures as BBQ does, on generated questions: the rules are BBQ's own, only its records are
    others."""

    name = "control-questions"
    title = "control questions"

    def __init__(self, frame: pl.DataFrame | None = None) -> None:
        self.generated = records() if frame is None else frame
        questions = self.generated.select("category", "question_index")
        self.all_clusters = questions.n_unique()  # type: ignore[misc]
        # Items a category that are a block of each of its templates.
        self.half = 4 * self.generated["question_index"].n_unique()

    def records(self, data: DataFolder) -> pl.DataFrame:
        del data
        return self.generated

    def questions(self, data: DataFolder, options: BbqOptions) -> Source:
        return ControlSource(self.name, super().questions(data, options))


class ControlSource:
    """A sample of the generated questions, recorded under their own name and never as BBQ."""

    def __init__(self, name: str, source: Source) -> None:
        self._name = name
        self._drawn = source

    def fingerprint(self) -> dict[str, Any]:
        original = self._drawn.fingerprint()
        return {**original, "benchmark": self._name, "version": "1", "revision": None}

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return self._drawn.chunks()

    def read(self, start: int, stop: int) -> Iterator[Item]:
        return self._drawn.read(start, stop)
