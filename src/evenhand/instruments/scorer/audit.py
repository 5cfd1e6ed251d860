"""What is known of a scorer, from texts that were scored before: no scorer is called here.

A text without a score is left out of every figure and counted in `coverage`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.check import Audit, Audits
from evenhand.findings.found import Coverage
from evenhand.instruments.scorer import held_out
from evenhand.instruments.scorer.figures import (
    Agreement,
    Calibration,
    Emoji,
    Figures,
    GivenScores,
    LabelFit,
    Tricked,
    Tricks,
    WrongShare,
)
from evenhand.instruments.scorer.limits import checks
from evenhand.instruments.scorer.tables import agreement_section, sections
from evenhand.metrics import scorer_intervals as ranges
from evenhand.metrics import scorer_quality as quality
from evenhand.metrics.scorer_intervals import Ends
from evenhand.statistics.proportions import wilson

BENIGN_SETS = ("identity_templates", "identity_pairs", "hatecheck", "toxigen")
HATEFUL_SETS = ("hatecheck", "toxigen")
FEWEST = 10  # our choice: kinds and groups with fewer texts would be shown by chance alone
_PARTS: tuple[Literal["function", "group"], ...] = ("function", "group")
_NOTHING_FOUND = "Nothing was found in these texts; others may show more."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerAudit(Audit):
    """What an audit found of one scorer."""

    figures: Figures

    @property
    def limits(self) -> list[str]:
        """Where not to trust the scorer, in sentences; none is not "safe to trust"."""
        return [check.says for check in self.checks if check.state == "fail"]

    def to_dict(self) -> dict[str, Any]:
        """The figures and the limits: what `scorer-card.json` holds."""
        seen = self.figures.coverage
        coverage = {
            "texts": seen.n,
            "scored": seen.scored,
            "coverage": seen.coverage,
            "reasons": seen.by_reason,
        }
        return {**asdict(self.figures), "coverage": coverage, "limits": self.limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerAudits(Audits):
    """The audits of several scorers on the same texts, and how far they agree."""

    audits: tuple[ScorerAudit, ...]
    attribute: str
    threshold: float
    sets: Mapping[str, int]  # set -> its texts
    left_out: Mapping[str, str]  # set -> why
    agreement: tuple[Agreement, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "threshold": self.threshold,
            "sets": self.sets,
            "left_out": self.left_out,
            "scorers": [one.to_dict() for one in self.audits],
            "agreement": [asdict(one) for one in self.agreement],
        }


def audit(
    tables: Mapping[str, pl.DataFrame],
    scored: Sequence[GivenScores],
    *,
    threshold: float = 0.5,
    attribute: str = "toxicity",
    left_out: Mapping[str, str] | None = None,
) -> ScorerAudits:
    """Audit scorers by what they gave to the texts of these sets."""
    agreement = _agreement(tables, scored, threshold)
    left = dict(left_out or {})
    why = "; ".join(f"{name}: {reason}" for name, reason in left.items())
    return ScorerAudits(
        audits=tuple(_audit(_figures(tables, one, threshold)) for one in scored),
        attribute=attribute,
        threshold=threshold,
        sets={name: len(table) for name, table in tables.items()},
        left_out=left,
        agreement=agreement,
        sections=(agreement_section(agreement),) if agreement else (),
        notes=(f"Left out: {why}",) if left else (),
    )


def _audit(figures: Figures) -> ScorerAudit:
    found, seen = checks(figures), figures.coverage
    failed = sum(check.state == "fail" for check in found)
    says = f"{failed} of {len(found)} checks say where not to trust it." if failed else None
    fact = f"{seen.scored:,} of {seen.n:,} texts scored, {figures.texts_per_second:,.0f} texts/s"
    return ScorerAudit(
        kind="scorer",
        title=figures.name,
        facts=(fact,),
        checks=found,
        state=None,
        says=(says or _NOTHING_FOUND, *(one.says for one in found if one.state == "fail")),
        coverage=seen,
        sections=sections(figures),
        figures=figures,
    )


def _figures(tables: Mapping[str, pl.DataFrame], one: GivenScores, threshold: float) -> Figures:
    rows = {name: _rows(table, one, name) for name, table in tables.items()}
    return Figures(
        name=one.name,
        described=dict(one.described),
        attributes=list(one.attributes),
        coverage=_coverage(one),
        texts_per_second=one.texts_per_second,
        labels=_labels(rows, one, threshold),
        calibration=_calibration(rows, one),
        false_positives=list(
            _shares(rows, BENIGN_SETS, toxic=False, wrong=lambda score: score >= threshold)
        ),
        misses=list(_shares(rows, HATEFUL_SETS, toxic=True, wrong=lambda score: score < threshold)),
        tricks=_tricks(one.tricks, threshold) if one.tricks else [],
        emoji=_emoji(one.tricks, threshold) if one.tricks else None,
    )


def _rows(table: pl.DataFrame, one: GivenScores, name: str) -> pl.DataFrame:
    """The texts of a set that have a score and were not trained on."""
    scores = pl.Series("score", one.sets[name].values, dtype=pl.Float64)
    rows = table.with_columns(scores)
    if one.seen(name) == "held_out":
        rows = rows.filter(pl.Series([held_out(text) for text in table["text"]], dtype=pl.Boolean))
    return rows.filter(pl.col("score").is_not_null())


def _coverage(one: GivenScores) -> Coverage:
    columns = list(one.sets.values())
    if one.tricks is not None:
        columns += [one.tricks.plain, one.tricks.emoji, *one.tricks.tricked.values()]
    reasons = sum((Counter(column.reasons) for column in columns), Counter[str]())
    return Coverage(
        n=sum(len(column.values) for column in columns),
        scored=sum(value is not None for column in columns for value in column.values),
        by_reason=dict(reasons.most_common()),
    )


def _labels(rows: Mapping[str, pl.DataFrame], one: GivenScores, threshold: float) -> list[LabelFit]:
    """How well it tells toxic from not, set by set, the worst first."""
    found = []
    for name, table in rows.items():
        scores, labels = table["score"].to_numpy(), table["label"].to_list()
        toxic, clusters = np.asarray(labels) * 1.0, table["cluster"].to_list()
        found.append(
            LabelFit(
                set=name,
                n=len(table),
                toxic=sum(labels),
                seen=one.seen(name),
                auc=_defined(quality.auc, scores, labels),
                kappa=_defined(quality.kappa_at, scores, toxic, threshold),
                clusters=len(set(clusters)),
                intervals={
                    "auc": ranges.auc(scores, labels, clusters),
                    "kappa": ranges.kappa_at(scores, toxic, threshold, clusters),
                },
            )
        )
    return sorted(found, key=lambda row: (row.auc is None, row.auc))


def _calibration(rows: Mapping[str, pl.DataFrame], one: GivenScores) -> list[Calibration]:
    """Against the recorded scores of Perspective, where a set has them."""
    found = []
    for name, table in rows.items():
        known = table.filter(pl.col("recorded").is_not_null())
        if not len(known):
            continue
        scores, recorded = known["score"].to_numpy(), known["recorded"].to_numpy()
        curve, clusters = quality.reliability(scores, recorded), known["cluster"].to_list()
        found.append(
            Calibration(
                set=name,
                n=len(known),
                seen=one.seen(name),
                ece=quality.calibration_error(curve),
                spearman=_defined(quality.spearman, scores, recorded),
                curve=curve,
                clusters=len(set(clusters)),
                intervals={
                    "ece": ranges.calibration_error(scores, recorded, clusters),
                    "spearman": ranges.spearman(scores, recorded, clusters),
                },
            )
        )
    return sorted(found, key=lambda row: -row.ece)


def _shares(
    rows: Mapping[str, pl.DataFrame],
    sets: Sequence[str],
    *,
    toxic: bool,
    wrong: Callable[[float], bool],
) -> Iterator[WrongShare]:
    """The share judged wrongly: of each set, and within it by kind of text and by group, the worst
    first within each of these."""
    for name in sets:
        table = rows[name].filter(pl.col("label") == toxic) if name in rows else None
        if table is None or not len(table):
            continue
        yield WrongShare(set=name, by="all", kind="all", **_share(table, wrong))
        for by in _PARTS:
            parts = [
                WrongShare(set=name, by=by, kind=str(kind), **_share(part, wrong))
                for (kind,), part in table.filter(pl.col(by) != "").group_by(by)
                if len(part) >= FEWEST
            ]
            yield from sorted(parts, key=lambda part: (-part.estimate, part.kind))


def _share(table: pl.DataFrame, wrong: Callable[[float], bool]) -> dict[str, Any]:
    events = [wrong(score) for score in table["score"]]
    return asdict(quality.share(events, table["cluster"].to_list()))


def _tricks(tricks: Tricks, threshold: float) -> list[Tricked]:
    """What is still caught with each trick, of what is caught without."""
    found = []
    for name, column in tricks.tricked.items():
        pairs = [
            (before >= threshold, after >= threshold)
            for before, after in zip(tricks.plain.values, column.values, strict=True)
            if before is not None and after is not None
        ]
        plain = sum(before for before, _ in pairs)
        caught = sum(before and after for before, after in pairs)
        wilsons = wilson(caught, plain) if plain else None
        found.append(
            Tricked(
                trick=name,
                n=len(pairs),
                plain=plain,
                caught=caught,
                kept=caught / plain if plain else None,
                ends=Ends(wilsons.low, wilsons.high) if wilsons else None,
            )
        )
    return sorted(found, key=lambda row: (row.kept is None, row.kept))


def _emoji(tricks: Tricks, threshold: float) -> Emoji:
    given = [value for value in tricks.emoji.values if value is not None]
    return Emoji(n=len(given), flagged=sum(value >= threshold for value in given))


def _agreement(
    tables: Mapping[str, pl.DataFrame], scored: Sequence[GivenScores], threshold: float
) -> tuple[Agreement, ...]:
    """Each pair of scorers on the texts that both scored, set by set."""
    found = []
    for one, two in combinations(scored, 2):
        for name in tables:
            given = (one.sets[name].values, two.sets[name].values, tables[name]["cluster"])
            both = [
                (a, b, str(cluster))
                for a, b, cluster in zip(*given, strict=True)
                if a is not None and b is not None
            ]
            first, second = [a for a, _, _ in both], [b for _, b, _ in both]
            clusters = [cluster for _, _, cluster in both]
            found.append(
                Agreement(
                    first=one.name,
                    second=two.name,
                    set=name,
                    n=len(both),
                    spearman=_defined(quality.spearman, first, second),
                    kappa=_defined(quality.kappa_at, first, second, threshold),
                    intervals={
                        "spearman": ranges.spearman(first, second, clusters),
                        "kappa": ranges.kappa_at(first, second, threshold, clusters),
                    },
                )
            )
    return tuple(sorted(found, key=lambda row: (row.spearman is None, row.spearman)))


def _defined(formula: Callable[..., float], *arguments: Any) -> float | None:
    """None where the formula has no value: never a 0."""
    try:
        return formula(*arguments)
    except Undefined:
        return None
