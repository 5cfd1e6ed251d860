"""Think twice: an answer, a judge that may doubt it, and a second answer where it does."""

from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, ClassVar

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, choice_of, words
from evenhand.agents.prompts import Prompt, load, parse
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError


class Doubt(Reply):
    """The judge's verdict on an answer."""

    reason: Annotated[str, words(300)]
    doubtful: bool


def _prompt(name: str) -> Prompt:
    return parse(resources.files("evenhand_titles").joinpath(f"{name}.md").read_text("utf-8"))


WRITER = Agent("generator", load("baselines/default_choice"), choice_of(3))
AGAIN = Agent("generator", _prompt("think_again"), choice_of(3))
JUDGE = Agent("second_look", _prompt("second_look"), Doubt, kind="judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkTwice:
    """Ends when the judge has no doubt, or after so many second thoughts."""

    name: ClassVar[str] = "think_twice"
    calls_an_item: ClassVar[str] = "2 to 3"

    second_thoughts: Annotated[int, Field(ge=0)] = 1

    def agents(self) -> tuple[Agent[Any], ...]:
        return WRITER, JUDGE, AGAIN

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if len(item.choices) != 3:
            raise UserError("think_twice takes questions with three options")
        asked = {"context": item.context, "question": item.prompt}
        drafts = [_draft(item, (await ask(WRITER, **asked, choices=item.choices)).index)]
        for _ in range(self.second_thoughts):
            doubt = await ask(JUDGE, **asked, answer=drafts[-1].text)
            if not doubt.doubtful:
                return Answer(drafts=tuple(drafts), stopped="accepted")
            again = await ask(AGAIN, **asked, choices=item.choices, reason=doubt.reason)
            drafts.append(_draft(item, again.index))
        return Answer(drafts=tuple(drafts), stopped="max_iterations")


def _draft(item: Item, choice: int) -> Draft:
    return Draft(text=item.choices[choice], choice=choice)
