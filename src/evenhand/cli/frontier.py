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
        str, typer.Option("--bench", help="The benchmark: one that names a harm, such as bbq.")
    ] = "bbq",
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "--method",
            help="Names with commas; settings follow a colon, joined by a plus: "
            "cot,mabrf:max_iterations=1+search=true. Without it, and for the word usual: all that "
            "need only a chat endpoint. default, fairness and self_consistency are always run.",
        ),
    ] = None,
    calls: Annotated[
        int, typer.Option(min=1, help="Calls an item that each method is fitted to.")
    ] = 8,
    preset: PresetName = None,
    per_category: PerCategory = None,
    sample_seed: SampleSeed = None,
    sample: Sample = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Measure the method to take, and what it is held against, on a fresh sample too.",
        ),
    ] = False,
    full: Full = False,
) -> None:
    """Compare mitigation methods on harm, utility and cost.

    All answer the same items; what counts is harm, utility and cost. Each method gets a run folder
    of its own within --out; beside them stand frontier.json, frontier.parquet and, with the extra
    `report`, frontier.svg. Run it again to resume, with more methods, or with --confirm. Caps are
    for all runs together. Ends with code 2 if a method answered fewer than 95 %, with 3 at a cap.

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
        # who borrows critiques needs the whole run of the lender
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


# Every method has a folder of its own, so that one run of another place answers for none.
frontier = with_run_options(_frontier, without=("method", "wording", "set_", "replay"))


def _overcorrection(
    options: RunCommand,
    method: Annotated[
        str,
        typer.Option(
            help="Names with commas; settings follow a colon, joined by a plus: "
            "default,stardtox:bias_brain=rule+performance=false. Without it: all that work on "
            "texts and need only a chat endpoint."
        ),
    ] = ",".join(USUAL),
    items: Annotated[int, typer.Option(min=3, help="Texts, a third from each set.")] = 500,
    texts: Annotated[
        Path | None,
        typer.Option(help="Your own texts instead: JSONL with text, identity, family, template."),
    ] = None,
    sample_seed: DrawSeed = 0,
) -> None:
    """Count the harmless texts that mitigation methods make worse.

    Worse is: refused, emptied, moralised about, or without the identity it spoke of.

    Each method gets a run folder of its own within --out; beside them stand overcorrection.json
    and overcorrection.parquet. Run it again to resume, or with more methods. Caps are for all runs
    together. Ends with code 2 if a method answered fewer than 95 %, with 3 at a cap.

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


# The methods are several, and each has a folder of its own.
_ELSEWHERE = ("method", "wording", "set_", "dry_run", "pilot", "replay")
overcorrection = with_run_options(_overcorrection, without=_ELSEWHERE)
