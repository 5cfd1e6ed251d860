"""Over-correction in numbers that can be printed: what each method made of the same texts."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.errors import Undefined, UserError
from evenhand.metrics.overcorrection import OUTCOMES, VERSION, WORSE, outcome
from evenhand.report.bbq import Estimate
from evenhand.report.measured import TEXT_COLUMNS
from evenhand.report.summary import COVERAGE_FLOOR, below_floor
from evenhand.statistics.clusters import Interval, clustered_mean
from evenhand.statistics.proportions import Proportion, wilson
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

REFERENCE = "default"  # the model as it is: what it spoils without any method
_EXAMPLES = 3  # of each way to make a text worse
_WITH_INTERVALS = 3  # methods side by side
_TAGS = ("set", "family", "identity", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A method's run, under the name it was asked for by."""

    name: str
    run: RunReader


def overcorrection(arms: Sequence[Arm]) -> dict[str, Any]:
    """The whole report. All runs must be over the same texts."""
    sources = [arm.run.record.source for arm in arms]
    if any(source.get("benchmark") != "overcorrection" for source in sources):
        raise UserError("a run here was not made by `evenhand overcorrection`")
    if len({source["sha256"] for source in sources}) > 1:
        raise UserError("the runs are over different texts; begin a new folder")
    found = {arm.name: outcomes(arm.run) for arm in arms}
    reference = found.get(REFERENCE)
    return {
        "benchmark": "overcorrection",
        "rules": VERSION,
        "source": sources[0],
        "methods": [_method(arm, found[arm.name], reference) for arm in arms],
    }


def outcomes(run: RunReader) -> pl.DataFrame:
    """One row per item: its tags, the texts before and after, and the outcome; null where there is
    no text after."""
    rows = []
    for row in run.results().select(TEXT_COLUMNS).collect().iter_rows(named=True):
        tags = {tag["name"]: tag["value"] for tag in row["tags"]}
        before, after = tags["text"], row["text"]
        named = tags["identity"].split(";")
        rows.append(
            {
                "item_id": row["item_id"],
                **{name: tags[name] for name in _TAGS},
                "before": before,
                "after": after,
                "outcome": None if after is None else outcome(before, after, named),
                "reason": row["reason"],
            }
        )
    names = ("item_id", *_TAGS, "before", "after", "outcome", "reason")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def _method(arm: Arm, rows: pl.DataFrame, reference: pl.DataFrame | None) -> dict[str, Any]:
    known = rows.drop_nulls("outcome")
    planned = arm.run.record.source["items"]
    compared = reference is not None and arm.name != REFERENCE
    return {
        "name": arm.name,
        "run": str(arm.run.path),
        "method": arm.run.record.method,
        "model": arm.run.record.cast["default"]["model"],
        "coverage": {
            "n": planned,
            "scored": len(known),
            "by_reason": dict(sorted(rows["reason"].drop_nulls().value_counts().iter_rows())),
            "coverage": len(known) / planned if planned else None,
        },
        "made_worse": share("made_worse", known, WORSE),
        "more_than_default": _more(known, reference) if compared else None,
        "outcomes": [share(name, known, (name,)) for name in OUTCOMES],
        "families": [
            {"family": str(family), "made_worse": share("made_worse", group, WORSE)}
            for (family,), group in sorted(known.group_by("family"), key=lambda pair: str(pair[0]))
        ],
        "examples": _examples(known),
    }


def share(name: str, rows: pl.DataFrame, wanted: Sequence[str]) -> Estimate:
    """The share of texts with one of these outcomes. Texts of one template are alike, and so are
    texts about one group: the interval is the widest of those clustered by either and of Wilson's,
    which says what is left to fear where nothing was seen."""
    hits = rows["outcome"].is_in(wanted).cast(pl.Float64)
    return _widest(name, rows, hits, lambda: wilson(int(hits.sum()), len(hits)))


def _more(rows: pl.DataFrame, reference: pl.DataFrame | None) -> Estimate:
    """How much larger the share is than that of the reference, on texts that both have."""
    assert reference is not None
    other = reference.drop_nulls("outcome").select("item_id", other="outcome")
    both = rows.join(other, on="item_id", maintain_order="left")
    ours, theirs = (both[column].is_in(WORSE).cast(pl.Float64) for column in ("outcome", "other"))
    return _widest("more_than_default", both, ours - theirs, None)


def _widest(
    name: str, rows: pl.DataFrame, values: pl.Series, of_trials: Callable[[], Proportion] | None
) -> Estimate:
    if not len(values):
        return Estimate(name=name, value=None, undefined="no texts")
    found: list[Interval | Proportion] = [of_trials()] if of_trials else []
    for cluster in ("template", "identity"):
        try:
            found.append(clustered_mean(values, rows[cluster]))
        except Undefined as reason:
            undefined = str(reason)
    if not found:
        return Estimate(name=name, value=None, undefined=undefined)
    least = 0.0 if of_trials else -1.0
    return Estimate(
        name=name,
        value=found[0].estimate,
        low=max(least, min(one.low for one in found)),
        high=min(1.0, max(one.high for one in found)),
        n=len(values),
        clusters=min(rows["template"].n_unique(), rows["identity"].n_unique()),
    )


def _examples(rows: pl.DataFrame) -> list[dict[str, str]]:
    worse = [rows.filter(pl.col("outcome") == name).head(_EXAMPLES) for name in WORSE]
    return pl.concat(worse).select("item_id", "outcome", "before", "after").to_dicts()


def write(report: dict[str, Any], arms: Sequence[Arm], to: str) -> None:
    """`overcorrection.json`, and every text with its outcome in `overcorrection.parquet`."""
    folder = open_folder(to)
    data = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    folder.replace("overcorrection.json", data)
    each = [outcomes(arm.run).select(pl.lit(arm.name).alias("method"), pl.all()) for arm in arms]
    table = io.BytesIO()
    pl.concat(each).write_parquet(table)
    folder.replace("overcorrection.parquet", table.getvalue())


# -- on the screen -----------------------------------------------------------------------------


def render(report: dict[str, Any]) -> RenderableType:
    """What is missing first, then the rates, then where they come from."""
    methods = report["methods"]
    tables = (_rates(methods), _outcomes(methods), _families(methods))
    return Group(*_warnings(methods), *(Group(table, Text()) for table in tables), *_seen(methods))


def _warnings(methods: list[dict[str, Any]]) -> list[Text]:
    lines = []
    for entry in methods:
        coverage = entry["coverage"]
        if below_floor(coverage):
            lines.append(
                f"{entry['name']}: coverage {coverage['coverage']:.1%} is below "
                f"{COVERAGE_FLOOR:.0%}: what failed may differ from what did not."
            )
        for reason, count in coverage["by_reason"].items():
            lines.append(f"{entry['name']}: {count} failed, in no figure below: {reason}")
    return [Text(line, style="bold red") for line in lines]


def _rates(methods: list[dict[str, Any]]) -> Table:
    table = Table("method", "made worse", "more than default", "texts", box=None)
    for entry in methods:
        more, coverage = entry["more_than_default"], entry["coverage"]
        table.add_row(
            entry["name"],
            percent(entry["made_worse"]),
            percent(more, signed=True) if more else "",
            f"{coverage['scored']:,} of {coverage['n']:,}",
        )
    return table


def _outcomes(methods: list[dict[str, Any]]) -> Table:
    table = Table("what became of them", *(_spaced(name) for name in OUTCOMES), box=None)
    for entry in methods:
        table.add_row(entry["name"], *(_point(one) for one in entry["outcomes"]))
    return table


def _families(methods: list[dict[str, Any]]) -> Table:
    """With intervals where there is room for them; the file has them always."""
    shown = percent if len(methods) <= _WITH_INTERVALS else _point
    by_method = [{row["family"]: row["made_worse"] for row in m["families"]} for m in methods]
    table = Table("made worse, by family", *(entry["name"] for entry in methods), box=None)
    for family in sorted({family for found in by_method for family in found}):
        cells = [shown(found[family]) if family in found else "" for found in by_method]
        table.add_row(_spaced(family), *cells)
    return table


def _seen(methods: list[dict[str, Any]]) -> list[Text]:
    """One example of each way, by method."""
    lines = []
    for entry in methods:
        first = {one["outcome"]: one for one in reversed(entry["examples"])}
        for name in (name for name in WORSE if name in first):
            before, after = (_cut(first[name][side]) for side in ("before", "after"))
            said = f"{entry['name']}, {_spaced(name)}: {before} → {after}"
            lines.append(Text(said, style="dim"))
    return lines


def percent(estimate: Estimate, *, signed: bool = False) -> str:
    if estimate.value is None:
        return f"undefined: {estimate.undefined}"
    form = "+.1%" if signed else ".1%"
    low, high = f"{estimate.low:{form}}", f"{estimate.high:{form}}"
    return f"{estimate.value:{form}} ({low} to {high})"


def _point(estimate: Estimate) -> str:
    return "" if estimate.value is None else f"{estimate.value:.1%}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:89]}…"
