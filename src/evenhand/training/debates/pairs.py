"""Pairs of a less biased and a more biased statement, from what a referee scored (paper 002, 3.1).

"Arguments with scores exceeding 3 are categorized as high bias, while others are classified as
low": a pair has one of each, and the low one is the chosen one.

Openers by which a debater says who they are ("As a 60-year-old, …", "Speaking as a teacher, …")
stand in biased statements more often than in the others, so a reward model could learn them
and nothing else.
"""

import random
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Literal

import orjson

from evenhand.core import Message
from evenhand.training.debates.debate import Statement
from evenhand.training.debates.splits import Side

Openers = Literal["strip", "keep", "drop"]

# "As a result, …" names nobody.
_NOBODY = (
    r"(?!(?:result|rule|whole|society|consequence|matter|example|nation|country|community|"
    r"alternative|compromise|start|side|group|collective|species|team|world)\b)"
)
_ABOUT_ME = (
    r"(?:(?:speaking|writing|talking)\s+)?"
    r"(?:(?:from\s+(?:my|the)\s+(?:own\s+)?"
    r"(?:perspective|point\s+of\s+view|viewpoint|standpoint|experience|position)\s+(?:as|of)"
    r"|in\s+my\s+(?:role|position|capacity|work|job|experience)\s+as"
    r"|as)\s+)"
    rf"(?:(?:an?|one)\s+{_NOBODY}|some(?:one|body)\s+|myself\s+)"
)
# To the first comma; to a second one where "I" follows it ("As a retired, kind teacher, I …"); or
# to the "I" if it has no comma.
_CLAUSE_ENDS = (
    r"[^.!?,:;\n]{0,160}?"
    r"(?:,\s*(?:[^.!?,:;\n]{1,60},\s*(?=(?:I|my|we)\b))?|\s(?=(?:I|I'm|I've|I'd|my|we)\b))"
)
_AS_ONE = re.compile(rf"\s*{_ABOUT_ME}{_CLAUSE_ENDS}\s*", re.IGNORECASE)
# "Being a teacher is hard" is a statement.
_BEING = re.compile(
    r"\s*being\s+(?:an?\s|some(?:one|body)\s)[^.!?,:;\n]{0,160}?,\s*(?=(?:I|my|we)\b)",
    re.IGNORECASE,
)
_I_AM = re.compile(
    r"\s*(?:(?:hello|hi)\b[^.!?\n]{0,20}?[,.!]\s*)?I(?:\s+am|'m)\s+([^.!?,\n]{1,120}?)"
    r"(?:[.!]\s+|,?\s+and\s+(?=(?:I|my)\b)|,\s*(?=(?:I|my)\b))",
    re.IGNORECASE,
)
_AGE = re.compile(r"\d+[\s-]*years?[\s-]*old|\d+[\s-]*year", re.IGNORECASE)
_FEWEST_WORDS = 3  # our choice: what is left of a statement that was hardly more than its opener


def without_opener(text: str, role: str) -> str:
    """The statement from where it begins to say something; itself where it has no opener."""
    rest = text.replace("’", "'")
    removed = False
    while length := _opener(rest, role):
        rest, removed = rest[length:].lstrip(), True
    return rest[:1].upper() + rest[1:] if removed else text


def has_opener(text: str, role: str) -> bool:
    return _opener(text.replace("’", "'"), role) > 0


def says_something(text: str) -> bool:
    return len(text.split()) >= _FEWEST_WORDS


def _opener(text: str, role: str) -> int:
    """Its length, 0 for none."""
    label = re.match(rf"\s*[*_\[(]*{re.escape(role)}[*_\])]*\s*:[*_]*\s*", text, re.IGNORECASE)
    match = label or _AS_ONE.match(text) or _BEING.match(text)
    if match is not None:
        return match.end()
    me = _I_AM.match(text)
    return me.end() if me is not None and _is_role(me[1], role) else 0


def _is_role(phrase: str, role: str) -> bool:
    """ "I am a firm believer." is a statement, "I am a teacher." of a teacher is none."""
    role_words = [word for word in re.findall(r"\w+", role.lower()) if len(word) > 2]
    return bool(_AGE.search(phrase)) or any(word in phrase.lower() for word in role_words)


Strategy = Literal["same_topic", "same_round", "same_role", "any"]
STRATEGIES: tuple[Strategy, ...] = ("same_topic", "same_round", "same_role", "any")
Abstention = Literal["chosen", "rejected", "both", "neither"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePair:
    """Two answers to one prompt. Scores go from 0 to 10, lower is less biased; None where nobody
    scored."""

    prompt: tuple[Message, ...]
    chosen: str
    rejected: str
    score_chosen: float | None = None
    score_rejected: float | None = None
    topic: str
    topic_rejected: str  # another one only with the strategy `any`
    bias_type: str
    role_chosen: str
    role_rejected: str
    round_chosen: int | None = None
    round_rejected: int | None = None
    referee: str = ""
    strategy: str = "same_topic"
    source: str  # "debate", "stardtox", "mabrf" or "items"
    abstention: Abstention | None = None  # which side says "unknown"; None: that is no option
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
        columns = asdict(self)
        return columns | {
            "prompt": list(columns["prompt"]),
            "chosen": _said(self.chosen),
            "rejected": _said(self.rejected),
            "margin": self.margin,
            "prompts": _json(self.prompts),
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

    def drawn(self, per_topic: int | None, seed: int) -> Iterator[PreferencePair]:
        """Yield at most `per_topic` randomly sampled pairs per topic; None yields all of them."""
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
    """Find the pairs of a high and a low statement that a strategy allows.

    Both have one bias type and one referee, whose scores mean the same. Both are about one topic,
    except with `any`, where they are in the same split.

    Args:
        statements: The statements of all debates.
        strategy: What else the two statements must have in common.
        threshold: A score above it is high.
        min_gap: The smallest difference of the two scores.
        sides: The split of each topic.

    Returns:
        The allowed pairs, to count and to sample from.
    """

    def key(statement: Statement) -> tuple[object, ...]:
        side = sides[statement.topic] if strategy == "any" else None
        shared = (getattr(statement, name) for name in _SHARED[strategy])
        return statement.bias_type, statement.referee, side, *shared

    highs: defaultdict[tuple[object, ...], list[Statement]] = defaultdict(list)
    for statement in statements:
        if is_high(statement, threshold):
            highs[key(statement)].append(statement)
    for group in highs.values():
        group.sort(key=lambda statement: statement.score)
    by_topic: defaultdict[str, list[_Choices]] = defaultdict(list)
    for low in statements:
        if not is_high(low, threshold):
            group = highs.get(key(low), [])
            start = bisect_left(group, low.score + min_gap, key=lambda statement: statement.score)
            by_topic[low.topic].append(_Choices(low, group, start))
    return Candidates(by_topic, strategy)


# What the two of a pair have in common, in addition to bias type and referee.
_SHARED: dict[Strategy, tuple[str, ...]] = {
    "same_topic": ("topic",),
    "same_round": ("topic", "run", "round"),
    "same_role": ("topic", "role"),
    "any": (),
}


def _pair(low: Statement, high: Statement, strategy: Strategy) -> PreferencePair:
    return PreferencePair(
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
        "chosen": _said(low.text),
        "score_chosen": low.score,
        "topic": low.topic,
        "bias_type": low.bias_type,
        "role_chosen": low.role,
        "round_chosen": low.round,
        "referee": low.referee,
        "prompts": _json(low.prompts),
        "run": low.run,
    }


def _said(text: str) -> list[dict[str, str]]:
    return [asdict(Message("assistant", text))]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What holds for pairs of every source."""

    test_share: float = 0.1  # our choice, of the topics: enough to test on, most to train on
    per_topic: int | None = None  # None: all of them
    match_lengths: bool = False
    train_pairs: int | None = None  # None: all of them; those held out stay whatever it is
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """How the statements of debates are paired."""

    # Our choice: the paper does not say, and its example in D.2 is of one topic.
    strategy: Strategy = "same_topic"
    threshold: float = 3.0  # paper 3.1: "scores exceeding 3"
    min_gap: float = 0.0  # the paper has none
    # Our choice: dropping would drop the biased ones, and keeping would show which they are.
    openers: Openers = "strip"


@dataclass(frozen=True, slots=True, kw_only=True)
class BothSides:
    """A mean over the chosen and over the rejected texts; None where there are none."""

    chosen: float | None
    rejected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcuts:
    """How well rules that look at no content would rank, and what they rest on. 0.5 is chance."""

    pairs: int
    words: BothSides
    characters: BothSides
    shorter_wins: float
    later_round_wins: float | None  # None: no pair has two rounds
    has_opener: BothSides
    names_its_role: BothSides
    abstains: BothSides  # the shares that say "unknown", where that is an option
    abstention_wins: float | None  # None: no pair has "unknown" on one side alone


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCounts:
    """What became of the statements that were read."""

    read: int
    openers_dropped: int
    near_duplicates_dropped: int
    high: int
    low: int
    low_to_train: int  # those of topics that are not held out
    with_opener: Mapping[str, float | None]  # shares of the high and of the low ones


@dataclass(frozen=True, slots=True, kw_only=True)
class FromDebates:
    """Pairs of statements that a referee scored."""

    source: ClassVar[str] = "debate"
    statements: StatementCounts
    possible_pairs: Mapping[str, int]  # by strategy
    topics_without_pair: list[str]
    pairing: Pairing


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsOfRuns:
    """How many items of a run gave a pair, and why the others did not."""

    used: int  # repaired
    used_to_keep: int  # accepted at once: their answer is chosen over "unknown"
    not_used: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRuns:
    """Pairs of what evaluators refused and what they accepted instead, and of answers to keep."""

    source: ClassVar[str] = "revision"
    runs: list[dict[str, Any]]  # each its folder and its method
    items: ItemsOfRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsOfFile:
    """How many rows of a file gave a pair, and which word was chosen in them."""

    read: int
    unusable: int
    chosen: Mapping[str, int]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FromItems:
    """Pairs of sentences filled with a stereotype and filled otherwise."""

    source: ClassVar[str] = "items"
    items: ItemsOfFile


Origin = FromDebates | FromRuns | FromItems


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsReport:
    """All that is known of a folder of pairs; `pairs.json` holds it."""

    origin: Origin
    pairs: Mapping[Side, Mapping[str, int]]  # side -> bias type -> pairs
    topics: Mapping[Side, int]
    lengths_dropped: int
    shortcuts: Mapping[Side, Shortcuts | None]  # None: the side has no pairs
    split: Split

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        content = asdict(self)
        origin = content.pop("origin")
        content["shortcuts"] = {
            side: shortcuts or {} for side, shortcuts in content["shortcuts"].items()
        }
        return {"source": self.origin.source, **origin, **content}
