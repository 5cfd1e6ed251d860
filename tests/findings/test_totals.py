"""Sums per cluster, batch by batch, give what the plain functions give over all rows at once."""

from dataclasses import fields
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD, Change, Estimate
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.totals import RunTotals
from evenhand.statistics.clusters import Interval, clustered_mean, clustered_ratio
from tests.statistics.flips import p_of_all_patterns

from .random_runs import Made, Row, batches, outcomes, rows

MADE = Made()
some = settings(max_examples=60)


def _close(value: Any) -> Any:
    """Equal but for the last bits, which depend on the order of a sum."""
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def _same(first: Estimate | Change, second: Estimate | Change) -> bool:
    """Whether all numbers are equal; ends of intervals, which are searched for, to six digits."""
    names = [one.name for one in fields(first) if one.compare]
    return all(_alike(getattr(first, name), getattr(second, name)) for name in names)


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, float | tuple) and second is not None:
        return bool(first == pytest.approx(second, rel=1e-6, abs=1e-6))
    return bool(first == second)


def _plain(compute: Any) -> Interval | None:
    try:
        found: Interval = compute()
    except Undefined:
        return None
    return found


def _kept(drawn: list[Row]) -> list[tuple[Row, float]]:
    """The rows of the first run that have a value and are not masked."""
    return [(r, r.before) for r in drawn if not r.masked and r.before is not None]


def _mean(rows_: list[tuple[Row, float]]) -> Interval | None:
    return _plain(lambda: clustered_mean([v for _, v in rows_], [r.cluster for r, _ in rows_]))


def _agrees(found: Estimate, plain: Interval | None) -> None:
    if plain is None:
        assert found.value is None
        assert found.undefined
        return
    assert found.value == _close(plain.estimate)
    assert (found.n, found.clusters) == (plain.n, plain.clusters)
    least, most = MADE.measure(found.name).within
    if plain.no_spread:
        assert found.undefined == NO_SPREAD
        assert (found.low, found.high) == _allowed(plain, (least, most))
    else:
        assert found.undefined is None
        assert found.low == _close(max(least, plain.low))
        assert found.high == _close(min(most, plain.high))


def _allowed(plain: Interval, within: tuple[float, float]) -> tuple[Any, Any]:
    """What G clusters of one value allow: none of an unbounded number."""
    if within[1] == float("inf"):
        return None, None
    unseen = 1 - 0.025 ** (1 / plain.clusters)
    low, high = (plain.estimate + unseen * (end - plain.estimate) for end in within)
    return _close(low), _close(high)


@some
@given(rows)
def test_an_estimate_is_the_clustered_mean_of_the_rows_that_have_a_value(drawn: list[Row]) -> None:
    totals = RunTotals.of(MADE, [outcomes(drawn, "before")])
    kept, right = _kept(drawn), MADE.measure("right")
    _agrees(totals.estimate(right), _mean(kept))
    for kind in totals.values_of("kind"):
        _agrees(
            totals.estimate(right, kind=kind), _mean([(r, v) for r, v in kept if r.kind == kind])
        )


@some
@given(rows)
def test_a_ratio_and_a_part_of_the_rows_are_those_of_the_plain_functions(drawn: list[Row]) -> None:
    totals = RunTotals.of(MADE, [outcomes(drawn, "before")])
    known = [(row, row.before) for row in drawn if row.before is not None]  # also masked ones
    ratio = _plain(
        lambda: clustered_ratio(
            [value for _, value in known], [r.x for r, _ in known], [r.cluster for r, _ in known]
        )
    )
    _agrees(totals.estimate(MADE.measure("rate")), ratio)
    large = [(row, value) for row, value in _kept(drawn) if row.x > 1]
    _agrees(totals.estimate(MADE.measure("half")), _mean(large))


@some
@given(rows, st.randoms(use_true_random=False), st.integers(1, 7))
def test_a_report_does_not_depend_on_batches_or_their_order(
    drawn: list[Row], random: Any, size: int
) -> None:
    frame = outcomes(drawn, "before")
    order = random.sample(range(len(drawn)), len(drawn))
    at_once = RunTotals.of(MADE, [frame])
    streamed = RunTotals.of(MADE, batches(frame, order, size))
    assert streamed.coverage() == at_once.coverage()
    for measure in MADE.measures:
        if measure.name != "odds":  # resampled: its draws go by the order of the clusters
            assert _same(streamed.estimate(measure), at_once.estimate(measure))


@some
@given(rows)
def test_a_change_is_the_clustered_mean_over_the_rows_that_both_have(drawn: list[Row]) -> None:
    pairs = PairTotals.of(MADE, iter([outcomes(drawn, "before")]), iter([outcomes(drawn, "after")]))
    both = [(r, r.after - value) for r, value in _kept(drawn) if r.after is not None]
    differences = [difference for _, difference in both]
    plain = _mean(both)
    found = pairs.change(MADE.measure("right"))
    if plain is None:
        assert found.difference is None
        return
    assert (found.difference, found.se) == (_close(plain.estimate), _close(plain.se))
    assert (found.n, found.clusters) == (plain.n, plain.clusters)
    assert found.p is not None
    assert found.interval is not None
    assert (found.interval[0] > 0 or found.interval[1] < 0) == (found.p <= 0.05)
    if found.bounds is None:
        assert found.p == _close(p_of_all_patterns(differences, [r.cluster for r, _ in both]))
    fixed, broken = (sum(d == by for d in differences) for by in (1.0, -1.0))
    flips = pairs.flips(MADE.measure("right"))
    assert (flips.fixed, flips.broken) == (fixed, broken)
    assert flips.p == found.p


@some
@given(rows, st.randoms(use_true_random=False), st.integers(1, 5), st.integers(1, 5))
def test_a_comparison_does_not_depend_on_batches_or_their_order(
    drawn: list[Row], random: Any, size: int, other: int
) -> None:
    """The two runs may have committed their items in different orders and parts."""
    before, after = outcomes(drawn, "before"), outcomes(drawn, "after")
    orders = [random.sample(range(len(drawn)), len(drawn)) for _ in range(2)]
    at_once = PairTotals.of(MADE, iter([before]), iter([after]))
    streamed = PairTotals.of(
        MADE, batches(before, orders[0], size), batches(after, orders[1], other)
    )
    assert streamed.items == at_once.items == len(drawn)
    for measure in MADE.measures:
        if measure.name != "odds":
            assert _same(streamed.change(measure), at_once.change(measure))
    for kind in at_once.values_of("kind"):
        right = MADE.measure("right")
        assert _same(streamed.change(right, kind=kind), at_once.change(right, kind=kind))


@some
@given(rows, st.integers(0, 39))
def test_items_that_only_one_run_has_change_nothing(drawn: list[Row], cut: int) -> None:
    before, after = outcomes(drawn, "before"), outcomes(drawn, "after")
    kept = min(cut, len(drawn))
    shorter = PairTotals.of(MADE, iter([before]), iter([after.head(kept)]))
    only = PairTotals.of(MADE, iter([before.head(kept)]), iter([after.head(kept)]))
    assert shorter.items == only.items
    assert _same(shorter.change(MADE.measure("right")), only.change(MADE.measure("right")))


def test_a_mean_of_clusters_and_a_function_of_totals_by_hand() -> None:
    """Clusters 0, 1 and 2 have the maxima 1, 0 and 1. The totals are Σy = 2 and Σx = 7."""
    values = [(0, 0.0, 1), (0, 1.0, 2), (1, 0.0, 1), (2, 1.0, 3), (2, None, 3)]
    drawn = [Row(c, "a", False, x, y, y) for c, y, x in values]
    totals = RunTotals.of(MADE, [outcomes(drawn, "before")])
    most = totals.estimate(MADE.measure("most"))
    assert most.value == pytest.approx(2 / 3)
    assert (most.n, most.clusters) == (3, 3)
    odds = totals.estimate(MADE.measure("odds"))
    assert odds.value == pytest.approx(3 / 8)
    assert odds.n == 4


def test_masked_rows_are_left_out_of_the_measures_that_say_so_and_of_nothing_else() -> None:
    drawn = [Row(c, "a", c == 2, 1, float(c > 0), None) for c in (0, 1, 2)]
    totals = RunTotals.of(MADE, [outcomes(drawn, "before")])
    assert (totals.masked_rows, totals.coverage().n, totals.clusters()) == (1, 3, 3)
    assert totals.estimate(MADE.measure("rate")).value == pytest.approx(2 / 3)
    assert totals.estimate(MADE.measure("right")).value == pytest.approx(1 / 2)
    assert totals.with_masked(MADE.measure("right")).value == pytest.approx(2 / 3)
    assert isinstance(totals.tally(), pl.DataFrame)
