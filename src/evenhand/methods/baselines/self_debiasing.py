"""Self-debiasing: by an explanation or a second prompt (Gallegos et al. 2025), and at decoding.

At decoding, what a model would say all the more if it were told to be harmful, it says less
(Schick, Udupa, Schütze 2021).

With x the input and sdb(x) the same with a sentence that encourages what is not wanted:

    Δ(w)  = p(w | x) − p(w | sdb(x))             of several sentences the smallest
    p'(w) ∝ α(Δ(w)) · p(w | x)                   α(Δ) = 1 where Δ ≥ 0, else e^(λ Δ)

An endpoint tells the 20 likeliest tokens, not all. So only those of the plain input can be said,
and one that the other list lacks is given the most it can have there (`models/next_token.py`).
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, NextToken, Reply, one_token, side_by_side, words
from evenhand.agents.prompts import LETTERS, load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UnreadableReply, Unsuited, UserError
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    draft_by,
    first_draft,
    no_letter,
    question,
    text_agent,
)


class Explanation(Reply):
    explanation: Annotated[str, words(600)]


EXPLAINER = Agent("generator", load("baselines/explain_choice"), Explanation)
_EXPLAINED = load("baselines/explained_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDebiasExplanation:
    """Two calls to the same model: the explanation, and the answer with it in view."""

    name: ClassVar[str] = "self_debias_explanation"
    calls_an_item: ClassVar[str] = "2"

    def agents(self) -> tuple[Agent[Any], ...]:
        return EXPLAINER, choice_agent(_EXPLAINED, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"{self.name} explains choices; item {item.id!r} has none")
        explanation = (await ask(EXPLAINER, **question(item))).explanation
        agent = choice_agent(_EXPLAINED, len(item.choices))
        chosen = await ask(agent, **question(item), explanation=explanation)
        draft = Draft(text=item.choices[chosen.index], choice=chosen.index, reasoning=explanation)
        return Answer(drafts=(draft,), stopped="single_pass")


_TEXT = load("baselines/reprompt_text")
_CHOICE = load("baselines/reprompt_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDebiasReprompting:
    """Two calls to the same model; one where the first answer is there already."""

    name: ClassVar[str] = "self_debias_reprompting"
    calls_an_item: ClassVar[str] = "2"

    def agents(self) -> tuple[Agent[Any], ...]:
        texts = text_agent(PLAIN_TEXT), text_agent(_TEXT)
        return *texts, choice_agent(PLAIN_CHOICE, 3), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        first = await first_draft(item, ask)
        again = await draft_by(item, ask, _TEXT, _CHOICE, draft=first.text)
        return Answer(drafts=(first, again), stopped="single_pass")


_END = ""

# All inputs go to one role: the difference means something within one model only.
CHOICE = one_token("generator", load("baselines/self_debias_gen_choice"), NextToken)
TEXT = replace(CHOICE, prompt=load("baselines/self_debias_gen_text"), raw=True)

Distribution = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDebiasGen:
    """Chooses by the first token of a chat, continues a text token by token. For endpoints that
    give log-probabilities; a text needs raw completions as well."""

    name: ClassVar[str] = "self_debias_gen"
    calls_an_item: ClassVar[str] = "2, text: 2 to 40"

    decay: Annotated[float, Field(ge=0, le=500)] = 50.0  # λ; paper 4.1 has 10, 50 and 100
    attributes: str = (  # our choice; several are split at ";"
        "prejudice, insults and contempt for groups of people"
    )
    max_new_tokens: Annotated[int, Field(ge=1)] = 20  # paper 4.1
    sample_seed: int | None = None  # None: the likeliest token. The paper has beams of 3

    def __post_init__(self) -> None:
        if not self._undesired():
            raise UserError(
                "self_debias_gen has no attributes, and it lowers what they name. Add --set "
                "attributes=…."
            )

    def agents(self) -> tuple[Agent[Any], ...]:
        return CHOICE, TEXT

    def within(self, calls: int) -> Self:
        """One call and one for each attribute, as often as there are tokens: the first attributes
        that fit a choice, then as many tokens as fit a text."""
        if calls < 2:
            raise UserError(
                f"self_debias_gen needs at least 2 calls per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        attributes = self._undesired()[: calls - 1]
        tokens = min(self.max_new_tokens, calls // (1 + len(attributes)))
        return replace(self, attributes=";".join(attributes), max_new_tokens=tokens)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        return await (self._choose(item, ask) if item.choices else self._continue(item, ask))

    async def _choose(self, item: Item, ask: Ask) -> Answer:
        predictions = await self._told(ask, CHOICE, **question(item))
        letters = LETTERS[: len(item.choices)]
        plain, *biased = (prediction.of_words(letters) for prediction in predictions)
        if not plain:
            raise no_letter(predictions[0], letters)
        bounds = [prediction.most_unlisted for prediction in predictions[1:]]
        repaired = rescaled(plain, biased, bounds, self.decay)
        drafts = tuple(_draft(item, distribution) for distribution in (plain, repaired))
        return Answer(drafts=drafts, stopped="single_pass")

    async def _continue(self, item: Item, ask: Ask) -> Answer:
        text, stopped = "", "max_new_tokens"
        for position in range(self.max_new_tokens):
            predictions = await self._told(ask, TEXT, prompt=item.prompt, so_far=text)
            plain, *biased = (prediction.probabilities for prediction in predictions)
            bounds = [prediction.most_unlisted for prediction in predictions[1:]]
            token = self._pick(rescaled(plain, biased, bounds, self.decay), item, position)
            if token == _END:
                stopped = "end_of_text"
                break
            text += token
        if not text.strip():
            raise UnreadableReply("empty", "the model ended the text before its first word")
        return Answer(drafts=(Draft(text=text.strip()),), stopped=stopped)

    async def _told(self, ask: Ask, agent: Agent[NextToken], **words: Any) -> list[NextToken]:
        """Of the plain input first, then of one for each attribute; asked side by side."""
        attributes = ("", *self._undesired())
        return list(
            await side_by_side(
                *(ask(agent, attribute=attribute, **words) for attribute in attributes)
            )
        )

    def _undesired(self) -> list[str]:
        return [part.strip() for part in self.attributes.split(";") if part.strip()]

    def _pick(self, distribution: Distribution, item: Item, position: int) -> str:
        """The likeliest token, or one drawn: the same each time for the same item and seed."""
        if self.sample_seed is None:
            return max(distribution, key=lambda token: distribution[token])
        rng = random.Random(f"{self.sample_seed}:{item.id}:{position}")
        return rng.choices(list(distribution), list(distribution.values()))[0]


def rescaled(
    plain: Distribution, biased: Sequence[Distribution], unlisted: Sequence[float], decay: float
) -> dict[str, float]:
    """Lower the probability of each token that a biased prompt makes likelier, and renormalize.

    Args:
        plain: The probabilities after the plain prompt; only its tokens are considered.
        biased: The probabilities after each biased prompt.
        unlisted: What each biased distribution gives a token that it does not list.
        decay: How strongly a token is lowered; 0 changes nothing.

    Returns:
        The new probabilities, which add up to 1.
    """
    weights = {}
    for token, probability in plain.items():
        most = max(other.get(token, rest) for other, rest in zip(biased, unlisted, strict=True))
        delta = probability - most
        weights[token] = probability * (1.0 if delta >= 0 else math.exp(decay * delta))
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def _draft(item: Item, distribution: Distribution) -> Draft:
    """The likeliest letter, with its share among the letters."""
    letter = max(distribution, key=lambda token: distribution[token])
    choice = LETTERS.index(letter)
    share = {"share": distribution[letter] / sum(distribution.values())}
    return Draft(text=item.choices[choice], choice=choice, scores=share)
