"""In whose words a method asks: ours, or words of ours that carry the intent of the paper's prompts
where the two differ. What differs, and what it does: docs/papers.md.

A setting `wording` that is a number is another thing: the same intent in other words.
"""

from dataclasses import replace
from typing import Any, Literal, get_type_hints

from evenhand.agents import Agent, Ask
from evenhand.prompts import load

Wording = Literal["ours", "paper"]


def has_wordings(method: type[Any]) -> bool:
    """True of a method that can be asked for in the paper's intent."""
    return get_type_hints(method).get("wording") == Wording


def worded(agent: Agent[Any], wording: Wording) -> Agent[Any]:
    """The agent, told what it is to do in these words: for the paper's, by `<prompt>_paper`."""
    if wording == "ours":
        return agent
    return replace(agent, prompt=load(f"{agent.prompt.id}_{wording}"))


async def ask_worded(ask: Ask, agent: Agent[Any], wording: Wording, **values: Any) -> Any:
    """Ask in these words. An agent of a paper may see less than ours does: of what is given it is
    shown what its prompt has a place for."""
    reworded = worded(agent, wording)
    return await ask(reworded, **{name: values[name] for name in reworded.prompt.variables})
