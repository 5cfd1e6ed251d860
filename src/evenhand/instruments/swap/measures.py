"""What `swap` measures: the excess of every run, and the signed contrasts of a run's labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments.swap.answers import named, signed_by
from evenhand.instruments.swap.contrasts import MATTERS, Outcome, contrasted
from evenhand.instruments.swap.measured import PAIRED
from evenhand.instruments.swap.rates import WITHOUT

_ABSENT = {"decision": "no --decision was given", "number": "--number was not given"}


def _excess(name: str, label: str, column: str, **more: Any) -> Measure:
    value = pl.col(column)
    # What no option asked to read is not lost.
    lost = value.is_null() & pl.col(f"reads.{name.removeprefix('excess_')}")
    return Measure(name=name, label=label, statistic=Mean(value), where=PAIRED, better="zero",
                   one_sided=True, symmetric=True, within=(-1, 1), lost=lost, **more)  # fmt: skip


def _difference(family: str, left: str, right: str, outcome: Outcome, absent: str) -> Measure:
    """The signed contrast of two labels, as a mean over the answers about the first of them."""
    value, role = pl.col("signed"), pl.col("role")
    where = (
        (pl.col("family") == family)
        & (pl.col("label") == left)
        & (pl.col("other") != "")
        & (role != "none")
    )
    return Measure(name=f"difference.{family}.{left}", label=f"{family}: {left} − {right}",
                   statistic=Mean(value), where=where, better="zero", role="primary",
                   margin=MATTERS, within=outcome.ends, lost=value.is_null(),
                   absent=absent)  # fmt: skip


def _rate(name: str, whose: str, where: pl.Expr) -> Measure:
    return Measure(name=name, label=f"the counted decision is given, {whose} a label",
                   statistic=Mean(pl.col("named").cast(pl.Float64)), where=where,
                   within=(0, 1), absent="no --chosen names a decision")  # fmt: skip


MEASURES = (
    _excess("excess", "answers differ by the group, beyond the placebo", "excess",
            role="primary", margin=0.05),
    Measure(name="placebo", label="answers differ by the placebo",
            statistic=Mean(pl.col("beside")), where=PAIRED, within=(0, 1),
            lost=pl.col("beside").is_null()),
    _rate("rate", "without", WITHOUT),
    _rate("rate_labelled", "with", ~WITHOUT),
    *(_excess(f"excess_{name}", f"excess of {name}", f"excess.{column}",
              absent=_ABSENT.get(name, ""))
      for name, column in (("decision", "decision"), ("number", "number"),
                           ("refusal", "refused"), ("length", "length"), ("wording", "bag"))),
)  # fmt: skip


def measures_of(
    base: Sequence[Measure], source: Mapping[str, Any], labels: Mapping[str, Sequence[str]]
) -> tuple[Measure, ...]:
    """Give the measures of a run: the signed contrasts first, as the primary ones, where the main
    outcome has a direction. The excess is secondary then: it is small where rates differ and
    answers vary by chance."""
    outcome = signed_by(source)
    reason = "" if named(source) is None else "no prompt was asked without a label"
    measures = [replace(measure, absent=reason) if measure.name == "rate" and reason else measure
                for measure in base]  # fmt: skip
    if outcome is None:
        return tuple(measures)
    absent = "no answer names the decision that is counted"
    signed = [
        _difference(family, left, right, outcome, absent)
        for family, names in labels.items()
        for left, right in contrasted(names)
    ]
    others = [
        replace(measure, role="secondary", margin=None) if measure.name == "excess" else measure
        for measure in measures
    ]
    return (*signed, *others)
