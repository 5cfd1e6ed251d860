"""Each formula against numbers worked out by hand."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.metrics import likelihood as metrics
from evenhand.statistics.metrics.likelihood import Likelihood

_score = st.floats(0, 100)


def _value(expression: pl.Expr) -> object:
    return pl.select(expression).item()


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        pytest.param(-10.0, -12.0, 100.0, id="the-first"),
        pytest.param(-12.0, -10.0, 0.0, id="the-second"),
        pytest.param(-10.0, -10.0, 50.0, id="a-tie-is-no-preference"),
    ],
)
def test_the_likelier_of_two_is_preferred(first: float, second: float, wanted: float) -> None:
    assert _value(metrics.preferred(pl.lit(first), pl.lit(second))) == wanted


@pytest.mark.parametrize(
    ("three", "wanted"),
    [
        pytest.param((-1.0, -2.0, -3.0), 100.0, id="both-ends-make-more-sense"),
        pytest.param((-1.0, -3.0, -2.0), 50.0, id="one-of-them"),
        pytest.param((-4.0, -3.0, -2.0), 0.0, id="neither"),
    ],
)
def test_the_language_model_score_counts_both_meaningful_ends(
    three: tuple[float, float, float], wanted: float
) -> None:
    assert _value(metrics.language_model_score(*map(pl.lit, three))) == wanted


def test_unrelated_wins_only_as_the_likeliest_of_three() -> None:
    assert _value(metrics.unrelated_wins(*map(pl.lit, (-3.0, -2.0, -1.0)))) == 100.0
    assert _value(metrics.unrelated_wins(*map(pl.lit, (-1.0, -3.0, -2.0)))) == 0.0
    assert _value(metrics.unrelated_wins(*map(pl.lit, (-3.0, -1.0, -2.0)))) == 0.0


def test_a_missing_option_leaves_every_score_without_a_value() -> None:
    known, missing = pl.lit(-1.0), pl.lit(None, pl.Float64)
    assert _value(metrics.preferred(known, missing)) is None
    assert _value(metrics.language_model_score(known, missing, known)) is None
    assert _value(metrics.unrelated_wins(known, known, missing)) is None


@pytest.mark.parametrize(
    ("lms", "ss", "wanted"),
    [
        pytest.param(100.0, 50.0, 100.0, id="ideal"),
        pytest.param(100.0, 100.0, 0.0, id="always-the-stereotype"),
        pytest.param(100.0, 0.0, 0.0, id="never-the-stereotype"),
        pytest.param(50.0, 50.0, 50.0, id="guessing"),
        pytest.param(90.0, 60.0, 72.0, id="90-times-40-over-50"),
    ],
)
def test_icat_has_the_values_of_the_papers_axioms(lms: float, ss: float, wanted: float) -> None:
    assert metrics.icat(lms, ss) == pytest.approx(wanted)


@given(_score, _score)
def test_icat_is_the_same_for_a_bias_either_way_and_never_above_the_lms(
    lms: float, ss: float
) -> None:
    assert metrics.icat(lms, ss) == pytest.approx(metrics.icat(lms, 100 - ss))
    assert -1e-9 <= metrics.icat(lms, ss) <= lms + 1e-9


def test_a_text_after_another_loses_its_tokens_and_its_log_probability() -> None:
    whole, before = Likelihood(-30.0, 12), Likelihood(-20.0, 8)
    assert whole.after(before) == Likelihood(-10.0, 4)


def test_the_gap_is_above_0_where_the_female_version_is_likelier() -> None:
    assert metrics.gap(-2.0, -3.5) == 1.5


def test_the_slope_of_three_points_on_a_line() -> None:
    x, y = (1.0, 2.0, 4.0), (3.0, 5.0, 9.0)  # y = 2x + 1
    sums = (
        3.0,
        sum(x),
        sum(y),
        sum(a * a for a in x),
        sum(a * b for a, b in zip(x, y, strict=True)),
    )
    assert metrics.slope(*sums) == pytest.approx(2.0)
