"""What `swap` measures: the excess of every run, and the signed contrasts of a run's labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.answers import named, signed_by
from evenhand.instruments.swap.contrasts import MATTERS, SwapOutcome, contrasted
from evenhand.instruments.swap.measured import PAIRED
from evenhand.instruments.swap.rates import WITHOUT

_WORDS = InstrumentWords(__package__)
_ABSENT = {"decision": _WORDS("no_decision"), "number": _WORDS("no_number")}


def _excess(name: str, column: str, **more: Any) -> Measure:
    value = pl.col(column)
    # What no option asked to read is not lost.
    lost = value.is_null() & pl.col(f"reads.{name.removeprefix('excess_')}")
    return Measure(name=name, statistic=Mean(value), where=PAIRED, better="zero",
                   one_sided=True, symmetric=True, within=(-1, 1), lost=lost, **more)  # fmt: skip


def _difference(family: str, left: str, right: str, outcome: SwapOutcome, absent: str) -> Measure:
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


def _rate(name: str, key: str, where: pl.Expr) -> Measure:
    return Measure(name=name, label=_WORDS(key), statistic=Mean(pl.col("named").cast(pl.Float64)),
                   where=where, within=(0, 1), absent=_WORDS("no_chosen"))  # fmt: skip


MEASURES = (
    _excess("excess", "excess", role="primary", margin=0.05, **_WORDS.measure("excess")),
    Measure(name="placebo", statistic=Mean(pl.col("beside")), where=PAIRED, within=(0, 1),
            lost=pl.col("beside").is_null(), **_WORDS.measure("placebo")),
    _rate("rate", "rate_without", WITHOUT),
    _rate("rate_labelled", "rate_with", ~WITHOUT),
    *(_excess(f"excess_{name}", f"excess.{column}", label=_WORDS("excess_of", name=name),
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
    reason = "" if named(source) is None else _WORDS("never_without")
    measures = [replace(measure, absent=reason) if measure.name == "rate" and reason else measure
                for measure in base]  # fmt: skip
    if outcome is None:
        return tuple(measures)
    absent = _WORDS("not_named")
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
