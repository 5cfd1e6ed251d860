"""The training on repaired answers: its rows, its table, and the numbers of its page."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.statistics.clusters import Interval
from tests.docs.test_code_blocks import ROOT
from tests.scripts import script

repaired_answers = script("repaired_answers")
RECORD = ROOT / "recorded" / "repaired_answers"


def _row(
    number: int, template: str, repaired: int, control: int, words: str = ""
) -> dict[str, Any]:
    text = f"{words or f'Context {number}'}\nWho?\nOptions: A; B; unknown"
    return {
        "id": f"Age/{number}",
        "template": template,
        "prompt": [{"role": "user", "content": text}],
        "options": ("A", "B", "unknown"),
        "unknown": 2,
        "repaired": repaired,
        "control": control,
    }


def test_rows_are_three_that_keep_to_one_that_abstains_by_the_repaired_answer_alone(
    tmp_path: Path,
) -> None:
    rows = [_row(n, f"Age/{n % 3}", repaired=2 if n % 4 == 0 else 0, control=0) for n in range(40)]
    rows += [_row(100 + n, "Age/4", repaired=0, control=0, words="the same") for n in range(9)]
    rows += [_row(200, "Age/5", repaired=0, control=0, words="long " * 60)]
    chosen = repaired_answers.chosen_rows(rows, 2, (6, 2))
    abstaining = [row for row in chosen if row["repaired"] == row["unknown"]]
    assert (len(chosen), len(abstaining)) == (8, 2)
    assert len({row["template"] for row in abstaining}) == 2  # templates in turns
    assert sum(row["template"] == "Age/4" for row in chosen) == 1  # a question once
    assert "Age/200" not in {row["id"] for row in chosen}
    assert repaired_answers.chosen_rows(rows[::-1], 2, (6, 2)) == chosen
    for arm, words in (("repaired", "unknown"), ("longer", "unknown"), ("control", "A")):
        repaired_answers.write_pairs(abstaining, arm, tmp_path / arm)
        written = pl.read_parquet(tmp_path / arm / "bbq/train-00000.parquet").to_dicts()
        assert {row["chosen"][0]["content"] for row in written} == {words}
        assert all(row["rejected"] != row["chosen"] for row in written)


def test_a_split_holds_out_fifty_templates_that_depend_on_the_seed_alone() -> None:
    names = [f"Age/{n}" for n in range(150)]
    splits = [repaired_answers.held_out(names, seed) for seed in (2, 3, 4)]
    assert [len(split) for split in splits] == [50, 50, 50]
    assert splits[0] == repaired_answers.held_out(names[::-1], 2)
    assert not splits[0] == splits[1] == splits[2]


def test_a_change_pairs_items_and_counts_a_template_of_several_seeds_as_one_cluster() -> None:
    table = pl.DataFrame(
        [
            ("base", "a", "t", 1.0), ("base", "b", "t", 1.0), ("base", "c", "u", 1.0),
            ("base", "d", "u", 0.0), ("repaired-2", "a", "t", 0.0), ("repaired-2", "c", "u", 1.0),
            ("repaired-3", "a", "t", 0.0), ("repaired-3", "d", "u", 1.0),
            ("control-2", "a", "t", 1.0),
        ],
        schema=["run", "item", "cluster", "attribution"], orient="row",
    )  # fmt: skip
    pairs = repaired_answers.changes(table, "base", "repaired")
    old, new, interval = repaired_answers.change(pairs, "attribution")
    # Changes −1, 0, −1, +1 around −0.25: sums of the clusters −1.5 and +1.5, se √2·√4.5/4 = 0.75.
    assert (old, new) == (0.75, 0.5)
    assert (interval.estimate, interval.se, interval.clusters) == pytest.approx((-0.25, 0.75, 2))
    beside = repaired_answers.changes(table, "control", "repaired")
    assert beside.select("run", "item").rows() == [("repaired-2", "a")]


@pytest.mark.parametrize(
    ("measure", "low", "high", "outcome"),
    [
        ("attribution", -0.3, -0.1, "improved"),
        ("attribution", -0.3, 0.1, "inconclusive"),
        ("attribution", 0.1, 0.3, "regressed"),
        ("accuracy", -0.02, 0.1, "kept"),
        ("accuracy", -0.03, 0.1, "inconclusive"),
        ("accuracy", -0.03, -0.01, "regressed"),
        ("abstention", -0.2, 0.02, "kept"),
        ("abstention", 0.01, 0.03, "regressed"),
        ("lms", -3.0, 0.5, "inconclusive"),
        ("logprob", -0.04, -0.01, "kept"),
    ],
)
def test_an_outcome_is_what_the_preregistration_says(
    measure: str, low: float, high: float, outcome: str
) -> None:
    interval = Interval(estimate=(low + high) / 2, low=low, high=high, confidence=0.95, se=0.1,
                        df=9, p_two_sided=0.5, n=20, clusters=10)  # fmt: skip
    assert repaired_answers.outcome(measure, interval) == outcome


PAGE = {
    "unsupported answers": ("attribution", "improved", "improved"),
    "accuracy, disambiguated": ("accuracy", "inconclusive", "inconclusive"),
    "over-abstention": ("abstention", "regressed", "inconclusive"),
}


def test_the_pages_hold_the_numbers_of_the_record() -> None:
    def page(name: str) -> str:
        return (ROOT / name).read_text().replace("−", "-")

    section = page("docs/results.md").split("\n## Training on repaired answers\n")[1]
    section = section.split("\n## ")[0]
    table = repaired_answers.table(RECORD)
    design = page("design/training-bias.md")
    for row in table:
        assert f"| {' | '.join(row).rstrip()} |" in design, row[:3]
    rows = {tuple(row[:3]): row[3:] for row in table}
    arms = ("base to repaired", "base to longer")
    for words, (measure, *outcomes) in PAGE.items():
        both = [rows[arm, measure, "held out"] for arm in arms]
        numbers = [number for row in both for number in row[:3]]
        assert f"| {words} | {' | '.join(numbers)} |" in section
        assert [row[-1] for row in both] == outcomes
    for arm, drawn in zip(arms, ((2, 3, 4), (5, 6, 7)), strict=True):
        kept = [rows[arm, measure, "all"][-1] for measure in ("lms", "logprob")]
        assert kept == ["kept", "kept"]
        seeds = (rows[arm, "attribution", f"seed {seed}"][2].split()[0] for seed in drawn)
        assert ", ".join(seeds) in section
    wide = {tuple(row[:3]): row[3:] for row in repaired_answers.table(RECORD, 0.975)}
    for measure in ("attribution", "accuracy", "abstention"):
        assert wide["base to longer", measure, "held out"][2] in design
    assert wide["base to longer", "attribution", "held out"][-1] == "improved"
    for name in ("README.md", "docs/training.md"):
        change = rows["base to longer", "attribution", "held out"][2].split()[0].lstrip("-")
        assert f"by {change}" in page(name)
