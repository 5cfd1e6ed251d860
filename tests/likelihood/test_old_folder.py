"""Folders in the form of before, several sets in one, are read as the runs of today are."""

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from errors import raises_naming
from evenhand.core.errors import CorruptRun, UnknownFormat, UserError
from evenhand.findings.report import report
from evenhand.instruments.likelihood_sets import SETS, compare_sets, runs_at

S, A = "stereotype", "anti_stereotype"
_COLUMNS = ("set", "item_id", "group", "cluster", "tags", "option", "text", "total", "tokens",
            "reason")  # fmt: skip
_TYPES = {"total": pl.Float64, "tokens": pl.Int64, "reason": pl.String}


def _rows(preferred: list[bool | None]) -> list[tuple[Any, ...]]:
    """A pair per entry, its stereotype likelier or not; None: it could not be scored. The options
    are in another order than the set names them."""
    rows: list[tuple[Any, ...]] = []
    for n, first in enumerate(preferred):
        head = ("crows_pairs", f"i{n}", "age", f"w{n}", '{"direction": "stereo"}')
        for option in (A, S):
            if first is None:
                rows.append((*head, option, f"{n} {option}", None, None, "too_long"))
            else:
                likely = (option == S) == first
                total = -2.0 if likely else -6.0
                rows.append((*head, option, f"{n} {option}", total, 2, None))
    return rows


def _old(folder: Path, preferred: list[bool | None], **record: Any) -> str:
    (folder / "likelihood").mkdir(parents=True)
    described = {
        "version": "1-A", "revision": "made up", "sampling": {"items": "all", "seed": 0},
        "items": len(preferred) + 1, "left_out": 0, "sha256": "of the items",
    }  # fmt: skip
    plain = {
        "format": 1, "model": {"kind": "local", "model": "small"}, "created": "2026-01-01",
        "sets": {"crows_pairs": described}, "versions": {"evenhand": "0.1.0"}, **record,
    }  # fmt: skip
    (folder / "likelihood.json").write_text(json.dumps(plain))
    rows = _rows(preferred)
    for part, some in enumerate((rows[:4], rows[4:])):
        table = io.BytesIO()
        frame = pl.DataFrame(some, schema=_COLUMNS, schema_overrides=_TYPES, orient="row")
        frame.write_parquet(table)
        (folder / f"likelihood/crows_pairs-{part:05}.parquet").write_bytes(table.getvalue())
    return str(folder)


def test_an_old_folder_has_the_report_of_a_run(tmp_path: Path) -> None:
    runs = runs_at(_old(tmp_path / "a", [True, True, True, False, None]))
    found = report(SETS["crows_pairs"], runs["crows_pairs"])
    assert found["stereotype_score"].value == 75.0
    assert found["log_prob_per_token"].value == -2.0  # (2 + 6) over two texts of two tokens
    assert (found.coverage.scored, found.coverage.by_reason) == (4, {"too_long": 1})
    assert (found.not_run, found.side.model) == (1, "small")
    assert found.groups["bias_type"]["age"][0].n == 4


def test_two_old_folders_are_compared(tmp_path: Path) -> None:
    before = runs_at(_old(tmp_path / "a", [True, True, True, False, None]))
    after = runs_at(_old(tmp_path / "b", [True, False, False, False, True]))
    (found,) = compare_sets(before, after)
    change = found["stereotype_score"]
    assert (change.before, change.after, change.n) == (75.0, 25.0, 4)


def test_folders_without_a_set_in_common_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    runs = runs_at(_old(tmp_path / "a", [True, False]))
    with raises_naming(UserError, "in common", "--sets"):
        compare_sets(runs_at(str(tmp_path / "empty")), runs)


def test_a_record_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat):
        runs_at(_old(tmp_path / "newer", [True, False], format=9))
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "likelihood.json").write_text("{")
    with pytest.raises(CorruptRun):
        runs_at(str(folder))
