"""This runner spreads the kernel over a Ray cluster: the same run, the same rows.

Ray Data streams the items, packed in shares, to a pool of actors, holds them back when the actors
are busy, and gives a lost actor's shares to another. Each actor runs the kernel of `local.py` over
its shares and writes their part files; this process, which sees no row, enters them in the ledger.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from evenhand.core import environment, errors
from evenhand.core.errors import EvenhandError, StoreError, UserError
from evenhand.runs.runners.desk import (
    CapCoordinator,
    Coordinator,
    LeaseCaps,
    Overview,
)
from evenhand.runs.runners.local import StopSignal
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.runners.progress import Progress, status_file
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.runners.ray_worker import (
    SHARE_BYTES,
    SHARE_ITEMS,
    ShareDatasource,
    Worker,
)
from evenhand.runs.runners.source import ItemList
from evenhand.runs.store.writer import OpenedRun, Receipt, adopt_journals, commit, remove_journals

_SMALLEST_SHARE = 16
_READ_AHEAD_BYTES = 128 * 1024 * 1024  # of shares that wait; Ray alone would fill half its memory
_SHARES_EACH = 8  # our choice: a small job is cut so that each actor gets so many, to even out
_POLL_SECONDS = 0.5
_IDLE_SECONDS = 2.0
_GRACE_SECONDS = 5.0
_ROUNDS = 3  # our choice: how often shares that Ray gave up on are tried again from the beginning

# An actor has a core to itself, nearly: what is left is for the tasks that read the items.
_ACTOR_CPUS, _READ_CPUS = 0.9, 0.1
# Our choice: a reader gives 200,000 items a second, an actor takes 700 at most.
_ACTORS_PER_READER = 16


async def run_on_ray(
    plan: RunPlan,
    out: str | Path,
    *,
    progress: Progress,
    stop: StopSignal,
    actors: int | None = None,
    steal_lock: bool = False,
    purse: SpendingCap | None = None,
    address: str | None = None,
) -> None:
    """Run a plan into a run folder on a Ray cluster, resuming where an earlier process stopped.

    Args:
        plan: Items, method, models and limits. `plan.concurrency` items are open in each actor.
        out: Run folder, as a path or URL.
        progress: Counters to update.
        stop: Signal to finish open items, or to quit at once.
        actors: Number of worker processes. None: one per core.
        steal_lock: Take over the lock of another process.
        purse: Stops the run before it spends more than its cap. None: no cap.
        address: Address of a running cluster. None: start one on this machine.

    Raises:
        UserError: The directory holds a run of another plan.
    """
    with contextlib.redirect_stdout(sys.stderr):  # Ray talks there, where our own output belongs
        async with _cluster(address):
            run = await asyncio.to_thread(OpenedRun.open, out, plan.record(), steal_lock=steal_lock)
            try:
                await _run(plan, run, progress, stop, purse, actors or _cores())
            finally:
                run.release()


async def _run(
    plan: RunPlan,
    run: OpenedRun,
    progress: Progress,
    stop: StopSignal,
    purse: SpendingCap | None,
    actors: int,
) -> None:
    progress.planned, progress.resumed = len(plan.source), run.committed
    await asyncio.to_thread(adopt_journals, run)
    async with status_file(run.folder, progress):
        for _ in range(_ROUNDS):
            job = _RayJob(plan, run, progress, stop, purse, actors)
            await job.drive()
            if stop.soft or not job.left:
                break
        else:
            raise StoreError(
                f"{job.left} items are still missing after {_ROUNDS} rounds: look into Ray's "
                "logs why its workers die, then run the same command again to go on"
            )
        if not job.left:
            await asyncio.to_thread(remove_journals, run)


@contextlib.asynccontextmanager
async def _cluster(address: str | None) -> AsyncIterator[None]:
    """Join a cluster, or start one, and leave it again; a cluster joined before is left alone."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    join = partial(ray.init, log_to_driver=False, logging_level=logging.ERROR)
    if address:
        await asyncio.to_thread(join, address=address)
    else:
        await asyncio.to_thread(_start_own, join)
    # Ray's own handler, set while it starts, would end this process at a SIGTERM; Python's is put
    # back over it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    try:
        yield
    finally:
        await asyncio.to_thread(ray.shutdown)


def _start_own(join: Callable[..., Any]) -> None:
    """Start a cluster of this machine's cores that obeys nobody without its token.

    Ray listens on every interface, and cannot be told otherwise; who gets in could run any code. It
    makes a token for a cluster of this machine unless this variable says not to, so it is taken
    away. Whoever wants a cluster without one starts it, and names it in RAY_ADDRESS.
    """
    environment.forget_ray_auth_mode()
    join(address="local", include_dashboard=False)
    if environment.ray_auth_mode() != "token":
        ray.shutdown()
        raise UserError(
            f"Ray {ray.__version__} started a cluster that anybody could join who reaches this "
            "machine, so it was ended; start one yourself and name it in RAY_ADDRESS"
        )


def _cores() -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class _RayJob:
    """A job is one pass of Ray Data over the items that are left."""

    _plan: RunPlan
    _run: OpenedRun
    _progress: Progress
    _stop: StopSignal
    _purse: SpendingCap | None
    _actors: int
    _enough: threading.Event = field(default_factory=threading.Event)
    _told: int = 0
    _idle: int = 0
    _committed: Progress = field(init=False)  # its counters, without what is at work

    def __post_init__(self) -> None:
        self._committed = replace(self._progress)

    @property
    def left(self) -> int:
        return len(self._plan.source) - self._run.committed

    async def drive(self) -> None:
        if not self.left:
            return
        desk = _open_desk(self._purse)
        taking = _in_a_thread(partial(self._take_receipts, desk))
        try:
            while not taking.done():
                await asyncio.wait({taking}, timeout=_POLL_SECONDS)
                await self._look(desk)
            await taking
        finally:
            self._enough.set()
            desk.stop.remote(2)
            with contextlib.suppress(Exception):
                await self._look(desk)
            # A worker that hangs must not keep us here: what it has done is in its journal.
            with contextlib.suppress(Exception):
                await asyncio.wait_for(asyncio.shield(taking), _GRACE_SECONDS)
            ray.kill(desk)
            self._show({})

    async def _look(self, desk: Any) -> None:
        """Show what the workers are doing, pass on a request to stop, and notice a newer writer."""
        overview: Overview = await desk.overview.remote()
        self._show(overview.counts)
        self._progress.endpoints = overview.endpoints
        if self._purse is not None:
            self._watch_spending(self._purse, overview)
        if self._stop.level > self._told:
            self._told = self._stop.level
            await desk.stop.remote(self._told)
        elif self._told:
            self._idle = 0 if overview.open_shares else self._idle + 1
            if self._idle * _POLL_SECONDS >= _IDLE_SECONDS:
                self._enough.set()
        await asyncio.to_thread(self._run.refuse_if_fenced)

    def _watch_spending(self, purse: SpendingCap, overview: Overview) -> None:
        if overview.spent is not None:  # the next round, if there is one, goes on from here
            purse.calls, purse.cost = int(overview.spent.calls), overview.spent.cost
        if purse.prices is not None:
            self._progress.cost, self._progress.currency = purse.cost, purse.prices.currency
        if overview.exhausted and purse.exhausted is None:
            purse.exhausted = overview.exhausted
            self._stop()
            self._stop()

    def _show(self, at_work: dict[str, int]) -> None:
        for name in ("answered", "failed", "changed", "calls", "tokens"):
            setattr(self._progress, name, getattr(self._committed, name) + at_work.get(name, 0))
        self._progress.in_flight = at_work.get("in_flight", 0)
        self._progress.reasons = dict(self._committed.reasons)

    # -- in a thread of its own: Ray Data's iterators block ------------------------------------

    def _take_receipts(self, desk: Any) -> None:
        for batch in self._dataset(desk).iter_batches(
            batch_size=None, batch_format="pyarrow", prefetch_batches=0
        ):
            if self._enough.is_set():
                return
            for receipt in batch.column("receipt").to_pylist():
                self._enter(orjson.loads(receipt))

    def _dataset(self, desk: Any) -> Any:
        context = ray.data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # one share a block: a block is what an actor gets
        even = self.left // (self._actors * _SHARES_EACH)
        share_items = max(_SMALLEST_SHARE, min(SHARE_ITEMS, even))
        # Enough are open at once to keep all items in flight, and to spare a straggler.
        open_shares = -(-self._plan.concurrency // share_items) + 2
        ahead = max(_READ_AHEAD_BYTES, 4 * SHARE_BYTES * self._actors * open_shares)
        context.execution_options.resource_limits = ray.data.ExecutionResources(
            object_store_memory=ahead
        )
        shares = ShareDatasource(self._plan.source, self._run.done, share_items)
        with ray.data.DataContext.current(context):
            return ray.data.read_datasource(
                shares,
                override_num_blocks=len(shares),
                num_cpus=_READ_CPUS,
                concurrency=-(-self._actors // _ACTORS_PER_READER),
            ).map_batches(
                Worker,
                fn_constructor_args=(
                    replace(self._plan, source=ItemList([])),
                    self._run.folder,
                    self._run.token,
                    desk,
                    self._purse is not None,
                    self._purse.prices if self._purse else None,
                ),
                batch_size=None,
                batch_format="pyarrow",
                num_cpus=_ACTOR_CPUS,
                compute=ray.data.ActorPoolStrategy(
                    size=self._actors,
                    max_concurrent_calls_per_actor=open_shares,
                    max_tasks_in_flight_per_actor=open_shares + 1,
                    enable_true_multi_threading=True,
                ),
            )

    def _enter(self, handed_in: dict[str, Any]) -> None:
        if "error" in handed_in:
            kind = getattr(errors, handed_in["error"], EvenhandError)
            raise kind(handed_in["message"])
        receipt = Receipt.model_validate(handed_in)
        part = receipt.part
        if commit(self._run, receipt) and part is not None:
            count = self._committed
            count.answered += part.answered
            count.failed += sum(part.failed.values())
            count.changed += part.changed
            count.calls += part.calls
            count.tokens += part.prompt_tokens + part.completion_tokens
            for reason, items in part.failed.items():
                count.reasons[reason] = count.reasons.get(reason, 0) + items


def _in_a_thread(work: Callable[[], None]) -> asyncio.Future[None]:
    """Run in a thread that is not one of asyncio's, because the program waits for the end of
    those."""
    done: concurrent.futures.Future[None] = concurrent.futures.Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(done)


def _open_desk(purse: SpendingCap | None) -> Any:
    """Start the coordinator next to this process, so that it lives as long as the job does."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    treasury = None
    if purse is not None:
        unlimited = float("inf")
        caps = LeaseCaps(
            unlimited if purse.max_calls is None else purse.max_calls,
            unlimited if purse.max_cost is None else purse.max_cost,
        )
        treasury = CapCoordinator(caps, LeaseCaps(purse.calls, purse.cost))
    return ray.remote(Coordinator).options(num_cpus=0, scheduling_strategy=here).remote(treasury)
