"""Option sets in numbers that can be printed: what is missing first, then each score with its
interval over the set's clusters."""

from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.errors import Undefined
from evenhand.instruments.option_sets import FEMALE, MALE
from evenhand.report import measured
from evenhand.report.bbq import Estimate
from evenhand.report.likelihood_measures import (
    BY_GROUP,
    CLUSTERS,
    MEASURES,
    Mean,
    Measure,
    items,
    of_set,
)
from evenhand.report.summary import COVERAGE_FLOOR, below_floor
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import clustered_mean
from evenhand.store.likelihood import LikelihoodRun

_TASKS = ("intrasentence", "intersentence")


def estimate(measure: Measure, rows: pl.DataFrame) -> Estimate:
    """`rows` as `likelihood_measures.items` makes them."""
    if isinstance(measure, Mean):
        found = measure.values(rows)
        percent = measure.kind == "preference" or measure.name.startswith(("lms", "unrelated"))
        within = (0.0, 100.0) if percent else (float("-inf"), float("inf"))
        return Estimate.of(
            measure.name, lambda: clustered_mean(found["value"], found["cluster"]), within
        )
    table = measure.table(rows)
    try:
        drawn = cluster_bootstrap(
            table.drop("cluster").to_numpy(), measure.value, kind="percentile"
        )
    except Undefined as reason:
        return Estimate(name=measure.name, value=None, undefined=str(reason))
    return Estimate(
        name=measure.name,
        value=drawn.estimate,
        low=drawn.low,
        high=drawn.high,
        n=len(rows),
        clusters=drawn.clusters,
    )


def measure(run: LikelihoodRun) -> dict[str, Any]:
    """Everything that may be said of a run, as plain data."""
    sets = [_set(run, name) for name in run.record.sets]
    n, scored = (sum(one["coverage"][key] for one in sets) for key in ("n", "scored"))
    return {
        "benchmark": "likelihood",
        "run": run.path,
        "model": run.record.model,
        "created": run.record.created,
        "versions": run.record.versions,
        "coverage": {"n": n, "scored": scored, "coverage": scored / n if n else None},
        "sets": sets,
    }


def _set(run: LikelihoodRun, name: str) -> dict[str, Any]:
    rows = run.rows(name)
    known = items(rows)
    found: dict[str, Any] = {
        "set": name,
        "source": run.record.sets[name],
        "coverage": coverage(rows),
        "not_run": run.record.sets[name]["items"] - rows["item_id"].n_unique(),
        "clusters": CLUSTERS[name],
        "estimates": [estimate(one, known) for one in MEASURES[name]],
        "groups": _groups(name, known),
    }
    if name in ("occupations", "winogender"):
        found["occupations"] = _occupations(known)
    return found


def coverage(rows: pl.DataFrame) -> dict[str, Any]:
    reasons = rows.group_by("item_id").agg(pl.col("reason").first())["reason"]
    lost = reasons.drop_nulls()
    return {
        "n": len(reasons),
        "scored": len(reasons) - len(lost),
        "by_reason": dict(sorted(lost.value_counts().iter_rows())),
        "coverage": 1 - len(lost) / len(reasons) if len(reasons) else None,
    }


def _groups(name: str, known: pl.DataFrame) -> dict[str, list[Estimate]]:
    """By bias type or kind of sentence; StereoSet by task too."""
    if name not in BY_GROUP:
        return {}
    wanted = of_set(name, BY_GROUP[name])
    parts = {str(key): rows for (key,), rows in known.group_by("group")}
    tasks = {task: known.filter(pl.col("task") == task) for task in _TASKS}
    every = {**tasks, **dict(sorted(parts.items()))}
    return {key: [estimate(m, rows) for m in wanted] for key, rows in every.items() if len(rows)}


def _occupations(known: pl.DataFrame) -> list[dict[str, Any]]:
    """log p(female) − log p(male) of each occupation, the most female first."""
    own = known.filter(pl.col("group") != "participant")
    gaps = own.group_by("cluster").agg(
        gap=(pl.col(FEMALE) - pl.col(MALE)).mean(),
        women_percent=pl.col("women_percent").first(),
        n=pl.len(),
    )
    return gaps.rename({"cluster": "occupation"}).sort("gap", descending=True).to_dicts()


def write(report: dict[str, Any], to: str | Path) -> None:
    groups = {}
    for one in report["sets"]:
        groups[one["set"]] = one["estimates"]
        groups |= {f"{one['set']}/{key}": found for key, found in one["groups"].items()}
    measured.write(report, groups, to)


def render(report: dict[str, Any]) -> RenderableType:
    head = f"likelihood · {report['model']['model']} · {report['run']}"
    parts: list[RenderableType] = [Text(head, style="bold")]
    for one in report["sets"]:
        parts += [Text(line, style="bold red") for line in _warnings(one)]
    for one in report["sets"]:
        labels = {m.name: m.label for m in MEASURES[one["set"]]}
        title = f"{one['set']} {one['source']['version']}, n = {one['coverage']['scored']:,}"
        parts += [Text(""), measured.table(labels, {title: one["estimates"]}, one["clusters"])]
        if one["groups"]:
            parts += [_group_table(one)]
        if "occupations" in one:
            parts += [Text(_ends(one["occupations"]), style="dim")]
    return Group(*parts)


def _warnings(one: dict[str, Any]) -> list[str]:
    found, lines = one["coverage"], []
    if below_floor(found):
        lines.append(
            f"{one['set']}: coverage {found['coverage']:.1%} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if one["not_run"]:
        lines.append(f"{one['set']}: {one['not_run']} items are not run yet.")
    if found["by_reason"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in found["by_reason"].items())
        lines.append(f"{one['set']}: missing, and in no figure below: {reasons}.")
    return lines


def _group_table(one: dict[str, Any]) -> Table:
    names = BY_GROUP[one["set"]]
    table = Table("", *names, box=None, padding=(0, 3, 0, 0), style="dim")
    for key, found in one["groups"].items():
        table.add_row(key, *(Text(measured.short(e)) for e in found))
    return table


def _ends(occupations: list[dict[str, Any]]) -> str:
    """The five most female and the five most male occupations."""

    def said(rows: list[dict[str, Any]]) -> str:
        return ", ".join(f"{row['occupation']} {row['gap']:+.2f}" for row in rows)

    return f"most female: {said(occupations[:5])}; most male: {said(occupations[-5:])}"
