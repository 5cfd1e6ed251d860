"""`measure --stop-when` and a gate that says `sequential`, as a user runs them, over
stored answers to BBQ."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.instruments.bbq.conftest import records

__all__ = ["endpoint", "evenhand", "records"]  # the fixtures

GATE = """
[[check]]
name = "names somebody"
instrument = "bbq"
measure = "unsupported_attribution"
margin = 0.3
options = { answers = "answers.jsonl" }
sequential = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evenhand.gate.toml").write_text(GATE)
    return tmp_path


def _store(records: pl.DataFrame, folder: Path, says: str) -> None:
    """Two unclear questions of 150 templates, answered alike: "biased" or "unknown"."""
    place = ["category", "question_index"]
    unclear = records.filter((pl.col("condition") == "ambig") & pl.col("biased").is_not_null())
    asked = unclear.group_by(place, maintain_order=True).head(2)
    kept = asked.join(asked.select(place).unique(maintain_order=True).head(150), on=place)
    lines = (
        json.dumps({"category": row["category"], "example_id": row["example_id"],
                    "answer": row["options"][row[says]]})
        for row in kept.iter_rows(named=True)
    )  # fmt: skip
    (folder / "answers.jsonl").write_text("\n".join(lines))


def test_measure_stops_and_its_folder_is_reported_and_not_compared(
    evenhand: Run, folder: Path, data_folder: Path, records: pl.DataFrame
) -> None:
    data = {"EVENHAND_DATA": str(data_folder)}
    measure = ("measure", "bbq", "--answers", "answers.jsonl")
    _store(records, folder, "biased")
    ran = evenhand(*measure, "--stop-when", "s_amb=0.2", "--out", "run", **data)
    assert ran.returncode == 0, ran.stderr
    assert_names(ran.stdout, "BIAS DETECTED", "0.2 or more")
    assert "of 150 templates" in ran.stdout
    found = json.loads((folder / "run/report.json").read_text())
    assert found["stopped"]["verdict"] == "detected"
    assert found["stopped"]["clusters"] < found["stopped"]["of_clusters"] == 150
    again = evenhand(*measure, "--stop-when", "s_amb=0.2", "--out", "run", "--json", **data)
    assert json.loads(again.stdout)["stopped"] == found["stopped"]
    counts = json.loads(evenhand("runs", "show", "run", "--json").stdout)
    assert counts["may_stop"]
    assert counts["not_run"] > 0
    assert counts["coverage"] == 1.0  # of what was asked
    page = evenhand("report", "run", "--out", "page.html", **data)
    assert page.returncode == 0, page.stderr
    assert "stopped early after" in (folder / "page.html").read_text()
    assert_names((folder / "page.html").read_text(), "no p-values")
    for command in (("compare", "run", "run"), ("runs", "pack", "run", "--out", "run.zip"),
                    ("runs", "export", "run", "--to", "eee", "--out", "eee")):  # fmt: skip
        refused = evenhand(*command, **data)
        assert refused.returncode == 1
        assert_names(" ".join(refused.stderr.split()), "evenhand report")


def test_a_sequential_gate_has_the_verdict_of_a_fixed_one_from_fewer_templates(
    evenhand: Run, folder: Path, data_folder: Path, records: pl.DataFrame
) -> None:
    data = {"EVENHAND_DATA": str(data_folder)}
    gate = ("gate", "evenhand.gate.toml")
    _store(records, folder, "unknown")
    made = evenhand(*gate, "--as-baseline", "--out", "main", **data)
    assert made.returncode == 0, made.stderr
    for says, code, verdict in (("unknown", 0, "pass"), ("biased", 1, "fail")):
        _store(records, folder, says)
        ran = evenhand(*gate, "--baseline", "main", "--out", says, **data)
        assert ran.returncode == code, ran.stdout + ran.stderr
        found = json.loads((folder / says / "gate.json").read_text())["checks"][0]
        assert found["verdict"] == verdict
        assert found["early"]["clusters"] < found["early"]["of_clusters"] == 150
        assert "stopped after" in ran.stdout
        assert "evenhand compare" not in ran.stdout
    again = evenhand(*gate, "--baseline", "main", "--out", "biased", "--json", **data)
    assert json.loads(again.stdout)["checks"][0] == found
    assert json.loads(again.stdout)["notes"][0]["code"] == "gate.finished_before"
    (folder / "evenhand.gate.toml").write_text(GATE.replace("sequential = true", ""))
    fixed = evenhand(*gate, "--baseline", "main", "--out", "all", **data)
    assert fixed.returncode == 1, fixed.stdout
    assert json.loads((folder / "all/gate.json").read_text())["checks"][0]["early"] is None
