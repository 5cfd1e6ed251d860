"""`evenhand counterfactual`: short for `measure counterfactual`, with its preparation."""

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.measure import run, signature_of
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.cli.screen import out
from evenhand.instruments import instrument_named
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions
from evenhand.instruments.counterfactual.measures import PLACEBO
from evenhand.instruments.counterfactual.preparation import mark_spans, plan_prompts, write_versions

_BEFORE = {
    "find": Annotated[
        Path | None,
        typer.Option(
            "--find",
            metavar="SPANS",
            help="Only write the replaceable spans of plain prompts to this file, for review. "
            "Then pass it as --spans. Makes no model calls.",
        ),
    ],
    "versions_out": Annotated[
        Path | None,
        typer.Option(
            help="Only write all prompt variants to this file, for an app that you run yourself. "
            "Fill in each `answer`, then pass the file as --answers."
        ),
    ],
    "plan": Annotated[
        float | None,
        typer.Option(
            metavar="EXCESS",
            help="Only print the sample size that detects this placebo-adjusted share of changed "
            "decisions, such as 0.05.",
        ),
    ],
}


_TEST = instrument_named("counterfactual")
_PROMPTS = typer.Argument(
    help="Read prompts from .txt (one per line), .csv (a column prompt) or JSON lines.",
    metavar="PROMPTS",
)


def _counterfactual(options: RunCommand, **values: Any) -> None:
    """Change the group that your prompts mention and compare the answers.

    The model answers each of your prompts for every group of a protected attribute. The effect
    is the change that exceeds a placebo. This command is short for `evenhand measure
    counterfactual --prompts PROMPTS`.

    Example: evenhand counterfactual prompts.jsonl --out runs/now
    """
    marks, versions, excess = (values.pop(name) for name in _BEFORE)
    if marks is versions is excess is None:
        run(_TEST, options, values)
        return
    values.pop("full")
    chosen = _TEST.options_from(values)
    if excess is not None:
        _plan(chosen, excess)
    if marks is not None:
        _mark(chosen, marks)
    if versions is not None:
        _write(chosen, versions)


def _mark(options: CounterfactualOptions, file: Path) -> None:
    marked = mark_spans(options, file)
    summary = f"{marked.spans:,} spans in {marked.prompts:,} prompts: {file}"
    out.print(f"{summary}. Review the file, then pass --spans {file}")


def _write(options: CounterfactualOptions, file: Path) -> None:
    written = write_versions(options, file)
    out.print(
        f"{written.versions:,} variants: {file}. Fill in each `answer`, then pass --answers {file}"
    )
    for line in written.left_out:
        out.print(line)


def _plan(options: CounterfactualOptions, excess: float) -> None:
    planned = plan_prompts(options, excess)
    out.print(
        f"{planned.prompts:,} prompts detect an excess of {excess:g} in one of {planned.families} "
        f"protected attributes with 80% power, if a placebo changes {PLACEBO:g} of the decisions; "
        "half as many changes need about twice as many prompts"
    )


_signature = signature_of(_TEST, {"prompts": (Path | None, _PROMPTS)}, **_BEFORE)
_counterfactual.__signature__ = _signature  # type: ignore[attr-defined]
counterfactual = with_run_options(_counterfactual, out="runs/counterfactual")
