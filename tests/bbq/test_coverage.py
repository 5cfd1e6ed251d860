"""Our intervals cover as often as they say, on BBQ's own template structure; naive ones do not."""

import polars as pl
import pytest

from bench.coverage_of_intervals import simulate, template_sizes
from evenhand.instruments.bbq import Sampling, sample


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True], ids=["s_amb", "paired difference"])
def test_intervals_over_all_of_bbq_cover_95_percent_and_naive_ones_do_not(
    records: pl.DataFrame, *, paired: bool
) -> None:
    found = simulate(template_sizes(records), draws=2_000, seed=1, paired=paired)
    assert 0.93 <= found.clustered <= 0.97
    assert found.naive < 0.80


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True], ids=["s_amb", "paired difference"])
def test_intervals_over_the_default_sample_cover_95_percent(
    records: pl.DataFrame, *, paired: bool
) -> None:
    sizes = template_sizes(sample(records, Sampling()))
    found = simulate(sizes, draws=2_000, seed=1, paired=paired)
    assert 0.93 <= found.clustered <= 0.97
    assert found.naive < found.clustered  # two rows a template: close, and still too narrow
