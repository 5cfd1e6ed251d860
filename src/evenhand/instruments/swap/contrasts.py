"""One label against another, by each outcome: a signed difference per prompt, and its interval.

In each prompt a label is held against the one that it is paired with there, so that over prompts it
meets all others. If labels say nothing the two could change places, and the difference changes its
sign: sign flips are exact then, whatever the noise. The mean of all others would not do: where
refusals are rare it flags half of all audits without any effect (docs/swap.md).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.errors import Undefined
from evenhand.findings.filled import Filled, p_of_bias, p_of_small_bias
from evenhand.findings.found import Estimate
from evenhand.findings.measures import Mean, Measure
from evenhand.statistics.clusters import Interval, clustered_mean

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
NONE, ANY = "no label", "a label"
MATTERS = 0.05  # our choice: five answers of a hundred, or a number that is five percent larger


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome of an answer that has a direction: what it is called, the values that it can have,
    and whether two of them are compared by their ratio."""

    name: str
    label: str
    within: tuple[float, float] = (0.0, 1.0)
    relative: bool = False

    @property
    def reach(self) -> float:
        """The largest difference of two values."""
        return 2.0 if self.relative else self.within[1] - self.within[0]


OUTCOMES = (
    Outcome("chosen", "decision"),
    Outcome("number", "number", relative=True),
    Outcome("refused", "refusal"),
    Outcome("length", "length", relative=True),
    Outcome("score", "score"),
)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A contrast is a label against another of its family, or against none, by one outcome."""

    family: str
    left: str
    right: str
    outcome: Outcome
    found: Estimate
    placebo: float | None  # how far a label's answer is from that to its own placebo, on average

    @property
    def beside_none(self) -> bool:
        """Say whether it holds labels against no label, which is no difference between groups."""
        return (self.left, self.right) == (ANY, NONE)


def contrasts(
    answers: pl.DataFrame, labels: Mapping[str, Sequence[str]], outcomes: Sequence[Outcome]
) -> list[Contrast]:
    """Compute every contrast of every family, by outcome. Their p-values are not adjusted yet."""
    made = []
    for family, names in labels.items():
        rows = answers.filter(pl.col("family") == family)
        prompts = rows["cluster"].unique(maintain_order=True).to_list()
        others = _others(rows, prompts, names)
        drawn = np.array([_drawn(prompt, names) for prompt in prompts])
        each = np.arange(len(prompts))
        for outcome in outcomes:
            means = {role: _Means.of(rows, outcome, role, prompts, names)
                     for role in ("group", "placebo", "both", "none")}  # fmt: skip
            beside = _mean(np.abs(means["group"].minus(means["placebo"], outcome)[0]))
            for place, name in enumerate(names[:1] if len(names) == 2 else names):
                met = others[:, place] >= 0
                left = means["both"].at(each[met], np.full(met.sum(), place))
                right = means["both"].at(each[met], others[met, place])
                said = names[1] if len(names) == 2 else "another"
                found = _estimate(f"{family}: {name}", left, right, outcome)
                made.append(Contrast(family, name, said, outcome, found, beside))
            asked = ~means["none"].absent[:, 0]
            if asked.any():
                left = means["group"].at(each[asked], drawn[asked])
                right = means["none"].at(each[asked], np.zeros(asked.sum(), dtype=int))
                found = _estimate(f"{family}: {ANY}", left, right, outcome)
                made.append(Contrast(family, ANY, NONE, outcome, found, beside))
    return made


def _others(rows: pl.DataFrame, prompts: Sequence[str], names: Sequence[str]) -> Places:
    """Which label each label is paired with, prompts × labels; -1 where it stays alone."""
    known = rows.filter(pl.col("role") == "group").select("cluster", "label", "other").unique()
    of = {(prompt, label): other for prompt, label, other in known.iter_rows()}
    place = {name: number for number, name in enumerate(names)}
    return np.array([[place.get(of.get((prompt, name), ""), -1) for name in names]
                     for prompt in prompts])  # fmt: skip


def _drawn(prompt: str, names: Sequence[str]) -> int:
    """The label that stands for all where a prompt without a label is compared: one, drawn, since
    the mean of several varies less than the one answer that it is held against."""
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % len(names)


@dataclass(frozen=True, slots=True)
class _Means:
    """The mean answers, prompts × labels: as they are known (NaN where none is), and with what is
    missing at its smallest and at its largest."""

    known: Numbers
    low: Numbers
    high: Numbers
    missing: Numbers
    absent: NDArray[np.bool_]  # never asked

    @classmethod
    def of(
        cls,
        rows: pl.DataFrame,
        outcome: Outcome,
        role: str,
        prompts: Sequence[str],
        names: Sequence[str],
    ) -> "_Means":
        roles = ("group", "placebo") if role == "both" else (role,)
        value = pl.col(outcome.name).cast(pl.Float64)
        found = rows.filter(pl.col("role").is_in(roles)).group_by("cluster", "label")
        table = found.agg(value.mean(), value.null_count().alias("lost"), pl.len())
        columns = [""] if role == "none" else list(names)
        row = {prompt: number for number, prompt in enumerate(prompts)}
        column = {name: number for number, name in enumerate(columns)}
        known, lost, n = (
            np.full((len(prompts), len(columns)), fill) for fill in (np.nan, 1.0, 0.0)
        )
        for prompt, label, mean, gone, many in table.iter_rows():
            at = row[prompt], column[label]
            known[at], lost[at], n[at] = (np.nan if mean is None else mean), gone, many
        share = lost / np.maximum(n, 1.0)
        here = np.nan_to_num(known) * (1 - share)
        least, most = outcome.within
        return cls(known, here + share * least, here + share * most, lost, n == 0)

    def at(self, rows: Places, columns: Places) -> "_Means":
        known, low, high, missing = (
            part[rows, columns] for part in (self.known, self.low, self.high, self.missing)
        )
        return _Means(known, low, high, missing, self.absent[rows, columns])

    def minus(self, other: "_Means", outcome: Outcome) -> tuple[Numbers, Numbers, Numbers]:
        """The difference as it is known, at least and at most. Of a ratio a missing number can make
        anything."""
        if not outcome.relative:
            return self.known - other.known, self.low - other.high, self.high - other.low
        size = (np.abs(self.known) + np.abs(other.known)) / 2
        with np.errstate(invalid="ignore"):
            known = np.where(size == 0, 0.0, (self.known - other.known) / size)
        lost = (self.missing + other.missing > 0) | np.isnan(known)
        reach = outcome.reach
        return known, np.where(lost, -reach, known), np.where(lost, reach, known)


def _estimate(name: str, left: _Means, right: _Means, outcome: Outcome) -> Estimate:
    """The mean difference over prompts. A prompt counts in it where both sides are known at all; in
    what may be claimed, every prompt counts and what is missing is at its worst."""
    known, low, high = left.minus(right, outcome)
    ends = (-outcome.reach, outcome.reach)
    found = Estimate.of(name, lambda: _interval(known[~np.isnan(known)]), ends)
    if found.value is None:
        return found
    measure = Measure(name=name, label=name, statistic=Mean(pl.lit(0)), better="zero", within=ends,
                      symmetric=True)  # fmt: skip
    filled = Filled(low, high, np.ones(len(low)), left.missing + right.missing)
    return replace(
        found,
        p=p_of_bias(measure, filled),
        p_small=p_of_small_bias(measure, filled, MATTERS),
    )


def _interval(values: Numbers) -> Interval:
    if not len(values):
        raise Undefined("no prompt has both answers")
    return clustered_mean(values, range(len(values)))


def _mean(values: Numbers) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
