"""`evenhand counterfactual`: short for `measure counterfactual`, with its preparation."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.measure import run, signature_of
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.cli.screen import out
from evenhand.instruments import instrument_named
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions, CounterfactualTest
from evenhand.instruments.counterfactual.measures import PLACEBO
from evenhand.instruments.counterfactual.preparation import mark_spans, plan_prompts, write_versions

_BEFORE = {
    "find": Annotated[
        Path | None,
        typer.Option(
            "--find",
            metavar="SPANS",
            help="Only mark in plain prompts what would be swapped, into this file, to be looked "
            "at and given as --spans. Nothing is asked.",
        ),
    ],
    "versions_out": Annotated[
        Path | None,
        typer.Option(
            help="Only write all versions that are to be asked into this file, for an app that is "
            "asked by its own team; with their `answer` it is given as --answers."
        ),
    ],
    "plan": Annotated[
        float | None,
        typer.Option(
            metavar="EXCESS",
            help="Only say how many prompts would show that so large a share of decisions changes "
            "with the group beyond the placebo, such as 0.05.",
        ),
    ],
}


def _command() -> Callable[..., None]:
    instrument = instrument_named("counterfactual")
    assert isinstance(instrument, CounterfactualTest)

    def counterfactual(options: RunCommand, **values: Any) -> None:
        """Change the group that your prompts mention and compare the answers.

        Every prompt of your own is asked under every label of a family, and the effect is what
        exceeds a placebo. It is `evenhand measure counterfactual --prompts PROMPTS` in short.

        Example: evenhand counterfactual prompts.jsonl --out runs/now
        """
        marks, versions, excess = (values.pop(name) for name in _BEFORE)
        if marks is versions is excess is None:
            run(instrument, options, values)
            return
        values.pop("full")
        chosen = instrument.options_from(values)
        if excess is not None:
            _plan(chosen, excess)
        if marks is not None:
            _mark(chosen, marks)
        if versions is not None:
            _write(chosen, versions)

    argument = typer.Argument(
        help="The prompts: .txt (one a line), .csv (a column prompt) or JSON lines.",
        metavar="PROMPTS",
    )
    arguments = {"prompts": (Path | None, argument)}
    counterfactual.__signature__ = signature_of(instrument, arguments, **_BEFORE)  # type: ignore[attr-defined]
    return with_run_options(counterfactual, out="runs/counterfactual")


def _mark(options: CounterfactualOptions, file: Path) -> None:
    marked = mark_spans(options, file)
    summary = f"{marked.spans:,} spans in {marked.prompts:,} prompts: {file}"
    out.print(f"{summary}. Look at it, then --spans {file}")


def _write(options: CounterfactualOptions, file: Path) -> None:
    written = write_versions(options, file)
    out.print(
        f"{written.versions:,} versions: {file}. Fill in each `answer`, then --answers {file}"
    )
    for line in written.left_out:
        out.print(line)


def _plan(options: CounterfactualOptions, excess: float) -> None:
    planned = plan_prompts(options, excess)
    out.print(
        f"{planned.prompts:,} prompts show an excess of {excess:g} in one of {planned.families} "
        f"families 4 times in 5, if a placebo changes {PLACEBO:g} of the decisions; half as many "
        "changes need about twice as many prompts"
    )


counterfactual = _command()
