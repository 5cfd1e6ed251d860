"""What is known of a scorer, from texts that were scored before: no scorer is called here."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import polars as pl

from evenhand.findings.audit import Audit, Audits
from evenhand.instruments.scorer.figures import Agreement, Figures, GivenScores
from evenhand.instruments.scorer.limits import checks
from evenhand.instruments.scorer.measured import defined, figures_of
from evenhand.instruments.scorer.tables import agreement_section, sections
from evenhand.metrics import scorer_intervals as ranges
from evenhand.metrics import scorer_quality as quality

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
        counts = self.figures.coverage
        coverage = {
            "texts": counts.n,
            "scored": counts.scored,
            "coverage": counts.coverage,
            "reasons": counts.by_reason,
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
            "scorers": [audit.to_dict() for audit in self.audits],
            "agreement": [asdict(pair) for pair in self.agreement],
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
        audits=tuple(
            _audit(figures_of(tables, given_scores, threshold)) for given_scores in scored
        ),
        attribute=attribute,
        threshold=threshold,
        sets={name: len(table) for name, table in tables.items()},
        left_out=left,
        agreement=agreement,
        sections=(agreement_section(agreement),) if agreement else (),
        notes=(f"Left out: {why}",) if left else (),
    )


def _audit(figures: Figures) -> ScorerAudit:
    results, coverage = checks(figures), figures.coverage
    failed = sum(check.state == "fail" for check in results)
    message = f"{failed} of {len(results)} checks say where not to trust it." if failed else None
    fact = (
        f"{coverage.scored:,} of {coverage.n:,} texts scored, "
        f"{figures.texts_per_second:,.0f} texts/s"
    )
    return ScorerAudit(
        kind="scorer",
        title=figures.name,
        facts=(fact,),
        checks=results,
        state=None,
        says=(
            message or _NOTHING_FOUND,
            *(check.says for check in results if check.state == "fail"),
        ),
        coverage=coverage,
        sections=sections(figures),
        figures=figures,
    )


def _agreement(
    tables: Mapping[str, pl.DataFrame], scored: Sequence[GivenScores], threshold: float
) -> tuple[Agreement, ...]:
    """Each pair of scorers on the texts that both scored, set by set."""
    results = []
    for first_scorer, second_scorer in combinations(scored, 2):
        for name in tables:
            columns = (
                first_scorer.sets[name].values,
                second_scorer.sets[name].values,
                tables[name]["cluster"],
            )
            both = [
                (a, b, str(cluster))
                for a, b, cluster in zip(*columns, strict=True)
                if a is not None and b is not None
            ]
            first, second = [a for a, _, _ in both], [b for _, b, _ in both]
            clusters = [cluster for _, _, cluster in both]
            results.append(
                Agreement(
                    first=first_scorer.name,
                    second=second_scorer.name,
                    set=name,
                    n=len(both),
                    spearman=defined(quality.spearman, first, second),
                    kappa=defined(quality.kappa_at, first, second, threshold),
                    intervals={
                        "spearman": ranges.spearman(first, second, clusters),
                        "kappa": ranges.kappa_at(first, second, threshold, clusters),
                    },
                )
            )
    return tuple(sorted(results, key=lambda row: (row.spearman is None, row.spearman)))
