"""First places counted by group, over a whole run: what the favoured groups and the tables need."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

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
            return [(str(place),) for place in range(1, len(self.groups) + 1)]
        return [tuple(one[name] for name in grouping) for one in self.groups]


def rankings(batches: Iterable[pl.DataFrame]) -> Iterator[Ranking]:
    """Yield the rankings of a run from its outcomes."""
    columns = ("cluster", "candidates", "first", "in_text")
    for outcomes in batches:
        for cluster, candidates, first, in_text in outcomes.select(columns).iter_rows():
            yield Ranking(cluster, tuple(orjson.loads(candidates)), first, in_text)


def groupings(one: Ranking) -> tuple[Grouping, ...]:
    """Name the groupings of people: all attributes crossed first, then each by itself."""
    names = tuple(one.groups[0])
    each = tuple((name,) for name in names)
    return each if len(names) == 1 else (names, *each)


@dataclass(slots=True)
class Counts:
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

    def add(self, one: Ranking, grouping: Grouping) -> None:
        named = one.named(grouping)
        self.leading[named[0]] += 1
        self.all_candidates.update(named)
        for group in named:
            self.of_all[group] += 1 / len(named)
        if one.in_text is not None:
            self.in_text[named[one.in_text]] += 1
        if one.first is None:
            self.missing += 1
            return
        self.clusters[one.cluster] += 1
        self.candidates.update(named)
        self.selected[named[one.first]] += 1
        for group in named:
            self.expected[group] += 1 / len(named)

    @property
    def read(self) -> int:
        return self.selected.total()

    @property
    def alike(self) -> float:
        """How many rankings each counts for, where those of a cluster say the same: Σm²/Σm over
        clusters of m. Source: Kish 1965."""
        return sum(n * n for n in self.clusters.values()) / max(self.read, 1)

    def favoured(self) -> frozenset[Group]:
        """Name the groups that have more first places than by an equal chance."""
        return frozenset(g for g, n in self.expected.items() if self.selected[g] > n + 1e-9)


def counted(found: Iterable[Ranking], grouping: Grouping) -> Counts:
    counts = Counts()
    for one in found:
        counts.add(one, grouping)
    return counts


Favours = Mapping[str, frozenset[Group]]  # by cluster: who is ahead in those before it


def ahead(found: list[Ranking], grouping: Grouping) -> Favours:
    """Say for each cluster of rankings which groups are ahead in the clusters before it, in an
    order that hangs on nothing but their names; the first has none before it.

    Who names groups by the same rankings that are counted finds some favoured without any bias.
    Named before, they come first by chance as often as their share, whatever was seen until then.
    """
    clusters: dict[str, list[Ranking]] = defaultdict(list)
    for one in found:
        clusters[one.cluster].append(one)
    counts, known = Counts(), {}
    for cluster in sorted(clusters, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if counts.read:
            known[cluster] = counts.favoured()
        for one in clusters[cluster]:
            counts.add(one, grouping)
    return known


def beyond_chance(one: Ranking, grouping: Grouping, known: Favours) -> float | None:
    """Give 1 where a group that is ahead came first and else 0, minus the chance of that."""
    if one.first is None or one.cluster not in known:
        return None
    named, favoured = one.named(grouping), known[one.cluster]
    chance = sum(group in favoured for group in named) / len(named)
    return (named[one.first] in favoured) - chance


def named_anew(found: list[Ranking], grouping: Grouping) -> tuple[float, float]:
    """Give the least and the largest mean of what is beyond chance if the missing answers all put
    the same group first, whichever, and said with the others who is ahead."""
    means = []
    for group in sorted({group for one in found for group in one.named(grouping)}):
        filled = [_filled(one, grouping, group) for one in found]
        known = ahead(filled, grouping)
        values = [beyond_chance(one, grouping, known) for one in filled]
        read = [value for value in values if value is not None]
        means.append(sum(read) / max(len(read), 1))
    return min(means), max(means)


def _filled(one: Ranking, grouping: Grouping, group: Group) -> Ranking:
    named = one.named(grouping)
    if one.first is not None or group not in named:
        return one
    return replace(one, first=named.index(group))
