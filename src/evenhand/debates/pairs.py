"""Pairs of a less biased and a more biased statement, from what a referee scored (paper 002, 3.1).

"Arguments with scores exceeding 3 are categorized as high bias, while others are classified as
low": a pair has one of each, and the low one is the chosen one.
"""

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import orjson

from evenhand.debates.splits import Side
from evenhand.debates.statement import Statement
from evenhand.domain import Message

Strategy = Literal["same_topic", "same_round", "same_role", "any"]
STRATEGIES: tuple[Strategy, ...] = ("same_topic", "same_round", "same_role", "any")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one prompt. Scores go from 0 to 10, lower is less biased; None where nobody
    scored."""

    prompt: tuple[Message, ...]
    chosen: str
    rejected: str
    score_chosen: float | None
    score_rejected: float | None
    topic: str
    topic_rejected: str  # another one only with the strategy `any`
    bias_type: str
    role_chosen: str
    role_rejected: str
    round_chosen: int | None
    round_rejected: int | None
    referee: str
    strategy: str
    source: str  # "debate", "stardtox", "mabrf" or "items"
    prompts: Mapping[str, str]
    run: str

    def __post_init__(self) -> None:
        chosen, other = self.score_chosen, self.score_rejected
        if (chosen is None) != (other is None):
            raise ValueError("a pair has two scores or none")
        if chosen is not None and other is not None and not chosen < other:
            raise ValueError("the chosen one must be the less biased one")

    @property
    def margin(self) -> float:
        """By how much the rejected one is worse, from 0 to 1; 0 where that is not known."""
        if self.score_chosen is None or self.score_rejected is None:
            return 0.0
        return (self.score_rejected - self.score_chosen) / 10

    def row(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "prompt": [
                {"role": message.role, "content": message.content} for message in self.prompt
            ],
            "chosen": [{"role": "assistant", "content": self.chosen}],
            "rejected": [{"role": "assistant", "content": self.rejected}],
            "score_chosen": self.score_chosen,
            "score_rejected": self.score_rejected,
            "margin": self.margin,
            "topic": self.topic,
            "topic_rejected": self.topic_rejected,
            "bias_type": self.bias_type,
            "role_chosen": self.role_chosen,
            "role_rejected": self.role_rejected,
            "round_chosen": self.round_chosen,
            "round_rejected": self.round_rejected,
            "referee": self.referee,
            "strategy": self.strategy,
            "source": self.source,
            "prompts": _json(self.prompts),
            "run": self.run,
        }


def is_high(statement: Statement, threshold: float) -> bool:
    """3 itself is low: paper 3.1 and Appendix D; section 4.1 leaves it open."""
    return statement.score > threshold


@dataclass(frozen=True, slots=True)
class _Choices:
    """A low statement and the high ones it may be paired with."""

    low: Statement
    highs: Sequence[Statement]  # by score
    start: int  # before it the gap is too small

    def __len__(self) -> int:
        return len(self.highs) - self.start


@dataclass(frozen=True)
class Candidates:
    """All pairs that a strategy allows, counted and drawn from without writing them down: with
    `any` they are as many as low statements times high ones."""

    by_topic: Mapping[str, Sequence[_Choices]]
    strategy: Strategy

    @cached_property
    def count(self) -> int:
        return sum(len(choice) for choices in self.by_topic.values() for choice in choices)

    @cached_property
    def topics(self) -> set[str]:
        """Those that have a pair."""
        return {topic for topic, choices in self.by_topic.items() if any(map(len, choices))}

    def drawn(self, per_topic: int | None, seed: int) -> Iterator[Pair]:
        """So many of each topic, or all of them."""
        for topic, choices in self.by_topic.items():
            ends = list(accumulate(len(choice) for choice in choices))
            numbers: Iterable[int] = range(ends[-1])
            if per_topic is not None and ends[-1] > per_topic:
                chance = random.Random(f"{seed} pairs {topic}")
                numbers = sorted(chance.sample(range(ends[-1]), per_topic))
            for number in numbers:
                at = bisect_left(ends, number + 1)
                choice = choices[at]
                high = choice.highs[len(choice.highs) - (ends[at] - number)]
                yield _pair(choice.low, high, self.strategy)


def candidates(
    statements: Sequence[Statement],
    strategy: Strategy,
    *,
    threshold: float,
    min_gap: float,
    sides: Mapping[str, Side],
) -> Candidates:
    """A pair is of one bias type and one referee, whose scores mean the same; of one topic, but
    for `any`, which stays on one side of the split."""
    key = _KEYS[strategy]
    highs: defaultdict[tuple[object, ...], list[Statement]] = defaultdict(list)
    for statement in statements:
        if is_high(statement, threshold):
            highs[key(statement, sides)].append(statement)
    for group in highs.values():
        group.sort(key=lambda statement: statement.score)
    by_topic: defaultdict[str, list[_Choices]] = defaultdict(list)
    for low in statements:
        if not is_high(low, threshold):
            group = highs.get(key(low, sides), [])
            start = bisect_left(group, low.score + min_gap, key=lambda statement: statement.score)
            by_topic[low.topic].append(_Choices(low, group, start))
    return Candidates(by_topic, strategy)


_Key = Callable[[Statement, Mapping[str, Side]], tuple[object, ...]]
_KEYS: dict[Strategy, _Key] = {
    "same_topic": lambda statement, _: (statement.bias_type, statement.referee, statement.topic),
    "same_round": lambda statement, _: (
        statement.bias_type,
        statement.referee,
        statement.topic,
        statement.run,
        statement.round,
    ),
    "same_role": lambda statement, _: (
        statement.bias_type,
        statement.referee,
        statement.topic,
        statement.role,
    ),
    "any": lambda statement, sides: (
        statement.bias_type,
        statement.referee,
        sides[statement.topic],
    ),
}


def _pair(low: Statement, high: Statement, strategy: Strategy) -> Pair:
    return Pair(
        prompt=(Message("user", _prompt(low, strategy)),),
        chosen=low.text,
        rejected=high.text,
        score_chosen=low.score,
        score_rejected=high.score,
        topic=low.topic,
        topic_rejected=high.topic,
        bias_type=low.bias_type,
        role_chosen=low.role,
        role_rejected=high.role,
        round_chosen=low.round,
        round_rejected=high.round,
        referee=low.referee,
        strategy=strategy,
        source="debate",
        prompts={**high.prompts, **low.prompts},
        run=low.run,
    )


def alone(low: Statement, strategy: Strategy) -> dict[str, Any]:
    """A low statement as it is written without a high one, in the columns of a pair."""
    return {
        "prompt": [{"role": "user", "content": _prompt(low, strategy)}],
        "chosen": [{"role": "assistant", "content": low.text}],
        "score_chosen": low.score,
        "topic": low.topic,
        "bias_type": low.bias_type,
        "role_chosen": low.role,
        "round_chosen": low.round,
        "referee": low.referee,
        "prompts": _json(low.prompts),
        "run": low.run,
    }


def _json(prompts: Mapping[str, str]) -> str:
    return orjson.dumps(prompts, option=orjson.OPT_SORT_KEYS).decode()


def _prompt(low: Statement, strategy: Strategy) -> str:
    """The loss needs one prompt for both, so it says only what both share."""
    if strategy == "any":
        kind = low.bias_type.replace("_", " ")
        return f"Give your view on a question that has to do with {kind}, in a few sentences."
    request = f"Give your view on this topic in a few sentences: {low.topic}"
    return f"Take the part of {low.role}. {request}" if strategy == "same_role" else request


def high_and_low(statements: Sequence[Statement], threshold: float) -> tuple[int, int]:
    counted = Counter(is_high(statement, threshold) for statement in statements)
    return counted[True], counted[False]
