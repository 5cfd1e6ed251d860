"""Adjusted p-values: their order, their invariances, and a second implementation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evenhand.core.errors import UserError
from evenhand.statistics.multiplicity import benjamini_hochberg, holm

families = st.lists(st.floats(0, 1), min_size=1, max_size=15)


@settings(max_examples=80)
@given(raw=families)
def test_holm_is_at_least_bh_at_least_raw(raw: list[float]) -> None:
    for step_down, step_up, p in zip(holm(raw), benjamini_hochberg(raw), raw, strict=True):
        assert 1 >= step_down >= step_up - 1e-12
        assert step_up >= p


@pytest.mark.parametrize("seed", range(3))
def test_both_agree_with_statsmodels(seed: int) -> None:
    raw = (np.random.default_rng(seed).integers(0, 30, 12) ** 2 / 1_000).tolist()  # with ties
    for adjust, name in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        theirs = multipletests(raw, method=name)[1].tolist()
        assert adjust(raw) == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=40)
@given(raw=families)
def test_the_order_in_which_endpoints_are_listed_does_not_matter(raw: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg):
        assert adjust(raw[::-1])[::-1] == pytest.approx(adjust(raw), abs=1e-12)


def test_one_endpoint_needs_no_adjustment_and_none_gives_none() -> None:
    for adjust in (holm, benjamini_hochberg):
        assert adjust([0.03]) == (0.03,)
        assert adjust([]) == ()


@pytest.mark.parametrize("raw", [[0.2, math.nan], [1.5], [-0.1], [[0.1]]])
def test_what_is_no_p_value_is_refused(raw: list[float]) -> None:
    with pytest.raises(UserError):
        holm(raw)
