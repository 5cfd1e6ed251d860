"""The same job by Ray Data alone: read a table, make the calls, write a table.

Its actors get the request bodies ready-made from a file, so that it does no work of ours. It writes
a row per item with all that was sent and all that came back, as our turns do.
"""

import asyncio
import pickle
from pathlib import Path

import aiohttp
import pyarrow as pa
import ray

from bench.kernel import HEADERS, Stages

_ACTOR_CPUS, _TASK_CPUS = 0.9, 0.1  # as `run_on_ray` has them
_BLOCK_ROWS = 1024
_BATCH_ROWS = 256  # Ray keeps four batches of a block under way, which fills `concurrency`
_BLOCKS_PER_ACTOR = 3  # open at once, so that the stragglers of one do not leave it idle


def save_stages(stages: list[Stages], path: Path) -> None:
    path.write_bytes(pickle.dumps(stages))


def through_ray_data(
    table: Path, out: Path, url: str, stages: Path, rows: int, concurrency: int, actors: int
) -> None:
    # Of our own, with Ray's defaults: `run_on_ray` sets the block size in the process's.
    context = ray.data.DataContext()
    context.enable_progress_bars = False
    with ray.data.DataContext.current(context):
        ray.data.read_parquet(
            str(table),
            override_num_blocks=-(-rows // _BLOCK_ROWS),
            num_cpus=_TASK_CPUS,
            concurrency=1,  # fast enough; each more is a process that has to be started
        ).map_batches(
            Caller,
            fn_constructor_args=(url, stages, concurrency),
            batch_size=_BATCH_ROWS,
            batch_format="pyarrow",
            num_cpus=_ACTOR_CPUS,
            compute=ray.data.ActorPoolStrategy(
                size=actors,
                max_concurrent_calls_per_actor=_BLOCKS_PER_ACTOR,
                max_tasks_in_flight_per_actor=_BLOCKS_PER_ACTOR + 1,
            ),
        ).write_parquet(
            str(out),
            ray_remote_args={"num_cpus": _TASK_CPUS},
            compression="zstd",
            compression_level=1,  # as our run folder
        )


class Caller:
    """The actor. `concurrency` is over all the batches it is at."""

    def __init__(self, url: str, stages: Path, concurrency: int) -> None:
        self._url = url + "/chat/completions"
        self._stages: list[Stages] = pickle.loads(stages.read_bytes())
        self._places = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, batch: pa.Table) -> pa.Table:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=HEADERS,
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        asked = [self._stages[position] for position in batch.column("position").to_pylist()]
        replies = await asyncio.gather(*map(self._item, asked))
        bodies = [[body for stage in stages for body in stage] for stages in asked]
        kind = pa.list_(pa.binary())
        return batch.append_column("requests", pa.array(bodies, kind)).append_column(
            "replies", pa.array(replies, kind)
        )

    async def _item(self, stages: Stages) -> list[bytes]:
        replies: list[bytes] = []
        async with self._places:
            for stage in stages:
                if len(stage) == 1:
                    replies.append(await self._call(stage[0]))
                else:
                    replies += await asyncio.gather(*map(self._call, stage))
        return replies

    async def _call(self, body: bytes) -> bytes:
        assert self._session is not None
        async with self._session.post(self._url, data=body, allow_redirects=False) as response:
            response.raise_for_status()
            return await response.read()
