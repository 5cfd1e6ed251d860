"""Tables on disk for the tests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.runs.runners.prompt_files import ParquetTable


def write(path: Path, columns: dict[str, Any], row_groups: Sequence[int] = (), **how: Any) -> Path:
    """A file with these columns, cut into row groups of these lengths (one, if none are given)."""
    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, **how) as writer:
        start = 0
        for rows in row_groups or (len(table),):
            writer.write_table(table.slice(start, rows), row_group_size=max(rows, 1))
            start += rows
    assert not row_groups or start == len(table)
    return path


def opened(path: Path, **columns: str) -> ParquetTable:
    return ParquetTable(str(path), **{"prompt_column": "prompt", **columns})
