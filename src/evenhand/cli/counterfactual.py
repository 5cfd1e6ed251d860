"""`evenhand counterfactual`: short for `measure counterfactual`, with its preparation."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from evenhand.cli.measure import run, signature_of
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.cli.screen import out
from evenhand.core.errors import UserError
from evenhand.instruments import instrument_named
from evenhand.instruments.counterfactual.data import read_prompts
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions, CounterfactualTest
from evenhand.instruments.counterfactual.measures import PLACEBO, prompts_needed
from evenhand.instruments.counterfactual.spans import find, write_spans
from evenhand.instruments.counterfactual.versions import designed_by, families_named

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
    if options.prompts is None:
        raise UserError("--find marks prompts: give the file of them")
    lexicon = families_named(options.attributes, options.attributes_file)
    read = read_prompts(options.prompts, options.text_column)
    prompts = {item.id: item.prompt for item in read}
    spans = {name: find(prompt, lexicon) for name, prompt in prompts.items()}
    _refuse_there(file)
    write_spans(file, spans, prompts)
    marked = sum(map(len, spans.values()))
    summary = f"{marked:,} spans in {len(spans):,} prompts: {file}"
    out.print(f"{summary}. Look at it, then --spans {file}")


def _write(options: CounterfactualOptions, file: Path) -> None:
    if options.prompts is None:
        raise UserError("--versions-out writes versions of prompts: give the file of them")
    design = designed_by(options)
    _refuse_there(file)
    lines = [orjson.dumps(version.model_dump()) for version in design.asked]
    file.write_bytes(b"\n".join(lines) + b"\n")
    out.print(f"{len(lines):,} versions: {file}. Fill in each `answer`, then --answers {file}")
    for line in design.said():
        out.print(line)


def _plan(options: CounterfactualOptions, excess: float) -> None:
    several = len(families_named(options.attributes, options.attributes_file))
    prompts = prompts_needed(excess, families=several)
    out.print(
        f"{prompts:,} prompts show an excess of {excess:g} in one of {several} families 4 times in "
        f"5, if a placebo changes {PLACEBO:g} of the decisions; half as many changes need about "
        "twice as many prompts"
    )


def _refuse_there(file: Path) -> None:
    if file.exists():
        raise UserError(f"{file} is there already: move it away, or name another file")


counterfactual = _command()
