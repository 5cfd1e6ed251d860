"""How far answers differ between labels: beyond the placebo, and one label against another."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.findings.decision_rules import ALPHA, adjusted_estimates
from evenhand.findings.estimates import NO_SPREAD, Bounds, Estimate
from evenhand.findings.scoring import REFUSED, UNREADABLE
from evenhand.instruments._contract import SCORED, why_lost
from evenhand.statistics.clusters import NO_ROWS
from evenhand.statistics.metrics.readings import WORD, read
from evenhand.statistics.proportions import without_spread
from evenhand.statistics.sign_flips import lower_bounds, p_of_columns

# -- the effect beyond the placebo ----------------------------------------------------------------


SAME_PLACE = ("cluster", "place", "turn", "family", "repeat")


def _apart(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """|x − y| / (|x| + |y|), from 0 to 1; two zeros do not differ."""
    size = left.abs() + right.abs()
    far = (left - right).abs() / size
    return pl.when(size == 0).then(0.0).otherwise(far)


def _wording(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """1 − the share of their different words that both have (Jaccard 1912); two empty texts do not
    differ."""
    all_ = left.list.set_union(right).list.len()
    both = left.list.set_intersection(right).list.len()
    return pl.when(all_ == 0).then(0.0).otherwise(1 - both / all_)


# How far two answers are apart by each outcome, from 0 to 1. Each is of negative type, so that the
# excess of labels that matter is above 0 and never below (design/counterfactual.md).
Distance = Callable[[pl.Expr, pl.Expr], pl.Expr]
DISTANCES: Mapping[str, Distance] = {
    "decision": lambda x, y: (x != y).cast(pl.Float64),
    "number": _apart,
    "refused": lambda x, y: (x != y).cast(pl.Float64),
    "length": _apart,
    "score": lambda x, y: (x - y).abs(),
    "bag": _wording,
}


def paired(labels: Sequence[str], key: str) -> dict[str, str]:
    """Pair the labels of a family for one prompt, drawn by its key; of an odd number one stays
    alone. A pair is two labels of which each is the other's other."""
    shuffled = sorted(labels, key=lambda label: hashlib.sha256(f"{key}\n{label}".encode()).digest())
    twos = zip(shuffled[::2], shuffled[1::2], strict=False)
    return {label: other for two in twos for label, other in (two, two[::-1])}


def excesses(answers: pl.DataFrame, distances: Mapping[str, Distance] = DISTANCES) -> pl.DataFrame:
    """Compute for each answer about a label of a pair its distance from its own placebo
    (`own_placebo.…`), and by how much its distance from the other's placebo exceeds that
    (`excess.…`), for every outcome. Null where any of these answers is not known."""
    outcomes = [name for name in distances if name in answers.columns]
    group = answers.filter(pl.col("role") == "group", pl.col("other") != "")
    placebo = answers.filter(pl.col("role") == "placebo")
    own_distances, other_distances = (
        group.join(
            placebo.select(*SAME_PLACE, "label", *outcomes),
            left_on=[*SAME_PLACE, of],
            right_on=[*SAME_PLACE, "label"],
            how="left",
            suffix=":p",
        )
        .group_by("item_id", maintain_order=True)
        .agg(_mean_of_all(distances[name](pl.col(name), pl.col(f"{name}:p"))).alias(name)
             for name in outcomes)
        for of in ("label", "other")
    )  # fmt: skip
    both = other_distances.join(own_distances, on="item_id", suffix=":own")
    return both.select(
        "item_id",
        *(pl.col(f"{name}:own").alias(f"own_placebo.{name}") for name in outcomes),
        *((pl.col(name) - pl.col(f"{name}:own")).alias(f"excess.{name}") for name in outcomes),
    )


def _mean_of_all(distance: pl.Expr) -> pl.Expr:
    """The mean over all placebos; null where one is not known."""
    return pl.when(distance.null_count() == 0).then(distance.mean())


# -- differences per prompt -----------------------------------------------------------------------


Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of each prompt, added up: those that are known, and all of them with what is
    missing at its smallest and at its largest.

    Args:
        known: the sum of a prompt's known differences.
        n: how many of them are known.
        low: the sum of all of them, the missing ones at their smallest.
        high: the same, the missing ones at their largest.
        rows: how many differences a prompt has, missing ones too.
        within: the smallest and the largest difference that there can be.
        one_sided: the expectation is never below 0, so that only a value above it is shown.
    """

    known: Numbers
    n: Numbers
    low: Numbers
    high: Numbers
    rows: Numbers
    within: tuple[float, float] = (-1.0, 1.0)
    one_sided: bool = False

    @classmethod
    def of(
        cls, rows: pl.DataFrame, within: tuple[float, float], *, one_sided: bool = False
    ) -> "Differences":
        """Add up differences by cluster.

        Args:
            rows: Columns `cluster`, `value` (null where missing), `low` and `high`.
            within: Smallest and largest possible difference.
            one_sided: Whether the expected difference is never below 0.

        Returns:
            The sums, one entry per cluster.
        """
        sums = (
            rows.group_by("cluster")
            .agg(pl.col("value").sum(), pl.col("value").count().alias("n"),
                 pl.col("low", "high").sum(), pl.len().alias("rows"))
            .sort("cluster")
            .select(pl.col("value", "n", "low", "high", "rows").cast(pl.Float64))
        )  # fmt: skip
        values, n, low, high, many = sums.to_numpy().T
        return cls(values, n, low, high, many, within, one_sided)

    @property
    def missing(self) -> int:
        return int((self.rows - self.n).sum())

    @property
    def without_spread(self) -> bool:
        """Whether every prompt gave the same, and nothing is missing."""
        return not self.missing and not np.ptp(self.known / self.rows)

    @property
    def p(self) -> float:
        """The p-value of a difference other than 0; of a one-sided one, of a difference above 0, at
        half of the level, so that the ends of a 95% CI say the same."""
        sides = self.low, self.low if self.one_sided else -self.high
        return min(1.0, 2 * float(p_of_columns(np.column_stack(sides)).min()))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Give the interval at level 1 − `alpha`. The end next to 0 is that of the test. In the
        other one, or in both where 0 is within, a further prompt counts that differs by all it
        could: what was never seen in so many prompts may still be there."""
        least, most = self.within
        low, high = self._ends(alpha, self.low, self.high, self.rows)
        if self.without_spread:
            value = float(self.known.sum() / self.rows.sum())
            far_low, far_high = without_spread(value, len(self.rows), self.within, 1 - alpha)
        else:
            size = float(self.rows.mean())
            far_low, far_high = self._ends(
                alpha,
                np.append(self.low, size * least),
                np.append(self.high, size * most),
                np.append(self.rows, size),
            )
        bounds = low if low > 0 else far_low, high if high < 0 else far_high
        if self.one_sided:  # below 0 there is nothing to be seen, so the end of the test stands
            bounds = low, max(far_high, 0.0)
        return max(bounds[0], least), min(bounds[1], most)

    def _ends(self, alpha: float, low: Numbers, high: Numbers, rows: Numbers) -> Sequence[float]:
        bounds = lower_bounds(np.column_stack([low, -high]), rows, alpha / 2).round(10) + 0.0
        return float(bounds[0]), float(0.0 - bounds[1])

    def estimate(self, name: str) -> Estimate:
        """Give the mean difference with its p-value, not adjusted; the interval comes with the
        adjustment."""
        n = float(self.n.sum())
        if not n:
            return Estimate(name=name, value=None, undefined=NO_ROWS)
        total, missing = float(self.rows.sum()), self.missing
        ends = float(self.low.sum()) / total, float(self.high.sum()) / total
        bounds = Bounds(missing=missing, low=ends[0], high=ends[1]) if missing else None
        return Estimate(
            name=name, value=float(self.known.sum()) / n, n=int(n),
            clusters=int((self.n > 0).sum()), p=self.p if len(self.rows) > 1 else 1.0,
            undefined=NO_SPREAD if self.without_spread else None, bounds=bounds,
        )  # fmt: skip


def adjusted(family: Sequence[tuple[Estimate, Differences]]) -> list[Estimate]:
    """Adjust the p-values of a family by Holm, and give each its interval at the level at which
    Holm looked at it: it excludes 0 where the adjusted p-value is at most 0.05, and only there."""
    after = adjusted_estimates([estimate for estimate, _ in family])
    levels = _levels([1.0 if estimate.p is None else estimate.p for estimate in after])
    results = []
    for estimate, (_, differences), level in zip(after, family, levels, strict=True):
        if estimate.value is None:
            results.append(replace(estimate, p_holm=None))
            continue
        low, high = differences.interval(level)
        results.append(replace(estimate, low=low, high=high))
    return results


def _levels(p: Sequence[float]) -> list[float]:
    """The level at which Holm tests each p-value: 0.05 divided by how many are left when its turn
    comes. All that come after the first which is not shown are tested at the level of that one."""
    order = sorted(range(len(p)), key=lambda index: p[index])
    levels, level, significant = [0.0] * len(p), ALPHA, True
    for turn, index in enumerate(order):
        if significant:
            level = ALPHA / (len(p) - turn)
            significant = p[index] <= level
        levels[index] = level
    return levels


# -- one label against another --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of the answers that is contrasted by itself.

    Args:
        place: Where the group stands in the prompt. Empty: anywhere.
        turn: Which turn of the conversation was answered. 0: any.
    """

    place: str = ""
    turn: int = 0

    @property
    def rows(self) -> pl.Expr:
        """A filter for its answers."""
        turn = pl.lit(value=True) if not self.turn else pl.col("turn") == self.turn
        return turn & (pl.col("place") == self.place) if self.place else turn

    @property
    def label(self) -> str:
        """Its name for users; empty for all answers."""
        return ", ".join(filter(None, (self.place, f"turn {self.turn}" if self.turn else "")))

    @property
    def ending(self) -> str:
        """What it adds to the name of a measure."""
        turn = f".turn{self.turn}" if self.turn else ""
        return (f".{self.place.replace(' ', '_')}" if self.place else "") + turn


WHOLE = AnswerPart()


def turns_of(source: Mapping[str, Any]) -> tuple[int, ...]:
    """List the measured turns of a run over conversations; empty where each item has one answer."""
    return tuple(source["sampling"].get("turns") or ())


def parts_of(source: Mapping[str, Any]) -> tuple[AnswerPart, ...]:
    """List the parts of a run in their order: each placement that was declared, each turn."""
    sampling = source["sampling"]
    return tuple(
        AnswerPart(place, turn)
        for place in sampling.get("places") or ("",)
        for turn in turns_of(source) or (0,)
    )


NONE, ANY = "no label", "a label"
MATTERS = 0.05  # our choice: five answers of a hundred, or a number that is five percent larger
_ROLES = ("group", "placebo")


@dataclass(frozen=True, slots=True)
class CounterfactualOutcome:
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

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest difference of two values."""
        return -self.reach, self.reach

    def minus(self, left: pl.Expr, right: pl.Expr) -> pl.Expr:
        """Give the difference of two values; null where one is not known. Two numbers differ in
        shares of their mean."""
        apart = left - right
        if not self.relative:
            return apart
        size = (left.abs() + right.abs()) / 2
        return pl.when(size == 0).then(0.0).otherwise(apart / size)

    def differences(self, left: str, right: str) -> list[pl.Expr]:
        """Give the columns `value`, `low` and `high` of the difference of two columns. A missing
        value is at its smallest and at its largest; of a ratio it can make anything."""
        x, y = (pl.col(name).cast(pl.Float64) for name in (left, right))
        value = self.minus(x, y)
        if self.relative:
            low, high = (value.fill_null(end) for end in self.ends)
        else:
            least, most = self.within
            low = x.fill_null(least) - y.fill_null(most)
            high = x.fill_null(most) - y.fill_null(least)
        return [value.alias("value"), low.alias("low"), high.alias("high")]


OUTCOMES = (
    CounterfactualOutcome("chosen", "decision"),
    CounterfactualOutcome("number", "number", relative=True),
    CounterfactualOutcome("refused", "refusal"),
    CounterfactualOutcome("length", "length", relative=True),
    CounterfactualOutcome("score", "score"),
)


@dataclass(frozen=True, slots=True)
class LabelContrast:
    """A contrast is a label against another of its family, or against none, by one outcome."""

    family: str
    left: str
    right: str
    outcome: CounterfactualOutcome
    found: Estimate
    placebo: float | None  # how far a label's answer is from that to its own placebo, on average
    part: AnswerPart = WHOLE

    @property
    def beside_none(self) -> bool:
        """Whether it compares labels with no label, which is not a difference between groups."""
        return (self.left, self.right) == (ANY, NONE)

    @property
    def name(self) -> str:
        return f"{self.family}: {self.left} − {self.right}"


def contrasted(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Give the contrasts of a family: of two labels one, of more each against another."""
    if len(labels) == 2:
        return [(labels[0], labels[1])]
    return [(label, "another") for label in labels]


def contrasts(
    answers: pl.DataFrame,
    labels: Mapping[str, Sequence[str]],
    outcomes: Sequence[CounterfactualOutcome],
    parts: Sequence[AnswerPart] = (WHOLE,),
) -> list[LabelContrast]:
    """Compute every contrast of every family, by outcome and part.

    Contrasts of two labels are adjusted by Holm over all of an outcome, and so are those of a label
    with no label.

    Args:
        answers: One row per answer, with its distance from the placebo.
        labels: Labels of each family in their order.
        outcomes: Outcomes to contrast.
        parts: Parts of the answers that are contrasted by themselves.

    Returns:
        The contrasts. Those without answers are left out.
    """
    pairs = with_other(answers, [outcome.name for outcome in outcomes])
    results: list[tuple[LabelContrast, Differences]] = []
    for family, names in labels.items():
        rows = pairs.filter(pl.col("family") == family)
        beside_none = _beside_none(answers.filter(pl.col("family") == family), names, outcomes)
        for outcome in outcomes:
            placebos = [_beside_placebo(rows.filter(part.rows), outcome) for part in parts]
            looked_at = [(left, right, rows.filter(pl.col("label") == left), f"{outcome.name}:o")
                         for left, right in contrasted(names)]  # fmt: skip
            if beside_none is not None:
                looked_at.append((ANY, NONE, beside_none, f"{outcome.name}:n"))
            for left, right, pair, other in looked_at:
                for part, placebo in zip(parts, placebos, strict=True):
                    within = pair.filter(part.rows)
                    if within.is_empty():
                        continue
                    table = within.select("cluster", *outcome.differences(outcome.name, other))
                    differences = Differences.of(table, outcome.ends)
                    estimate = differences.estimate(f"{family}: {left}")
                    contrast = LabelContrast(family, left, right, outcome, estimate, placebo, part)
                    results.append((contrast, differences))
    return _adjusted(results)


def _adjusted(results: Sequence[tuple[LabelContrast, Differences]]) -> list[LabelContrast]:
    families: dict[tuple[str, bool], list[int]] = {}
    for index, (contrast, _) in enumerate(results):
        families.setdefault((contrast.outcome.name, contrast.beside_none), []).append(index)
    after: dict[int, LabelContrast] = {}
    for places in families.values():
        estimates = adjusted([(results[index][0].found, results[index][1]) for index in places])
        after |= {index: replace(results[index][0], found=estimate)
                  for index, estimate in zip(places, estimates, strict=True)}  # fmt: skip
    return [after[index] for index in range(len(results))]


def with_other(answers: pl.DataFrame, outcomes: Sequence[str]) -> pl.DataFrame:
    """Give the answers about a label of a pair, and their placebos, each with the outcomes of the
    other label's answer of its kind (`…:o`), and of the label's own placebo (`…:p`)."""
    labelled = answers.filter(pl.col("role").is_in(_ROLES))
    keys = [*SAME_PLACE, "role"]
    there = labelled.select(*keys, pl.col("label").alias("other"), *_named(outcomes, "o"))
    placebos = labelled.filter(pl.col("role") == "placebo")
    placebos = placebos.select(
        *SAME_PLACE, "label", pl.lit("group").alias("role"), *_named(outcomes, "p")
    )
    return (
        labelled.filter(pl.col("other") != "")
        .join(there, on=[*keys, "other"], how="left", maintain_order="left")
        .join(placebos, on=[*keys, "label"], how="left", maintain_order="left")
    )


def _named(outcomes: Sequence[str], ending: str) -> list[pl.Expr]:
    return [pl.col(name).alias(f"{name}:{ending}") for name in outcomes]


def _beside_placebo(rows: pl.DataFrame, outcome: CounterfactualOutcome) -> float | None:
    value, placebo = (pl.col(f"{outcome.name}{end}").cast(pl.Float64) for end in ("", ":p"))
    group = rows.filter(pl.col("role") == "group")
    distance = group.select(outcome.minus(value, placebo).abs().mean()).item()
    return None if distance is None else float(distance)


def _beside_none(
    rows: pl.DataFrame, names: Sequence[str], outcomes: Sequence[CounterfactualOutcome]
) -> pl.DataFrame | None:
    """Give the answers about one label of each prompt, drawn, with those without a label (`…:n`);
    None where nothing was asked without one."""
    outcome_names = [outcome.name for outcome in outcomes]
    nobody = rows.filter(pl.col("role") == "none").select(*SAME_PLACE, *_named(outcome_names, "n"))
    if nobody.is_empty():
        return None
    prompts = rows["cluster"].unique(maintain_order=True).to_list()
    sampled = pl.DataFrame(
        {"cluster": prompts, "label": [_drawn(prompt, names) for prompt in prompts]},
        schema={"cluster": pl.String, "label": pl.String},
    )
    group = rows.filter(pl.col("role") == "group")
    return group.join(sampled, on=["cluster", "label"]).join(nobody, on=[*SAME_PLACE])


def _drawn(prompt: str, names: Sequence[str]) -> str:
    """Choose the label that a prompt without a label is compared with: one at random, since the
    mean of several answers varies less than the one answer without a label."""
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]


# -- the answers of a run -------------------------------------------------------------------------


def main_of(source: Mapping[str, Any]) -> str:
    """Name the outcome that the excess is of: the decision, else the number, else the words."""
    sampling = source["sampling"]
    return "decision" if sampling["decision"] else "number" if sampling["number"] else "bag"


def signed_by(source: Mapping[str, Any]) -> CounterfactualOutcome | None:
    """Give the main outcome, where it has a direction; words have none."""
    name = {"decision": "chosen", "number": "number"}.get(main_of(source))
    return next((outcome for outcome in OUTCOMES if outcome.name == name), None)


def answers_of(
    rows: pl.DataFrame, source: Mapping[str, Any], counted: str | None = None
) -> pl.DataFrame:
    """Read the answers of rows that have their facts. A blank answer is none.

    Args:
        rows: the answers with their facts, and their turn.
        source: what was asked, as the run's record has it.
        counted: the decision that is counted; without it, the one that `wanted` gives.

    Returns:
        The rows with what is read from each, the excess of each square (`excess`), and the signed
        difference from the answer about the paired label (`signed`).
    """
    sampling, main = source["sampling"], main_of(source)
    written = pl.col("text").str.strip_chars() != ""
    rows = rows.with_columns(text=pl.when(written).then(pl.col("text")), blank=~written)
    answers = read(rows, sampling["decision"], sampling["number"]).with_columns(
        asked_words=pl.col("prompt").str.to_lowercase().str.extract_all(WORD)
    )
    chosen = wanted(source, answers["decision"]) if counted is None else counted
    decision = named(source)
    answers = answers.with_columns(
        (pl.lit(None, pl.Boolean) if which is None else pl.col("decision") == which).alias(name)
        for name, which in (("chosen", chosen), ("named", decision))
    )
    unread = pl.when(pl.col("refused")).then(pl.lit(REFUSED)).otherwise(pl.lit(UNREADABLE))
    state = (
        pl.when("blank").then(pl.lit(UNREADABLE))
        .when(pl.col("text").is_null()).then(why_lost())
        .when(pl.col(main).is_null()).then(unread)
        .otherwise(pl.lit(SCORED))
    )  # fmt: skip
    answers = answers.with_columns(state=state)
    squares = excesses(answers)
    answers = answers.join(squares, on="item_id", how="left", maintain_order="left")
    # A row without a score has no excess of anything: it counts as missing, once.
    apart = pl.col("^(excess|own_placebo)\\..*$")
    answers = answers.with_columns(pl.when(pl.col("state") == SCORED).then(apart))
    answers = answers.with_columns(excess=f"excess.{main}", own_placebo=f"own_placebo.{main}")
    outcome = signed_by(source)
    if outcome is None:
        return answers.with_columns(signed=pl.lit(None, pl.Float64))
    value, *_ = outcome.differences(outcome.name, f"{outcome.name}:o")
    signed = with_other(answers, [outcome.name]).select("item_id", value.alias("signed"))
    return answers.join(signed, on="item_id", how="left", maintain_order="left")


def wanted(source: Mapping[str, Any], decisions: pl.Series) -> str | None:
    """The decision that is counted: the one that was named, if any answer names it, so that a
    slip of the pen is not counted as a decision that nobody gets; else the most frequent."""
    decision = named(source)
    if decision is None:
        return _most_frequent(decisions)
    return decision if (decisions == decision).any() else None


def named(source: Mapping[str, Any]) -> str | None:
    """The decision that the user named, whether any answer does or not."""
    chosen = source.get("chosen")
    return None if chosen is None else str(chosen).strip().lower()


def _most_frequent(decisions: pl.Series) -> str | None:
    """The decision that is given most often, the first by name of several."""
    counts = decisions.drop_nulls().value_counts().sort(["count", "decision"],
                                                         descending=[True, False])  # fmt: skip
    return None if counts.is_empty() else str(counts["decision"][0])


def chosen_of(answers: pl.DataFrame) -> str | None:
    """The decision that is counted in the contrasts."""
    return _most_frequent(answers.filter("chosen")["decision"])
