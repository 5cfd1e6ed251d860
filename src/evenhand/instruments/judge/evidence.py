"""The evidence of an audit: what labels, slots and repeats do to a judge, as typed numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar

import polars as pl

from evenhand.core.conclusions import Outcome, worst_outcome
from evenhand.core.errors import Undefined
from evenhand.findings.estimates import Coverage
from evenhand.instruments.judge.design import TEN
from evenhand.instruments.judge.effects import (
    BENJAMINI_HOCHBERG,
    HOLM,
    SCORE_MARGIN,
    WIN_MARGIN,
    EstimatedEffect,
    LabelEffect,
    adjusted,
    checked,
    of_labels,
    of_labels_in_pairs,
    of_pairs,
    primary,
)
from evenhand.instruments.judge.figures import (
    AllPairOrders,
    Changes,
    MarkFigures,
    PaperFigures,
    changes,
    figures,
    pairs,
    paper_figures,
)
from evenhand.instruments.judge.probes import DESIGN
from evenhand.statistics.metrics import malibu
from evenhand.statistics.metrics.malibu import RepeatAgreement
from evenhand.statistics.tables import Friedman, friedman

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Margins:
    """What a judge may do, fixed before the first answer was seen."""

    score: float = SCORE_MARGIN  # points of ten that a label may move the marks by
    win_rate: float = WIN_MARGIN  # by how much a win rate may differ from one half


USUAL = Margins()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementCoverage:
    """How many judgements of the design could be scored: all, by phase, and by label."""

    all: Coverage
    single: Coverage
    pair: Coverage
    by_label: Mapping[str, Coverage]
    bases: int

    def to_dict(self) -> dict[str, Any]:
        return {
            **_counted(self.all),
            "single": _counted(self.single),
            "pair": _counted(self.pair),
            "by_label": [
                {"label": name, **_counted(coverage)} for name, coverage in self.by_label.items()
            ],
            "by_reason": self.all.by_reason,
            "bases": self.bases,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUse:
    """How much of the scale the judge uses: one that gives everything the same is even-handed, and
    useless."""

    mean: float | None = None
    sd: float | None = None
    distinct: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """Friedman's test over no label and the primary labels, or why there is none."""

    labels: list[str]
    test: Friedman | None = None
    undefined: str | None = None

    def to_dict(self) -> dict[str, Any]:
        test = asdict(self.test) if self.test else {"undefined": self.undefined}
        return {"labels": self.labels, **test}


def was_read(rows: pl.DataFrame) -> pl.Expr:
    """Whether the reply of a judgement could be read."""
    return pl.any_horizontal(
        pl.col(name).is_not_null() for name in (malibu.metrics_of(rows)[0], "preferred")
    )


@dataclass(frozen=True, eq=False)
class JudgeEvidence:
    """Everything that may be said of the judgements of a run; checks read it. Each part is computed
    when it is first asked for.

    `rows` has one row per judgement (columns: `metrics.malibu`, and check, probe and human), of the
    design and of the probes. All other parts are of the design alone. Effects come sorted, what is
    worst first.

    Args:
        rows: One row per judgement.
        identities: The labels of the primary family.
        margins: What the judge may do.
        alpha: The level of the audit.
        seed: Of the resampled intervals.
        draws: How many resamples they have.
        alone: The same judgements as the judges of a panel gave them before they discussed.
    """

    rows: pl.DataFrame
    identities: Sequence[str] = TEN
    margins: Margins = USUAL
    alpha: float = 0.05
    seed: int = 0
    draws: int = 10_000
    alone: pl.DataFrame | None = None

    @cached_property
    def readable(self) -> int:
        """How many replies could be read, of whatever was asked."""
        return int(self.rows.select(was_read(self.rows).sum()).item())

    @cached_property
    def tests(self) -> int:
        """How many checks can fail by a test. They share alpha (Bonferroni), so that an even-handed
        judge fails in at most 5% of audits."""
        return _tests(self.rows)

    @cached_property
    def _design(self) -> pl.DataFrame:
        return self.probes(DESIGN)

    @cached_property
    def _judged(self) -> pl.DataFrame:
        return malibu.single(self._design)

    @cached_property
    def _met(self) -> pl.DataFrame:
        return malibu.duels(self._design)

    @cached_property
    def _primary(self) -> list[EstimatedEffect]:
        return primary(self._judged, self.identities, margin=self.margins.score,
                       alpha=self.alpha, tests=self.tests)  # fmt: skip

    @property
    def identity_effects(self) -> tuple[LabelEffect, ...]:
        """Each identity against no label on the combined score, after Holm."""
        return _sorted(self._primary)

    @cached_property
    def primary(self) -> tuple[LabelEffect, ...]:
        """The same with resampled intervals."""
        return _sorted(checked(self._primary, seed=self.seed, draws=self.draws))

    @cached_property
    def wins(self) -> tuple[LabelEffect, ...]:
        """Each label against the others of its pairs, by who is preferred, after Holm."""
        effects = of_labels_in_pairs(self._met, "win", margin=self.margins.win_rate)
        return _sorted(adjusted(effects, HOLM, self.alpha, self.tests))

    @cached_property
    def exploratory(self) -> tuple[LabelEffect, ...]:
        """All other comparisons: one Benjamini-Hochberg family."""
        effects = _exploratory(self._judged, self._met, self.identities, self.margins)
        return _sorted(adjusted(effects, BENJAMINI_HOCHBERG, self.alpha))

    @cached_property
    def coverage(self) -> JudgementCoverage:
        return _coverage(self._design, self._judged)

    @cached_property
    def omnibus(self) -> Omnibus:
        return _omnibus(self._judged, [result.effect.label for result in self._primary])

    @cached_property
    def pairs(self) -> AllPairOrders:
        return pairs(self._met)

    @cached_property
    def repeats(self) -> Mapping[str, RepeatAgreement | None]:
        """Of "score" and "preferred"."""
        return _repeats(self._design, self._judged)

    @cached_property
    def scale(self) -> ScaleUse:
        return _scale(self._judged)

    @cached_property
    def figures(self) -> MarkFigures:
        return figures(self._judged)

    @cached_property
    def paper(self) -> PaperFigures:
        return paper_figures(self._design, self._judged)

    @cached_property
    def discussion(self) -> Changes | None:
        """Of a panel: its marks after the discussion against those before it."""
        if self.alone is None:
            return None
        before = self.alone.filter(pl.col("check") == DESIGN)
        return changes(before, self._design, margin=self.margins.score,
                       margin_wins=self.margins.win_rate, alpha=self.alpha)  # fmt: skip

    @property
    def verdict(self) -> Outcome:
        """What may be said of all identities together."""
        return worst_outcome(effect.verdict for effect in self.identity_effects)

    def probes(self, check: str) -> pl.DataFrame:
        """The judgements that belong to one kind of probe."""
        return self.rows.filter(pl.col("check") == check)

    def to_dict(self) -> dict[str, Any]:
        """The evidence as plain data, for JSON."""
        repeats = {
            name: asdict(repeat) if repeat else None for name, repeat in self.repeats.items()
        }
        return {
            "margins": asdict(self.margins),
            "alpha": self.alpha,
            "tests": self.tests,
            "bootstrap": {"seed": self.seed, "draws": self.draws},
            "coverage": self.coverage.to_dict(),
            "verdict": self.verdict,
            "primary": [asdict(effect) for effect in self.primary],
            "omnibus": self.omnibus.to_dict(),
            "exploratory": [asdict(effect) for effect in self.exploratory],
            "pairs": self.pairs.to_dict(),
            "repeats": repeats,
            "scale": asdict(self.scale),
            "figures": self.figures.to_dict(),
            "discussion": self.discussion.to_dict() if self.discussion else None,
            "as_the_paper_prints_it": self.paper.to_dict(),
        }


def _tests(rows: pl.DataFrame) -> int:
    """Count the questions that the judgments of an audit answer: scores and readability under
    labels, in pairs also who and which slot is preferred, and one for each set outside the
    design."""
    in_design = 4 if "pair" in rows.filter(check=DESIGN)["phase"] else 2
    return in_design + rows.filter(pl.col("check") != DESIGN)["check"].n_unique()


def _exploratory(
    judged: pl.DataFrame, met: pl.DataFrame, identities: Sequence[str], margins: Margins
) -> list[EstimatedEffect]:
    labels = _labels(judged)
    main = [label for label in labels if label in identities]
    controls = [label for label in labels if label not in main]
    effects = of_labels(judged, controls, margin=margins.score)
    for metric in malibu.apart_of(judged):
        effects += of_labels(judged, labels, metric, margin=margins.score)
    # Does the group matter, or only that a label is there at all?
    if malibu.PLACEBO in labels:
        effects += of_labels(judged, main, margin=margins.score, against=malibu.PLACEBO)
    values = {"win": margins.win_rate}
    if malibu.apart_of(judged):  # a judge that is read by one token marks no pair
        values["gap"] = margins.score
    for value, margin in values.items():
        effects += of_pairs(met, value, margin=margin)
        effects += of_labels_in_pairs(met, value, margin=margin)
    return effects


def _labels(judged: pl.DataFrame) -> list[str]:
    """All labels but none, in the order in which they were first asked about."""
    return [
        label for label in judged["label"].unique(maintain_order=True) if label != malibu.NO_LABEL
    ]


def _sorted(family: list[EstimatedEffect]) -> tuple[LabelEffect, ...]:
    """Effects with what is worst first: detected, then inconclusive, then ruled out, by size."""
    order = (Outcome.DETECTED, Outcome.INCONCLUSIVE, Outcome.RULED_OUT)
    effects = [result.effect for result in family]
    effects.sort(key=lambda e: (order.index(e.verdict), e.estimate is None, -abs(e.estimate or 0)))
    return tuple(effects)


def _coverage(rows: pl.DataFrame, judged: pl.DataFrame) -> JudgementCoverage:
    by_label = judged.group_by("label", maintain_order=True).agg(
        n=pl.len(), scored=pl.col("combined").count()
    )
    pair = rows.filter(pl.col("phase") == "pair")
    reasons = rows["reason"].drop_nulls().value_counts(sort=True) if "reason" in rows else None
    single = _covered(len(judged), judged["combined"].count())
    paired = _covered(len(pair), pair["preferred"].count())
    return JudgementCoverage(
        all=Coverage(
            n=single.n + paired.n,
            scored=single.scored + paired.scored,
            by_reason=dict(reasons.iter_rows()) if reasons is not None else {},
        ),
        single=single,
        pair=paired,
        by_label={str(label): _covered(n, scored) for label, n, scored in by_label.iter_rows()},
        bases=rows["base"].n_unique(),
    )


def _covered(n: int, scored: int) -> Coverage:
    return Coverage(n=n, scored=scored, by_reason={})


def _counted(coverage: Coverage) -> dict[str, Any]:
    return {"n": coverage.n, "scored": coverage.scored, "coverage": coverage.coverage}


def _scale(judged: pl.DataFrame) -> ScaleUse:
    marks = judged["combined"].drop_nulls().rechunk()  # one sum, however many threads read the run
    if marks.is_empty():
        return ScaleUse()
    return ScaleUse(mean=marks.mean(), sd=marks.std(), distinct=marks.n_unique())  # type: ignore[arg-type]


def _omnibus(judged: pl.DataFrame, labels: Sequence[str]) -> Omnibus:
    """Bases with no whole cell are left out."""
    blocks = malibu.base_means(judged, [malibu.NO_LABEL, *labels])
    names = blocks.columns[1:]
    try:
        return Omnibus(labels=names, test=friedman(blocks.select(names).to_numpy()))
    except Undefined as reason:
        return Omnibus(labels=names, undefined=str(reason))


def _repeats(rows: pl.DataFrame, judged: pl.DataFrame) -> dict[str, RepeatAgreement | None]:
    single_keys = ("base", "scenario", "text", "label", "judge")
    pair_keys = ("base", "scenario", "first", "second", "first_text", "second_text", "judge")
    pair = rows.filter(pl.col("phase") == "pair")
    return {
        "score": _defined(lambda: malibu.repeats(judged, "combined", single_keys)),
        "preferred": _defined(lambda: malibu.repeats(pair, "preferred", pair_keys)),
    }


def _defined(compute: Callable[[], _T]) -> _T | None:
    try:
        return compute()
    except Undefined:
        return None
