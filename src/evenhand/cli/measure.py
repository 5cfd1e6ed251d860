"""`evenhand measure`: a benchmark through a method, and what may be said of the result."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.benchmarks.bbq import BbqSource, Sampling, sample, with_answers
from evenhand.cli.execution import (
    Actors,
    DryRun,
    Engine,
    EngineName,
    InFlight,
    MaxCalls,
    MaxCost,
    Order,
    Out,
    PriceFile,
    Replay,
    Seed,
    ShareEqual,
    TakeOver,
    end,
    execute,
)
from evenhand.cli.forecast import show_forecast
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MethodName,
    ModelName,
    ReplyTokens,
    Settings,
)
from evenhand.cli.sampling import PerCategory, Preset, PresetName, SampleSeed, require_bbq
from evenhand.cli.screen import out, print_json
from evenhand.methods import StoredAnswer
from evenhand.report import bbq_report, cost
from evenhand.report.summary import below_floor
from evenhand.store import RunReader


def measure(
    benchmark: Annotated[str, typer.Argument(help="The benchmark: bbq.")],
    out_: Out,
    method: MethodName = "default",
    preset: PresetName = Preset.TEMPLATES,
    per_category: PerCategory = None,
    sample_seed: SampleSeed = 0,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Score these stored answers instead of asking: JSON lines with "
            "category, example_id, answer."
        ),
    ] = None,
    dry_run: DryRun = False,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    set_: Settings = None,
    seed: Seed = None,
    in_flight: InFlight = 64,
    share_equal: ShareEqual = False,
    engine: EngineName = Engine.LOCAL,
    actors: Actors = None,
    replay: Replay = None,
    take_over: TakeOver = False,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Measure bias on a benchmark: scores with intervals over templates, coverage and cost.

    Writes report.json and report.parquet into the run folder. Ends with code 2 if fewer than 95 %
    of the answers could be scored, with 3 at a cap.

    Example: evenhand measure bbq --method default --per-category 8 --out runs/bbq-default
    """
    require_bbq(benchmark)
    sampling = Sampling(preset=preset.value, per_category=per_category, seed=sample_seed)
    order = Order(
        source=_source(sampling, answers),
        method=StoredAnswer() if answers else configuration.build_method(method, set_ or ()),
        settings=configuration.load(
            config, base_url, model, reply_tokens=reply_tokens, prices=prices
        ),
        out=out_,
        seed=seed,
        in_flight=in_flight,
        replay=replay,
        take_over=take_over,
        engine=engine,
        actors=actors,
        max_cost=max_cost,
        max_calls=max_calls,
        dry_run=dry_run,
        share_equal=share_equal,
    )
    ended = execute(order)
    if ended.pilot is not None:
        show_forecast(order, ended, json=json)
        return
    run = RunReader(out_)
    report = {**bbq_report.measure(run), "money": cost.spent(run, order.prices)}
    bbq_report.write(report, out_)
    if json:
        print_json(report)
    else:
        out.print(bbq_report.render_measure(report))
        out.print(cost.render_spent(report["money"]))
    end(ended, below_floor=below_floor(report["scores"]["coverage"]))


def _source(sampling: Sampling, answers: Path | None) -> BbqSource:
    records = configuration.bbq_data().records()
    drawn = with_answers(records, answers) if answers else sample(records, sampling)
    return BbqSource(drawn, sampling)
