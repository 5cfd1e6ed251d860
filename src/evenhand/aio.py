"""The front door for code that awaits: the functions of `evenhand` itself, each a coroutine.

    report = await evenhand.aio.measure("bbq", model=model, out="runs/now", per_category=20)

A script says all that it uses: no config file is read. From the environment come only EVENHAND_DATA
(the folder of data sets) and the keys of services that are named on the spot as KIND=URL.
Whoever makes a model closes it, so that several calls can share its connections:

    async with evenhand.Endpoint(url, model="gpt-4o") as model: ...
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evenhand import _given
from evenhand._given import Given, Model
from evenhand.agents import Conversation, Limits
from evenhand.agents.conversation import declared_by
from evenhand.domain import Item, Turn
from evenhand.domain.prices import Prices
from evenhand.errors import DeadlinePassed, UserError
from evenhand.experiments import measuring
from evenhand.experiments.arms import chosen
from evenhand.experiments.auditing import concluded
from evenhand.experiments.confirming import confirmed, fresh_sample
from evenhand.experiments.dossiers import dossier_of
from evenhand.experiments.measuring import Measured, Measurement
from evenhand.experiments.request import Engine
from evenhand.experiments.running import execute, is_done
from evenhand.experiments.stopping import until_decided
from evenhand.experiments.sweep import Series
from evenhand.experiments.watch import Watch
from evenhand.findings.audit import Audit
from evenhand.findings.combined_report import Dossier
from evenhand.findings.comparison import Comparison
from evenhand.findings.forecast import Forecast
from evenhand.findings.forecast import forecast as forecast_of
from evenhand.findings.frontier import Frontier, require_harm
from evenhand.findings.frontier import frontier as frontier_of
from evenhand.findings.reliability import Reliability
from evenhand.findings.reliability import reliability as reliability_of
from evenhand.findings.report import Report
from evenhand.findings.run import Run
from evenhand.findings.traced_answer import TracedAnswer
from evenhand.instruments import Instrument, instrument_of
from evenhand.methods import Method
from evenhand.runners import Source
from evenhand.runners.pilot import PILOT_ITEMS
from evenhand.scorers import Scorer
from evenhand.store import RunReader

__all__ = [
    "Watch", "answer", "audit", "compare", "forecast", "frontier", "measure", "open_run",
    "reliability", "report", "run",
]  # fmt: skip


async def answer(
    prompt: str | Item,
    *,
    model: Model,
    method: Method | str = "stardtox",
    system: str | None = None,
    limits: Limits | None = None,
    on_turn: Callable[[Turn], None] | None = None,
) -> TracedAnswer:
    """Answer one prompt with a method, and keep who said what.

    >>> final = evenhand.answer("Describe a nurse.", model=model)
    >>> final.text, final.stopped, final.turns     # shows itself as a timeline in a notebook

    `system` is the system prompt of the model under test: agents that write get it before their
    own words. `on_turn` is given every turn as it is recorded. Raises an `EvenhandError` where
    there is no answer: a missing answer is never an empty one.
    """
    item = prompt if isinstance(prompt, Item) else Item(id="0", prompt=prompt)
    limits, chosen = limits or Limits(), _given.method_of(method)
    turns: list[Turn] = []

    def recorded(turn: Turn) -> None:
        turns.append(turn)
        if on_turn is not None:
            on_turn(turn)

    talk = Conversation(
        _given.cast_for(chosen, model, system),
        recorded,
        limits=limits,
        item_id=item.id,
        declared=declared_by(chosen.agents()),
    )
    try:
        async with asyncio.timeout_at(talk.deadline):
            final = await chosen.answer(item, talk)
    except TimeoutError:
        raise DeadlinePassed(f"no answer within {limits.seconds:g} s") from None
    return TracedAnswer.of(final, turns, talk.tags_taken_off)


async def run(
    items: Iterable[Item | str] | Source,
    *,
    model: Model | None = None,
    out: str | Path,
    method: Method | str = "stardtox",
    system: str | None = None,
    prices: Prices | str | Path | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    seed: int | None = None,
    concurrency: int = 64,
    limits: Limits | None = None,
    replay: str | Path | None = None,
    engine: Engine = "local",
    dedupe: bool = False,
    require_certified_judges: bool = False,
    certificates: str | Path | None = None,
    watch: Watch | None = None,
) -> Run:
    """Answer many prompts with a method into a run folder, going on with what is there.

    >>> made = evenhand.run(["Describe a nurse.", "Describe a boss."], model=model, out="runs/1")
    >>> made.results()

    `out` is a path or a URL. `system` is the system prompt of the model under test
    (docs/system-prompt.md). A cap (`max_calls`, or `max_cost` with `prices`) stops the run before
    it spends more; the same call with a higher cap goes on. With `replay="runs/1"` every call is
    answered from that run's recorded turns, and no model is needed.
    """
    request = _given.request_of(
        _given.source_of(items),
        _given.method_of(method),
        model=model,
        system=system,
        out=out,
        prices=prices,
        max_cost=max_cost,
        max_calls=max_calls,
        seed=seed,
        concurrency=concurrency,
        limits=limits,
        replay=replay,
        engine=engine,
        dedupe=dedupe,
        require_certified=require_certified_judges,
        certificates=certificates,
    )
    if not await is_done(request):
        await execute(request, watch or Watch())
    return Run(RunReader(request.out))


async def measure(
    instrument: Instrument | str,
    *,
    model: Model | None = None,
    out: str | Path,
    method: Method | str = "default",
    system: str | None = None,
    prices: Prices | str | Path | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    seed: int | None = None,
    concurrency: int = 64,
    limits: Limits | None = None,
    replay: str | Path | None = None,
    engine: Engine = "local",
    dedupe: bool = False,
    require_certified_judges: bool = False,
    certificates: str | Path | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    until: str | None = None,
    finite_population: bool = False,
    watch: Watch | None = None,
    **options: Any,
) -> Report:
    """Measure a method on an instrument, going on with what is in the run folder.

    >>> now = evenhand.measure("bbq", model=model, out="runs/now", per_category=20)
    >>> now.verdict, now["s_amb"], now.frame()     # shows itself as a page in a notebook

    `options` are those of the instrument, as `evenhand measure NAME --help` lists them. `system` is
    the system prompt of the model under test (docs/system-prompt.md). What a cap
    (`max_calls`, or `max_cost` with `prices`) stopped is a report with `not_run` above 0; the same
    call with a higher cap goes on. `scorers` adds scorers by name, `data` is the folder of data
    sets (else EVENHAND_DATA), `watch` is told of progress: derive from `evenhand.aio.Watch`.
    `until="s_amb=0.05"` stops when that measure is shown to be within 0.05 of no bias or beyond it;
    with `finite_population`, of exactly these items (docs/until.md).
    """
    result = await _measured(
        _given.measuring(instrument),
        options,
        method=method,
        scorers=scorers,
        data=data,
        until=until,
        finite_population=finite_population,
        watch=watch,
        model=model,
        system=system,
        out=out,
        prices=prices,
        max_cost=max_cost,
        max_calls=max_calls,
        seed=seed,
        concurrency=concurrency,
        limits=limits,
        replay=replay,
        engine=engine,
        dedupe=dedupe,
        require_certified=require_certified_judges,
        certificates=certificates,
    )
    if result.report is None:
        raise UserError(_given.why_no_report(result.ended, str(out)))
    return result.report


async def audit(instrument: Instrument | str, *, out: str | Path, **settings: Any) -> Audit:
    """Audit what evenhand relies on, going on with what is in the run folder.

    >>> evenhand.audit("reward", weights="runs/reward/model", pairs="data/pairs", out="runs/probes")

    Args:
        instrument: The audit, by its name or as an object; `evenhand audit --help` lists them.
        out: The run folder, a path or a URL.
        settings: What `measure` takes, and the options of the audit.

    Returns:
        Every check, with its outcome, and the state of all together.
    """
    chosen = _given.measuring(instrument)
    options = {name: value for name, value in settings.items() if name not in _SETTINGS}
    result = await measure(chosen, out=out, **settings)
    return await asyncio.to_thread(concluded, chosen, chosen.options_from(options), result)


async def forecast(instrument: Instrument | str, **settings: Any) -> Forecast:
    """Answer 50 items of a measurement and say what all of it will take.

    >>> evenhand.forecast("bbq", model=model, out="runs/now", preset="all", prices="prices.toml")

    It takes what `measure` takes. The answers stay in the run folder: `measure` goes on from them.
    """
    options = {name: settings.pop(name) for name in [*settings] if name not in _SETTINGS}
    certified = settings.pop("require_certified_judges", False)
    result = await _measured(
        _given.measuring(instrument),
        options,
        pilot=PILOT_ITEMS,
        require_certified=certified,
        **settings,
    )
    prices = _given.prices_of(settings.get("prices"))
    reader = RunReader(str(settings["out"]))
    expected = await asyncio.to_thread(forecast_of, reader, result.ended.pilot or (), prices)
    concurrency = settings.get("concurrency", 64)
    return replace(expected, concurrency=concurrency, limits=result.ended.limits)


_SETTINGS = frozenset(inspect.signature(measure).parameters) - {"instrument", "options"}


async def frontier(
    instrument: Instrument | str,
    *,
    methods: Sequence[Method | str] = (),
    calls: int = 8,
    confirm: bool = False,
    out: str | Path,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> Frontier:
    """Run several methods on the same items and say what each is worth: harm, utility and cost.

    >>> evenhand.frontier("bbq", methods=["cot", "stardtox"], model=model, out="runs/front")

    Every method has a run folder within `out`. It takes what `measure` takes beside `method`; caps
    are for all methods together, and each is fitted to `calls` calls an item. Without `methods`,
    and for the word "usual" among them: all that need only a chat endpoint. With `confirm`, the
    method to take is measured on a fresh sample too: the best of several is likely overstated where
    it was chosen.
    """
    measured = _given.measuring(instrument)
    require_harm(measured)
    if {"until", "finite_population"} & settings.keys():
        raise UserError("a frontier asks every method the same items: leave out until")
    options = {name: settings.pop(name) for name in [*settings] if name not in _SETTINGS}
    certified = settings.pop("require_certified_judges", False)
    services = _given.Scorers(scorers)
    measurement = Measurement(
        instrument=measured, options=measured.options_from(options), services=services
    )
    selected = chosen(methods, calls, measured)
    folder = _given.folder_of(data)
    fresh = await asyncio.to_thread(fresh_sample, measurement, folder) if confirm else None
    source = await asyncio.to_thread(measurement.items, folder)
    request = _given.request_of(
        source,
        selected[0].method,
        out=str(out).rstrip("/"),
        require_certified=certified,
        **settings,
    )
    series = Series(request=request, measurement=measurement, watch=watch or Watch(), calls=calls)
    try:
        _given.whole(await series.run(selected))
        arms = await series.arms(selected)
        compute = partial(frontier_of, measured, arms, calls=calls, prices=request.prices)
        result = await asyncio.to_thread(compute)
        if fresh is not None:
            ended, result = await confirmed(series, selected, result, fresh, folder)
            _given.whole(ended)
        return result
    finally:
        await services.close()


async def compare(
    before: Given | Sequence[Given],
    after: Given | Sequence[Given],
    *,
    instrument: Instrument | None = None,
) -> Comparison:
    """Compare two runs on the items they share: what is shown better, worse, or neither.

    >>> diff = evenhand.compare("runs/before", "runs/after")
    >>> diff.verdict, diff.red_lines, diff.frame()

    Give paths, URLs, runs or reports; a list of them is a side of several runs of one system, of
    which each item counts with its mean. An instrument of your own that is not installed as a
    package must be said, unless a report says it.
    """
    return await asyncio.to_thread(_given.compared, before, after, instrument)


async def reliability(
    runs: Sequence[Given], *, instrument: Instrument | None = None
) -> Reliability:
    """Say how much of a score is the order, the wording or the seed, from runs over the same items.

    >>> evenhand.reliability(["runs/order0", "runs/order1", "runs/order2"])["s_amb"].one_run
    """

    def studied() -> Reliability:
        readers = [_given.reader_of(run) for run in runs]
        if not readers:
            raise UserError(
                "reliability takes a list of runs: give two or more over the same items"
            )
        return reliability_of(instrument or instrument_of(readers[0]), readers)

    return await asyncio.to_thread(studied)


async def report(
    *runs: Given,
    title: str | None = None,
    prices: Prices | str | Path | None = None,
    certificates: str | Path | None = None,
) -> Dossier:
    """Collect what some runs showed, for a page to hand over.

    >>> evenhand.report("runs/before", "runs/after").save("report.html")

    Give paths, URLs, runs or reports: of an instrument, the first is what the others are compared
    with, where they asked the same items. Audits of judges may be among them. `certificates` is the
    folder in which those of the judges are looked for.
    """

    def collected() -> Dossier:
        opened = [
            (run, _given.instrument_in(entry)) for entry in runs for run in _given.readers_of(entry)
        ]
        return dossier_of(
            opened,
            title=title,
            prices=_given.prices_of(prices),
            certificates=None if certificates is None else Path(certificates),
        )

    return await asyncio.to_thread(collected)


async def open_run(path: str | Path) -> Run:
    """Open a run folder, a path or a URL: its results, its turns, and its report.

    >>> evenhand.open_run("runs/now").results()
    """
    return await asyncio.to_thread(lambda: Run(RunReader(path)))


async def _measured(
    instrument: Instrument,
    options: Mapping[str, Any],
    *,
    method: Method | str = "default",
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    until: str | None = None,
    finite_population: bool = False,
    watch: Watch | None = None,
    **settings: Any,
) -> Measured:
    measurement = Measurement(
        instrument=instrument,
        options=instrument.options_from(options),
        services=_given.Scorers(scorers),
    )
    chosen = measurement.method(_given.method_of(method))
    question = _given.question_of(until, finite_population)
    source = await asyncio.to_thread(measurement.items, _given.folder_of(data))
    if question is not None:
        seed = settings.get("seed")
        source = await asyncio.to_thread(until_decided, instrument, source, question, seed=seed)
    request = _given.request_of(source, chosen, **settings)
    return await measuring.measure(measurement, request, watch or Watch())
