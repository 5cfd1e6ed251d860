"""A share is a package of items: what Ray Data carries from those who read to those who answer."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from evenhand.core import Item
from evenhand.runs.runners.source import Source, read_gaps
from evenhand.runs.store.ledger import Positions

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
        share.append(orjson.dumps((position, item)))
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
        yield position, Item(**{**item, "choices": tuple(item["choices"])})
