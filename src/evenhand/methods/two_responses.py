"""Two responses to one task, equal in content and in other words (MALIBU paper, 3.2).

| step | asked              | sees                        |
| ---- | ------------------ | --------------------------- |
| 1    | a response         | the task                    |
| 2    | the same once more | the task and the response   |
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask, FreeText
from evenhand.domain import Answer, Draft, Item
from evenhand.prompts import load

FIRST = Agent("writer", load("malibu/write"), FreeText)
AGAIN = Agent("writer", load("malibu/write_again"), FreeText)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoResponses:
    """
    >>> method = TwoResponses()

    Our choice: the second is written from the first. The paper asks a model for two that follow
    "identical problem-solving procedures" (3.2); two that are written apart differ in content, and
    then a judge may prefer one for what it says.
    """

    name: ClassVar[str] = "two_responses"
    calls_an_item: ClassVar[str] = "2"

    def agents(self) -> tuple[Agent[Any], ...]:
        return FIRST, AGAIN

    async def answer(self, item: Item, ask: Ask) -> Answer:
        first = await ask(FIRST, task=item.prompt)
        second = await ask(AGAIN, task=item.prompt, response=first.text)
        drafts = (Draft(text=first.text), Draft(text=second.text))
        return Answer(drafts=drafts, stopped="single_pass", side_by_side=True)
