"""Where clusters lie before and after: every cluster is counted once, and none is moved far."""

from statistics import fmean

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairedBin, PairTotals, gathered
from evenhand.findings.summed_statistics import Mean

from .random_runs import Made, Row, outcomes, rows

MADE = Made()
some = settings(max_examples=60)


def _measure(*within: float) -> Measure:
    ends = {"within": within} if within else {}
    return Measure(name="m", label="m", statistic=Mean(pl.col("y")), **ends)  # type: ignore[arg-type]


def _gathered(measure: Measure, *pairs: tuple[float, float]) -> list[tuple[float, float, int]]:
    frame = pl.DataFrame(pairs, schema={"before": pl.Float64, "after": pl.Float64}, orient="row")
    return [(one.before, one.after, one.clusters) for one in gathered(measure, frame)]


def test_clusters_of_one_cell_are_one_place_at_their_mean_and_those_of_others_are_not() -> None:
    # From 0 to 1 a cell is 0.05 wide: 0.51 and 0.53 share one, 0.56 has another.
    found = _gathered(_measure(0, 1), (0.51, 0.0), (0.53, 0.0), (0.56, 0.0), (1.0, 1.0))
    assert found == [(pytest.approx(0.52), 0, 2), (0.56, 0, 1), (1, 1, 1)]


def test_what_rose_what_fell_and_what_stayed_never_share_a_place() -> None:
    found = _gathered(_measure(0, 1), (0.51, 0.53), (0.53, 0.51), (0.52, 0.52))
    assert found == [(0.51, 0.53, 1), (0.52, 0.52, 1), (0.53, 0.51, 1)]


def test_a_measure_without_ends_is_divided_between_the_least_and_the_largest_that_was_seen() -> (
    None
):
    # From -40 to 60 a cell is 5 wide.
    found = _gathered(_measure(), (-40, 60), (-36, 59), (0, 4), (0, 6))
    assert found == [(-38, 59.5, 2), (0, 4, 1), (0, 6, 1)]
    assert _gathered(_measure(), (2, 2), (2, 2)) == [(2, 2, 2)]
    assert _gathered(_measure()) == []


_number = st.floats(0, 1, allow_subnormal=False)


@some
@given(st.lists(st.tuples(_number, _number), min_size=1, max_size=300))
def test_places_keep_every_cluster_and_the_means(pairs: list[tuple[float, float]]) -> None:
    found = _gathered(_measure(0, 1), *pairs)
    assert sum(n for *_, n in found) == len(pairs)
    for side in (0, 1):
        weighted = sum(place[side] * place[2] for place in found) / len(pairs)
        assert weighted == pytest.approx(fmean(pair[side] for pair in pairs), abs=1e-9)
        for pair in pairs:  # none is farther from a place than a cell is wide
            assert min(abs(place[side] - pair[side]) for place in found) <= 0.05 + 1e-9


def _by_hand(drawn: list[Row], number: str) -> list[tuple[float, float]]:
    """The numbers of each cluster over the rows that have both values, in plain Python."""
    found = []
    for cluster in sorted({row.cluster for row in drawn}):
        kept = [(row.before, row.after) for row in drawn
                if row.cluster == cluster and row.before is not None and row.after is not None
                and not (number == "right" and row.masked)]  # fmt: skip
        sides = [[pair[side] for pair in kept] for side in (0, 1)]
        if kept:
            old, new = (max(one) if number == "most" else fmean(one) for one in sides)
            found.append((old, new))
    return found


@some
@given(rows)
def test_the_clusters_of_a_comparison_lie_at_the_means_of_rows_that_both_runs_have(
    drawn: list[Row],
) -> None:
    pairs = PairTotals.of(MADE, iter([outcomes(drawn, "before")]), iter([outcomes(drawn, "after")]))
    for name in ("right", "most"):
        measure = MADE.measure(name)
        places = [(one.before, one.after, one.clusters) for one in pairs.places(measure)]
        wanted = _gathered(measure, *_by_hand(drawn, name))
        assert len(places) == len(wanted)
        for place, by_hand in zip(places, wanted, strict=True):
            assert place == pytest.approx(by_hand)


def test_a_number_that_is_not_made_of_one_for_each_cluster_has_no_places() -> None:
    drawn = [Row(cluster=n, kind="a", masked=False, x=1, before=0.0, after=1.0) for n in range(3)]
    pairs = PairTotals.of(MADE, iter([outcomes(drawn, "before")]), iter([outcomes(drawn, "after")]))
    assert pairs.places(MADE.measure("rate")) == pairs.places(MADE.measure("odds")) == ()
    assert pairs.places(MADE.measure("right")) == (PairedBin(before=0, after=1, clusters=3),)
