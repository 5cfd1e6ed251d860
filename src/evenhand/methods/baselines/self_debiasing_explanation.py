"""Self-debiasing by explanation: tell what options assume, then answer (Gallegos et al. 2025)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from evenhand.agents import Agent, Ask, Reply, words
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import Unsuited
from evenhand.methods.baselines.single_prompt import choice_agent, question
from evenhand.prompts import load


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
