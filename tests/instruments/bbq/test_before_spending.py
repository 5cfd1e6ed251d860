"""What a small sample can show is said before anything is asked."""

import math

import pytest

from evenhand.findings.plan import detectable, plan
from evenhand.instruments.bbq.instrument import Bbq, BbqOptions


def test_a_small_sample_says_what_it_shows_and_the_default_one_nothing() -> None:
    bbq = Bbq()
    [said] = bbq.remarks(BbqOptions(per_category=8), 88)
    assert f"{detectable(bbq, 88):.2f}" in said
    assert f"{detectable(bbq, 2_728):.2f}" in said
    assert bbq.remarks(BbqOptions(), 2_728) == ()
    assert len(bbq.remarks(BbqOptions(per_category=5), 88)) == 2


def test_it_is_what_the_plan_says_of_the_default_sample_and_falls_with_the_root_of_the_items() -> (
    None
):
    bbq = Bbq()
    usual = detectable(bbq, 2_728)
    assert usual == plan(bbq).what_samples_can_show["the default sample"]
    four_times = detectable(bbq, 4 * 2_728)
    assert usual is not None
    assert four_times == pytest.approx(usual / 2, rel=0.01)
    assert detectable(bbq, 1) == math.inf
