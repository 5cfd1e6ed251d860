"""The account of a folder of pairs: how they were made, what was left out, and what a reward model
could learn from them without reading."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from evenhand.debates.openers import Openers
from evenhand.debates.pairs import Strategy
from evenhand.debates.splits import Side


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

    used: int
    not_used: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromRuns:
    """Pairs of what evaluators refused and what they accepted instead."""

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
