"""Run the conformance suite on one or several tools."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from evenhand.api import findings, measuring
from evenhand.core.errors import UserError
from evenhand.core.version import __version__
from evenhand.findings.decision_rules import direction
from evenhand.findings.report import Report
from evenhand.instruments import DataFolder
from evenhand.validation.conformance import adapters, suite
from evenhand.validation.conformance.checks import (
    CaseScores,
    Number,
    Property,
    PropertyResult,
    ToolScores,
    judge,
)
from evenhand.validation.controls.model import ControlQuestions, control_model
from evenhand.validation.controls.policies import gold_reader
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone
from evenhand.views.files import plain

OURS = "evenhand"
TOOLS = tuple(adapters.TOOLS)  # each is run by the Python which has it
Scoring = Callable[[str], AbstractAsyncContextManager[object]]


ToolResult = tuple[str, Sequence[PropertyResult]]  # the tool with its version, and its properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """What the properties of the suite showed of each tool."""

    properties: tuple[Property, ...]
    outcomes: tuple[ToolResult, ...]

    @property
    def is_broken(self) -> bool:
        """Whether a tool breaks a property."""
        return any(is_broken(judged) for _, judged in self.outcomes)

    def of(self, tool: str) -> Sequence[PropertyResult]:
        """What was shown of the tool whose name begins so."""
        return next(judged for name, judged in self.outcomes if name.startswith(tool))


async def run_conformance(
    tools: Sequence[str] = (),
    *,
    pythons: Sequence[str | Path] = (),
    write: str | Path | None = None,
    scoring: Scoring = lambda _: nullcontext(),
) -> Conformance:
    """Test what scorers of BBQ-like questions make of answers whose truth is known.

    Args:
        tools: Names of tools, or paths of adapters. Defaults to evenhand itself.
        pythons: The Python that has the tool, one for each tool but evenhand. Defaults to this
            one.
        write: Also keep the suite in this folder.
        scoring: Surrounds the scoring of each tool; receives its name.

    Returns:
        Each property of each tool: it holds, it is broken, or the tool prints no such number.

    Raises:
        UserError: If the number of `pythons` does not fit `tools`.
    """
    paired = _paired(tools, pythons)
    if write is not None:
        suite.write(Path(write))
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "suite"
        suite.write(folder)
        properties = suite.read_properties(folder)
        results = [await _scored(name, python, folder, scoring) for name, python in paired]
    return Conformance(
        properties=tuple(properties),
        outcomes=tuple((result.tool, judge(properties, result)) for result in results),
    )


def _paired(tools: Sequence[str], pythons: Sequence[str | Path]) -> list[tuple[str, str]]:
    """Each tool with the Python that runs it."""
    tools = tools or [OURS]
    elsewhere = [tool for tool in tools if tool != OURS]
    pythons = pythons or [sys.executable] * len(elsewhere)
    if len(pythons) != len(elsewhere):
        raise UserError(
            f"--python appears {len(pythons)} times for {len(elsewhere)} tools. Pass one for each "
            "tool, or none."
        )
    by_tool = iter(pythons)
    return [(tool, "" if tool == OURS else str(next(by_tool))) for tool in tools]


async def _scored(name: str, python: str, folder: Path, scoring: Scoring) -> ToolScores:
    async with scoring(name):
        if name == OURS:
            return await our_scores(folder, folder.parent / "runs")
        return await asyncio.to_thread(scores_of_tool, name, python, folder)


_MARKS = {"holds": "✓", "broken": "✗", "does not say": "–"}
_TONES: dict[str, Tone] = {"holds": "plain", "broken": "bad", "does not say": "dim"}
_LEGEND = "✓ holds   ✗ is broken   – the tool prints no number for it"


def page(properties: Sequence[Property], outcomes: Sequence[ToolResult]) -> list[Block]:
    """The blocks of one tool or of several."""
    if len(outcomes) == 1:
        return _one(properties, *outcomes[0])
    return [_matrix(outcomes), Line(_LEGEND, "dim"), GAP, *_broken(outcomes)]


def _one(
    properties: Sequence[Property], tool: str, judged: Sequence[PropertyResult]
) -> list[Block]:
    rows = tuple(
        (_MARKS[judgement.state], prop.name, prop.says, judgement.got)
        for prop, judgement in zip(properties, judged, strict=True)
    )
    tones = tuple(_TONES[judgement.state] for judgement in judged)
    return [
        Grid(("", "property", "expected", "got"), rows, tones=tones, title=tool),
        Line(_LEGEND, "dim"),
        Line(summary(tool, judged), "bad" if is_broken(judged) else "strong"),
    ]


def summary(tool: str, judged: Sequence[PropertyResult]) -> str:
    """Say how many properties hold."""
    held, broken, silent = (
        sum(judgement.state == state for judgement in judged)
        for state in ("holds", "broken", "does not say")
    )
    return f"{tool}: {held} hold, {broken} are broken, {silent} it does not say"


def is_broken(judged: Sequence[PropertyResult]) -> bool:
    """Whether a property is broken."""
    return any(judgement.state == "broken" for judgement in judged)


def _matrix(outcomes: Sequence[ToolResult]) -> Grid:
    names = [judgement.name for judgement in outcomes[0][1]]
    rows = tuple(
        (name, *(_MARKS[judged[index].state] for _, judged in outcomes))
        for index, name in enumerate(names)
    )
    return Grid(("property", *(tool for tool, _ in outcomes)), rows)


def _broken(outcomes: Sequence[ToolResult]) -> list[Block]:
    """What was got where a property is broken, by tool."""
    rows = tuple(
        (tool, judgement.name, judgement.got)
        for tool, judged in outcomes
        for judgement in judged
        if judgement.state == "broken"
    )
    return [Grid(("tool", "broken", "got"), rows)] if rows else []


_SECONDS = 3600  # our choice: the slowest of these takes minutes on a busy machine


def scores_of_tool(tool: str, python: str, folder: Path) -> ToolScores:
    """Let a tool score every case of a conformance suite.

    Args:
        tool: A name of `TOOLS`, or the path of an adapter.
        python: The Python program that runs the adapter.
        folder: The folder of the suite.

    Returns:
        The scores.

    Raises:
        UserError: If the tool cannot be run, fails or takes too long.
    """
    with tempfile.TemporaryDirectory() as workdir:
        out = Path(workdir) / "scores.json"
        command = _command(tool, python, folder, out)
        try:
            ran = subprocess.run(  # noqa: S603 - the user names the program
                command, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except OSError as error:
            raise UserError(f"Could not run {python} ({error.strerror}). Check --python.") from None
        except subprocess.TimeoutExpired:
            raise UserError(f"{tool} was not done within {_SECONDS} s") from None
        if ran.returncode != 0:
            raise UserError(f"{tool} failed: {_last_line(ran.stderr)}.{_hint(tool, python)}")
        return _read(out, tool)


def _command(tool: str, python: str, folder: Path, out: Path) -> list[str]:
    file, more = Path(tool), []
    if tool in TOOLS:
        file, more = Path(adapters.__file__), [tool]
    if not file.is_file():
        names = ", ".join((OURS, *TOOLS))
        raise UserError(f"Unknown tool {tool!r}. Use one of {names}, or the path of an adapter.")
    return [python, str(file), str(folder.resolve()), str(out), *more]


def _read(file: Path, tool: str) -> ToolScores:
    try:
        return ToolScores.model_validate_json(file.read_bytes())
    except OSError:
        raise UserError(
            f"{tool} wrote no file: an adapter writes into its second argument"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"what {tool} wrote is not in the form of an adapter: {where}: {first['msg']}; "
            "README.md of the suite has the form"
        ) from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _hint(tool: str, python: str) -> str:
    return (
        f" Is it installed there? {python} -m pip install {adapters.TOOLS[tool][1]}"
        if tool in TOOLS
        else ""
    )


CHANGES = (("all_stereotyped", "always_unknown"), ("planted", "refused"))


async def our_scores(folder: Path, runs: Path) -> ToolScores:
    """Measure every case of the folder, with its run folders in `runs`."""
    where = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    reports = {name: await _report(folder, case, runs / name) for name, case in where.items()}
    return ToolScores(
        tool=f"evenhand {__version__}",
        cases={name: _of_report(report) for name, report in reports.items()},
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
    source = instrument.questions(
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


def _of_report(report: Report) -> CaseScores:
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
