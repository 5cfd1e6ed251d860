"""The rules of evidence: what a change is called, and when a number has kept within its margin."""

import polars as pl
import pytest

from evenhand.findings.found import Change
from evenhand.findings.measures import Mean, Measure
from evenhand.findings.rules import adjusted, direction, kept, missing_line, red_line


def _measure(better: str = "higher", margin: float | None = 0.02, unit: str = "share") -> Measure:
    return Measure(
        name="m",
        label="accuracy",
        statistic=Mean(pl.col("x")),
        better=better,  # type: ignore[arg-type]
        margin=margin,
        unit=unit,  # type: ignore[arg-type]
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
    # 1 − 0.05^(1/11) = 0.238 may still differ; 1 − 0.05^(1/200) = 0.0149 is within 0.02.
    assert kept(_change(0.0, 0.0, 11), _measure()) == "open"
    assert kept(_change(0.0, 0.0, 200), _measure()) == "kept"


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
    assert kept(_change(0.0, 0.0, 200), _measure(margin=2.0, unit="percent")) == "kept"
    assert kept(_change(0.0, 0.0, 100), _measure(margin=2.0, unit="percent")) == "open"  # 2.95 %


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
    assert missing_line(0.0, 0.02).state == "crossed"
    assert missing_line(0.0, 0.01).state == "kept"
    assert missing_line(0.5, 0.0).state == "kept"
