"""A judge's audit from its run folder: the report, and the certificate that follows from it."""

import hashlib
import re
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.errors import UserError
from evenhand.instruments.judge.probes import DESIGN, audited
from evenhand.report.judge_audit import audit
from evenhand.report.judge_certificate import FILE, Certificate, Check, Judge, overall
from evenhand.report.judge_checks import checks
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

Report = dict[str, Any]
_ROLE = "judge"
_STYLES = {"pass": "green", "fail": "bold red", "underpowered": "yellow"}


def measure(run: RunReader) -> tuple[Report, Certificate]:
    source = run.record.source
    if source.get("benchmark") != "malibu" or "margins" not in source:
        raise UserError(f"{run.path} was not made by `evenhand judge-check`")
    rows = audited(run.results().collect())
    margins = source["margins"]
    found = audit(
        rows.filter(pl.col("check") == DESIGN),
        identities=source["sampling"]["identities"],
        score_margin=margins["score"],
        win_margin=margins["win_rate"],
    )
    certificate = _certificate(run, checks(found, rows))
    report = {
        "benchmark": "malibu",
        "run": str(run.path),
        "method": run.record.method,
        "source": source,
        **found,
        "certificate": certificate.model_dump(),
    }
    return report, certificate


def _certificate(run: RunReader, found: list[Check]) -> Certificate:
    record = run.record
    benchmark = {k: v for k, v in record.source.items() if k not in ("prompt", "margins", "kind")}
    return Certificate(
        judge=_judge(run),
        method=record.method,
        prompts={**record.prompts, **record.source["prompt"]},
        benchmark=benchmark,
        margins=record.source["margins"],
        limits=record.limits,
        seed=record.seed,
        evenhand=record.versions["evenhand"],
        created=record.created,
        calls=run.totals().calls,
        checks=found,
        state=overall(found),
    ).sealed()


def _judge(run: RunReader) -> Judge:
    """Who answered, as the turns say: the config could have changed since."""
    seen = (
        run.turns()
        .filter((pl.col("role") == _ROLE) & pl.col("error").is_null())
        .select("model", "served_by")
        .unique()
        .collect()
    )
    described = {k: v for k, v in run.record.cast["default"].items() if k != "url"}
    models = seen["model"].unique().to_list() or [str(described.get("model", ""))]
    if len(models) > 1:
        raise UserError(f"{run.path} holds verdicts of several models: {', '.join(models)}")
    served = sorted({name for name in seen["served_by"].to_list() if name})
    return Judge(model=models[0], served_by=served, described=described)


def write(report: Report, certificate: Certificate, location: str | Path) -> None:
    folder = open_folder(location)
    data = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
    folder.replace("report.json", data)
    folder.replace(FILE, certificate.to_bytes())


def keep(certificate: Certificate, folder: Path) -> Path:
    """One file for each judge: a later audit takes the place of an earlier one."""
    judge = [certificate.judge.model, certificate.method]
    told_apart = hashlib.sha256(orjson.dumps(judge, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", certificate.judge.model)
    path = folder / f"{name}-{certificate.method['name']}-{told_apart}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(certificate.to_bytes())
    except OSError as error:
        raise UserError(f"[judges] certificates: {path} cannot be written: {error}") from None
    return path


# -- on the screen ---------------------------------------------------------------------------------


def render(certificate: Certificate) -> RenderableType:
    table = Table(box=None, pad_edge=True)
    for column in ("check", "state", "estimate", "95 %", "margin", "n"):
        numbers = column not in ("check", "state")
        table.add_column(column, justify="right" if numbers else "left", no_wrap=True)
    for check in certificate.checks:
        table.add_row(
            check.name if check.required else Text(check.name, style="dim"),
            Text(check.state.replace("_", " "), style=_STYLES.get(check.state, "dim")),
            "–" if check.estimate is None else f"{check.estimate:+.3f}",
            _range(check),
            "" if check.margin is None else f"{check.margin:g}",
            str(check.n or ""),
        )
    judge, state = certificate.judge, certificate.state
    head = Text(f"\ncertificate of {judge.model}, {certificate.method['name']}: ")
    # Below, not beside: a terminal of 80 columns has no room for words after the numbers.
    said = [Text(f"  {check.name}: {check.says}", style="dim") for check in certificate.checks]
    return Group(head.append(state, style=_STYLES[state]), table, Text(), *said)


def _range(check: Check) -> str:
    if check.low is None or check.high is None:
        return ""
    if check.low == check.high:
        return "no spread"
    return f"{check.low:+.3f} to {check.high:+.3f}"
