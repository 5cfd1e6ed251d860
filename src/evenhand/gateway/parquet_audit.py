"""Audit rows as Parquet files, in a folder or an object store: a batch is a file.

A file is named by the ids in it, so a batch that comes again finds its own file. Read them all with
`polars.read_parquet("FOLDER/*/*.parquet")`.
"""

import asyncio
import contextlib
import hashlib
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from evenhand.gateway.audit import AuditRow
from evenhand.gateway.traffic import check_folder
from evenhand.runs.store.folder import open_folder

SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "tenant": pl.String(),
        "route": pl.String(),
        "model": pl.String(),
        "action": pl.String(),
        "reason": pl.String(),
        "calls": pl.Int64(),
        "prompt_tokens": pl.Int64(),
        "completion_tokens": pl.Int64(),
        "seconds_upstream": pl.Float64(),
        "seconds_screen": pl.Float64(),
        "seconds_agents": pl.Float64(),
        "seconds_all": pl.Float64(),
        "policy": pl.String(),
        "evidence": pl.String(),
        "content": pl.String(),
    }
)


class ParquetAudit:
    """A folder of audit files, one sub-folder a UTC day. Several replicas may write into one."""

    def __init__(self, location: str | Path) -> None:
        self._folder = open_folder(location)

    async def write(self, rows: Sequence[AuditRow]) -> None:
        await asyncio.to_thread(self._write, rows)

    async def check(self) -> None:
        await asyncio.to_thread(check_folder, self._folder)

    async def close(self) -> None:
        """Nothing is held."""

    def _write(self, rows: Sequence[AuditRow]) -> None:
        sink = io.BytesIO()
        pl.DataFrame([asdict(row) for row in rows], schema=SCHEMA).write_parquet(sink)
        ids = "\n".join(row.id for row in rows).encode()
        day = f"{rows[0].at:%Y-%m-%d}"
        name = f"{day}/{rows[0].at:%H%M%S}-{hashlib.sha256(ids).hexdigest()[:24]}.parquet"
        with contextlib.suppress(FileExistsError):  # kept before, and only the answer was lost
            self._folder.create(name, sink.getvalue())
