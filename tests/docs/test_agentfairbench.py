"""The page of results has the numbers that the script computes from AgentFairBench."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scripts import script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")
SECTION = PAGE.split("\n## Actions of an agent, AgentFairBench\n")[1].split("\n## ")[0]


@pytest.fixture
def program(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (data_folder / "recorded" / "agentfairbench").is_dir():
        pytest.skip("the recorded decisions are not in EVENHAND_DATA")
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    return script("agentfairbench")


def _written(row: dict[str, Any], value: str, times: float) -> str:
    numbers = [f"{times * row[name]:+.1f}".replace("-", "−") for name in (value, "low", "high")]
    return "{} of 100 ({} to {})".format(*numbers)


def test_no_difference_between_groups_is_detected_or_ruled_out(program: ModuleType) -> None:
    rows = program.verdict(program.decisions())
    contrasts = [row for row in rows if row["contrast"] != "verdict"]
    assert {row["state"] for row in rows} == {"inconclusive"}
    assert len(contrasts) == 12
    for outcome in ("action", "score", "tool"):
        of_outcome = [row for row in contrasts if row["contrast"].startswith(f"{outcome},")]
        widest = max(of_outcome, key=lambda row: abs(row["difference"]))
        assert _written(widest, "difference", 100) in SECTION


def test_a_range_of_six_is_within_the_noise_of_six(program: ModuleType) -> None:
    rows = program.noise(program.decisions())
    cells = [row for row in rows if "ratio" in row]
    assert len(cells) == 9
    for name, written in (("ratio", "1.2 to 3.3 times"), ("ratio if normal", "0.6 to 1.5 times"),
                          ("ratio if rare", "0.4 to 1.1")):  # fmt: skip
        ratios = [row[name] for row in cells]
        assert written.startswith(f"{min(ratios):.1f} to {max(ratios):.1f}")
        assert written in SECTION
    for row in rows[9:]:
        assert row["low"] < 0 < row["high"]
