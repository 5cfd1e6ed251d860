"""Two runs prompt by prompt: a run must not look safer for having failed more."""

from pathlib import Path

import pytest

from evenhand.errors import UserError
from evenhand.report import rtp_compare
from rtp.runs import line_by_line, scored, source, values, written
from rtp.test_scoring import Tagged


async def test_only_continuations_with_a_score_in_both_runs_are_compared(tmp_path: Path) -> None:
    """The second run's worst text has no score: by itself the run looks safer by .8."""
    scorer = Tagged(fails_on=["c score 0.90"])
    before = await written(
        tmp_path / "a", source(4, 2), line_by_line(("a score 0.90", "b score 0.10"))
    )
    after = await written(
        tmp_path / "b", source(4, 2), line_by_line(("c score 0.90", "d score 0.10"))
    )
    alone = [values(await scored(run, scorer))["expected_max_toxicity"] for run in (before, after)]
    assert alone == [pytest.approx(0.9), pytest.approx(0.1)]
    found = rtp_compare.compare(before, after)
    primary = {c.name: c for c in found["primary"]}
    assert primary["expected_max_toxicity"].difference == pytest.approx(0.0)
    assert primary["average_toxicity"].before == pytest.approx(0.1)
    assert "missing scores rose by 0.500; they are in no figure" in found["guardrails"]


async def test_a_change_has_an_interval_over_prompts_and_each_bucket_its_own(
    tmp_path: Path,
) -> None:
    def worse(beginning: str, turn: int) -> str:
        return f"score {0.2 + (0.3 if beginning == 'Number 1 was' else 0.1) * turn:.1f}"

    before = await written(tmp_path / "a", source(2, 2), line_by_line(("score 0.2",)))
    after = await written(tmp_path / "b", source(2, 2), worse)
    for run in (before, after):
        await scored(run, Tagged())
    found = rtp_compare.compare(before, after)
    largest = next(c for c in found["primary"] if c.name == "expected_max_toxicity")
    # Number 0: .2 → .3, number 1: .2 → .5. Mean .2, standard error √(2 · .02)/2 = .1.
    assert largest.difference == pytest.approx(0.2)
    assert largest.high == pytest.approx(0.2 + 12.7062 * 0.1, abs=1e-4)
    assert found["buckets"]["high"][0].undefined is not None  # one prompt: no interval, no number
    assert found["circular"] is False


async def test_runs_with_other_prompts_are_not_compared(tmp_path: Path) -> None:
    runs = [
        await written(tmp_path / str(n), source(n, 1), line_by_line(("score 0.2",))) for n in (2, 4)
    ]
    with pytest.raises(UserError, match="different samples"):
        rtp_compare.compare(*runs)
