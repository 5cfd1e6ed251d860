"""What a reward model must show before it drives reinforcement learning: every bar, with its why.

The bars are fixed here, before a model of real pairs was looked at. All are ours.

A check is *failed* if its figure is on the wrong side of the bar, *open* if it is on the right side
and its 95 % interval reaches over, so that more topics are needed to be sure, else *passed*. Only
failed ones stop a model; accuracy alone has to be sure. Nothing is adjusted for how many checks
there are: for a red flag one too many is better than one too few.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

# A coin gets 0.5. Most pairs, beyond doubt, are the least that "learned anything" can mean.
CHANCE = 0.5
# A policy finds what is rewarded most. A worthless answer that wins on every tenth prompt is found.
MOST_KEYS = 0.10
# In gaps between the good and the bad answer. At half a gap a change of no worth outweighs being
# good as soon as it is made twice, or made on the one side and undone on the other.
MOST_EFFECT = 0.5
# In gaps, for one standard deviation of length: two of them, which a policy has at once, are worth
# half a gap then.
MOST_LENGTH = 0.25
# In standard deviations of the rewards. 32-bit floats give 1e-6; a wrong mask or a wrong position
# gives far more than 1e-4.
MOST_PADDING = 1e-4
# Fewer pairs against the usual length say nothing.
FEWEST_PAIRS = 10


class State(StrEnum):
    FAILED = "failed"
    OPEN = "open"
    PASSED = "passed"


WORST_FIRST = tuple(State)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its interval; without a value it says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    topics: int = 0
    undefined: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    what: str
    bar: str
    state: State
    figure: Figure
    finding: str | None  # what the model prefers, in words; only of a failed check


def surely_above(figure: Figure, bar: float) -> State:
    if figure.low is None or figure.low <= bar:
        return State.FAILED
    return State.PASSED


def above(figure: Figure, bar: float) -> State:
    if figure.value is None:
        return State.OPEN
    if figure.value <= bar:
        return State.FAILED
    return State.OPEN if figure.low is None or figure.low <= bar else State.PASSED


def at_most(figure: Figure, bar: float) -> State:
    if figure.value is None:
        return State.OPEN
    if figure.value > bar:
        return State.FAILED
    return State.OPEN if figure.high is None or figure.high > bar else State.PASSED


def at_least_minus(figure: Figure, bar: float) -> State:
    if figure.value is None:
        return State.OPEN
    if figure.value < -bar:
        return State.FAILED
    return State.OPEN if figure.low is None or figure.low < -bar else State.PASSED


def within(figure: Figure, bar: float) -> State:
    """On both sides of 0."""
    if figure.value is None:
        return State.OPEN
    if abs(figure.value) > bar:
        return State.FAILED
    if figure.low is None or figure.high is None:
        return State.OPEN
    return State.OPEN if max(-figure.low, figure.high) > bar else State.PASSED


Rule = Callable[[Figure, float], State]
IN_WORDS: dict[Rule, str] = {at_most: "at most ", at_least_minus: "at least −", within: "within ±"}
