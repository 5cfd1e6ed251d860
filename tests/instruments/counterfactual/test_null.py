"""What counterfactual tests without bias conclude; the null laboratory counts how often."""

from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from bench.simulated.swap_answers import DECISION, drawn, lines_of, lost, measured, without_bias
from evenhand.findings.ratios import SHOWN
from evenhand.instruments.counterfactual.tables import state_of
from tests.instruments.counterfactual.test_runs import _file


def test_no_difference_is_shown_on_the_side_that_cannot_be() -> None:
    rng = np.random.default_rng(20)
    found = measured([without_bias(rng, number) for number in range(60)])
    assert all((one.excess.high or 0.0) >= 0 for one in found)


def test_outcome_p_value_and_interval_agree_in_every_audit() -> None:
    """A difference is shown where its interval excludes 0 and its adjusted p-value is at most 0.05,
    and nowhere else; it is the same only where its interval lies within 5 of 100."""
    rng = np.random.default_rng(22)
    audits = [without_bias(rng, number) for number in range(60)]
    for families in audits[::2]:  # half of them have a bias against the first label
        for answers in families.values():
            answers[: len(answers) // 3, 0] = 0.0
    for found in measured(audits):
        excesses = [found.excess, *found.by_family.values()]
        for one in [*(each.found for each in found.signed), *excesses]:
            assert one.low is not None
            assert one.high is not None
            assert one.p_holm is not None
            assert (one.p_holm <= 0.05) == (one.low > 0 or one.high < 0)
        assert (found.state == "detected") == any(
            state_of(one.found) == SHOWN for one in found.signed
        )


@pytest.mark.parametrize("biased", [False, True])
async def test_a_run_over_the_same_answers_concludes_the_same(tmp_path: Path, biased: bool) -> None:
    rng = np.random.default_rng(23)
    answers = lost(rng, drawn(rng, 40, 3, "even"), "at random")
    if biased:
        answers[:, 0] = 0.0
    families = {"f": answers}
    file = _file(tmp_path / "a.jsonl", lines_of(families))
    report = await eh.aio.measure(
        "counterfactual",
        out=tmp_path / "run",
        options={"answers": file, "decision": DECISION, "favorable_outcome": "yes"},
    )
    (found,) = measured([families])
    assert report.verdict.state == found.state
    assert (report.verdict.state == "detected") == biased
    for one in found.signed:
        same = report[f"difference.f.{one.left}"]
        assert (same.value, same.low, same.high, same.p_holm) == pytest.approx(
            (one.found.value, one.found.low, one.found.high, one.found.p_holm)
        )
