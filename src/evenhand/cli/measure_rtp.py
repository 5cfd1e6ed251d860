"""`evenhand measure rtp`: continuations, then their scores by a scorer outside the loop."""

import asyncio
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated

import orjson
import typer

from evenhand import config as configuration
from evenhand.cli.execution import Ended, Order, end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.measuring import Reporting, RunOptions
from evenhand.cli.sampling import DrawSeed
from evenhand.errors import ModelRefused, UserError
from evenhand.instruments.realtoxicityprompts import RtpSource, Sampling, sample
from evenhand.instruments.realtoxicityprompts.quality import FOLDER, ContinuationSource
from evenhand.instruments.realtoxicityprompts.scores import score_run
from evenhand.methods import settings as settings_of
from evenhand.methods.judge_text import JudgeText
from evenhand.models import ScriptedModel
from evenhand.models.base import ChatModel
from evenhand.report import rtp_report
from evenhand.report.cost import spent
from evenhand.report.measured import TEXT_COLUMNS
from evenhand.scorers import Scorer
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

_REFUSED = (
    "{scorer} steers this method and cannot score it as well: a method can please its own scorer "
    "without being less toxic. Name another with --scorer, or say --allow-circular"
)


def rtp(
    options: RunOptions,
    prompts: Annotated[
        int, typer.Option(min=1, help="Prompts of each bucket: toxicity .5 to .6, and .8 to 1.")
    ] = 100,
    continuations: Annotated[int, typer.Option(min=1, help="Of each prompt.")] = 25,
    tokens: Annotated[
        int, typer.Option(min=1, help="Each continuation is cut there; its authors have 20.")
    ] = 20,
    sample_seed: DrawSeed = 0,
    scorer: Annotated[
        str,
        typer.Option(help="Who scores: offline, wordlist, one that the config names, or KIND=URL."),
    ] = "offline",
    allow_circular: Annotated[
        bool,
        typer.Option("--allow-circular", help="Let the scorer that steers the method score it."),
    ] = False,
    quality: Annotated[
        int,
        typer.Option(
            min=0,
            help="Let the cast's performance_evaluator judge so many continuations of each prompt.",
        ),
    ] = 0,
) -> None:
    """Measure toxicity on RealToxicityPrompts: expected maximum, probability and average with
    intervals over prompts, refusals, length, diversity; quality by a judge.

    Writes report.json, report.parquet and scores.parquet into the run folder. Repeat it with
    another --scorer to score the same texts again without a new call. Caps are for texts and judge
    together. Ends with code 2 if fewer than 95 % of the texts could be scored, with 3 at a cap.

    Example: evenhand measure rtp --method stardtox --prompts 50 --continuations 5 --out runs/rtp
    """
    sampling = Sampling(prompts=prompts, continuations=continuations, seed=sample_seed)
    drawn = sample(configuration.rtp_data().prompts(), sampling)
    order = options.order(RtpSource(drawn, sampling), answer_tokens=tokens)
    if order.share_equal:
        raise UserError("--share-equal would ask each prompt once: leave it out")
    judge = configuration.scorer_by_name(order.settings, scorer)
    if not allow_circular:
        _refuse_steering(order, judge.name)
    ended = _texts(order)
    if ended.pilot is not None:
        show_forecast(order, ended, json=options.json)
        return
    run = RunReader(order.out)
    if not run.totals().items:  # stopped before the first: nothing to score
        end(ended, below_floor=True)
    if not allow_circular and rtp_report.steered_by(run, judge.name):
        raise UserError(_REFUSED.format(scorer=judge.name))
    asyncio.run(_score(run, judge))
    if quality and not (ended.stopped or ended.capped_by):
        ended = _judged(order, run, quality)
    reporting = Reporting(
        measure=partial(rtp_report.measure, scorer=judge.name, prices=order.prices),
        write=rtp_report.write,
        render=rtp_report.render,
    )
    reporting.conclude(order, ended, json=options.json)


def _refuse_steering(order: Order, scorer: str) -> None:
    """Before anything is asked: whom would the method ask, by this config?"""
    if order.asks_nobody:
        return
    nobody = ScriptedModel(lambda _: ModelRefused("only looked at"), name="")
    stand_ins: dict[str, ChatModel] = dict.fromkeys(order.settings.models, nobody)
    cast = configuration.build_cast(order.settings, stand_ins, order.method.agents())
    asked = {cast.model_for(agent.role).name for agent in order.method.agents()}
    asyncio.run(cast.close())
    if scorer in asked:
        raise UserError(_REFUSED.format(scorer=scorer))


def _texts(order: Order) -> Ended:
    """The run, unless the folder holds all of it: then no endpoint has to be there."""
    return Ended() if not order.dry_run and _is_finished(order) else execute(order)


def _is_finished(order: Order) -> bool:
    if not open_folder(order.out).exists("run.json"):
        return False
    run = RunReader(order.out)
    planned = {
        "source": order.source.fingerprint(),
        "method": {"name": order.method.name, "settings": settings_of(order.method)},
        "limits": asdict(order.settings.limits),
        "seed": order.seed,
    }
    found = {name: getattr(run.record, name) for name in planned}
    same = orjson.loads(orjson.dumps(planned)) == found
    return same and run.totals().items == len(order.source)


async def _score(run: RunReader, scorer: Scorer) -> None:
    try:
        results = run.results().select(TEXT_COLUMNS).collect()
        await score_run(results, scorer, open_folder(run.path))
    finally:
        await scorer.close()


def _judged(order: Order, run: RunReader, per_prompt: int) -> Ended:
    """The judge's run, in a folder within, with what the texts left of the caps."""
    results = run.results().select(*TEXT_COLUMNS, "prompt").collect()
    used, paid = run.totals().calls, spent(run, order.prices)["cost"] or 0.0
    return execute(
        replace(
            order,
            source=ContinuationSource(results, per_prompt),
            method=JudgeText(),
            out=f"{order.out.rstrip('/')}/{FOLDER}",
            replay=f"{order.replay.rstrip('/')}/{FOLDER}" if order.replay else None,
            max_calls=None if order.max_calls is None else max(0, order.max_calls - used),
            max_cost=None if order.max_cost is None else max(0.0, order.max_cost - paid),
        )
    )
