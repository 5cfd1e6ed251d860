"""First detect whether the context decides; if it does not, say so (after arXiv 2412.06134)."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from evenhand.agents import Agent, Ask, Read, Reply, YesNo, one_token, words
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import Unsuited
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    ask_for_choice,
    choice_agent,
    question,
)
from evenhand.methods.baselines.stored_answer import stored_draft
from evenhand.methods.evaluators import (
    ChoiceBrain,
    of_choice,
    plain,
    support_bound,
    supports,
    unknown_option,
)


class Detected(Reply):
    reason: Annotated[str, words(240)]
    evidence: Annotated[str, words(400)]
    decided: bool


DETECTOR = Agent(
    "detector", load("baselines/detect_choice"), Detected, temperature=0.0, kind="judge"
)
IS_DECIDED = one_token("detector", load("baselines/detect_choice_yes_no"), YesNo, "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectFirst:
    """One call where the context decides nothing, two where it does."""

    name: ClassVar[str] = "detect_first"
    calls_an_item: ClassVar[str] = "1 to 2"

    read: Read = "json"  # our choice: "logprob" asks for no words of the context
    choice_brain: ChoiceBrain = "llm"  # our choice: "rule" is the context-support classifier
    support_above: float | None = None  # of the rule; None: the bound that comes with it
    first: Literal["asked", "stored"] = field(
        default="asked", metadata={"left_out": "asked"}
    )  # "stored": the item's own answer is kept or replaced, and nobody is asked for one

    def __post_init__(self) -> None:
        self._bound()  # refused before anything is asked

    def _bound(self) -> float:
        return support_bound(self.choice_brain, self.support_above)

    def agents(self) -> tuple[Agent[Any], ...]:
        llm = DETECTOR if self.read == "json" else IS_DECIDED
        detector = of_choice(self.choice_brain, llm)
        return (detector,) if self.first == "stored" else (detector, choice_agent(PLAIN_CHOICE, 3))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"{self.name} answers questions with choices; {item.id!r} has none")
        stored = stored_draft(item) if self.first == "stored" else None
        if stored is None and self.first == "stored":
            raise Unsuited(f"item {item.id!r} has no stored answer, and first=stored asks for none")
        unknown = unknown_option(item.choices)
        if unknown is not None and item.context:  # else there is nothing to detect, or to say
            decided, reason = await self._decides(item, ask)
            if not decided:
                text = item.choices[unknown]
                draft = Draft(text=text, choice=unknown, reasoning=reason)
                drafts = (draft,) if stored is None else (stored, draft)
                return Answer(drafts=drafts, stopped="undecided")
        if stored is not None:
            return Answer(drafts=(stored,), stopped="single_pass")
        return await ask_for_choice(item, ask, choice_agent(PLAIN_CHOICE, len(item.choices)))

    async def _decides(self, item: Item, ask: Ask) -> tuple[bool, str]:
        """Whether the context decides the question, and why not."""
        if self.choice_brain == "rule":
            unknown = unknown_option(item.choices)
            scores = [s for at, s in enumerate(await supports(item, ask)) if at != unknown]
            best = max(scores, default=0.0)
            return best > self._bound(), f"no option is supported by more than {best:.2f}"
        if self.read == "json":
            reply = await ask(DETECTOR, **question(item))
            return reply.decided and stands_in(reply.evidence, item.context), reply.reason
        return (await ask(IS_DECIDED, **question(item))).mark > 0.5, ""


def stands_in(quote: str, context: str) -> bool:
    """Whether these words are the context's own. Case, spaces and the marks around do not count."""
    quoted = plain(quote).strip(" .,;:!?\"'…")
    return bool(quoted) and quoted in plain(context)
