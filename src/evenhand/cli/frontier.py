"""`evenhand frontier` and `evenhand overcorrection`: several methods on the same items."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.configured import ConfigServices
from evenhand.cli.execution import Terminal, end, show_dry_run
from evenhand.cli.options import (
    DrawSeed,
    Full,
    PerCategory,
    PresetName,
    RunCommand,
    Sample,
    SampleSeed,
    names_in,
    sampled,
    with_run_options,
)
from evenhand.cli.screen import out, print_finding
from evenhand.experiments import config as configuration
from evenhand.experiments.frontiers import chosen, fresh_sample, run_frontier
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.sweep import FILES, MethodSeries, methods_of, run_overcorrection
from evenhand.findings.frontier import require_harm
from evenhand.instruments import instrument_named
from evenhand.instruments.overcorrection.instrument import (
    USUAL,
    OverCorrection,
    OverCorrectionOptions,
)
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
    instrument = instrument_named(bench)
    require_harm(instrument)
    names = [name.strip() for name in (methods or "").split(",") if name.strip()]
    selected = chosen(names, calls, instrument)
    values = {"preset": preset, "per_category": per_category}
    source, chosen_options = sampled(
        instrument, sample or (), {**values, "sample_seed": sample_seed}
    )
    borrowing = tuple(entry.name for entry in selected if entry.lender is not None)
    if options.settings.dry_run or options.settings.pilot:
        # a method that borrows critiques needs the whole run of its lender
        selected = [entry for entry in selected if entry.lender is None]
    config = options.load()
    measurement = Measurement(
        instrument=instrument, options=chosen_options, services=ConfigServices(config)
    )
    request = options.into(options.out.rstrip("/")).request(source, selected[0].method, config)
    request = replace(request, settings=measurement.limited(request.settings))
    if options.settings.dry_run:
        requests = {entry.name: replace(request, method=entry.method) for entry in selected}
        show_dry_run(requests, json=options.json, waiting=borrowing)
    data = configuration.data_folder()
    fresh = fresh_sample(measurement, data) if confirm else None
    series = MethodSeries(
        request=request, measurement=measurement, watch=Terminal(config), calls=calls
    )
    result = asyncio.run(run_frontier(series, selected, fresh=fresh, data=data))
    if result.forecast is not None:
        print_finding(result.forecast, json=options.json)
    if result.frontier is None:
        end(result.ended, below_floor=False)
        return
    print_finding(result.frontier, full=full, json=options.json)
    written = write_frontier(result.frontier, request.settings.out)
    if not options.json:
        out.print(f"{request.settings.out}/{', '.join(written)}", style="dim")
    below = any(entry.report.coverage.below_floor for entry in result.frontier.entries)
    end(result.ended, below_floor=below)


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
    chosen = methods_of(names_in(method))
    config, instrument = options.load(), OverCorrection()
    measurement = Measurement(
        instrument=instrument,
        options=OverCorrectionOptions(items=items, texts=texts, sample_seed=sample_seed),
        services=ConfigServices(config),
    )
    source = measurement.items(configuration.data_folder())
    request = options.into(options.out.rstrip("/")).request(source, chosen[0].method, config)
    series = MethodSeries(request=request, measurement=measurement, watch=Terminal(config))
    ended, result = asyncio.run(run_overcorrection(series, chosen))
    if result is None:
        end(ended, below_floor=False)
        return
    print_finding(result, json=options.json, written=f"{request.settings.out}/{', '.join(FILES)}")
    end(ended, below_floor=result.below_floor)


# There are several methods, and each has its own folder.
_ELSEWHERE = ("method", "wording", "set_", "dry_run", "pilot", "replay")
overcorrection = with_run_options(_overcorrection, without=_ELSEWHERE)
