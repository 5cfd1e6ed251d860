"""A text that exists already, judged as it is: nothing is written and nothing repaired."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Draft, Item
from evenhand.methods.stardtox import PERFORMANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeText:
    """Fluency, coherence and relevance of the item's `answer`, by StarDTox's performance evaluator.
    Cast that role with another model than the one that wrote the texts: a model likes its own."""

    name: ClassVar[str] = "judge_text"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (PERFORMANCE,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        marks = await ask(PERFORMANCE, prompt=item.prompt, draft=item.answer)
        traits = ("fluency", "coherence", "relevance")
        scores = {trait: getattr(marks, trait) / 100 for trait in traits}
        return Answer(drafts=(Draft(text=item.answer, scores=scores),), stopped="single_pass")
