"""The arithmetic of the gateway's bench, by values worked by hand. Nothing is timed."""

from bench.gateway import Cell, added, cell, growth, middle, percentile, ratios
from bench.gateway_ends import Seen
from tests.errors import raises_naming


def test_a_percentile_is_the_least_value_that_its_share_does_not_exceed() -> None:
    hundred = [float(value) for value in range(100, 0, -1)]
    assert percentile(hundred, 0.5) == 50
    assert percentile(hundred, 0.99) == 99
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2  # 2 of 3 are at most 2, and 1 of 3 is too few
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3
    assert percentile([7.0], 0.99) == 7


def test_the_middle_of_rounds_is_their_median_between_the_least_and_the_greatest() -> None:
    assert middle([4.0, 1.0, 9.0]) == (4, 1, 9)
    assert middle([4.0, 1.0]) == (2.5, 1, 4)


def test_a_ratio_is_taken_within_a_round_and_not_of_medians() -> None:
    # Of medians it would be 20 / 100.
    assert ratios([10, 20, 90], [100, 40, 100]) == [0.1, 0.5, 0.9]
    assert middle(ratios([10, 20, 90], [100, 40, 100]))[0] == 0.5
    with raises_naming(ValueError, "longer"):
        ratios([1], [1, 2])


def test_a_rate_counts_the_time_until_the_last_check_has_ended() -> None:
    seen = Seen(
        seconds=2.0, answered=4, milliseconds=[1.0, 2.0, 3.0, 40.0], refused={"overloaded": 1}
    )
    found = cell(seen, whole=8.0, cpu_seconds=0.1)
    assert (found.rate, found.sent) == (0.5, 2.0)
    assert (found.p50, found.p99) == (2.0, 40.0)
    assert found.cpu == 25.0  # milliseconds for each of four
    assert found.refused == {"overloaded": 1}


def test_an_arm_that_answered_nothing_is_not_a_fast_one() -> None:
    found = cell(Seen(seconds=2.0, refused={"overloaded": 9}), whole=2.0, cpu_seconds=1.0)
    assert (found.rate, found.p50, found.p99) == (0.0, float("inf"), float("inf"))


def test_added_latency_is_the_median_over_rounds_of_what_each_round_added() -> None:
    def round_of(p50: float, p99: float) -> Cell:
        return Cell(rate=1.0, sent=1.0, p50=p50, p99=p99, refused={}, cpu=0.0)

    bare = [round_of(50, 60), round_of(70, 90), round_of(50, 55)]
    arm = [round_of(52, 65), round_of(75, 91), round_of(51, 70)]
    assert added(arm, bare) == (2, 5)  # of 2, 5, 1 and of 5, 1, 15


def test_growth_is_from_the_end_of_the_warm_up_to_the_most_that_was_seen_after() -> None:
    sizes = [(1_000, 90.0), (2_000, 100.0), (3_000, 112.5), (4_000, 108.0)]
    assert growth(sizes) == 12.5
    assert growth(sizes[:2]) == 0
