"""One prompt, one answer: the shape that the prompt baselines share."""

from evenhand.agents import Agent, Ask, Choice, FreeText, choice_of
from evenhand.domain import Answer, Draft, Item
from evenhand.prompts import Prompt


def text_agent(prompt: Prompt) -> Agent[FreeText]:
    return Agent("generator", prompt, FreeText)


def choice_agent(prompt: Prompt, options: int) -> Agent[Choice]:
    return Agent("generator", prompt, choice_of(options))


async def answer_once(item: Item, ask: Ask, text: Prompt, choice: Prompt) -> Answer:
    """The model's one and only answer to the item."""
    if not item.choices:
        said = await ask(text_agent(text), prompt=item.prompt)
        return Answer(drafts=(Draft(text=said.text),), stopped="single_pass")
    chosen = await ask(
        choice_agent(choice, len(item.choices)),
        context=item.context,
        question=item.prompt,
        choices=item.choices,
    )
    draft = Draft(text=item.choices[chosen.index], choice=chosen.index)
    return Answer(drafts=(draft,), stopped="single_pass")
