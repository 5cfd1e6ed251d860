"""`evenhand frontier`: several methods on the same items with the same calls, side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from evenhand import config as configuration
from evenhand.cli.arms import Listed, listed, vote_of
from evenhand.cli.execution import (
    DryRun,
    Ended,
    InFlight,
    MaxCalls,
    MaxCost,
    Order,
    PriceFile,
    RequireCertified,
    Seed,
    TakeOver,
    end,
    execute,
    require_certified,
)
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, ReplyTokens
from evenhand.cli.sampling import PerCategory, PresetName, Sample, SampleSeed, sampled
from evenhand.cli.screen import err, out, print_json
from evenhand.findings import frontier as findings
from evenhand.findings.forecast import forecast
from evenhand.findings.frontier import VOTE, Arm, require_harm
from evenhand.findings.frontier_forecast import whole
from evenhand.findings.shown import Shown
from evenhand.instruments import instrument_named
from evenhand.instruments._contract import Instrument
from evenhand.methods import named as method_named
from evenhand.methods import settings as settings_of
from evenhand.methods.critique import OTHER_CRITIQUE
from evenhand.scorers import Scorer
from evenhand.store import RunReader
from evenhand.store.spending import Spent, spent_on
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
            "cot,mabrf:max_iterations=1+search=true. Without it: all that need only a chat "
            "endpoint. default, fairness and self_consistency are always run.",
        ),
    ] = None,
    calls: Annotated[
        int, typer.Option(min=1, help="Calls an item that each method is fitted to.")
    ] = 8,
    preset: PresetName | None = None,
    per_category: PerCategory = None,
    sample_seed: SampleSeed | None = None,
    sample: Sample = None,
    dry_run: DryRun = False,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    seed: Seed = None,
    in_flight: InFlight = 64,
    take_over: TakeOver = False,
    require_certified_judges: RequireCertified = False,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show every measure, cost and comparison.")
    ] = False,
    json: Json = False,
) -> None:
    """Run several methods and say what each is worth.

    All answer the same items; what counts is harm, utility and cost. Each method gets a run folder
    of its own within --out; beside them stand frontier.json, frontier.parquet and frontier.svg. Run
    it again to resume, or with more methods. Caps are for all runs together. Ends with code 2 if a
    method answered fewer than 95 %, with 3 at a cap.

    Example: evenhand frontier --methods cot,detect_first,stardtox --per-category 8 --out runs/front
    """
    instrument = instrument_named(bench)
    require_harm(instrument)
    chosen = listed(methods, calls, instrument)
    given = {"preset": preset and preset.value, "per_category": per_category}
    source, options = sampled(instrument, sample or (), {**given, "sample_seed": sample_seed})
    if dry_run:  # who borrows critiques needs the whole run of the lender
        chosen = [one for one in chosen if one.lender is None]
    order = Order(
        source=source,
        method=chosen[0].method,
        settings=configuration.load(
            config, base_url, model, reply_tokens=reply_tokens, prices=prices
        ),
        out=out_.rstrip("/"),
        seed=seed,
        in_flight=in_flight,
        take_over=take_over,
        max_cost=max_cost,
        max_calls=max_calls,
        dry_run=dry_run,
        require_certified=require_certified_judges,
    )
    if require_certified_judges:
        require_certified(order, [one.method for one in chosen])
    series = _Series(order, calls, instrument, options)
    ended = series.run(chosen)
    if ended.stopped or ended.capped_by:
        end(ended, below_floor=False)
    if ended.pilot is not None:
        _show(whole(series.forecasts(chosen, ended.pilot)), json=json)
        return
    found = findings.frontier(instrument, series.arms(chosen), calls=calls, prices=order.prices)
    write_frontier(found, order.out)
    _show(found, full=full, json=json)
    if not json:
        out.print(f"{order.out}/frontier.json, frontier.parquet, frontier.svg", style="dim")
    end(ended, below_floor=any(one.report.coverage.below_floor for one in found.entries))


def _show(found: Shown, *, full: bool = False, json: bool) -> None:
    if json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found, full=full))


@dataclass(frozen=True, slots=True)
class _Services:
    """What an instrument may ask of whoever runs it."""

    settings: configuration.Config

    def scorer(self, name: str) -> Scorer:
        return configuration.scorer_by_name(self.settings, name)


@dataclass(frozen=True, slots=True)
class _Series:
    """One method after the other, each into its own folder within `order.out`."""

    order: Order
    calls: int
    instrument: Instrument
    options: Any  # the instrument's

    def run(self, chosen: Sequence[Listed]) -> Ended:
        """Until all are done, a signal comes or a cap is reached."""
        ended = Ended()
        for one in chosen:
            self._check(one)
        for number, one in enumerate(chosen, 1):
            said = f"method {number} of {len(chosen)}: {one.name}{_settings(one)}"
            err.print(said, style="bold", soft_wrap=True)
            ended = execute(self._order(one, chosen))
            if ended.stopped or ended.capped_by:
                return replace(ended, calls=self._spent(chosen).calls)
            self._complete(self._place(one))
        return ended

    def _check(self, one: Listed) -> None:
        cast = {"scorer": "wordlist", **self.order.settings.cast}
        players = {agent.role: cast.get(agent.role, "default") for agent in one.method.agents()}
        self.instrument.check(self.options, one.method, players, _Services(self.order.settings))

    def _complete(self, place: str) -> None:
        """What scoring needs beside the answers, such as a scorer's numbers."""
        if not self.order.dry_run:
            services = _Services(self.order.settings)
            asyncio.run(self.instrument.complete(RunReader(place), self.options, services))

    def forecasts(
        self, chosen: Sequence[Listed], pilot: tuple[int, ...]
    ) -> dict[str, dict[str, Any]]:
        prices = self.order.prices
        return {
            one.name: plain(forecast(RunReader(self._place(one)), pilot, prices).to_dict())
            for one in chosen
        }

    def arms(self, chosen: Sequence[Listed]) -> list[Arm]:
        """The runs, and the vote that each is held against: as many calls as it took on average.
        Votes of fewer calls are played back from the turns of the full one, so they cost none."""
        full = next((one for one in chosen if one.name == VOTE), None)
        if full is None:  # there is nothing to vote among
            return [Arm(name=one.name, run=RunReader(self._place(one))) for one in chosen]
        votes: dict[int, Arm] = {self.calls: Arm(name=VOTE, run=RunReader(self._place(full)))}
        arms = []
        for one in chosen:
            run = RunReader(self._place(one))
            if one.name in self.instrument.compared_with():
                arms.append(Arm(name=one.name, run=run))
                continue
            equal = findings.equal_calls(run, self.calls)
            if equal not in votes:
                votes[equal] = self._vote(equal, full)
            arms.append(Arm(name=one.name, run=run, equal_calls=votes[equal].name))
        fewer = [votes[calls] for calls in sorted(votes) if calls != self.calls]
        return [*arms, *fewer]

    def _vote(self, calls: int, full: Listed) -> Arm:
        vote = vote_of(calls)
        place = f"{self.order.out}/{VOTE}-{calls}"
        order = replace(
            self.order,
            method=vote.method,
            settings=self._limited(calls),
            out=place,
            replay=self._place(full),
        )
        end(execute(order), below_floor=False)  # only a signal ends it early
        self._complete(place)
        return Arm(name=vote.name, run=RunReader(place))

    def _order(self, one: Listed, chosen: Sequence[Listed]) -> Order:
        """Caps are for all methods together: of each is left what the others did not spend."""
        order, others = self.order, self._spent([other for other in chosen if other is not one])
        return replace(
            order,
            method=one.method,
            settings=self._settings_for(one),
            out=self._place(one),
            max_calls=_left(order.max_calls, others.calls),
            max_cost=_left(order.max_cost, others.cost),
        )

    def _settings_for(self, one: Listed) -> configuration.Config:
        if one.lender is None:
            return self._limited(self.calls)
        # A critique that is lent is a turn, but no call of a model: it has room of its own.
        limited = self._limited(2 * self.calls)
        lender = f"{configuration.LENDER}{self.order.out}/{one.lender}"
        return limited.model_copy(update={"cast": {**limited.cast, OTHER_CRITIQUE.role: lender}})

    def _limited(self, calls: int) -> configuration.Config:
        """The method's settings keep it within the calls. The limit leaves room to ask once more
        for each reply that cannot be read; else a vote of N would fail with its first one."""
        limits = replace(self.order.settings.limits, calls=2 * calls)
        return self.order.settings.model_copy(update={"limits": limits})

    def _place(self, one: Listed) -> str:
        return f"{self.order.out}/{one.folder}"

    def _spent(self, chosen: Sequence[Listed]) -> Spent:
        if (self.order.max_calls, self.order.max_cost) == (None, None):
            return Spent()
        each = [spent_on(self._place(one), self.order.prices) for one in chosen]
        return Spent(sum(one.calls for one in each), sum(one.cost for one in each))


def _left(cap: Any, spent: Any) -> Any:
    return None if cap is None else max(0, cap - spent)


def _settings(one: Listed) -> str:
    """Those that are not the usual ones of the method."""
    usual = settings_of(method_named(one.method.name)())
    found = {k: v for k, v in settings_of(one.method).items() if v != usual[k]}
    return f" ({', '.join(f'{name}={value}' for name, value in found.items())})" if found else ""
