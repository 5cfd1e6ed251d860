"""By-turn audits whose truth is drawn, small; `python -m bench.simulated.turns` has 400."""

import numpy as np

from bench.simulated.turns import biased_from, measured, onsets, without_bias


def test_placebo_names_are_seldom_flagged_in_any_turn() -> None:
    """16 audits in which names matter and groups do not: 5% of them are 0.8."""
    rng = np.random.default_rng(39)
    audits = [without_bias(rng, number) for number in range(0, 32, 2)]
    assert sum(found.flagged for found in measured(audits)) <= 2


def test_a_gap_from_turn_3_on_is_found_from_no_earlier_turn() -> None:
    """A gap of 40 points in 60 conversations of six turns."""
    rng = np.random.default_rng(40)
    found = measured([biased_from(rng, 3, 0.4) for _ in range(4)])
    assert [onsets(each) for each in found] == [[3]] * 4
    assert all(-0.2 < (each.trends[0].found.value or 0.0) < 0 for each in found)
