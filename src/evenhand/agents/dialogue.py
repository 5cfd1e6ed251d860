"""A dialogue asks the turns of an item in order: each later turn sees the answers before it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from evenhand.agents.agent import Agent, FreeText
from evenhand.agents.conversation import Conversation
from evenhand.agents.method import Method
from evenhand.agents.prompts import load
from evenhand.core import Answer, Item, Message

SIMULATED_USER = Agent(
    "user",
    load("shared/simulated_user"),
    FreeText,
    kind="user",
    cast_as=(
        "The model under test must not write the turns of its own user. Assign another model to "
        '`user` under [roles] in the config file, or Cast(model, {"user": another}) in Python.'
    ),
)


def users_of(items: Iterable[Item]) -> tuple[Agent[Any], ...]:
    """Give the agents that write turns of the user in these items."""
    simulated = any(turn.goal for item in items for turn in item.follow_ups)
    return (SIMULATED_USER,) if simulated else ()


async def answer_turns(method: Method, item: Item, talk: Conversation) -> Answer:
    """Have a method answer the prompt of an item and then each of its further turns.

    While it works, `talk.item` is the turn that is asked, in the conversation as it came about.

    Args:
        method: Answers each turn.
        item: The item.
        talk: The conversation that asks agents.

    Returns:
        The answer to the last turn.
    """
    if not item.follow_ups:
        return await method.answer(item, talk)
    talk.item = replace(item, follow_ups=())
    answer = await method.answer(talk.item, talk)
    for follow_up in item.follow_ups:
        history = (*talk.item.history, Message("user", talk.item.prompt), *talk.item.tool_turns,
                 Message("assistant", answer.text))  # fmt: skip
        prompt = follow_up.text or await _simulated(follow_up.goal, history, talk)
        talk.item = replace(talk.item, history=history, prompt=prompt, tool_turns=())
        answer = await method.answer(talk.item, talk)
    return answer


async def _simulated(goal: str, history: Sequence[Message], talk: Conversation) -> str:
    """Have the simulated user write the next turn. It sees what was said, and no system prompt."""
    lines = [f"{turn.role}: {turn.text}" for turn in history if turn.role in ("user", "assistant")]
    return (await talk(SIMULATED_USER, goal=goal, transcript="\n\n".join(lines))).text
