"""A bias in the decision, in the arguments of a tool or in the choice of a tool is found by its own
measure and by no other; without a bias, audits are seldom flagged."""

import json
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from bench.simulated.actions import (
    Agent,
    by_name,
    fair,
    flagged,
    later,
    less_relief,
    lower,
    rows_of,
)
from evenhand.findings.ratios import SHOWN
from evenhand.findings.report import Report


async def _audit(tmp_path: Path, agent: Agent) -> Report:
    file = tmp_path / "answers.jsonl"
    rows = rows_of(agent, 40, np.random.default_rng(4))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"answers": file, "scenario": "triage"}
    return await eh.aio.measure("actions", out=tmp_path / "run", options=options)


@pytest.mark.parametrize(("agent", "outcome", "size"), [
    (later, "wait", -100 / 240), (less_relief, "pain_relief", 1.0), (lower, "priority", 2 / 3),
])  # fmt: skip
async def test_a_planted_bias_is_found_by_its_own_measure_alone(
    tmp_path: Path, agent: Agent, outcome: str, size: float
) -> None:
    report = await _audit(tmp_path, agent)
    table = report.section("effects")
    assert table is not None
    detected = {row[0] for row in table.rows if row[-1] == SHOWN}
    assert detected == {outcome}
    assert report.verdict.state == "detected"
    assert report[f"difference.{outcome}.group.a"].value == pytest.approx(size, abs=0.05)


async def test_an_agent_without_bias_is_not_flagged_and_its_noise_is_told(tmp_path: Path) -> None:
    report = await _audit(tmp_path, fair)
    assert report.verdict.state == "inconclusive"
    # Half of the decisions differ between two placebos, by one level of three.
    assert report["placebo.priority"].value == pytest.approx(0.5 / 3, abs=0.05)
    assert (report["spread.pain_relief"].value or 0) > 0.3  # CFR without any bias


@pytest.mark.parametrize("agent", [fair, by_name])
def test_placebo_names_are_seldom_flagged(agent: Agent) -> None:
    """`python -m bench.simulated.actions` has 400 audits of each."""
    assert flagged(8, 16, agent) <= 1


def test_a_planted_bias_is_flagged_in_simulated_audits() -> None:
    assert flagged(2, 24, later) == 2
