"""Ask a model: one prompt, many prompts, an instrument's items, or several methods to compare."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from pydantic import JsonValue

from evenhand.agents import Conversation, Limits
from evenhand.agents.conversation import declared_by
from evenhand.agents.dialogue import answer_turns, users_of
from evenhand.api import inputs
from evenhand.api.inputs import Asked, Model
from evenhand.core import Answer, Item, Turn
from evenhand.core.errors import DeadlinePassed, UserError
from evenhand.experiments import config as configuration
from evenhand.experiments import measuring
from evenhand.experiments.config import Config
from evenhand.experiments.frontiers import plan_frontier, run_frontier
from evenhand.experiments.measuring import MeasurementResult, concluded
from evenhand.experiments.request import Watch
from evenhand.experiments.running import execute, forecast_of, is_done
from evenhand.experiments.settings import RunOptions, RunSettings, show_settings
from evenhand.findings.audit import Audit
from evenhand.findings.forecast import Forecast
from evenhand.findings.frontier import Frontier
from evenhand.findings.report import Report
from evenhand.findings.run import Run, TracedAnswer
from evenhand.instruments import Instrument
from evenhand.methods import Method
from evenhand.runs.runners import Source
from evenhand.runs.runners.local import PILOT_ITEMS
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer

Options = Mapping[str, object]
"""The options of an instrument by name, as `evenhand measure NAME --help` lists them."""


async def answer(
    prompt: Asked,
    *,
    model: Model,
    method: Method | str = "stardtox",
    system: str | None = None,
    params: Mapping[str, JsonValue] | None = None,
    limits: Limits | None = None,
    on_turn: Callable[[Turn], None] | None = None,
) -> TracedAnswer:
    """Answer one prompt with a method, and keep every model call.

    Args:
        prompt: The prompt, a conversation as `{"messages": […], "tools": […]}`, or an `Item` with
            context and choices.
        model: Model to ask.
        method: How the prompt is answered: a method name or a `Method`.
        system: System prompt of the model under test. Agents that write get it before their own
            words.
        params: Further fields of every request to a model that is given by its name. An `Endpoint`
            takes its own.
        limits: Limits on calls, tokens and seconds.
        on_turn: Receives every model call as it is recorded.

    Returns:
        The answer with its drafts and calls. A notebook shows it as a timeline.

    Raises:
        EvenhandError: If the call fails. A missing answer is never returned as an empty one.

    Example:
        >>> final = evenhand.answer("Describe a nurse.", model=model)
        >>> final.text, final.stopped, final.turns
    """
    item = inputs.item(prompt)
    limits, remedy = limits or Limits(), inputs.method_of(method)
    turns: list[Turn] = []

    def recorded(turn: Turn) -> None:
        turns.append(turn)
        if on_turn is not None:
            on_turn(turn)

    talk = Conversation(
        inputs.cast_for(remedy, model, system, params),
        recorded,
        limits=limits,
        item=item,
        declared=declared_by((*remedy.agents(), *users_of([item]))),
    )
    try:
        async with asyncio.timeout_at(talk.deadline):
            final = await answer_turns(remedy, item, talk)
    except TimeoutError:
        raise DeadlinePassed(f"no answer within {limits.seconds:g} s") from None
    return TracedAnswer.of(final, turns, talk.tags_taken_off)


async def answer_by_config(
    config: Config,
    item: Item,
    method: Method,
    limits: Limits,
    on_turn: Callable[[Turn], None],
) -> Answer:
    """Answer one item by the models that a config names.

    Args:
        config: The config.
        item: The item.
        method: How it is answered.
        limits: The limits of calls, tokens and seconds.
        on_turn: Receives every call.

    Returns:
        The answer.
    """
    cast = await configuration.open_cast(config, method.agents())
    try:
        return await answer(item, model=cast, method=method, limits=limits, on_turn=on_turn)
    finally:
        await cast.close()


async def mitigate(
    items: Iterable[Asked] | Source,
    *,
    model: Model | None = None,
    method: Method | str = "stardtox",
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Run:
    """Answer many prompts with a method and store the results.

    If `out` already holds a partial run with the same settings, it is resumed.

    Args:
        items: Prompts, conversations, `Item` objects, or a source of items.
        model: Model to ask. Not needed with `replay` or stored answers.
        method: How items are answered: a method name or a `Method`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The run. A cap (`max_calls`, or `max_cost` with `prices`) stops it before it spends more;
        call again with a higher cap to continue.

    Raises:
        UserError: If the settings are invalid, or `out` holds another run.

    Example:
        >>> run = evenhand.mitigate(["Describe a nurse."], model=model, out="runs/1")
        >>> run.results()
    """
    request = inputs.request_of(
        inputs.source_of(items), inputs.method_of(method), inputs.settings_of(settings), model=model
    )
    if not await is_done(request):
        await execute(request, watch or Watch())
    return Run(RunReader(request.settings.out))


async def measure(
    instrument: Instrument | str,
    *,
    model: Model | None = None,
    method: Method | str = "default",
    options: Options | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    stop_when: str | None = None,
    finite_population: bool = False,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Report:
    """Run a benchmark and return its report.

    If `out` already holds a partial run with the same settings, it is resumed and completed items
    are not requested again.

    Args:
        instrument: Benchmark name (`"bbq"`, `"rtp"`, …) or an `Instrument`.
        model: Model to evaluate. Not needed with `replay` or stored answers.
        method: How items are answered: a method name or a `Method`. Default: the plain prompt.
        options: Benchmark options, as `evenhand measure NAME --help` lists them.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        stop_when: Stop early once a measure is decided, such as `"s_amb=0.05"`.
        finite_population: With `stop_when`, draw conclusions about these items only, not about new
            ones.
        watch: Receives progress events. Derive from `evenhand.aio.Watch`.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The report. If a cap stopped the run, `report.not_run` is greater than 0; call again with a
        higher cap to continue.

    Raises:
        UserError: If the settings are invalid or no item could be completed.

    Example:
        >>> report = evenhand.measure("bbq", model=model, out="runs/now",
        ...                           options={"per_category": 20})
        >>> report["s_amb"].value
    """
    result = await _measured(
        inputs.measuring(instrument),
        inputs.settings_of(settings),
        model=model,
        method=method,
        options=options,
        scorers=scorers,
        data=data,
        stop_when=stop_when,
        finite_population=finite_population,
        watch=watch,
    )
    if result.report is None:
        raise UserError(inputs.why_no_report(result.ended, str(settings["out"])))
    return result.report


async def audit(
    instrument: Instrument | str,
    *,
    model: Model | None = None,
    method: Method | str = "default",
    options: Options | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    stop_when: str | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Audit:
    """Audit what evenhand relies on: a judge, a reward model, or a harm policy.

    Args:
        instrument: Audit name, as `evenhand audit --help` lists them, or an object.
        model: Model to audit, where the audit asks one.
        method: How items are answered.
        options: Options of the audit, as `evenhand audit NAME --help` lists them.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        stop_when: Stop early once a measure is decided, such as `"accuracy=0.2"`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        Every check with its outcome, and the state of all together.

    Raises:
        UserError: If the settings are invalid or no item could be completed.

    Example:
        >>> evenhand.audit("reward", out="runs/probes",
        ...                options={"weights": "runs/reward/model", "pairs": "data/pairs"})
    """
    audited = inputs.measuring(instrument)
    result = await measure(
        audited,
        model=model,
        method=method,
        options=options,
        scorers=scorers,
        data=data,
        stop_when=stop_when,
        watch=watch,
        **settings,
    )
    certificates = inputs.settings_of(settings).certificates
    own = audited.options_from(options or {})
    return await asyncio.to_thread(concluded, audited, own, result, certificates)


async def forecast(
    instrument: Instrument | str,
    *,
    model: Model | None = None,
    method: Method | str = "default",
    options: Options | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Forecast:
    """Answer 50 items of a benchmark and forecast calls, tokens, cost and time of all.

    The answers stay in the run folder: `measure` resumes from them.

    Args:
        instrument: Benchmark name or an `Instrument`.
        model: Model to evaluate.
        method: How items are answered.
        options: Benchmark options, as `evenhand measure NAME --help` lists them.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The forecast. It has a cost if `prices` are given.

    Raises:
        UserError: If the settings are invalid or no item could be completed.

    Example:
        >>> evenhand.forecast("bbq", model=model, out="runs/now", prices="prices.toml")
    """
    run_settings = inputs.settings_of(settings, pilot=PILOT_ITEMS)
    result = await _measured(
        inputs.measuring(instrument),
        run_settings,
        model=model,
        method=method,
        options=options,
        scorers=scorers,
        data=data,
        watch=watch,
    )
    return await asyncio.to_thread(forecast_of, run_settings, result.ended)


async def frontier(
    instrument: Instrument | str,
    *,
    model: Model | None = None,
    methods: Sequence[Method | str] = (),
    calls: int = 8,
    confirm: bool = False,
    options: Options | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> Frontier:
    """Run several methods on the same items and compare harm, utility and cost.

    Every method has a run folder within `out`. Caps are for all methods together.

    Args:
        instrument: Benchmark name or an `Instrument`. It must have a measure of harm.
        model: Model to evaluate.
        methods: Method names or `Method` objects. Without any, and for the word "usual" among
            them: all that need only a chat endpoint.
        calls: Calls per item to which each method is fitted.
        confirm: Measure the method to take on a fresh sample too. The best of several is likely
            overstated where it was chosen.
        options: Benchmark options, as `evenhand measure NAME --help` lists them.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        The frontier, with a verdict for each method.

    Raises:
        UserError: If the settings are invalid, or a cap stopped the runs.

    Example:
        >>> evenhand.frontier("bbq", methods=["cot", "stardtox"], model=model, out="runs/front")
    """
    plan = await asyncio.to_thread(
        plan_frontier,
        inputs.measuring(instrument),
        options or {},
        methods,
        calls,
        inputs.run_models(model, scorers, data),
        inputs.settings_of(settings),
        watch or Watch(),
    )
    result = await run_frontier(plan, confirm=confirm)
    inputs.whole(result.ended)
    assert result.frontier is not None  # the runs are whole, and no pilot
    return result.frontier


async def _measured(
    instrument: Instrument,
    settings: RunSettings,
    *,
    model: Model | None,
    method: Method | str,
    options: Options | None,
    scorers: Mapping[str, Scorer] | None,
    data: str | Path | None,
    stop_when: str | None = None,
    finite_population: bool = False,
    watch: Watch | None,
) -> MeasurementResult:
    prepared = await asyncio.to_thread(
        measuring.prepared,
        instrument,
        options or {},
        inputs.method_of(method),
        inputs.run_models(model, scorers, data),
        settings,
        inputs.question_of(stop_when, finite_population),
    )
    return await measuring.measure(*prepared, watch or Watch())


show_settings(mitigate, measure, audit, forecast, frontier)
