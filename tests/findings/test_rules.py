"""The rules of evidence: what a change is called, and when a number has kept within its margin."""

import math

import polars as pl
import pytest

from evenhand.findings.found import Change, Coverage
from evenhand.findings.measures import Mean, Measure
from evenhand.findings.rules import (
    adjusted,
    direction,
    kept,
    missing_line,
    red_line,
    smallest_shown,
)
from evenhand.statistics.sign_flips import p_two_sided


def _measure(
    better: str = "higher",
    margin: float | None = 0.02,
    unit: str = "share",
    within: tuple[float, float] = (0, 1),
) -> Measure:
    return Measure(
        name="m",
        label="accuracy",
        statistic=Mean(pl.col("x")),
        better=better,  # type: ignore[arg-type]
        margin=margin,
        unit=unit,  # type: ignore[arg-type]
        within=within,
    )


def _change(difference: float, se: float, clusters: int, p: float | None = None) -> Change:
    reach = 2 * se
    return Change(
        name="m",
        before=0.5,
        after=0.5 + difference,
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        se=se,
        p=p,
        n=100,
        clusters=clusters,
    )


def test_nothing_changed_in_eleven_clusters_is_open_and_in_two_hundred_is_kept() -> None:
    # 1 − 0.025^(1/11) = 0.285 may still differ; 1 − 0.025^(1/200) = 0.0183 is within 0.02.
    assert kept(_change(0.0, 0.0, 11), _measure()) == "open"
    assert kept(_change(0.0, 0.0, 200), _measure()) == "kept"


def test_nothing_changed_is_kept_within_two_points_from_183_clusters_on() -> None:
    # ln 0.025 / ln 0.98 = 182.6: one-sided at 2.5 %, as every other "kept".
    assert kept(_change(0.0, 0.0, 182), _measure()) == "open"
    assert kept(_change(0.0, 0.0, 183), _measure()) == "kept"


def test_a_number_without_ends_is_never_kept_by_having_no_spread() -> None:
    nats = _measure(margin=0.1, unit="nats", within=(-math.inf, math.inf))
    assert kept(_change(0.0, 0.0, 100_000), nats) == "open"
    assert kept(_change(0.0, 0.001, 101), nats) == "kept"  # a spread that was seen can show it
    assert kept(_change(-0.5, 0.0, 11), nats) == "crossed"
    assert smallest_shown(_change(0.0, 0.0, 100_000), nats, family=1) is None


def test_so_few_clusters_that_sign_flips_cannot_show_anything_have_no_smallest_change() -> None:
    # 2^(1−6) = 0.03125 is below 0.05 and above 0.05/2; seven clusters can: 0.0156.
    six, seven = (_change(0.1, 0.05, clusters) for clusters in (6, 7))
    assert smallest_shown(six, _measure(), family=1) is not None
    assert smallest_shown(six, _measure(), family=2) is None
    assert smallest_shown(seven, _measure(), family=2) is not None
    assert smallest_shown(_change(0.0, 0.0, 6), _measure(), family=2) is None
    assert p_two_sided([1.0] * 6) == 2.0 ** (1 - 6)  # all of one sign: no p is smaller


def test_a_fall_in_every_cluster_alike_is_crossed_though_it_has_no_spread() -> None:
    assert kept(_change(-0.5, 0.0, 11), _measure()) == "crossed"  # 2^(1−11) = 0.001
    assert kept(_change(-0.5, 0.0, 3), _measure()) == "open"  # 2^(1−3) = 0.25 shows nothing


@pytest.mark.parametrize(
    ("difference", "se", "state"),
    [
        (0.0, 0.005, "kept"),  # 0 + 0.02 = 4 standard errors above the margin
        (-0.03, 0.005, "crossed"),  # the interval ends at −0.02
        (-0.01, 0.02, "open"),
        (0.01, 0.1, "open"),  # better by its estimate, and still not shown to have kept
    ],
)
def test_kept_within_the_margin_has_three_states(difference: float, se: float, state: str) -> None:
    assert kept(_change(difference, se, 101), _measure()) == state
    assert kept(_change(-difference, se, 101), _measure("lower")) == state  # the other way round


def test_a_margin_in_percent_is_held_against_percent() -> None:
    percent = _measure(margin=2.0, unit="percent", within=(0, 100))
    assert kept(_change(0.0, 0.0, 200), percent) == "kept"
    assert kept(_change(0.0, 0.0, 100), percent) == "open"  # 3.6 %


def test_what_cannot_be_compared_is_open_and_says_why() -> None:
    nothing = Change(name="m", before=None, after=None, difference=None, undefined="no rows: 0/0")
    assert kept(nothing, _measure()) == "open"
    assert "no rows: 0/0" in red_line(nothing, _measure()).says


def test_holm_counts_a_change_without_p_and_leaves_the_order() -> None:
    family = [_change(0.1, 0.01, 30, p) for p in (0.01, None, 0.04)]
    assert [one.p_holm for one in adjusted(family)] == pytest.approx([0.03, 1.0, 0.08])


def test_better_and_worse_are_said_only_where_p_shows_it() -> None:
    accuracy, bias = _measure(), _measure("zero", margin=None)
    assert direction(_change(0.1, 0.01, 30, p=0.001), accuracy) == "better"
    assert direction(_change(-0.1, 0.01, 30, p=0.001), accuracy) == "worse"
    assert direction(_change(-0.1, 0.1, 30, p=0.3), accuracy) == "open"
    # From 0.5 to 0.4 is nearer to no bias, from 0.5 to 0.6 is not.
    assert direction(_change(-0.1, 0.01, 30, p=0.001), bias) == "better"
    assert direction(_change(0.1, 0.01, 30, p=0.001), bias) == "worse"


def test_passing_over_to_the_other_side_is_better_only_if_the_distance_is_shown_to_shrink() -> None:
    bias = _measure("zero", margin=None)
    across = _change(-0.9, 0.1, 30, p=0.001)  # from +0.5 to −0.4: the distance shrank by 0.1
    assert direction(across, bias) == "open"
    assert direction(_change(-0.6, 0.1, 30, p=0.001), bias) == "better"  # to −0.1: by 0.4
    assert direction(_change(-1.4, 0.1, 30, p=0.001), bias) == "worse"  # to −0.9


def test_more_missing_answers_are_a_red_line_from_one_in_a_hundred_on() -> None:
    def state(before: int, after: int) -> str:
        old, new = (Coverage(n=100, scored=100 - k, by_reason={}) for k in (before, after))
        return missing_line({"": (old, new)}).state

    assert state(0, 2) == "crossed"
    assert state(0, 1) == "kept"
    assert state(50, 0) == "kept"
