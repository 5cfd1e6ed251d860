"""A run's results as one file, in the order of the input."""

from pathlib import Path

from evenhand.views.export.exported import ExportedRun


def write_jsonl(of: ExportedRun, folder: Path) -> list[str]:
    """Write one JSON object per item."""
    of.run.results().sink_ndjson(folder / "items.jsonl")
    return ["items.jsonl"]


def write_parquet(of: ExportedRun, folder: Path) -> list[str]:
    """Write one row per item."""
    of.run.results().sink_parquet(folder / "items.parquet")
    return ["items.parquet"]
