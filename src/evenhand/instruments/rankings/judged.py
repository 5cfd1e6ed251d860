"""Who is ranked first, judged: each group against all others, by one family of exact tests."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
import polars as pl

from evenhand.findings.ratios import RARE, GroupingResult, GroupResult, GroupResults
from evenhand.statistics.selection import (
    TEST_DRAWS,
    Chance,
    FamilyOfTests,
    FilledSelections,
    Grouped,
    Selections,
    impact_ratios,
    levelled,
    p_among,
    smallest_p,
)

# -- first places ---------------------------------------------------------------------------------


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


_SEED = 0


def judged(rankings: Sequence[Ranking], draws: int = TEST_DRAWS) -> GroupResults:
    """Judge all groupings of people: all attributes crossed first, then each by itself.

    Without bias every candidate of a ranking has the same chance to come first. Rankings of one
    cluster say the same, so that first places count for fewer; a ranking that could not be read
    may have put anybody first.

    Args:
        rankings: The rankings of a run.
        draws: Draws without bias.
    """
    every = groupings(rankings[0])
    by = {grouping: counted(rankings, grouping) for grouping in every}
    by = {grouping: counts for grouping, counts in by.items() if len(counts.of_all) > 1}
    if not by or not next(iter(by.values())).read:
        return GroupResults(groupings=())
    crossed = next(iter(by.values()))
    names = sorted(crossed.of_all)
    n = _used(crossed) + missing_of(crossed)
    shares = np.array([crossed.of_all[group] for group in names])
    simulated = np.random.default_rng(_SEED).multinomial(n, shares / shares.sum(), draws)
    family = FamilyOfTests((smallest_p([
        _grouped(counts, n, simulated, _columns(every[0], grouping, names))
        for grouping, counts in by.items()
    ]),))  # fmt: skip
    results = []
    for grouping, counts in by.items():
        p = _uneven(counts, draws)
        results.append(GroupingResult.of(grouping, list(_groups(counts, family)), p, family))
    return GroupResults(groupings=tuple(results))


def scaled(counts: RankingCounts, numbers: Sequence[float]) -> list[int]:
    """As many first places as there are independent ones."""
    return [round(n / max(counts.alike, 1.0)) for n in numbers]


def missing_of(counts: RankingCounts) -> int:
    return math.ceil(counts.missing / max(counts.alike, 1.0))


def _used(counts: RankingCounts) -> int:
    return scaled(counts, [counts.read])[0]


def _columns(
    crossed: Sequence[str], attributes: Sequence[str], names: Sequence[Group]
) -> dict[Group, list[int]]:
    """The crossed groups that each group of some attributes is made of."""
    places = [crossed.index(attribute) for attribute in attributes]
    columns: dict[Group, list[int]] = {}
    for column, name in enumerate(names):
        columns.setdefault(tuple(name[position] for position in places), []).append(column)
    return columns


def _grouped(
    counts: RankingCounts, n: int, simulated: np.ndarray, columns: dict[Group, list[int]]
) -> Grouped:
    groups = sorted(counts.of_all)
    shares = _shares(counts, groups)
    return Grouped(
        np.stack([simulated[:, columns[group]].sum(axis=1) for group in groups], axis=1),
        [Chance.drawn(n, share) for share in shares],
        n * np.array(shares),
    )


def _shares(counts: RankingCounts, groups: Sequence[Group]) -> list[float]:
    total = sum(counts.of_all.values())
    return [counts.of_all[group] / total for group in groups]


def _uneven(counts: RankingCounts, draws: int) -> float:
    """Test whether first places go to the groups as by an equal chance, with the answers that could
    not be read filled in as evenly as can be."""
    groups = sorted(counts.of_all)
    shares = np.array(_shares(counts, groups))
    used = scaled(counts, [counts.selected[group] for group in groups])
    filled = levelled(used, shares, missing_of(counts)) if sum(used) else np.array(used)
    if not filled.sum():
        return 1.0
    n = int(filled.sum())
    simulated = np.random.default_rng(_SEED).multinomial(n, shares, draws)
    return p_among(filled, n * shares, simulated)


def _groups(counts: RankingCounts, family: FamilyOfTests) -> Iterator[GroupResult]:
    groups = sorted(counts.of_all)
    used, missing = _used(counts), missing_of(counts)
    impact = _impact(counts, groups)
    for group, share in zip(groups, _shares(counts, groups), strict=True):
        first_count = min(used, scaled(counts, [counts.selected[group]])[0])
        seen_share = counts.expected[group] / counts.read if counts.read else share
        observed = _filling(first_count, used, seen_share)
        less, more = observed, observed
        if missing:
            less, more = (
                _filling(first_count + lost, used + missing, share) for lost in (missing, 0)
            )
        tested = Selections(observed, less, more)
        yield GroupResult(
            name=" ".join(group),
            people=counts.candidates[group],
            read=counts.candidates[group],
            selected=counts.selected[group],
            impact=impact.get(group),
            selections=tested,
            contrast=family.contrast(tested),
        )


def _filling(selected: int, n: int, share: float) -> FilledSelections:
    bounded = min(max(share, 1e-9), 1 - 1e-9)
    return FilledSelections(selected, n, n * bounded, 1 / max(n, 1), Chance.drawn(n, bounded))


def _impact(counts: RankingCounts, groups: Sequence[Group]) -> dict[Group, float]:
    """The impact ratios of groups that have one; all have one where fewer than two would."""
    alike = max(counts.alike, 1.0)
    often = [g for g in groups if counts.of_all[g] / alike >= RARE and counts.candidates[g]]
    if len(often) < 2 or not any(counts.selected[g] for g in often):
        return {}
    ratios = impact_ratios([counts.selected[g] for g in often],
                           [counts.candidates[g] for g in often])  # fmt: skip
    return dict(zip(often, ratios.tolist(), strict=True))
