"""One label against another, by each outcome: a signed difference per prompt, and its interval.

In each prompt a label is held against the one that it is paired with there, so that over prompts it
meets all others. If labels say nothing the two could change places, and the difference changes its
sign: sign flips are exact then, whatever the noise. The mean of all others would not do: where
refusals are rare it flags half of all audits without any effect (docs/swap.md).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenhand.findings.estimates import Estimate
from evenhand.instruments.swap.differences import Differences, adjusted
from evenhand.instruments.swap.squares import SAME_PLACE

NONE, ANY = "no label", "a label"
MATTERS = 0.05  # our choice: five answers of a hundred, or a number that is five percent larger
_ROLES = ("group", "placebo")


@dataclass(frozen=True, slots=True)
class SwapOutcome:
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
    SwapOutcome("chosen", "decision"),
    SwapOutcome("number", "number", relative=True),
    SwapOutcome("refused", "refusal"),
    SwapOutcome("length", "length", relative=True),
    SwapOutcome("score", "score"),
)


@dataclass(frozen=True, slots=True)
class LabelContrast:
    """A contrast is a label against another of its family, or against none, by one outcome."""

    family: str
    left: str
    right: str
    outcome: SwapOutcome
    found: Estimate
    placebo: float | None  # how far a label's answer is from that to its own placebo, on average

    @property
    def beside_none(self) -> bool:
        """Say whether it holds labels against no label, which is no difference between groups."""
        return (self.left, self.right) == (ANY, NONE)

    @property
    def name(self) -> str:
        return f"{self.family}, {self.left} − {self.right}"


def contrasted(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Give the contrasts of a family: of two labels one, of more each against another."""
    if len(labels) == 2:
        return [(labels[0], labels[1])]
    return [(label, "another") for label in labels]


def contrasts(
    answers: pl.DataFrame, labels: Mapping[str, Sequence[str]], outcomes: Sequence[SwapOutcome]
) -> list[LabelContrast]:
    """Compute every contrast of every family, by outcome. Those of two labels are adjusted by Holm
    over all of them of an outcome, and so are those against no label."""
    pairs = with_other(answers, [outcome.name for outcome in outcomes])
    results: list[tuple[LabelContrast, Differences]] = []
    for family, names in labels.items():
        rows = pairs.filter(pl.col("family") == family)
        beside_none = _beside_none(answers.filter(pl.col("family") == family), names, outcomes)
        for outcome in outcomes:
            beside = _beside_placebo(rows, outcome)
            looked_at = [(left, right, rows.filter(pl.col("label") == left), f"{outcome.name}:o")
                         for left, right in contrasted(names)]  # fmt: skip
            if beside_none is not None:
                looked_at.append((ANY, NONE, beside_none, f"{outcome.name}:n"))
            for left, right, part, other in looked_at:
                if part.is_empty():
                    continue
                table = part.select("cluster", *outcome.differences(outcome.name, other))
                differences = Differences.of(table, outcome.ends)
                estimate = differences.estimate(f"{family}: {left}")
                results.append(
                    (LabelContrast(family, left, right, outcome, estimate, beside), differences)
                )
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


def _beside_placebo(rows: pl.DataFrame, outcome: SwapOutcome) -> float | None:
    value, placebo = (pl.col(f"{outcome.name}{end}").cast(pl.Float64) for end in ("", ":p"))
    group = rows.filter(pl.col("role") == "group")
    distance = group.select(outcome.minus(value, placebo).abs().mean()).item()
    return None if distance is None else float(distance)


def _beside_none(
    rows: pl.DataFrame, names: Sequence[str], outcomes: Sequence[SwapOutcome]
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
    """The label that stands for all where a prompt without a label is compared: one, drawn, since
    the mean of several varies less than the one answer that it is held against."""
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]
