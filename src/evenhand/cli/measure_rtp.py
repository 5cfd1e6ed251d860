"""`evenhand measure rtp`: continuations, then their scores by a scorer outside the loop."""

import asyncio
from dataclasses import asdict, replace
from typing import Annotated

import orjson
import typer

from evenhand import config as configuration
from evenhand.cli.execution import Ended, Order, end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.measuring import RunOptions
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import out, print_json
from evenhand.errors import ModelRefused, UserError
from evenhand.findings.report import report
from evenhand.instruments._contract import FurtherRun
from evenhand.instruments.realtoxicityprompts import RtpSource, Sampling, sample
from evenhand.instruments.realtoxicityprompts.instrument import RealToxicityPrompts, RtpOptions
from evenhand.methods import settings as settings_of
from evenhand.models import ScriptedModel
from evenhand.models.base import ChatModel
from evenhand.report.cost import spent
from evenhand.scorers import Scorer
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.views import terminal_of
from evenhand.views.files import plain, write_report

_RTP = RealToxicityPrompts()


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
    chosen = RtpOptions(
        prompts=prompts,
        continuations=continuations,
        tokens=tokens,
        sample_seed=sample_seed,
        scorer=scorer,
        allow_circular=allow_circular,
        quality=quality,
    )
    sampling = Sampling(prompts=prompts, continuations=continuations, seed=sample_seed)
    drawn = sample(configuration.rtp_data().prompts(), sampling)
    order = options.order(RtpSource(drawn, sampling), answer_tokens=tokens)
    if order.share_equal:
        raise UserError("--share-equal would ask each prompt once: leave it out")
    services = _Scorers(order.settings)
    if not order.asks_nobody:
        _RTP.check(chosen, order.method, _players(order), services)
    ended = _texts(order)
    if ended.pilot is not None:
        show_forecast(order, ended, json=options.json)
        return
    run = RunReader(order.out)
    if not run.totals().items:  # stopped before the first: nothing to score
        end(ended, below_floor=True)
    asyncio.run(_complete(run, chosen, services))
    further = None if ended.stopped or ended.capped_by else _RTP.further(run, chosen)
    if further is not None:
        ended = _within(order, run, further)
    found = report(_RTP, run, order.prices)
    write_report(found, order.out)
    if options.json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found))
    end(ended, below_floor=found.coverage.below_floor)


class _Scorers:
    """One scorer of the config, made once."""

    def __init__(self, settings: configuration.Config) -> None:
        self._settings = settings
        self._made: dict[str, Scorer] = {}

    def scorer(self, name: str) -> Scorer:
        if name not in self._made:
            self._made[name] = configuration.scorer_by_name(self._settings, name)
        return self._made[name]

    async def close(self) -> None:
        for one in self._made.values():
            await one.close()


def _players(order: Order) -> dict[str, str]:
    """Whom would the method ask, by this config? Nobody is asked."""
    nobody = ScriptedModel(lambda _: ModelRefused("only looked at"), name="")
    stand_ins: dict[str, ChatModel] = dict.fromkeys(order.settings.models, nobody)
    cast = configuration.build_cast(order.settings, stand_ins)
    asked = {agent.role: cast.model_for(agent.role).name for agent in order.method.agents()}
    asyncio.run(cast.close())
    return asked


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


async def _complete(run: RunReader, chosen: RtpOptions, services: _Scorers) -> None:
    try:
        await _RTP.complete(run, chosen, services)
    finally:
        await services.close()


def _within(order: Order, run: RunReader, further: FurtherRun) -> Ended:
    """The second run, in a folder within, with what the first left of the caps."""
    used, paid = run.totals().calls, spent(run, order.prices)["cost"] or 0.0
    return execute(
        replace(
            order,
            source=further.source,
            method=further.method,
            out=f"{order.out.rstrip('/')}/{further.folder}",
            replay=f"{order.replay.rstrip('/')}/{further.folder}" if order.replay else None,
            max_calls=None if order.max_calls is None else max(0, order.max_calls - used),
            max_cost=None if order.max_cost is None else max(0.0, order.max_cost - paid),
        )
    )
