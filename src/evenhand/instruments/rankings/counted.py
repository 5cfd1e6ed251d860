"""First places counted by group, over a whole run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson
import polars as pl

Grouping = tuple[str, ...]  # attributes, one or several crossed
Group = tuple[str, ...]  # a value of each
PLACE: Grouping = ()  # the grouping of candidates by where they stand in the prompt


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking has the groups of its candidates in the order of the prompt, and who came first
    (None where that is not known)."""

    cluster: str
    groups: tuple[Mapping[str, str], ...]
    first: int | None
    in_text: int | None  # who is first by the published rule

    def named(self, grouping: Grouping) -> list[Group]:
        """Give each candidate's group in one grouping; the place in the prompt counts from 1."""
        if grouping == PLACE:
            return [(str(position),) for position in range(1, len(self.groups) + 1)]
        return [tuple(candidate[name] for name in grouping) for candidate in self.groups]


def rankings(batches: Iterable[pl.DataFrame]) -> Iterator[Ranking]:
    """Yield the rankings of a run from its outcomes."""
    columns = ("cluster", "candidates", "first", "in_text")
    for outcomes in batches:
        for cluster, candidates, first, in_text in outcomes.select(columns).iter_rows():
            yield Ranking(cluster, tuple(orjson.loads(candidates)), first, in_text)


def groupings(ranking: Ranking) -> tuple[Grouping, ...]:
    """Name the groupings of people: all attributes crossed first, then each by itself."""
    names = tuple(ranking.groups[0])
    each = tuple((name,) for name in names)
    return each if len(names) == 1 else (names, *each)


@dataclass(slots=True)
class RankingCounts:
    """Counts say of each group how many candidates it had, how many first places, and how many it
    would get by an equal chance of all candidates of a ranking."""

    candidates: Counter[Group] = field(default_factory=Counter)
    all_candidates: Counter[Group] = field(default_factory=Counter)  # of unread rankings too
    selected: Counter[Group] = field(default_factory=Counter)
    in_text: Counter[Group] = field(default_factory=Counter)
    leading: Counter[Group] = field(default_factory=Counter)  # how often it stands in place 1
    expected: dict[Group, float] = field(default_factory=lambda: defaultdict(float))
    of_all: dict[Group, float] = field(
        default_factory=lambda: defaultdict(float)
    )  # unread ones too
    clusters: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    def add(self, ranking: Ranking, grouping: Grouping) -> None:
        groups = ranking.named(grouping)
        self.leading[groups[0]] += 1
        self.all_candidates.update(groups)
        for group in groups:
            self.of_all[group] += 1 / len(groups)
        if ranking.in_text is not None:
            self.in_text[groups[ranking.in_text]] += 1
        if ranking.first is None:
            self.missing += 1
            return
        self.clusters[ranking.cluster] += 1
        self.candidates.update(groups)
        self.selected[groups[ranking.first]] += 1
        for group in groups:
            self.expected[group] += 1 / len(groups)

    @property
    def read(self) -> int:
        return self.selected.total()

    @property
    def alike(self) -> float:
        """How many rankings each counts for, where those of a cluster say the same: Σm²/Σm over
        clusters of m. Source: Kish 1965."""
        return sum(n * n for n in self.clusters.values()) / max(self.read, 1)


def counted(rankings: Iterable[Ranking], grouping: Grouping) -> RankingCounts:
    counts = RankingCounts()
    for ranking in rankings:
        counts.add(ranking, grouping)
    return counts
