"""This module runs a request: it opens the models, looks at the judges, sets the caps, and runs on
this machine or on a cluster."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.core.prices import NOBODY
from evenhand.experiments.certificates import Certified, certificates_of
from evenhand.experiments.request import Following, Request, Watch
from evenhand.experiments.settings import RunSettings
from evenhand.findings.forecast import Forecast, forecast
from evenhand.methods import Method
from evenhand.methods import settings as settings_of
from evenhand.models.ask_once import AskOnce
from evenhand.models.batch import BatchTiming, in_batches
from evenhand.models.replay import nobody
from evenhand.runs.runners import Progress, RunPlan, SpendingCap, StopSignal, replay_of, run
from evenhand.runs.runners.local import pilot_positions, run_pilot
from evenhand.runs.store import RunReader, run_record
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.spending import spent_on


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run: how far it came and why it stopped."""

    stopped: bool = False  # by a signal
    capped_by: str | None = None  # the option whose cap was reached
    calls: int = 0  # made by the whole run, if it has a cap
    pilot: tuple[int, ...] | None = None  # the positions of a pilot
    limits: dict[str, int] = field(default_factory=dict)  # calls at once that endpoints took

    @property
    def early(self) -> bool:
        return self.stopped or self.capped_by is not None


async def execute(request: Request, watch: Watch) -> RunEnd:
    """Run a request, or go on with it where it was stopped."""
    if not len(request.source):
        source_name = request.source.fingerprint().get("name", "the list of items")
        raise UserError(
            f"{source_name} has no items, so there is nothing to run. Choose another source or a "
            "larger sample."
        )
    refuse_idle_system(request)
    refuse_other_params(request)
    cast = await _cast(request)
    _refuse_no_batches(request, cast)
    plan = _plan(request, cast)
    stop, progress = watch.stop(), Progress()
    try:
        if not (request.asks_nobody or request.is_audit):
            _look(request, request.method, cast, watch)
        purse = _purse(request, cast)
        async with watch.progress(progress):
            pilot = await _run(request, plan, progress, stop, purse, watch)
    finally:
        await request.close(cast)
    capped_by = purse.exhausted if purse else None
    called = progress.endpoints.items() if progress.calls else ()
    return RunEnd(
        stopped=stop.soft and capped_by is None,
        capped_by=capped_by,
        calls=purse.calls if purse else 0,
        pilot=pilot,
        limits={name: limit for name, (_, limit) in called},
    )


def forecast_of(settings: RunSettings, ended: RunEnd) -> Forecast:
    """Forecast a whole run from its pilot."""
    expected = forecast(RunReader(settings.out), ended.pilot or (), settings.prices)
    return replace(expected, concurrency=settings.concurrency, limits=ended.limits)


def look_at_judges(certified: Sequence[Certified], watch: Watch, *, required: bool) -> None:
    """Report the state of each judge's certificate before anything is asked.

    Args:
        certified: The judges with their certificates.
        watch: Receives the states.
        required: Whether to refuse a judge whose certificate does not pass.

    Raises:
        UserError: If a certificate is required and one does not pass.
    """
    watch.judges(certified)
    refused = [entry for entry in certified if not entry[1].passes]
    if required and refused:
        raise watch.refuse(refused[0])


def _look(request: Request, method: Method, cast: Cast, watch: Watch) -> None:
    certified = certificates_of(method, cast, request.settings.certificates)
    look_at_judges(certified, watch, required=request.settings.require_certified_judges)


async def require_certified(request: Request, methods: Sequence[Method], watch: Watch) -> None:
    """Check the judges of several runs before the first begins, so that none is refused half-way.

    Args:
        request: The request, which opens the models and says whether certificates are required.
        methods: The method of each run.
        watch: Receives the state of each certificate.

    Raises:
        UserError: If certificates are required and one does not pass.
    """
    for method in methods:
        cast = await request.open_cast(method)
        try:
            _look(request, method, cast, watch)
        finally:
            await request.close(cast)


def refuse_idle_system(request: Request) -> None:
    """Refuse a system prompt that nobody would get, or that a replay was not made with."""
    agents = request.method.agents()
    if any(agent.raw and request.system_of(agent.role) for agent in agents):
        raise UserError(
            f"{request.method.name} lets the model continue a text, which has no place for a "
            "system prompt: leave it out"
        )
    if request.settings.system is None:
        return
    if not any(request.system_for(agent) == request.settings.system for agent in agents):
        raise UserError(
            f"nobody gets the system prompt: the default model writes nothing in a run of "
            f"{request.method.name}. It goes to agents that write, not to judges, scorers or "
            "stored answers"
        )
    if request.settings.replay:
        cast = replay_of(request.settings.replay)
        if any(cast.system_for(agent) != request.system_for(agent) for agent in agents):
            raise UserError(
                f"{request.settings.replay} was made with another system prompt. Leave out "
                "--system."
            )


def refuse_other_params(request: Request) -> None:
    """Refuse fields of a request that a replay was not made with: it asks nobody."""
    settings = request.settings
    if not settings.params or not settings.replay:
        return
    recorded = RunReader(settings.replay).record.cast["default"].get("params", {})
    if recorded != request.params.get("default", {}):
        raise UserError(f"{settings.replay} was made with another --param. Leave out --param.")


def is_finished(request: Request) -> bool:
    """Say whether the folder holds all of this very run: then no endpoint has to be there. Where
    certificates are required it is never so: the judges are looked at first, as before any run."""
    settings = request.settings
    if settings.pilot or settings.require_certified_judges:
        return False
    return _is_there(request) and RunReader(settings.out).totals().items == len(request.source)


def _is_there(request: Request) -> bool:
    """Say whether the folder is of this very run, however far it came."""
    if not open_folder(request.settings.out).exists("run.json"):
        return False
    existing = RunReader(request.settings.out)
    planned = {
        "source": request.source.fingerprint(),
        "method": {"name": request.method.name, "settings": settings_of(request.method)},
        "limits": asdict(request.settings.limits),
        "seed": request.settings.seed,
    }
    cast = existing.record.cast
    if any(
        role in cast and cast[role].get("model") not in (name, NOBODY)
        for role, name in request.named.items()
    ):
        return False  # of another model: the run itself refuses it, and says what differs
    if not request.settings.replay and any(
        role in cast
        and cast[role].get("model") != NOBODY
        and cast[role].get("params", {}) != params
        for role, params in request.params.items()
    ):
        return False
    if not request.settings.replay and _systems(request) != {
        role: player["system"] for role, player in cast.items() if "system" in player
    }:
        return False
    there = {name: getattr(existing.record, name) for name in planned}
    same: bool = orjson.loads(orjson.dumps(planned)) == there
    return same


def _systems(request: Request) -> dict[str, str]:
    """The system prompt of each role that gets one."""
    prompts = [(agent.role, request.system_for(agent)) for agent in request.method.agents()]
    return {role: system for role, system in prompts if system is not None}


async def is_done(request: Request) -> bool:
    """Say whether nothing is left to run. A folder that another model or another replay made is
    refused: a finished run would else be given back as if it were this one."""
    refuse_idle_system(request)
    if request.models_at_hand or request.settings.replay:
        await refuse_other_run(request)
    settings = request.settings
    if request.following is None or settings.pilot or settings.require_certified_judges:
        return is_finished(request)
    return _is_there(request) and not await request.following()


async def refuse_other_run(request: Request) -> None:
    """Refuse a folder that another plan made, or another model. Only for models that exist already,
    which are opened at no cost."""
    out = request.settings.out
    if not open_folder(out).exists("run.json"):
        return
    planned = _plan(request, await _cast(request)).record()
    run_record.refuse_other_run(planned, RunReader(out).record, out)


async def _run(
    request: Request,
    plan: RunPlan,
    progress: Progress,
    stop: StopSignal,
    purse: SpendingCap | None,
    watch: Watch,
) -> tuple[int, ...] | None:
    settings = request.settings
    common: dict[str, Any] = {
        "progress": progress, "stop": stop, "steal_lock": settings.steal_lock, "purse": purse,
    }  # fmt: skip
    if request.settings.pilot:  # a few items are not worth a cluster
        items = len(plan.source)
        count = len(pilot_positions(items, request.settings.pilot))
        watch.note(f"pilot: asks {count} of {items:,} items, spread evenly")
        return await run_pilot(plan, request.settings.out, size=request.settings.pilot, **common)
    if request.following is not None:
        await _run_blocks(request, request.following, plan, stop, common)
        return None
    if request.settings.engine == "local":
        await run(plan, request.settings.out, **common)
        return None
    if request.settings.replay:
        raise UserError("A replay is read by one process. Leave out --engine ray.")
    if request.settings.reuse:
        raise UserError("Reused runs are read by one process. Leave out --engine ray.")
    try:
        from evenhand.runs.runners.ray import run_on_ray  # noqa: PLC0415 - Ray is an extra
    except ImportError as error:
        if str(error.name).startswith("evenhand"):  # our own mistake, not a missing extra
            raise
        raise UserError("Ray is not installed: pip install 'evenhand[cluster]'") from None
    await run_on_ray(
        plan,
        request.settings.out,
        actors=request.settings.actors,
        address=request.ray_address,
        **common,
    )
    return None


async def _run_blocks(
    request: Request, following: Following, plan: RunPlan, stop: StopSignal, common: dict[str, Any]
) -> None:
    """Run one block after the other, each to its end, until none follows."""
    if request.settings.engine != "local":
        raise UserError(
            "A run with --stop-when checks the result after each block, in one process. Leave out "
            "--engine ray."
        )
    while not stop.soft and (only := await following()):
        await run(plan, request.settings.out, only=only, **common)
        common["steal_lock"] = False  # a process that takes it over between two blocks keeps it


def _plan(request: Request, cast: Cast) -> RunPlan:
    return RunPlan(
        method=request.method,
        cast=cast,
        source=request.source,
        limits=request.settings.limits,
        seed=request.settings.seed,
        concurrency=request.settings.concurrency,
        settings=request.settings.record(),
        batch=BatchTiming() if _by_batch(request) else None,
        reuse=request.settings.reuse,
    )


def _by_batch(request: Request) -> bool:
    return request.settings.batch and not request.asks_nobody


def _refuse_no_batches(request: Request, cast: Cast) -> None:
    """Refuse a run by batches that cannot be one."""
    if not _by_batch(request):
        return
    if request.settings.engine != "local":
        raise UserError("Batches are sent by one process. Leave out --engine ray.")
    if not in_batches(cast.models()):
        raise UserError(
            f"{cast.default.name} has no batch API that evenhand supports. Leave out --batch (see "
            "docs/batch.md)."
        )


async def _cast(request: Request) -> Cast:
    if request.settings.replay:
        return replay_of(request.settings.replay)
    if request.asks_nobody:  # no endpoint is needed
        return Cast(nobody())
    cast = await request.open_cast(request.method)
    return cast.through(AskOnce) if request.settings.dedupe else cast


def _purse(request: Request, cast: Cast) -> SpendingCap | None:
    """Set the spending cap of the whole run, less what earlier processes of it spent."""
    settings = request.settings
    caps = (settings.prices, settings.max_cost, settings.max_calls)
    if request.asks_nobody or caps == (None, None, None):
        return None
    purse = SpendingCap(
        max_calls=settings.max_calls, max_cost=settings.max_cost, prices=settings.prices
    )
    cast.through(purse.guard)  # refuses a model without a price before anything is written
    spent = spent_on(settings.out, settings.prices)
    purse.calls, purse.cost = spent.calls, spent.cost
    return purse
