"""The outcomes of an audit whose scores are known, as the instrument makes them of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.findings.audit import AuditCheck, checks_of
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Groups, estimates_over_all, groups_of
from evenhand.findings.totals import RunTotals
from evenhand.instruments.scorer.instrument import ScorerAudit, outcomes_at
from evenhand.instruments.scorer.sets import AuditTexts

_SCORES = pl.List(pl.Struct({"name": pl.String, "value": pl.Float64}))


def scored_texts(
    texts: AuditTexts,
    scores: Sequence[float | None],
    threshold: float = 0.5,
    trained_on: Mapping[str, str] | None = None,
    reason: str | None = None,
) -> pl.DataFrame:
    """One score per text, in the order of the items; None where there is none."""
    items = list(texts.items())
    assert len(items) == len(scores)
    rows = pl.DataFrame(
        {
            "item_id": [item.id for item in items],
            "position": range(len(items)),
            "reason": pl.Series([reason] * len(items), dtype=pl.String),
            "scores_after": pl.Series(
                [[] if s is None else [{"name": "score", "value": s}] for s in scores],
                dtype=_SCORES,
            ),
            **{name: [item.tags[name] for item in items] for name in items[0].tags},
        }
    )
    return outcomes_at(rows, threshold, trained_on or {})


@dataclass(frozen=True)
class Judged:
    """What an audit says of such outcomes."""

    outcomes: pl.DataFrame
    estimates: tuple[Estimate, ...]
    groups: Groups
    checks: dict[str, AuditCheck]

    @classmethod
    def of(cls, outcomes: pl.DataFrame) -> "Judged":
        instrument = ScorerAudit()
        totals = RunTotals.of(instrument, [outcomes])
        estimates, groups = estimates_over_all(instrument, totals), groups_of(instrument, totals)
        checks = checks_of(instrument.measures, estimates, groups)
        return cls(outcomes, estimates, groups, {check.name: check for check in checks})

    def group(self, column: str, value: str, name: str) -> Estimate:
        return next(each for each in self.groups[column][value] if each.name == name)
