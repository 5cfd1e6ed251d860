"""The rules of evidence: what a change is called, and when a number has kept within its margin."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.findings.decision_rules import (
    adjusted,
    direction,
    guardrail,
    kept,
    missing_line,
    smallest_shown,
)
from evenhand.findings.estimates import NO_SPREAD, Change, Coverage
from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.findings.worst_case import WorstCasePair, WorstCaseSums, defended_change
from evenhand.statistics.sign_flips import p_two_sided
from tests.coded import coded


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


def _change(
    difference: float,
    se: float,
    clusters: int,
    p: float | None = None,
    *,
    of: Measure | None = None,
    before: float = 0.5,
) -> Change:
    """A change whose clusters lie symmetrically around it, tested as a run's would be."""
    measure = _measure() if of is None else of
    apart = np.tile([1.0, -1.0], clusters)[:clusters] * se * clusters**0.5
    if clusters % 2:
        apart[-1] = 0.0
    rows, none = np.ones(clusters), np.zeros(clusters)
    old, new = (WorstCaseSums(sums, sums, rows, none)
                for sums in (rows * before, rows * (before + difference) + apart))  # fmt: skip
    change = Change(
        name="m", before=before, after=before + difference, difference=difference, se=se, n=100,
        clusters=clusters, undefined=None if se else NO_SPREAD,
    )  # fmt: skip
    pair = WorstCasePair(old, new, none, new.low - old.low)
    tested = defended_change(change, measure, [pair], missing=0)
    return tested if p is None else replace(tested, p=p)


def test_nothing_changed_in_eleven_clusters_is_open_and_in_two_hundred_is_kept() -> None:
    # 1 − 0.025^(1/11) = 0.285 may still differ; 1 − 0.025^(1/200) = 0.0183 is within 0.02.
    assert kept(_change(0.0, 0.0, 11), _measure()) == "inconclusive"
    assert kept(_change(0.0, 0.0, 200), _measure()) == "non_inferior"


def test_nothing_changed_is_kept_within_two_points_from_183_clusters_on() -> None:
    # ln 0.025 / ln 0.98 = 182.6: one-sided at 2.5 %, as every other "kept".
    assert kept(_change(0.0, 0.0, 180), _measure()) == "inconclusive"
    assert kept(_change(0.0, 0.0, 186), _measure()) == "non_inferior"


def test_a_number_without_ends_is_never_kept_by_having_no_spread() -> None:
    nats = _measure(margin=0.1, unit="nats", within=(-math.inf, math.inf))
    assert kept(_change(0.0, 0.0, 10_000, of=nats), nats) == "inconclusive"
    assert kept(_change(0.0, 0.001, 101, of=nats), nats) == "non_inferior"  # a spread can show it
    assert kept(_change(-0.5, 0.0, 11, of=nats), nats) == "violated"  # 2^(1−11) shows a fall
    assert smallest_shown(_change(0.0, 0.0, 10_000, of=nats), nats, family=1) is None


def test_so_few_clusters_that_sign_flips_cannot_show_anything_have_no_smallest_change() -> None:
    # 2^(1−6) = 0.03125 is below 0.05 and above 0.05/2; seven clusters can: 0.0156.
    six, seven = (_change(0.1, 0.05, clusters) for clusters in (6, 7))
    assert smallest_shown(six, _measure(), family=1) is not None
    assert smallest_shown(six, _measure(), family=2) is None
    assert smallest_shown(seven, _measure(), family=2) is not None
    assert smallest_shown(_change(0.0, 0.0, 6), _measure(), family=2) is None
    assert p_two_sided([1.0] * 6) == 2.0 ** (1 - 6)  # all of one sign: no p is smaller


def test_a_fall_in_every_cluster_alike_is_crossed_though_it_has_no_spread() -> None:
    # 2^(1−11) = 0.001 shows it, 2^(1−3) = 0.25 shows nothing.
    assert kept(_change(-0.5, 0.0, 11), _measure()) == "violated"
    assert kept(_change(-0.5, 0.0, 3), _measure()) == "inconclusive"


@pytest.mark.parametrize(
    ("difference", "se", "state"),
    [
        (0.0, 0.002, "non_inferior"),
        (-0.03, 0.005, "violated"),
        (-0.01, 0.02, "inconclusive"),
        (0.01, 0.1, "inconclusive"),  # better by its estimate, and still not shown to have kept
    ],
)
def test_kept_within_the_margin_has_three_states(difference: float, se: float, state: str) -> None:
    lower = _measure("lower")
    assert kept(_change(difference, se, 401), _measure()) == state
    assert kept(_change(-difference, se, 401, of=lower), lower) == state  # the other way round


def test_a_margin_in_percent_is_held_against_percent() -> None:
    percent = _measure(margin=2.0, unit="percent", within=(0, 100))
    assert kept(_change(0.0, 0.0, 200, of=percent), percent) == "non_inferior"
    assert kept(_change(0.0, 0.0, 100, of=percent), percent) == "inconclusive"  # 3.6 %


def test_what_cannot_be_compared_is_open_and_says_why() -> None:
    nothing = Change(name="m", before=None, after=None, difference=None, undefined="no rows: 0/0")
    assert kept(nothing, _measure()) == "inconclusive"
    assert (
        coded(guardrail(nothing, _measure()).says, "change.undefined")["reason"] == "no rows: 0/0"
    )


def test_holm_counts_a_change_without_p_and_leaves_the_order() -> None:
    untested = replace(_change(0.1, 0.01, 30), p=None, test=None)
    family = [_change(0.1, 0.01, 30, 0.01), untested, _change(0.1, 0.01, 30, 0.04)]
    assert [one.p_holm for one in adjusted(family)] == pytest.approx([0.03, 1.0, 0.08])


def test_better_and_worse_are_said_only_where_p_shows_it() -> None:
    accuracy = _measure()
    bias = _measure("zero", margin=None, within=(-1, 1))
    assert direction(_change(0.1, 0.01, 30), accuracy) == "improved"
    assert direction(_change(-0.1, 0.01, 30), accuracy) == "regressed"
    assert direction(_change(-0.1, 0.1, 30), accuracy) == "inconclusive"
    # From 0.5 to 0.4 is nearer to no bias, from 0.5 to 0.6 is not.
    assert direction(_change(-0.1, 0.01, 30, of=bias), bias) == "improved"
    assert direction(_change(0.1, 0.01, 30, of=bias), bias) == "regressed"


def test_passing_over_to_the_other_side_is_better_only_if_the_distance_is_shown_to_shrink() -> None:
    bias = _measure("zero", margin=None, within=(-2, 2))
    across = _change(-0.9, 0.1, 30, of=bias)  # from +0.5 to −0.4: the distance shrank by 0.1
    assert direction(across, bias) == "inconclusive"
    assert across.effect == pytest.approx(-0.1)
    assert direction(_change(-0.6, 0.1, 30, of=bias), bias) == "improved"  # to −0.1: by 0.4
    assert direction(_change(-1.4, 0.1, 30, of=bias), bias) == "regressed"  # to −0.9


@given(
    st.sampled_from(["higher", "lower", "zero"]),
    st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=30),
    st.integers(1, 5),
)
@settings(max_examples=300)
def test_outcome_p_value_and_interval_agree(
    better: str, sums: list[tuple[int, int]], family: int
) -> None:
    measure = _measure(better, margin=0.1, within=(-1, 1))
    old, new = (np.array(side) / 4 for side in zip(*sums, strict=True))
    rows, none = np.ones(len(sums)), np.zeros(len(sums))
    pair = WorstCasePair(
        WorstCaseSums(old, old, rows, none), WorstCaseSums(new, new, rows, none), none, new - old
    )
    spread = float(np.ptp(new - old)) > 0
    change = defended_change(
        Change(name="m", before=float(old.mean()), after=float(new.mean()),
               difference=float((new - old).mean()), se=1.0 * spread, clusters=len(sums),
               undefined=None if spread else NO_SPREAD),
        measure, [pair], missing=0,
    )  # fmt: skip
    others = [Change(name="x", before=0.0, after=0.0, difference=0.0, p=1.0)] * (family - 1)
    for one in (change, adjusted([change, *others])[0]):
        assert one.interval is not None
        assert one.p_adjusted is not None
        low, high = one.interval
        excludes = low > 0 or high < 0
        assert excludes == (one.p_adjusted <= 0.05)
        assert (direction(one, measure) != "inconclusive") == excludes
        if excludes:
            gained = (low > 0) == (better == "higher")
            assert direction(one, measure) == ("improved" if gained else "regressed")
    assert change.limits is not None
    loss = -change.limits[0] if better == "higher" else change.limits[1]
    assert (kept(change, measure) == "non_inferior") == (loss < 0.1)


def test_more_than_one_missing_answer_in_a_hundred_leaves_it_open() -> None:
    def state(before: int, after: int) -> str:
        old, new = (Coverage(n=100, scored=100 - k, by_reason={}) for k in (before, after))
        return missing_line({"": (old, new)}).state

    assert state(0, 2) == "inconclusive"
    assert state(0, 1) == "non_inferior"
    assert state(50, 0) == "non_inferior"
