"""The baselines of one prompt or a few of them, and the shape that they share."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from evenhand.agents import (
    Agent,
    Ask,
    Choice,
    FreeText,
    NextToken,
    OptionReply,
    ReasonedChoice,
    Reply,
    choice_of,
    one_token,
    side_by_side,
    words,
)
from evenhand.agents.prompts import LETTERS, Prompt, load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UnreadableReply, Unsuited, UserError
from evenhand.methods.baselines.stored_answer import stored_draft


@cache
def text_agent(prompt: Prompt) -> Agent[FreeText]:
    """The model under test, asked for a text."""
    return Agent("generator", prompt, FreeText)


@cache
def choice_agent(
    prompt: Prompt, options: int, kind: type[OptionReply] = Choice, temperature: float | None = None
) -> Agent[OptionReply]:
    """Declare an agent that asks the model under test for the letter of one option.

    Args:
        prompt: The prompt that lists the options.
        options: How many options there are.
        kind: The form of the reply: a letter alone, or with more fields.
        temperature: The sampling temperature; None for the model's own.

    Returns:
        The agent.
    """
    return Agent("generator", prompt, choice_of(options, kind), temperature=temperature)


def reasoning_agent(
    prompt: Prompt, options: int, temperature: float | None = None
) -> Agent[OptionReply]:
    return choice_agent(prompt, options, ReasonedChoice, temperature)


def question(item: Item) -> dict[str, Any]:
    """The variables that every prompt of a multiple-choice question has."""
    return {"context": item.context, "question": item.prompt, "choices": item.choices}


def no_letter(reply: NextToken, letters: str) -> UnreadableReply:
    """Make the error for a first token that is not an option's letter."""
    first = list(reply.probabilities)[:5]
    return UnreadableReply(
        "no_letter", f"none of {', '.join(letters)} is among the first tokens {first} …"
    )


async def ask_for_choice(item: Item, ask: Ask, agent: Agent[OptionReply]) -> Answer:
    chosen = await ask(agent, **question(item))
    draft = Draft(text=item.choices[chosen.index], choice=chosen.index)
    return Answer(drafts=(draft,), stopped="single_pass")


async def draft_by(item: Item, ask: Ask, text: Prompt, choice: Prompt, **more: Any) -> Draft:
    """Answer an item with one call: a text, or one of its choices.

    Args:
        item: The item; without choices it is answered in free text.
        ask: Asks an agent.
        text: The prompt for an item without choices.
        choice: The prompt for an item with choices.
        **more: Further variables of the prompt, in addition to those of the item.

    Returns:
        The draft.
    """
    if not item.choices:
        reply = await ask(text_agent(text), prompt=item.prompt, **more)
        return Draft(text=reply.text, tool_calls=reply.tool_calls)
    chosen = await ask(choice_agent(choice, len(item.choices)), **question(item), **more)
    return Draft(text=item.choices[chosen.index], choice=chosen.index)


async def answer_once(item: Item, ask: Ask, text: Prompt, choice: Prompt) -> Answer:
    """Answer an item with a single call.

    Args:
        item: The item; without choices it is answered in free text.
        ask: Asks an agent.
        text: The prompt for an item without choices.
        choice: The prompt for an item with choices.

    Returns:
        The answer, whose only draft is the final one.
    """
    draft = await draft_by(item, ask, text, choice)
    return Answer(drafts=(draft,), stopped="single_pass")


PLAIN_TEXT = load("baselines/default_text")
PLAIN_CHOICE = load("baselines/default_choice")


async def first_draft(item: Item, ask: Ask) -> Draft:
    """The answer that is there already, or else the model's own to the plain task."""
    return stored_draft(item) or await draft_by(item, ask, PLAIN_TEXT, PLAIN_CHOICE)


# The same task in three wordings of ours, for how much of a score is the wording. The second names
# parts otherwise; the third also puts the options before the question.
_WORDINGS = tuple(
    load(f"baselines/{name}") for name in ("default_choice", "default_choice_2", "default_choice_3")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPrompt:
    """One call with the plain task, no word about fairness (StarDTox paper, IV-B)."""

    name: ClassVar[str] = "default"
    calls_an_item: ClassVar[str] = "1"

    wording: int = 1  # of questions with choices
    # Of what is said around a question with choices; the question is in its own.
    language: Literal["en", "es", "ca", "de", "ko", "zh"] = field(
        default="en", metadata={"left_out": "en"}
    )

    def __post_init__(self) -> None:
        if not 1 <= self.wording <= len(_WORDINGS):
            raise UserError(
                f"Unknown wording {self.wording}. Choose a number from 1 to {len(_WORDINGS)}."
            )
        if self.wording > 1 and self.language != "en":
            raise UserError(f"Wording {self.wording} exists only in English. Leave out --wording.")

    @property
    def _choice(self) -> Prompt:
        if self.language == "en":
            return _WORDINGS[self.wording - 1]
        return load(f"baselines/default_choice_{self.language}")

    def agents(self) -> tuple[Agent[Any], ...]:
        choice = choice_agent(self._choice, 3)
        return (text_agent(PLAIN_TEXT), choice) if self.wording == 1 else (choice,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if self.wording > 1 and not item.choices:
            raise Unsuited(
                f"item {item.id!r} has no choices, and the plain prompt of a text has one wording: "
                "leave out wording"
            )
        return await answer_once(item, ask, PLAIN_TEXT, self._choice)


_FAIR_TEXT = load("baselines/fairness_text")
_FAIR_CHOICE = load("baselines/fairness_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessPrompt:
    """One call with the task and a request to be fair (StarDTox paper, IV-B)."""

    name: ClassVar[str] = "fairness"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(_FAIR_TEXT), choice_agent(_FAIR_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        return await answer_once(item, ask, _FAIR_TEXT, _FAIR_CHOICE)


_COT_CHOICE = load("baselines/cot_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOfThought:
    """One call that reasons in steps before it chooses (Kojima et al. 2022)."""

    name: ClassVar[str] = "cot"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (reasoning_agent(_COT_CHOICE, 3),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"cot answers questions with choices; item {item.id!r} has none")
        return await ask_for_choice(item, ask, reasoning_agent(_COT_CHOICE, len(item.choices)))


_TEMPERATURE = 0.7  # Wang et al. 2023, section 3.1: equal answers would make no vote


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency:
    """`calls` chains of thought side by side, then a vote (Wang et al. 2023); of options with
    equal votes the one that was reached first wins. The baseline that a team of agents must beat
    at the same number of calls."""

    name: ClassVar[str] = "self_consistency"
    calls_an_item: ClassVar[str] = "5 (calls)"

    calls: Annotated[int, Field(ge=1)] = (
        5  # our choice: set it to the mean number of calls of the method it is compared with
    )

    def agents(self) -> tuple[Agent[Any], ...]:
        return (reasoning_agent(_COT_CHOICE, 3),)

    def within(self, calls: int) -> Self:
        if calls < 1:
            raise UserError(
                f"self_consistency needs at least 1 call per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        return replace(self, calls=calls)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"self_consistency votes among choices; item {item.id!r} has none")
        agent = reasoning_agent(_COT_CHOICE, len(item.choices), _TEMPERATURE)
        replies = await side_by_side(*(ask(agent, **question(item)) for _ in range(self.calls)))
        votes = Counter(reply.index for reply in replies)
        winner = max(votes, key=lambda option: votes[option])  # the first of equals
        share = {"agreement": votes[winner] / self.calls}
        draft = Draft(text=item.choices[winner], choice=winner, scores=share)
        return Answer(drafts=(draft,), stopped="single_pass")


# Our own: stakes, not groups. The paper has roles made up for each question, which can bring in the
# very stereotypes that are to be kept out.
PERSONAS = (
    "one of the people whom this is about",
    "somebody who is often judged by a group they belong to and not by what they did",
    "an onlooker without a stake, who holds to what is stated",
    "somebody who must act on the answer and bears the cost if it is wrong",
    "a friend of somebody whom this is about, who wants all of them treated alike",
    "somebody who gives advice to people of every kind",
    "a newcomer who does not know what is commonly assumed here",
)


class View(Reply):
    view: Annotated[str, words(400)]


CHOICE_JUROR = Agent("juror", load("baselines/juror_choice"), View)
TEXT_JUROR = Agent("juror", load("baselines/juror_text"), View)
_DECIDE_TEXT = load("baselines/foreperson_text")
_DECIDE_CHOICE = load("baselines/foreperson_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairThinking:
    """A jury, after FairThinking (Li et al. 2024): the jurors are asked side by side; then the
    generator, as their foreperson, decides."""

    name: ClassVar[str] = "fair_thinking"
    calls_an_item: ClassVar[str] = "4 (jurors + 1)"

    jurors: Annotated[int, Field(ge=1, le=len(PERSONAS))] = 3  # our choice; each speaks once

    def agents(self) -> tuple[Agent[Any], ...]:
        return CHOICE_JUROR, TEXT_JUROR, choice_agent(_DECIDE_CHOICE, 3), text_agent(_DECIDE_TEXT)

    def within(self, calls: int) -> Self:
        """One call a juror and one to decide; there are no more jurors than personas."""
        if calls < 2:
            raise UserError(
                f"{self.name} needs at least 2 calls per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        return replace(self, jurors=min(calls - 1, len(PERSONAS)))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        juror = CHOICE_JUROR if item.choices else TEXT_JUROR
        variables = question(item) if item.choices else {"prompt": item.prompt}
        jury = PERSONAS[: self.jurors]
        replies = await side_by_side(
            *(ask(juror, **variables, persona=persona) for persona in jury)
        )
        views = [reply.view for reply in replies]
        decision = await draft_by(item, ask, _DECIDE_TEXT, _DECIDE_CHOICE, views=views)
        return Answer(drafts=(decision,), stopped="single_pass")


ROTATED = one_token("generator", load("baselines/rotated_choice"), NextToken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """Asked once in each rotation of the options, the one whose letters are likeliest wins (after
    Zheng et al. 2024). For endpoints that give log-probabilities. The first draft is what the
    order as given would have said.

    With n options, option i stands at place i − r of rotation r, and once at each place:

        s(i) = mean over r of log p(letter of i | rotation r)

    Where a model's liking for a letter is a factor of its own, it adds the same to every s(i) and
    so decides nothing; nor does what a list leaves to other words.
    """

    name: ClassVar[str] = "rotated"
    calls_an_item: ClassVar[str] = "3 (options)"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (ROTATED,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"{self.name} answers questions with choices; {item.id!r} has none")
        turns = range(len(item.choices))
        turned = (replace(item, choices=item.choices[r:] + item.choices[:r]) for r in turns)
        replies = await side_by_side(*(ask(ROTATED, **question(rotation)) for rotation in turned))
        logs = [_logs(reply, len(item.choices)) for reply in replies]
        drafts = tuple(_draft(item, log_probs) for log_probs in (logs[0], mean_of_rotations(logs)))
        return Answer(drafts=drafts, stopped="single_pass")


def _logs(reply: NextToken, options: int) -> list[float]:
    """The log-probability of each letter, in their order."""
    letters = LETTERS[:options]
    log_probs = reply.logs_of(letters)
    if not log_probs:
        raise no_letter(reply, letters)
    return [log_probs[letter] for letter in letters]


def mean_of_rotations(logs: Sequence[Sequence[float]]) -> list[float]:
    """The mean log-probability of each option, from a row for each rotation, a column for each
    letter."""
    options = range(len(logs))
    return [math.fsum(logs[r][option - r] for r in options) / len(logs) for option in options]


def _draft(item: Item, logs: Sequence[float]) -> Draft:
    """The likeliest option, the first of equals, with its share among all."""
    choice = max(range(len(logs)), key=lambda option: logs[option])
    share = 1 / math.fsum(math.exp(log - logs[choice]) for log in logs)
    return Draft(text=item.choices[choice], choice=choice, scores={"share": share})
