"""First detect whether the context decides; if it does not, say so (after arXiv 2412.06134)."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from evenhand.agents import Agent, Ask, Read, Reply, YesNo, one_token, words
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import Unsuited
from evenhand.methods.baselines.drafts import PLAIN_CHOICE
from evenhand.methods.baselines.single_prompt import ask_for_choice, choice_agent, question
from evenhand.prompts import load


class Detected(Reply):
    reason: Annotated[str, words(240)]
    evidence: Annotated[str, words(400)]
    decided: bool


DETECTOR = Agent(
    "detector", load("baselines/detect_choice"), Detected, temperature=0.0, kind="judge"
)
IS_DECIDED = one_token("detector", load("baselines/detect_choice_yes_no"), YesNo, "judge")

# An option that as a whole says "not known": the ten spellings of BBQ, and others like them.
_UNKNOWN = re.compile(
    r"""
    (?:(?:it|this|that|the\ answer|there)\ )?(?:is\ )?
    (?: unknown | undetermined | unanswerable | unclear | uncertain | indeterminate
      | not\ (?:known|answerable|determined|determinable|clear|certain|sure|stated|specified)
      | (?:not\ enough|insufficient|too\ little)\ (?:info|information|context|evidence|data)
      | (?:cannot|can\ not|can't)\ (?:be\ )?
        (?:known?|determined?|answer(?:ed)?|said|say|told|tell|inferred|decided?)
      | (?:(?:i|we)\ )?(?:don't|do\ not)\ know
      | impossible\ to\ (?:know|determine|answer|say|tell|decide)
    )
    (?:\ (?:from|with|given|based\ on|to)\ .+)?
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans("“”‘’", "\"\"''")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectFirst:
    """One call where the context decides nothing, two where it does."""

    name: ClassVar[str] = "detect_first"
    calls_an_item: ClassVar[str] = "1 to 2"

    read: Read = "json"  # our choice: "logprob" asks for no words of the context

    def agents(self) -> tuple[Agent[Any], ...]:
        return DETECTOR if self.read == "json" else IS_DECIDED, choice_agent(PLAIN_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"{self.name} answers questions with choices; {item.id!r} has none")
        unknown = unknown_option(item.choices)
        if unknown is not None and item.context:  # else there is nothing to detect, or to say
            decided, reason = await self._decides(item, ask)
            if not decided:
                text = item.choices[unknown]
                draft = Draft(text=text, choice=unknown, reasoning=reason)
                return Answer(drafts=(draft,), stopped="undecided")
        return await ask_for_choice(item, ask, choice_agent(PLAIN_CHOICE, len(item.choices)))

    async def _decides(self, item: Item, ask: Ask) -> tuple[bool, str]:
        """Whether the context decides the question, and why not."""
        if self.read == "json":
            found = await ask(DETECTOR, **question(item))
            return found.decided and stands_in(found.evidence, item.context), found.reason
        return (await ask(IS_DECIDED, **question(item))).mark > 0.5, ""


def unknown_option(choices: tuple[str, ...]) -> int | None:
    """The first option that says the answer is not known, told by its words alone."""
    for place, option in enumerate(choices):
        if _UNKNOWN.fullmatch(_plain(option).strip(" .!()")):
            return place
    return None


def stands_in(quote: str, context: str) -> bool:
    """Whether these words are the context's own. Case, spaces and the marks around do not count."""
    said = _plain(quote).strip(" .,;:!?\"'…")
    return bool(said) and said in _plain(context)


def _plain(text: str) -> str:
    return " ".join(text.translate(_QUOTES).casefold().split())
