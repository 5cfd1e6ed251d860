"""How the numbers are got from the code of today. When the code moves, this file alone follows.

`CASES` names for each instrument what it is asked, and every case gives flat entries. Each report
has its JSON as it stands, under `json`, and the rows of its `report.parquet`, under `rows`.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.domain.prices import Price, Prices
from evenhand.report import bbq_compare, bbq_report, squad_compare, squad_report
from evenhand.report.cost import spent
from evenhand.report.summary import summary
from evenhand.store import RunReader
from same_numbers.flat import ESTIMATE, Entries, flat

KEPT = Path(__file__).with_name("kept")
PRICES = Prices({"writer": Price(per_million_prompt_tokens=2, per_million_completion_tokens=6)})

Case = Callable[[], Entries]
Report = dict[str, Any]


def _run(name: str) -> RunReader:
    return RunReader(KEPT / name)


def _with_rows(report: Report, write: Callable[[Report, str], None]) -> Entries:
    """The report, and the rows that it is written as."""
    with tempfile.TemporaryDirectory() as folder:
        write(report, folder)
        rows = pl.read_parquet(Path(folder) / "report.parquet").to_dicts()
    table = {f"{row['group']} / {row['name']}": [row[c] for c in ESTIMATE] for row in rows}
    return flat({"json": report, "rows": table})


def _measured(module: Any, name: str) -> Entries:
    run = _run(name)
    prices = PRICES if run.record.cast["default"]["model"] in PRICES.models else None
    report = {**module.measure(run), "money": spent(run, prices), "runs show": summary(run)}
    return _with_rows(report, module.write)


def _compared(module: Any, before: str, after: str) -> Entries:
    return flat(module.compare(_run(before), _run(after)))


def _answers(instrument: str, report: Any, comparison: Any, pairs: list[tuple[str, str]]) -> Any:
    """The report of every run that is kept of an instrument, and some comparisons."""
    cases: dict[str, Case] = {}
    for folder in sorted((KEPT / instrument).iterdir()):
        cases[f"measure {folder.name}"] = partial(_measured, report, f"{instrument}/{folder.name}")
    for before, after in pairs:
        runs = (f"{instrument}/{name}" for name in (before, after))
        cases[f"compare {before} → {after}"] = partial(_compared, comparison, *runs)
    return cases


CASES: dict[str, dict[str, Case]] = {
    "bbq": _answers(
        "bbq",
        bbq_report,
        bbq_compare,
        [
            ("default", "fairness"),
            ("default", "self_debias_reprompting"),
            ("fairness", "default"),
            ("default", "stored"),
            ("default", "unfinished"),
            ("random", "always_unknown"),
            ("always_unknown", "always_stereotyped"),
            ("always_unknown", "always_unknown"),
        ],
    ),
    "squad": _answers(
        "squad",
        squad_report,
        squad_compare,
        [("default", "fairness"), ("fairness", "stored"), ("one_article", "one_article")],
    ),
}
