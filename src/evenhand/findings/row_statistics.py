"""A statistic that is any function of all rows at once, such as a rank correlation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD, Change, Estimate
from evenhand.findings.measures import AFTER, Clusterings, Measure, Statistic
from evenhand.findings.worst_case import WorstCaseRun
from evenhand.statistics.clusters import NO_ROWS, Interval


class FormulaResult(Protocol):
    """What a formula returns: a number, its interval where it has one, and what it rests on."""

    @property
    def estimate(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def clusters(self) -> int: ...


def nothing_lost(rows: pl.DataFrame) -> WorstCaseRun:
    """Fill a number whose interval holds whatever the missing values are."""
    del rows
    return WorstCaseRun(0)


@dataclass(frozen=True, slots=True)
class OfRows(Statistic):
    """Any function of all rows at once, with the interval that the function computes itself.

    `rows` are numbers per row; `formula` gets them as a table, with the column `cluster`, of the
    rows that have all of them. `fill` gets the rows that the measure is about, with null for what
    is missing, and says what the number could be if that were known. A change of it has no test.
    """

    rows: Mapping[str, pl.Expr]
    formula: Callable[[pl.DataFrame], FormulaResult]
    fill: Callable[[pl.DataFrame], WorstCaseRun] | None = None

    @property
    def averages(self) -> bool:
        return False

    def columns(self) -> Mapping[str, pl.Expr]:
        return dict(self.rows)

    def _result(self, measure: Measure, table: pl.DataFrame, side: str = "") -> FormulaResult:
        names = {f"{measure.name}.{name}{side}": name for name in self.rows}
        rows = table.select("cluster", *names).drop_nulls().rename(names)
        if rows.is_empty():
            raise Undefined(NO_ROWS)
        return self.formula(rows)

    def estimate(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Estimate:
        del by
        try:
            result = self._result(measure, table)
        except Undefined as reason:
            return Estimate(name=measure.name, value=None, undefined=str(reason))
        alike = isinstance(result, Interval) and result.no_spread
        return Estimate(
            name=measure.name,
            value=result.estimate,
            low=None if alike else result.low,
            high=None if alike else result.high,
            n=result.n,
            clusters=result.clusters,
            undefined=NO_SPREAD if alike else None,
        )

    def fillings(
        self, measure: Measure, table: pl.DataFrame, by: Clusterings
    ) -> Sequence[WorstCaseRun]:
        del by
        lost = f"{measure.name}.missing"
        unknown = WorstCaseRun(int(table[lost].sum()))
        if self.fill is None:
            return [unknown]
        names = {f"{measure.name}.{name}": name for name in self.rows}
        about = pl.any_horizontal(pl.col([*names]).is_not_null()) | pl.col(lost)
        try:
            return [self.fill(table.filter(about).select("cluster", *names).rename(names))]
        except Undefined:
            return [unknown]

    def change(self, measure: Measure, table: pl.DataFrame, by: Clusterings) -> Change:
        del by
        names = [f"{name}{side}" for name in measure.columns() for side in ("", AFTER)]
        pairs = table.drop_nulls(names)
        before, after = (self._result(measure, pairs, side) for side in ("", AFTER))
        return Change(
            name=measure.name,
            before=before.estimate,
            after=after.estimate,
            difference=after.estimate - before.estimate,
            effect=after.estimate - before.estimate,
            n=len(pairs),
            clusters=after.clusters,
        )
