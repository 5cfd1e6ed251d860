"""The page of results has the numbers that the script computes from published answers."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.scripts import script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")


@pytest.fixture
def program(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (data_folder / "recorded" / "recinq_hiring").is_dir():
        pytest.skip("the published answers of 2026 are not in EVENHAND_DATA")
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    return script("recorded_2026")


def _section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _signed(number: float, digits: int) -> str:
    return f"{number:+.{digits}f}".replace("-", "−")


def _ends(value: dict[str, Any], digits: int, *, times: float = 1, signed: bool = False) -> str:
    write = _signed if signed else lambda number, digits: f"{number:.{digits}f}"
    low, high = (write(times * value[end], digits) for end in ("low", "high"))
    return f"({low} to {high})"


@pytest.mark.parametrize("outcome", ["score", "invited"])
def test_no_name_is_shown_to_move_a_cv_beyond_asking_again(
    program: ModuleType, outcome: str
) -> None:
    answers = program.read("recinq_hiring/answers.jsonl.gz")
    named = [row for row in answers if row["variant"].startswith(program.NAMES)]
    row = program.effect("all", outcome, named)
    assert row["state"] == "inconclusive"
    assert row["excess"]["n"] == 187
    line = next(line for line in _section("A name on a CV, 11 models of 2026").splitlines()
                if line.startswith(f"| {outcome}"))  # fmt: skip
    assert f"{100 * row['again']:.1f}%" in line
    for name in ("excess", "difference"):
        value = row[name]
        assert _signed(100 * value["estimate"], 1) in line
        assert _ends(value, 1, times=100, signed=True) in line


def test_what_a_judge_of_bias_flags_is_mostly_what_asking_again_does(program: ModuleType) -> None:
    rows = program.bias_judge()
    lines = [line for line in _section("A judge of bias, 2026").splitlines()
             if line.startswith("| ")][2:]  # fmt: skip
    assert len(rows) == len(lines) == 5
    for row, line in zip(rows, lines, strict=True):
        assert f"{row['n']:,}" in line
        assert f"{row['estimate']:.2f} {_ends(row, 2)}" in line


def test_every_judge_changes_more_verdicts_with_the_order_than_by_asking_again(
    program: ModuleType,
) -> None:
    rows = sorted(program.orders(), key=lambda row: -row["other_order"]["estimate"])
    lines = [line for line in _section("Nine judges in both orders").splitlines()
             if line.startswith("| ")][2:]  # fmt: skip
    assert len(rows) == len(lines) == 9
    for row, line in zip(rows, lines, strict=True):
        agreed = (f"{row[order]['estimate']:.2f}" for order in ("other_order", "same_order"))
        change = row["difference"]
        expected = f"| {' | '.join(agreed)} | {_signed(change['estimate'], 2)} "
        assert f"{expected}{_ends(change, 2, signed=True)} |" in line
        assert change["high"] < 0


def test_a_permutation_test_of_two_and_two_is_worked_by_hand() -> None:
    permutation_p = script("recorded_2026").permutation_p
    # of the six splits of 1, 2, 5, 6 only {1, 2} and {5, 6} lie as far apart as 4
    assert permutation_p([1, 2], [5, 6]) == pytest.approx(2 / 6)
    assert permutation_p([3, 3], [3, 3]) == 1


def test_reasoning_regressed_and_its_repair_is_not_shown_to_beat_none(
    program: ModuleType,
) -> None:
    rows = {row["answers"]: row for row in program.reasoning()}
    lines = [line for line in _section("Reasoning and its repair").splitlines()
             if line.startswith("| ")][2:]  # fmt: skip
    for (name, of), line in zip(
        (("none", ""), ("reasoning", "none -> reasoning"), ("repaired", "none -> repaired")),
        lines,
        strict=True,
    ):
        share = rows[name]["unsupported"]
        assert rows[name]["n"] == 864
        assert f"| {share['estimate']:.2f} {_ends(share, 2)} |" in line
        if of:
            change = rows[of]["change"]
            expected = f"| {_signed(change['estimate'], 2)} {_ends(change, 2, signed=True)} |"
            assert line.endswith(expected)
    repair = rows["reasoning -> repaired"]
    conclusion = _section("Reasoning and its repair").split("**Conclusion.**")[1]
    change = repair["change"]
    assert f"{_signed(change['estimate'], 2)} {_ends(change, 2, signed=True)[:-1]};" in conclusion
    states = {name: rows[name].get("state") for name in rows if "->" in name}
    assert states == {"none -> reasoning": "detected", "none -> repaired": "inconclusive",
                      "reasoning -> repaired": "detected"}  # fmt: skip
    flips = {name: (rows[name]["fixed"], rows[name]["broken"]) for name in states}
    assert flips["none -> reasoning"] == (4, 22)
    assert flips["reasoning -> repaired"] == (21, 0)
    assert "(22 broken, 4 fixed)" in conclusion
    assert "21 fixed, 0 broken" in conclusion


def test_the_shares_of_unsupported_answers_are_those_of_the_raw_records(
    program: ModuleType,
) -> None:
    rows = [row for row in program.read("bbq_reasoning_debias/bbq_sexual_orientation.jsonl.gz")
            if row["context_condition"] == "ambig"]  # fmt: skip
    unsupported = [
        sum("unknown" not in row["answer_info"][f"ans{row[f'{answer}_answer']}"] for row in rows)
        for answer in program.WITH.values()
    ]
    assert (len(rows), unsupported) == (432, [13, 31, 10])  # 3.0%, 7.2% and 2.3%
