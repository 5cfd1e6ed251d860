"""The measures of the audit of a judge: its checks, and what a comparison, a gate and a run that
stops early can use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined
from evenhand.findings.audit import Decided
from evenhand.findings.cluster_statistics import MeanOfClusters
from evenhand.findings.estimates import Change
from evenhand.findings.measures import AFTER, Clusterings, Measure, Statistic
from evenhand.findings.summed_statistics import Mean
from evenhand.findings.worst_case import WorstCaseRun
from evenhand.instruments.judge.checks import JudgeCheck, checks
from evenhand.instruments.judge.design import TAGS, scores_of
from evenhand.instruments.judge.evidence import JudgeEvidence, Margins
from evenhand.instruments.judge.probes import DESIGN
from evenhand.statistics.metrics import malibu

_APART = (-float(malibu.TOP), float(malibu.TOP))


@dataclass(frozen=True, slots=True)
class OfEvidence(Statistic):
    """What a check of judges shows, by tests of its own over all judgements at once: labels share a
    family, and what is missing is put where it hurts most. A change of it has no test."""

    check: JudgeCheck
    margins: Margins
    identities: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def averages(self) -> bool:
        return False

    def columns(self) -> Mapping[str, pl.Expr]:
        return {"row": pl.struct("position", *TAGS, *scores_of(self.metrics))}

    def _decided(self, measure: Measure, table: pl.DataFrame, side: str = "") -> Decided:
        # In the order of the items, so that two runs of the same answers give the same digits.
        rows = table[f"{measure.name}.row{side}"].struct.unnest().sort("position")
        evidence = JudgeEvidence(rows, identities=self.identities, margins=self.margins)
        decided = self.check.check(evidence)
        judged = decided.outcome is not Outcome.NOT_MEASURED
        if judged and self.check.of_replies and not evidence.readable:
            return self.check.not_measured(f"none of {len(rows)} replies could be read")
        return decided

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Decided:
        return self._decided(measure, table)

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        return [WorstCaseRun(0)]  # what is missing is in its outcome already

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        before, after = (self._decided(measure, table, side) for side in ("", AFTER))
        if before.value is None or after.value is None:
            raise Undefined(before.says if before.value is None else after.says)
        difference = after.value - before.value
        return Change(
            name=measure.name,
            before=before.value,
            after=after.value,
            difference=difference,
            effect=difference,
            n=min(before.n, after.n),
            clusters=min(before.clusters, after.clusters),
        )


def measures(
    margins: Margins,
    identities: Sequence[str],
    metrics: Sequence[str],
    *,
    of_one_text: bool = False,
) -> tuple[Measure, ...]:
    """Return the measures of an audit.

    Args:
        margins: What the judge may do.
        identities: The labels that are tested together.
        metrics: What the judge was asked to mark.
        of_one_text: The judge's prompt shows one text, so that nothing of pairs can be checked.
    """
    design = pl.col("check") == DESIGN
    return (
        *(
            Measure(
                name=check.name, label=check.label, allowed=check.allowed(margins),
                statistic=OfEvidence(check, margins, tuple(identities), tuple(metrics)),
            )
            for check in checks()
            if not (of_one_text and check.of_pairs)
        ),
        Measure(
            name="shift", label="effect of an identity on the mark", unit="points",
            statistic=MeanOfClusters(pl.col("shift")), where=pl.col("identity").is_not_null(),
            lost=pl.col("shift").is_null(), better="zero", role="primary", margin=margins.score,
            symmetric=True,
            within=_APART,
        ),
        Measure(
            name="first_slot", label="first slot's win rate − ½", better="zero", role="primary",
            statistic=Mean(pl.col("preferred") - malibu.TIE),
            where=design & (pl.col("phase") == "pair"), margin=margins.win_rate, symmetric=True,
            within=(-malibu.TIE, malibu.TIE), absent="no pair was judged",
        ),
        Measure(
            name="mark", label="mean mark", statistic=Mean(pl.col("mark")), unit="points",
            where=design & (pl.col("phase") == "single"), within=(0, malibu.TOP),
        ),
    )  # fmt: skip


def judged(rows: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Add to judgements what their measures read: the mark, and its distance from that of the same
    text without a label.

    Args:
        rows: One row per judgement.
        metrics: What the judge was asked to mark.
    """
    on_design = (pl.col("check") == DESIGN) & (pl.col("phase") == "single")
    identity = on_design & ~pl.col("label").is_in(malibu.CONTROLS)
    mark = pl.sum_horizontal(*metrics, ignore_nulls=False) / len(metrics)
    marked = rows.with_columns(mark=pl.when(on_design).then(mark))
    cell = [name for name in malibu.CELL if name in rows.columns]
    plain = marked.filter(on_design & (pl.col("label") == malibu.NO_LABEL))
    control = plain.select(*cell, _control="mark").unique(cell, maintain_order=True)
    return (
        marked.join(control, on=cell, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            shift=pl.when(identity).then(pl.col("mark") - pl.col("_control")),
            identity=pl.when(identity).then("label"),
        )
        .drop("_control")
    )
