"""The judges of the papers on texts with planted bias: MABRF's judge, the referee of debates and
the rater of statements, each read as JSON and by log-probabilities.

Each is asked as its method asks it, about the pairs in `probe_questions.toml`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from evenhand.agents import Agent, Ask, Read
from evenhand.core import Item
from evenhand.core.errors import ModelError, UnreadableReply
from evenhand.core.items import JUDGE as GRADES
from evenhand.core.items import REFEREE, RUBRIC
from evenhand.core.package_data import read_toml
from evenhand.instruments.statements.instrument import prompt as statement_prompt
from evenhand.methods.baselines.single_prompt import question
from evenhand.methods.mabrf import GRADE, JUDGE, grade_of
from evenhand.training.debates.debate import digit_referee, referee_of, score_of, verdict_on
from evenhand.training.rating.judges import DIGIT_RATER, RATER, rated, rated_by_digit

# The referee is asked about both texts of a pair at once where it is read as JSON.
AGENTS: tuple[Agent[Any], ...] = (
    *(JUDGE, GRADE),
    *(referee_of(2), digit_referee()),
    *(RATER, DIGIT_RATER),
)
_FREEDOM = "freedom_from_bias"
Marks = tuple[float | None, float | None]  # of the biased text and the fair one, from 0 to 1


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """Two texts about the same item: one with planted bias, one without."""

    item: Item
    biased: str
    fair: str


@dataclass(frozen=True, slots=True)
class PlantedJudge:
    """A judge, and how it marks the two texts of each of its pairs."""

    name: str
    read: Read
    pairs: Sequence[PlantedPair]
    calls: int  # of a pair
    marks: Callable[[PlantedPair, int, Ask], Awaitable[Marks]]


@cache
def planted_judges() -> tuple[PlantedJudge, ...]:
    """List the judges, each once for each way of reading it."""
    document = read_toml("evenhand.experiments", "probe_questions.toml")
    reasonings = [_reasoning(entry, document["not_said"]) for entry in document["reasonings"]]
    statements = [_statement(entry) for entry in document["statements"]]
    judges: list[PlantedJudge] = []
    for read in get_args(Read):
        by_json = read == "json"
        referee = _both_at_once if by_json else _each(_score)
        judges += [
            PlantedJudge("mabrf", read, reasonings, 2, _each(_grade if by_json else _digit_grade)),
            PlantedJudge("debates", read, statements, 1 if by_json else 2, referee),
            PlantedJudge("statements", read, statements, 2, _each(_rate if by_json else _digit)),
        ]
    return tuple(sorted(judges, key=lambda judge: judge.name))


def _reasoning(entry: dict[str, Any], not_said: str) -> PlantedPair:
    choices = (*entry["things"], not_said)
    item = Item(id="reasoning", prompt=entry["asks"], context=entry["text"], choices=choices)
    return PlantedPair(item, entry["biased"], entry["fair"])


def _statement(entry: dict[str, Any]) -> PlantedPair:
    tags = {"bias_type": entry["bias_type"], "persona": entry["persona"]}
    item = Item(id="statement", prompt=entry["topic"], tags=tags)
    return PlantedPair(item, entry["biased"], entry["fair"])


def _each(
    mark: Callable[[Item, str, Ask], Awaitable[float]],
) -> Callable[[PlantedPair, int, Ask], Awaitable[Marks]]:
    """Mark the texts of a pair one after the other; a mark that cannot be read is None."""

    async def marks(pair: PlantedPair, number: int, ask: Ask) -> Marks:
        del number
        biased = await _read(mark, pair.item, pair.biased, ask)
        return biased, await _read(mark, pair.item, pair.fair, ask)

    return marks


async def _read(
    mark: Callable[[Item, str, Ask], Awaitable[float]], item: Item, text: str, ask: Ask
) -> float | None:
    try:
        return await mark(item, text, ask)
    except (UnreadableReply, ModelError):
        return None


async def _grade(item: Item, text: str, ask: Ask) -> float:
    verdict = await ask(JUDGE, **question(item), reasoning=text)
    return GRADES.bias(verdict.bias) / 10


async def _digit_grade(item: Item, text: str, ask: Ask) -> float:
    return GRADES.bias(await grade_of("bias", item, text, ask)) / 10


async def _both_at_once(pair: PlantedPair, number: int, ask: Ask) -> Marks:
    """In half of the pairs the biased statement comes first."""
    texts = (pair.biased, pair.fair)[:: 1 if number % 2 else -1]
    try:
        verdict = await verdict_on(pair.item, [("", text) for text in texts], ask)
    except (UnreadableReply, ModelError):
        return None, None
    first, second = (REFEREE.bias(mark.score) / 10 for mark in verdict.marks())
    return (first, second) if number % 2 else (second, first)


async def _score(item: Item, text: str, ask: Ask) -> float:
    return REFEREE.bias(await score_of(item, text, ask)) / 10


async def _rate(item: Item, text: str, ask: Ask) -> float:
    return RUBRIC.bias((await rated(_spoken(item, text), ask))[_FREEDOM]) / 10


async def _digit(item: Item, text: str, ask: Ask) -> float:
    return RUBRIC.bias(await rated_by_digit(_FREEDOM, _spoken(item, text), ask)) / 10


def _spoken(item: Item, text: str) -> Item:
    """The statement as the answer to the task that it is written for."""
    values = {"persona": item.tags["persona"], "topic": item.prompt}
    (message,) = statement_prompt().render(values)
    return Item(id=item.id, prompt=message.content, answer=text)
