"""evenhand itself takes part as any tool does: it reads the folder and says its numbers.

Each case goes the public way: stored answers are measured into a run folder, and what is read is
the report that everybody gets. A run that was stopped is asked of a model in this process, because
stored answers ask nobody.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.api import findings, measuring
from evenhand.core.version import __version__
from evenhand.findings.decision_rules import direction
from evenhand.findings.report import Report
from evenhand.instruments import DataFolder
from evenhand.validation.conformance.checks import CaseScores, Number, ToolScores
from evenhand.validation.controls.instrument import ControlQuestions
from evenhand.validation.controls.model import control_model
from evenhand.validation.controls.policies import gold_reader
from evenhand.views.files import plain

CHANGES = (("all_stereotyped", "always_unknown"), ("planted", "refused"))


async def scores(folder: Path, runs: Path) -> ToolScores:
    """Measure every case of the folder, with its run folders in `runs`."""
    where = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    reports = {name: await _report(folder, case, runs / name) for name, case in where.items()}
    return ToolScores(
        tool=f"evenhand {__version__}",
        cases={name: _scored(report) for name, report in reports.items()},
        changes={
            f"{before} -> {after}": await _change(reports[before], reports[after])
            for before, after in CHANGES
        },
    )


async def _report(folder: Path, case: dict[str, str], out: Path) -> Report:
    items, answers = folder / case["items"], folder / case["answers"]
    instrument = ControlQuestions(_records(items))
    count = len(answers.read_bytes().splitlines())
    if count == len(items.read_bytes().splitlines()):
        return await measuring.measure(instrument, out=out, options={"answers": answers})
    source = instrument.source(
        DataFolder(local=None, cache=out), instrument.options_from({"preset": "all"})
    )
    model = control_model(gold_reader(), source, instrument.generated, 0)
    return await measuring.measure(
        instrument, model=model, out=out, max_calls=count, options={"preset": "all"}
    )


def _records(file: Path) -> pl.DataFrame:
    """The items as the records that BBQ's instrument takes."""
    rows = [_record(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    return pl.DataFrame(rows, infer_schema_length=None).with_row_index("row")


def _record(item: dict[str, Any]) -> dict[str, Any]:
    groups = [item["answer_info"][f"ans{n}"][1] for n in range(3)]
    return {
        "category": item["category"],
        "question_index": item["question_index"],
        "example_id": item["example_id"],
        "context": item["context"],
        "question": item["question"],
        "label": item["label"],
        "polarity": item["question_polarity"],
        "condition": item["context_condition"],
        "options": [item[f"ans{n}"] for n in range(3)],
        "unknown": groups.index("unknown"),
        "biased": item["biased"],
        "names": False,
        "masked": item["gold_contradicts_context"],
        "against": item["additional_metadata"]["stereotyped_groups"][0],
        "aligned": item["additional_metadata"]["version"] == "a",
        "alike": 1,
    }


def _scored(report: Report) -> CaseScores:
    report_dict = plain(report.to_dict())
    section = report_dict["scores"]
    numbers = {estimate["name"]: _number(estimate) for estimate in section["estimates"]}
    for category, estimates in section["groups"]["category"].items():
        numbers |= {f"{estimate['name']}/{category}": _number(estimate) for estimate in estimates}
    coverage = section["coverage"]
    missing = coverage["n"] - coverage["scored"]
    return CaseScores(numbers=numbers, missing=missing, not_run=report_dict["not_run"])


def _number(estimate: dict[str, Any]) -> Number:
    """An estimate of the report, or a change of the comparison."""
    bounds = estimate.get("bounds") or {"low": None}
    ends = {end: bounds[end] for end in ("low", "high")} if bounds["low"] is not None else None
    value = estimate["difference"] if "difference" in estimate else estimate["value"]
    return Number.model_validate(
        {
            "value": value,
            "low": estimate["low"],
            "high": estimate["high"],
            "p": estimate["p"],
            "bounds": ends,
        }
    )


async def _change(before: Report, after: Report) -> dict[str, Number]:
    comparison = await findings.compare(before, after)
    changes = (*comparison.primary, *comparison.secondary)
    return {
        change.name: _number(plain(change)).model_copy(
            update={"shown": direction(change, comparison.instrument.measure(change.name))}
        )
        for change in changes
    }
