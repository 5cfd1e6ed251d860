"""A worker runs inside a Ray actor: it takes the kernel of `local.py` over one share after the
other. A share is a package of items: what Ray Data carries from those who read to those who answer.
"""

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from evenhand.core import Item
from evenhand.core.errors import EvenhandError
from evenhand.core.prices import Prices
from evenhand.models.endpoint import RemoteModel
from evenhand.models.replay import ReplayModel
from evenhand.runs.runners.desk import (
    SYNC_SECONDS,
    ClusterLimit,
    LeasedCap,
    WorkerOrders,
    WorkerReport,
)
from evenhand.runs.runners.local import StopSignal, answer_all, rare_collections
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.runners.progress import Progress
from evenhand.runs.runners.source import Source, read_gaps
from evenhand.runs.store.folder import Folder
from evenhand.runs.store.ledger import Positions
from evenhand.runs.store.writer import Receipt, ShareWriter

SHARE_ITEMS = 1024
SHARE_BYTES = 2 * 1024 * 1024


class ShareDatasource(Datasource):
    """A data source of the items that are left, one share a row, read where Ray has a core to
    spare."""

    def __init__(self, source: Source, done: Positions, share_items: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._share_items = share_items
        self._source = ray.put(source)
        chunks = ((start, stop, list(done.missing(start, stop))) for start, stop in source.chunks())
        self._gaps = [gaps for _, _, gaps in chunks if gaps]

    def __len__(self) -> int:
        return len(self._gaps)

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self,
        parallelism: int,  # noqa: ARG002
        per_task_row_limit: int | None = None,
        data_context: Any = None,  # noqa: ARG002
    ) -> list[ReadTask]:
        source = self._source
        return [
            ReadTask(
                partial(_read, source, gaps, self._share_items),
                BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None),
                per_task_row_limit=per_task_row_limit,
            )
            for gaps in self._gaps
        ]


def _read(source: Any, gaps: list[tuple[int, int]], share_items: int) -> Iterator[pa.Table]:
    share: list[bytes] = []
    first = last = size = 0
    for position, item in read_gaps(ray.get(source), gaps):
        if share and (len(share) >= share_items or size >= SHARE_BYTES):
            yield _packed(first, last + 1, share)
            share, size = [], 0
        if not share:
            first = position
        last = position
        share.append(orjson.dumps((position, item.described())))
        size += len(share[-1])
    if share:
        yield _packed(first, last + 1, share)


def _packed(first: int, stop: int, lines: list[bytes]) -> pa.Table:
    return pa.table(
        {"first": [first], "stop": [stop], "items": pa.array([b"\n".join(lines)], pa.binary())}
    )


def unpacked(lines: bytes) -> Iterator[tuple[int, Item]]:
    for line in lines.split(b"\n"):
        position, item = orjson.loads(line)
        yield position, Item.of(item)


_COUNTED = ("answered", "failed", "changed", "calls", "tokens", "in_flight")
_T = TypeVar("_T")


class Worker:
    """A worker is a callable for `map_batches`. Ray's threads bring shares; one event loop does
    them all, so that the items in flight are counted over all of them."""

    def __init__(
        self,
        plan: RunPlan,
        folder: Folder,
        token: int,
        desk: Any,
        is_capped: bool,
        prices: Prices | None,
    ) -> None:
        self._plan = plan
        self._is_capped, self._prices = is_capped, prices
        self._folder = folder
        self._token = token
        self._desk = desk  # the actor of the coordinator
        self._report = WorkerReport(worker=uuid.uuid4().hex)
        self._open: dict[int, Progress] = {}  # the shares at work, by their first position
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._rare = contextlib.ExitStack()
        self._rare.enter_context(rare_collections())
        self._wait(self._start())

    def __call__(self, shares: pa.Table) -> pa.Table:
        receipts = [self._wait(self._share(row)) for row in shares.to_pylist()]
        return pa.table({"receipt": pa.array(receipts, pa.binary())})

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        self._stop = StopSignal()
        self._places = asyncio.Semaphore(self._plan.concurrency)
        self._turn = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._limits: dict[str, ClusterLimit] = {}
        for model in self._plan.cast.models():
            if isinstance(model, RemoteModel):
                model.limit = self._limits[model.place] = ClusterLimit(self._hurry.set)
        self._purse = None
        if self._is_capped:
            self._purse = LeasedCap(self._prices, self._hurry.set)
            self._plan = replace(self._plan, cast=self._plan.cast.through(self._purse.guard))
        self._syncing = asyncio.create_task(self._sync_for_ever())

    async def _share(self, row: dict[str, Any]) -> bytes:
        """Do one share, and give the receipt, or what went wrong, as JSON."""
        if self._stop.soft:
            return Receipt(part=None, journals=()).model_dump_json().encode()
        try:
            items = dict(unpacked(row["items"]))
            writer = await asyncio.to_thread(
                ShareWriter, self._folder, self._token, row["first"], row["stop"], items.keys()
            )
            return (await self._answer(row["first"], items, writer)).model_dump_json().encode()
        except EvenhandError as error:  # as words: an error of ours may not survive the journey
            return orjson.dumps({"error": type(error).__name__, "message": str(error)})

    async def _answer(self, first: int, items: dict[int, Item], writer: ShareWriter) -> Receipt:
        plan = self._plan
        if writer.tape:
            plan = replace(
                plan, cast=plan.cast.through(lambda model: ReplayModel.before(model, writer.tape))
            )
        progress = self._open[first] = Progress()
        left = progress.starting((p, i) for p, i in items.items() if p not in writer.finished)
        try:
            await self._turn.acquire()  # the next share's items follow when this one's are taken
            with _released_once(self._turn) as release:
                events = answer_all(
                    plan, _then(left, release), writer.record_turn, self._stop, self._places
                )
                async with contextlib.aclosing(events):
                    async for event in events:
                        writer.finish(event)
                        progress.count(event)
            return await asyncio.to_thread(writer.seal)
        except BaseException:
            writer.close()
            raise
        finally:
            del self._open[first]

    async def _sync_for_ever(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # no coordinator to be reached: go on as told last
                self._obey(await self._desk.sync.remote(self._reported()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SYNC_SECONDS):
                    await self._hurry.wait()
            self._hurry.clear()

    def _reported(self) -> WorkerReport:
        self._report.endpoints = {key: limit.report() for key, limit in self._limits.items()}
        self._report.open_shares = len(self._open)
        self._report.counts = {
            name: sum(getattr(progress, name) for progress in self._open.values())
            for name in _COUNTED
        }
        self._report.spending = self._purse.report() if self._purse else None
        return self._report

    def _obey(self, orders: WorkerOrders) -> None:
        for key, (places, epoch) in orders.places.items():
            self._limits[key].obey(places, epoch)
        if self._purse is not None and orders.lease is not None:
            self._purse.obey(orders.lease)
        for _ in range(orders.stop - self._stop.level):
            self._stop()


def _then(items: Iterator[Any], after: Any) -> Iterator[Any]:
    yield from items
    after()


@contextlib.contextmanager
def _released_once(lock: asyncio.Lock) -> Iterator[Any]:
    held = [lock]

    def release() -> None:
        if held:
            held.pop().release()

    try:
        yield release
    finally:
        release()
