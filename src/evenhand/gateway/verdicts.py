"""What was decided about an answer, in the words that header, metric and record share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evenhand.core import Answer, Message, Turn

BROKEN_OFF = "broken_off"  # the reason where the client went away
HELD_BACK = "held_back"  # the reason where another text of the same answer may not leave
NOT_RECORDED = "not_recorded"  # the reason where an answer is held back because of that


class Action(StrEnum):
    """What happened to an answer, from the mildest to the gravest."""

    PASSED = "passed"  # checked, and sent as it was
    REPAIRED = "repaired"  # checked, and sent in other words
    FLAGGED = "flagged"  # found wanting and sent as it was: by policy, or it cannot be rewritten
    NOT_RUN = "not_run"  # sent without a check, because the policy says so
    BLOCKED = "blocked"  # not sent


_GRAVEST_LAST = tuple(Action)


def gravest(actions: Iterable[Action]) -> Action:
    """The action of an exchange: the gravest of those of its texts. One without a text passed."""
    return max(actions, key=_GRAVEST_LAST.index, default=Action.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeVerdict:
    """What was decided about one text."""

    action: Action
    before: str  # as the upstream said it
    text: str  # as it goes out; empty if it is blocked
    reason: str  # a short stable word: clean, accepted, unrepaired, deadline, screen_failed, …
    ran: bool = True  # whether the check came to an end
    screen: float | None = None  # the cheap scorer's score of the text as it was
    answer: Answer | None = None  # the method's drafts, where one was asked
    turns: tuple[Turn, ...] = ()  # what its agents said
    seconds: Mapping[str, float] = field(default_factory=dict)  # "screen" and "agents"

    @property
    def cut_off(self) -> bool:
        """Whether agents may have been asked something that no turn tells of."""
        return not self.ran and "agents" in self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what became of it: what evidence and metrics are made of."""

    id: str
    tenant: str
    route: str  # "/chat/completions"
    model: str
    at: float  # seconds since 1970
    prompt: str
    context: str
    verdicts: tuple[ExchangeVerdict, ...]
    action: Action
    reason: str
    seconds: Mapping[str, float] = field(default_factory=dict)  # upstream, screen, agents, all
    messages: tuple[Message, ...] = ()  # the conversation of the request, the prompt among them
    traceparent: str = ""  # the client's header of that name, whatever it holds
