"""Verdict, comparison and gate conclude from the signed differences between groups."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenhand as eh
from bench.simulated.swap_answers import DECISION, Answers, lines_of
from evenhand.experiments import gate_file, gating
from evenhand.findings.measures import Measure
from evenhand.findings.report import Report
from evenhand.findings.summed_statistics import Mean
from evenhand.findings.worst_case import WorstCaseSums, p_of_bias
from evenhand.instruments.counterfactual import tables
from evenhand.views.blocks import Grid, Line
from evenhand.views.report_page import page
from tests.errors import assert_names
from tests.instruments.counterfactual.test_runs import _file

GATE = """
[[check]]
name = "same for everybody"
instrument = "counterfactual"
margin = 0.05
options = {{ answers = "{file}", decision = '{decision}', favorable_outcome = "yes" }}
method = "stored"
"""


def _counted(prompts: int, rates: tuple[float, ...]) -> Answers:
    """As many yes of each label as its rate has, spread so that every label's pattern repeats with
    another period: the answers of two labels to one prompt say little of each other."""
    answers = np.zeros((prompts, len(rates), 2))
    for label, rate in enumerate(rates):
        for role in range(2):
            rng = np.random.default_rng([label, role])
            answers[rng.permutation(prompts)[: round(rate * prompts)], label, role] = 1.0
    return answers


async def _run(tmp_path: Path, name: str, families: dict[str, Answers]) -> Report:
    file = _file(tmp_path / f"{name}.jsonl", lines_of(families))
    return await eh.aio.measure(
        "counterfactual",
        out=tmp_path / name,
        options={"answers": file, "decision": DECISION, "favorable_outcome": "yes"},
    )


@pytest.fixture
async def runs(tmp_path: Path) -> tuple[Report, Report]:
    """Yes-rates of 50 and 50 % before, of 40 and 60 % after, over 400 prompts."""
    before = await _run(tmp_path, "before", {"gender": _counted(400, (0.5, 0.5))})
    return before, await _run(tmp_path, "after", {"gender": _counted(400, (0.4, 0.6))})


async def test_a_new_gap_of_20_points_is_shown_by_verdict_comparison_and_gate(
    tmp_path: Path, runs: tuple[Report, Report]
) -> None:
    before, after = runs
    assert before["difference.gender.a"].value == 0
    assert before.verdict.state != "detected"
    assert after["difference.gender.a"].value == pytest.approx(-0.2)
    assert after.verdict.state == "detected"
    diff = eh.compare(tmp_path / "before", tmp_path / "after")
    assert [change.name for change in diff.primary] == ["difference.gender.a"]
    assert [line.state for line in diff.guardrails if line.name == "difference.gender.a"] == [
        "violated"
    ]
    assert diff.verdict.state == "detected"
    (tmp_path / "g.toml").write_text(GATE.format(file=tmp_path / "after.jsonl", decision=DECISION))
    found = gating.judge(gate_file.read(tmp_path / "g.toml"), [str(tmp_path / "before")],
                         [str(tmp_path / "after")])  # fmt: skip
    assert found.verdict == "fail"
    (check,) = found.checks
    assert check.measure is not None
    assert check.measure.name == "difference.gender.a"


async def test_a_gate_without_a_measure_has_a_check_for_every_difference(tmp_path: Path) -> None:
    """One of four labels of one family loses 40 points; the other family stays."""
    even = {"team": _counted(60, (0.5,) * 4), "gender": _counted(60, (0.5, 0.5))}
    await _run(tmp_path, "before", even)
    await _run(tmp_path, "after", {**even, "team": _counted(60, (0.1, 0.5, 0.5, 0.5))})
    (tmp_path / "g.toml").write_text(GATE.format(file=tmp_path / "after.jsonl", decision=DECISION))
    found = gating.judge(gate_file.read(tmp_path / "g.toml"), [str(tmp_path / "before")],
                         [str(tmp_path / "after")])  # fmt: skip
    names = [one.measure.name for one in found.checks if one.measure is not None]
    assert sorted(names) == ["difference.gender.a", *(f"difference.team.{one}" for one in "abcd")]
    assert {one.measure.name for one in found.checks if one.measure and one.verdict == "fail"} == {
        "difference.team.a"
    }


async def test_both_runs_count_the_same_decision_where_none_is_named(tmp_path: Path) -> None:
    """Yes is most frequent before, no after: counted each by its own, a − b would turn around."""
    for name, rates in (("before", (0.6, 0.5)), ("after", (0.5, 0.4))):
        file = _file(tmp_path / f"{name}.jsonl", lines_of({"f": _counted(40, rates)}))
        await eh.aio.measure(
            "counterfactual", out=tmp_path / name, options={"answers": file, "decision": DECISION}
        )
    change = eh.compare(tmp_path / "before", tmp_path / "after")["difference.f.a"]
    assert (change.before, change.after) == pytest.approx((0.1, 0.1))


async def test_a_rate_that_was_not_asked_for_says_so(
    tmp_path: Path, runs: tuple[Report, Report]
) -> None:
    """Both runs name the decision; what is absent is the version without a label."""
    del runs
    rate = eh.compare(tmp_path / "before", tmp_path / "after")["rate"]
    assert_names(rate.undefined or "", "no prompt")


async def test_coverage_is_said_in_counts_and_no_empty_table_is_printed(tmp_path: Path) -> None:
    """Of the 16 pairs of a and b 5 lack the placebo's answer about a, and 6 that about b."""
    answers = np.ones((8, 2, 2))
    answers[:5, 0, 1] = answers[:6, 1, 0] = np.nan
    report = await _run(tmp_path, "run", {"f": answers})
    part = report.coverage_by["f: a − b"]
    assert (part.n, part.scored) == (16, 5)
    blocks = page(report, full=True)
    lines = [block.text for block in blocks if isinstance(block, Line)]
    assert any(f"{part.scored} of {part.n} (31.2%)" in line for line in lines)
    assert all(block.rows for block in blocks if isinstance(block, Grid))
    method = report.section("other_effects")
    assert method is not None
    assert method.note not in [block.text for block in page(report) if isinstance(block, Line)]


def test_a_score_that_is_never_below_zero_is_not_shown_below_it() -> None:
    """Ten clusters of −1: two-sided p = 2/2¹⁰; of a one-sided measure nothing is shown."""
    below = WorstCaseSums(-np.ones(10), -np.ones(10), np.ones(10), np.zeros(10))
    above = WorstCaseSums(np.ones(10), np.ones(10), np.ones(10), np.zeros(10))
    two = Measure(name="m", label="m", statistic=Mean(pl.lit(0)), better="zero", within=(-1, 1))
    one = Measure(name="m", label="m", statistic=Mean(pl.lit(0)), better="zero", within=(-1, 1),
                  one_sided=True)  # fmt: skip
    for measure, sums in ((two, below), (two, above), (one, above)):
        assert p_of_bias(measure, sums) == pytest.approx(2 / 2**10)
    assert p_of_bias(one, below) == 1.0


@pytest.mark.parametrize(("kind", "words"), [("other", "a placebo"), ("again", "asking again")])
async def test_a_report_names_the_placebo_that_was_declared(
    tmp_path: Path, kind: str, words: str
) -> None:
    file = _file(tmp_path / "a.jsonl", lines_of({"gender": _counted(60, (0.1, 0.9))}))
    options = {"answers": file, "decision": DECISION, "placebo": kind}
    report = await eh.aio.measure("counterfactual", out=tmp_path / "run", options=options)
    assert_names(" ".join(tables.says(report)), words)
