"""A finding is written to files: JSON for machines, Parquet for tables."""

import io
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import orjson
import polars as pl

from evenhand.findings.display import Displayable, Remark
from evenhand.findings.frontier import Frontier
from evenhand.runs.store.folder import open_folder
from evenhand.views import catalog, charts
from evenhand.views.visible import escaped_json


def to_json(finding: Displayable) -> bytes:
    """Write the finding as JSON, with sorted keys, so that equal findings are equal files."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(plain(finding.to_dict()), option=options)


def plain(value: Any) -> Any:
    """Turn typed findings into dictionaries and lists. Half a pair, as names of files may have it,
    cannot be written: it becomes a question mark."""
    if isinstance(value, Remark):
        return {
            "code": value.code,
            "values": plain(value.values),
            "text": plain(catalog.text(value)),
        }
    if is_dataclass(value) and not isinstance(value, type):
        # Fields that are not compared are left out: they say how a finding was computed.
        return {
            field.name: plain(getattr(value, field.name))
            for field in fields(value)
            if field.compare
        }
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def printed(value: Any) -> str:
    """Write data as JSON in which every sign can be seen, as commands print it."""
    return escaped_json(orjson.dumps(plain(value), option=orjson.OPT_INDENT_2).decode()) + "\n"


def to_parquet(frame: pl.DataFrame) -> bytes:
    table = io.BytesIO()
    frame.write_parquet(table)
    return table.getvalue()


def write_report(finding: Any, location: str) -> None:
    """Write `report.json`, and the estimates as rows of `report.parquet`, into a run folder."""
    folder = open_folder(location)
    folder.replace("report.json", to_json(finding))
    folder.replace("report.parquet", to_parquet(finding.frame()))


def write_frontier(finding: Frontier, location: str) -> list[str]:
    """Write `frontier.json`, its numbers as rows of `frontier.parquet`, and the drawing where the
    extra `report` is there; give the names of what was written."""
    files = {"frontier.json": to_json(finding), "frontier.parquet": to_parquet(finding.frame())}
    if charts.installed():
        from evenhand.views.charts.of_frontier import front  # noqa: PLC0415  # a second to import

        files |= {f"{chart.name}.svg": chart.svg.encode() for chart in front(finding)}
    folder = open_folder(location)
    for name, data in files.items():
        folder.replace(name, data)
    return list(files)
