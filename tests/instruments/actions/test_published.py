"""The recorded decisions of AgentFairBench give its published figures."""

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from tests.scripts import script

# 72 decisions of the cell hiring, C4 (Bellibaltu 2026, CC BY 4.0), and its published report.
EXCERPT = Path(__file__).with_name("agentfairbench_hiring_c4.jsonl")
CFR, MASD, RATES, TOOL = 0.25, 7.916666666666667, {"black_male": 8 / 12, "white_male": 0.5}, 0.25


@pytest.fixture
def program(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (data_folder / "recorded" / "agentfairbench").is_dir():
        pytest.skip("the recorded decisions are not in EVENHAND_DATA")
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    return script("agentfairbench")


async def test_an_excerpt_gives_the_published_figures_of_its_cell(tmp_path: Path) -> None:
    declared = tmp_path / "scenario.toml"
    declared.write_text(script("agentfairbench").scenario_of("hiring", tool=True))
    report = await eh.aio.measure(
        "actions",
        out=tmp_path / "run",
        options={"answers": EXCERPT, "scenario": str(declared)},
    )
    assert (report.coverage.scored, report.coverage.n) == (72, 72)
    assert report["spread.action"].value == pytest.approx(CFR)
    assert report["spread.score"].value == pytest.approx(MASD)
    rates = script("agentfairbench")._rates(report, "action")
    assert {group: rates[group] for group in RATES} == pytest.approx(RATES)
    asked = script("agentfairbench")._rates(report, "tool").values()
    assert max(asked) - min(asked) == pytest.approx(TOOL)
    assert report.verdict.state == "inconclusive"
    # By a second route: the range of each profile's six scores, from the file itself.
    rows = [json.loads(line) for line in EXCERPT.read_text().splitlines()]
    table = pl.DataFrame({"id": row["id"], "score": row["answer"]["score"]} for row in rows)
    ranges = table.group_by("id").agg(pl.col("score").max() - pl.col("score").min())
    assert ranges["score"].mean() == pytest.approx(MASD)


def test_all_12_published_cells_come_from_the_recorded_decisions(program: ModuleType) -> None:
    rows = program.decisions()
    cells = program.published(rows)
    assert [cell["decisions"] for cell in cells] == [72] * 12
    assert max(cell["largest error"] for cell in cells) < 1e-12


def test_the_smaller_file_repeats_decisions_of_the_larger_one(program: ModuleType) -> None:
    """864 different decisions are published, and not 864 + 648."""
    keys = ("domain", "scaffold", "profile_id", "group")
    rows, again = program.decisions(), program.decisions(f"raw/{program.MODEL}_raw.jsonl")
    by_key = {tuple(row[key] for key in keys): row["decision"] for row in rows}
    assert (len(by_key), len(again)) == (864, 648)
    assert all(by_key[tuple(row[key] for key in keys)] == row["decision"] for row in again)


def test_exchanged_labels_are_seldom_flagged(program: ModuleType) -> None:
    """`agentfairbench.py permuted` does so 1,000 times."""
    (row,) = program.permuted(program.decisions()[::4], times=12)
    assert row["share"] <= 1 / 12


def test_a_shuffle_keeps_the_values_of_each_matched_set(program: ModuleType) -> None:
    sets = ("family", "cluster", "repeat")
    values = ("value.action", "value.score")
    rows = [(family, cluster, 1, str(label), float(label > 1), label / 4)
            for family in ("f", "g") for cluster in ("a", "b") for label in range(4)]  # fmt: skip
    answers = pl.DataFrame(rows, schema=[*sets, "label", *values], orient="row")
    mixed = program._shuffled(answers, np.random.default_rng(1))
    assert not mixed.equals(answers)
    of_sets = [table.group_by(sets).agg(pl.struct(values).sort()).sort(sets)
               for table in (answers, mixed)]  # fmt: skip
    assert of_sets[0].equals(of_sets[1])
