"""`evenhand frontier` and `evenhand overcorrection`: several methods on the same items."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.configured import run_models
from evenhand.cli.execution import Terminal, end, show_dry_run
from evenhand.cli.options import (
    DrawSeed,
    Full,
    PerCategory,
    PresetName,
    RunCommand,
    Sample,
    SampleSeed,
    assigned,
    names_in,
    with_run_options,
)
from evenhand.cli.screen import out, print_finding
from evenhand.experiments.frontiers import plan_frontier, run_frontier
from evenhand.experiments.sweep import FILES, run_overcorrection
from evenhand.instruments import instrument_named
from evenhand.instruments.overcorrection.instrument import USUAL, OverCorrectionOptions
from evenhand.views.files import write_frontier


def _frontier(
    options: RunCommand,
    bench: Annotated[
        str,
        typer.Option(
            "--bench", help="Run this benchmark. It must define a harm metric, as bbq does."
        ),
    ] = "bbq",
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "--method",
            help="Compare these methods, separated by commas. Settings follow a colon, joined by a "
            "plus: cot,mabrf:max_iterations=1+search=true. Default, and for the word usual: all "
            "methods that need only a chat endpoint. default, fairness and self_consistency "
            "always run.",
        ),
    ] = None,
    calls: Annotated[
        int, typer.Option(min=1, help="Fit each method to this many calls per item.")
    ] = 8,
    preset: PresetName = None,
    per_category: PerCategory = None,
    sample_seed: SampleSeed = None,
    sample: Sample = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Also measure the recommended method and its comparator on a fresh sample.",
        ),
    ] = False,
    full: Full = False,
) -> None:
    """Compare mitigation methods on harm, utility and cost.

    All methods answer the same items. Each method has its own run folder in --out, next to
    frontier.json, frontier.parquet and, with the extra `report`, frontier.svg. Run the command
    again to resume, add methods or add --confirm. Caps limit all runs together. Exits with code 2
    if a method answered fewer than 95% of the items, with 3 at a cap.

    Example: evenhand frontier --methods cot,detect_first,stardtox --per-category 8 --out runs/front
    """
    typed = {"preset": preset, "per_category": per_category, "sample_seed": sample_seed}
    values = {name: value for name, value in typed.items() if value is not None}
    config = options.load()
    plan = plan_frontier(
        instrument_named(bench),
        values | assigned("--sample", sample or ()),
        names_in(methods or ""),
        calls,
        run_models(config),
        options.run_settings(),
        Terminal(config),
    )
    if options.settings.dry_run:
        show_dry_run(plan.requests(), json=options.json, waiting=plan.waiting)
    result = asyncio.run(run_frontier(plan, confirm=confirm))
    if result.forecast is not None:
        print_finding(result.forecast, json=options.json)
    if result.frontier is None:
        end(result.ended, below_floor=False)
        return
    print_finding(result.frontier, full=full, json=options.json)
    folder = options.out.rstrip("/")
    written = write_frontier(result.frontier, folder)
    if not options.json:
        out.print(f"{folder}/{', '.join(written)}", style="dim")
    end(result.ended, below_floor=result.frontier.below_floor)


# Each method has its own folder, so no single other run can replay all of them.
frontier = with_run_options(_frontier, without=("method", "wording", "set_", "replay"))


def _overcorrection(
    options: RunCommand,
    method: Annotated[
        str,
        typer.Option(
            help="Test these methods, separated by commas. Settings follow a colon, joined by a "
            "plus: default,stardtox:bias_brain=rule+performance=false. Default: all methods for "
            "texts that need only a chat endpoint."
        ),
    ] = ",".join(USUAL),
    items: Annotated[
        int, typer.Option(min=3, help="Set the sample size in texts, a third from each dataset.")
    ] = 500,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Read your own texts from JSONL with text, identity, family and template."
        ),
    ] = None,
    sample_seed: DrawSeed = 0,
) -> None:
    """Count the harmless texts that mitigation methods make worse.

    A text counts as worse if the method refuses it, truncates it, moralizes or removes the identity
    that the text mentions.

    Each method has its own run folder in --out, next to overcorrection.json and
    overcorrection.parquet. Run the command again to resume or add methods. Caps limit all runs
    together. Exits with code 2 if a method answered fewer than 95% of the texts, with 3 at a cap.

    Example: evenhand overcorrection --method default,fairness,stardtox --out runs/benign
    """
    config, folder = options.load(), options.out.rstrip("/")
    ended, result = asyncio.run(
        run_overcorrection(
            names_in(method),
            OverCorrectionOptions(items=items, texts=texts, sample_seed=sample_seed),
            run_models(config),
            options.run_settings(),
            Terminal(config),
        )
    )
    if result is None:
        end(ended, below_floor=False)
        return
    print_finding(result, json=options.json, written=f"{folder}/{', '.join(FILES)}")
    end(ended, below_floor=result.below_floor)


# There are several methods, and each has its own folder.
_ELSEWHERE = ("method", "wording", "set_", "dry_run", "pilot", "replay")
overcorrection = with_run_options(_overcorrection, without=_ELSEWHERE)
