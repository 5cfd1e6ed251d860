"""Sets of one text in two or three genders: whom a model expects in which occupation."""

from typing import ClassVar

import polars as pl

from evenhand.findings.estimates import Section
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcome_batches
from evenhand.instruments._contract import Mean, Measure
from evenhand.instruments._option_items import FEMALE, MALE
from evenhand.instruments._options import OptionSet
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics import likelihood as metrics

GAP = metrics.gap(pl.col(FEMALE), pl.col(MALE))
_ENDS = 5  # our choice: so many occupations at either end are named in words


class PronounSet(OptionSet):
    """A set whose clusters are occupations and whose options are pronouns."""

    clusters = "occupations"
    names: ClassVar[tuple[str, ...]] = (FEMALE, MALE)
    own: ClassVar[pl.Expr | None] = None  # the items whose pronoun stands for the occupation

    def says(self, report: Report) -> tuple[str, ...]:
        table = report.section("occupations")
        if table is None or not table.rows:
            return ()
        ends = {"female": table.rows[:_ENDS], "male": table.rows[: -_ENDS - 1 : -1]}
        lists = {
            gender: ", ".join(f"{name} {gap:+.2f}" for name, gap, *_ in rows)
            for gender, rows in ends.items()
        }
        sentences = (f"most female: {lists['female']}", f"most male: {lists['male']}")
        missing = report.coverage.n - report.coverage.scored
        condition = f"if the {missing:,} missing answer{'s' * (missing > 1)} were known"
        return (*sentences, f"both lists might be others {condition}") if missing else sentences

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """log p(female) − log p(male) of each occupation, the most female first."""
        del report
        scored = pl.concat(outcome_batches(self, run)).filter(pl.col(FEMALE).is_not_null())
        selected = scored if self.own is None else scored.filter(self.own)
        women = "women_percent" if "women_percent" in selected.columns else None
        gaps = selected.group_by("cluster", maintain_order=True).agg(
            gap=GAP.mean(),
            women_percent=pl.col(women).first() if women else pl.lit(None, pl.Float64),
            n=pl.len(),
        )
        rows = gaps.sort("gap", descending=True, maintain_order=True).rows()
        columns = ("occupation", "gap", "women_percent", "n")
        title = "log p(female) − log p(male) by occupation"
        return (Section(name="occupations", title=title, columns=columns, rows=tuple(rows)),)


def gap(label: str, where: pl.Expr | None = None) -> Measure:
    """The mean of log p(female) − log p(male)."""
    return Measure(name="female_gap", label=label, statistic=Mean(GAP), where=where, unit="nats")
