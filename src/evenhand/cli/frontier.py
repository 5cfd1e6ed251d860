"""`evenhand frontier`: several methods on the same items with the same calls, side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.execution import (
    Concurrency,
    DryRun,
    Ended,
    MaxCalls,
    MaxCost,
    Order,
    Pilot,
    PriceFile,
    RequireCertified,
    Seed,
    StealLock,
    end,
    require_certified,
    show_dry_run,
)
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MaxTokens,
    ModelName,
    SystemPrompt,
    system_prompt,
)
from evenhand.cli.sampling import PerCategory, PresetName, Sample, SampleSeed, sampled
from evenhand.cli.screen import out, print_json
from evenhand.cli.services import ConfigServices
from evenhand.cli.watching import Terminal
from evenhand.experiments.arms import listed
from evenhand.experiments.confirming import confirmed, fresh_sample
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.sweep import Listed, Series
from evenhand.findings import frontier as findings
from evenhand.findings.display import Shown
from evenhand.findings.forecast import forecast
from evenhand.findings.frontier import Frontier, require_harm
from evenhand.findings.frontier_forecast import whole
from evenhand.instruments import instrument_named
from evenhand.views import terminal_of
from evenhand.views.files import plain, write_frontier


def frontier(
    out_: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The folder of it all, new or to be resumed: a path or a URL."
        ),
    ],
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
    dry_run: DryRun = False,
    pilot: Pilot = None,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    seed: Seed = None,
    concurrency: Concurrency = 64,
    steal_lock: StealLock = False,
    require_certified_judges: RequireCertified = False,
    max_tokens: MaxTokens = None,
    system: SystemPrompt = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Measure the method to take, and what it is held against, on a fresh sample too.",
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show every measure, cost and comparison.")
    ] = False,
    json: Json = False,
) -> None:
    """Run several methods and say what each is worth.

    All answer the same items; what counts is harm, utility and cost. Each method gets a run folder
    of its own within --out; beside them stand frontier.json, frontier.parquet and, with the extra
    `report`, frontier.svg. Run it again to resume, with more methods, or with --confirm. Caps are
    for all runs together. Ends with code 2 if a method answered fewer than 95 %, with 3 at a cap.

    Example: evenhand frontier --methods cot,detect_first,stardtox --per-category 8 --out runs/front
    """
    instrument = instrument_named(bench)
    require_harm(instrument)
    chosen = listed(methods, calls, instrument)
    values = {"preset": preset and preset.value, "per_category": per_category}
    source, options = sampled(instrument, sample or (), {**values, "sample_seed": sample_seed})
    borrowing = tuple(entry.name for entry in chosen if entry.lender is not None)
    if dry_run or pilot:  # who borrows critiques needs the whole run of the lender
        chosen = [entry for entry in chosen if entry.lender is None]
    order = Order(
        source=source,
        method=chosen[0].method,
        settings=configuration.load(
            config,
            base_url,
            model,
            max_tokens=max_tokens,
            prices=prices,
            system=system_prompt(system),
        ),
        system=system_prompt(system),
        out=out_.rstrip("/"),
        seed=seed,
        concurrency=concurrency,
        steal_lock=steal_lock,
        max_cost=max_cost,
        max_calls=max_calls,
        pilot=pilot,
        require_certified=require_certified_judges,
    )
    if dry_run:
        requests = {entry.name: replace(order.request(), method=entry.method) for entry in chosen}
        show_dry_run(requests, json=json, waiting=borrowing)
    if require_certified_judges:
        require_certified(order, [entry.method for entry in chosen])
    services = ConfigServices(order.settings)
    series = Series(
        request=order.request(),
        measurement=Measurement(instrument=instrument, options=options, services=services),
        watch=Terminal(order.settings),
        calls=calls,
    )
    fresh = fresh_sample(series.measurement, configuration.data_folder()) if confirm else None
    ended, result = asyncio.run(_swept(series, chosen, calls, fresh))
    if result is None:
        end(ended, below_floor=False)
        return
    _show(result, full=full, json=json)
    if not isinstance(result, Frontier):
        return
    written = write_frontier(result, order.out)
    if not json:
        out.print(f"{order.out}/{', '.join(written)}", style="dim")
    end(ended, below_floor=any(entry.report.coverage.below_floor for entry in result.entries))


def _show(result: Shown, *, full: bool = False, json: bool) -> None:
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result, full=full))


async def _swept(
    series: Series, chosen: Sequence[Listed], calls: int, fresh: Measurement | None
) -> tuple[Ended, Shown | None]:
    """The runs, and what was found: of a pilot the forecast, of a whole one the frontier."""
    request, instrument = series.request, series.measurement.instrument
    try:
        ended = await series.run(chosen)
        if ended.pilot is not None:
            pilot, prices = ended.pilot, request.prices
            runs = series.runs(chosen).items()
            each = {name: forecast(run, pilot, prices).to_dict() for name, run in runs}
            return ended, whole({name: plain(expected) for name, expected in each.items()})
        if ended.early:
            return ended, None
        arms = await series.arms(chosen)
        result = findings.frontier(instrument, arms, calls=calls, prices=request.prices)
        if fresh is None:
            return ended, result
        return await confirmed(series, chosen, result, fresh, configuration.data_folder())
    finally:
        await series.measurement.services.close()
