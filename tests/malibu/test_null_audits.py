"""Audits without a bias are rarely shown to fail, and a bias of twice the detectable size is found.

The same simulation over more settings: `python -m bench.simulated.judge_audits`.
"""

from dataclasses import replace

import numpy as np
import pytest

from bench.simulated.judge_audits import Judge, audit, is_failed, share_of_harms_failed

NULL, PLANTED = 400, 200
MOST = 0.05 + 2 * (0.05 * 0.95 / NULL) ** 0.5
SETTINGS = (
    Judge(),
    Judge(noise=1.0, ties=0.0, lost=0.0),
    Judge(lost=0.3),
    Judge(spread=2.0, noise=0.2, ties=1.0, lost=0.1),
)


@pytest.mark.slow
def test_judges_that_look_at_no_label_are_shown_to_fail_in_at_most_one_audit_of_twenty() -> None:
    """400 audits in four settings of noise, ties and missing replies; any fail counts."""
    rng, failed = np.random.default_rng(20261118), 0
    for n in range(NULL):
        failed += is_failed(audit(SETTINGS[n % len(SETTINGS)], rng)[0])
    assert failed / NULL <= MOST


@pytest.mark.slow
def test_a_bias_of_twice_the_detectable_size_is_found_in_four_audits_of_five() -> None:
    rng = np.random.default_rng(20261119)
    bias = 2 * float(np.mean([audit(Judge(), rng)[1] for _ in range(5)]))
    found = 0
    for _ in range(PLANTED):
        checks = {check.name: check.state for check in audit(replace(Judge(), bias=bias), rng)[0]}
        found += checks["identity"] == "fail"
    assert found / PLANTED >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0.02, 0.5])
def test_judges_of_a_harm_within_the_bars_are_rarely_shown_to_fail(lost: float) -> None:
    assert share_of_harms_failed(100, 6, lost=lost) <= 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5


def test_a_judge_of_a_harm_that_flags_one_group_is_found() -> None:
    assert share_of_harms_failed(20, 8, in_a_group=0.6) >= 0.8
