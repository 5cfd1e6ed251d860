"""`evenhand runs list`: the run folders below a folder, the newest first."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand.domain.prices import Prices
from evenhand.errors import EvenhandError, UserError
from evenhand.findings import cost as costs
from evenhand.store import RunReader
from evenhand.store.likelihood import RECORD, OldLikelihoods
from evenhand.views import numbers

_PARTS_OF_A_RUN = ("journal", "ledger", "likelihood", "results", "turns")  # not looked into


def listed(folder: Path, prices: Prices | None) -> list[dict[str, Any]]:
    """A line for each run at or below a folder; what cannot be read is listed with the reason."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; give one that holds runs: evenhand runs list .")
    lines = [_line(path, prices) for path in _run_folders(folder)]
    return sorted(lines, key=lambda line: line["created"] or "", reverse=True)


def _run_folders(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _PARTS_OF_A_RUN]
        if "run.json" in files or RECORD in files:
            yield Path(root)


def _line(folder: Path, prices: Prices | None) -> dict[str, Any]:
    line: dict[str, Any] = {
        "run": str(folder),
        **dict.fromkeys(("kind", "method", "model", "done", "failed", "planned", "created")),
        **dict.fromkeys(("cost", "currency", "problem")),
    }
    try:
        line |= _likelihood(folder) if (folder / RECORD).exists() else _answers(folder)
        if prices is not None and line["kind"] != "likelihood":
            line |= asdict(costs.money(RunReader(folder), prices))
    except EvenhandError as error:
        line["problem"] = str(error)
    return line


def _answers(folder: Path) -> dict[str, Any]:
    run = RunReader(folder)
    totals, record = run.totals(), run.record
    return {
        "kind": record.source.get("benchmark") or record.source["kind"],
        "method": record.method["name"],
        "model": record.cast["default"].get("model"),
        "done": totals.items,
        "failed": sum(totals.failed.values()),
        "planned": record.planned,
        "created": record.created,
    }


def _likelihood(folder: Path) -> dict[str, Any]:
    old = OldLikelihoods(str(folder))
    return {"kind": "likelihood", "model": old.model, "created": old.created}


def render(lines: list[dict[str, Any]]) -> Table:
    table = Table("run", "kind", "method", "model", "items", "cost", "created", box=None)
    table.columns[0].overflow = "fold"
    for line in lines:
        cells = [line[name] or "-" for name in ("run", "kind", "method", "model")]
        ending = (_items(line), _cost(line), (line["created"] or "-")[:16].replace("T", " "))
        table.add_row(*(Text(cell) for cell in (*cells, *ending)))
        if line["problem"]:
            table.add_row(Text(f"  {line['problem']}", style="red"))
    return table


def _items(line: dict[str, Any]) -> str:
    if line["done"] is None:
        return "-"
    failed = f", {line['failed']:,} failed" if line["failed"] else ""
    planned = "" if line["planned"] is None else f" of {line['planned']:,}"
    return f"{line['done']:,}{planned}{failed}"


def _cost(line: dict[str, Any]) -> str:
    return "-" if line["cost"] is None else numbers.money(line["cost"], line["currency"])
