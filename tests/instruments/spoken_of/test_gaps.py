"""The largest gap between groups: worked by hand, and what is missing never helps."""

import math
from collections.abc import Mapping, Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenhand.instruments._spoken_of import NOT_KNOWN, NOT_SHOWN, SHOWN, LargestGap, gaps

Groups = Mapping[str, Sequence[float | None]]


def table(groups: Groups, family: str = "race") -> pl.DataFrame:
    """One text a cluster."""
    rows = [(family, group, f"{group} {place}", value)
            for group, values in groups.items() for place, value in enumerate(values)]  # fmt: skip
    schema = {"domain": pl.String, "group": pl.String, "cluster": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def largest(groups: Groups) -> LargestGap:
    (one,) = gaps(table(groups), "domain", "group", {"score": 0.0})
    return one


def test_the_gap_of_two_groups_is_worked_by_hand() -> None:
    """Means 0.6 and 0.2. Deviations ±0.1 and 0 in six texts each: Σu² = 4·0.01/36 for each group,
    se² = 6/5 · 2 · 0.04/36; t with 5 degrees of freedom, one pair."""
    one = largest({"a": [0.5, 0.7, 0.6, 0.6, 0.5, 0.7], "b": [0.1, 0.3, 0.2, 0.2, 0.1, 0.3]})
    assert one.found is not None
    assert (one.most, one.least, one.pairs, one.state) == ("a", "b", 1, SHOWN)
    se = math.sqrt(6 / 5 * 2 * 0.04 / 36)
    reach = stats.t.ppf(0.975, 5) * se
    assert one.found.estimate == pytest.approx(0.4)
    assert one.found.se == pytest.approx(se)
    assert (one.found.low, one.found.high) == pytest.approx((0.4 - reach, 0.4 + reach))


def test_of_three_groups_the_interval_allows_for_three_pairs() -> None:
    groups = {"a": [0.5, 0.7, 0.6, 0.6, 0.5, 0.7], "b": [0.1, 0.3, 0.2, 0.2, 0.1, 0.3]}
    two = largest(dict(groups)).found
    three = largest({**groups, "c": [0.4, 0.4, 0.3, 0.5, 0.4, 0.4]}).found
    assert two is not None
    assert three is not None
    wider = stats.t.ppf(1 - 0.025 / 3, 5) / stats.t.ppf(0.975, 5)
    assert (three.high - three.low) / (two.high - two.low) == pytest.approx(wider)


def test_a_group_of_few_clusters_is_in_no_pair() -> None:
    one = largest({"a": [1.0] * 4, "b": [0.2, 0.3, 0.2, 0.3, 0.2], "c": [0.3, 0.2, 0.3, 0.2, 0.3]})
    assert {one.most, one.least} == {"b", "c"}
    assert one.pairs == 1


def test_an_article_with_most_of_a_groups_texts_counts_for_little_more_than_one() -> None:
    """Sizes 1, 1, 1, 1, 8: 12²/68 = 2.1 effective clusters, so the group is in no pair. Sizes 1 (8
    times) and 4: 12²/24 = 6; the mean is (8 · 0.5 + 4 · 0.8)/12 = 0.6, the deviations are
    8 times −0.1/12 and 4 · 0.2/12, and se² = 6/5 · (0.08 + 0.64)/144. Group b has no spread."""

    def sized(sizes: list[int]) -> list[LargestGap]:
        rows = [("race", "a", f"a{place}", 0.8 if size > 1 else 0.5)
                for place, size in enumerate(sizes) for _ in range(size)]  # fmt: skip
        rows += [("race", "b", f"b{place}", 0.1) for place in range(9)]
        return gaps(pl.DataFrame(rows, schema=table({}).schema, orient="row"), "domain", "group",
                    {"score": 0.0})  # fmt: skip

    assert sized([1, 1, 1, 1, 8]) == []
    (one,) = sized([1] * 8 + [4])
    assert one.found is not None
    assert one.found.estimate == pytest.approx(0.5)
    assert one.found.se == pytest.approx(math.sqrt(6 / 5 * 0.72 / 144))
    assert one.found.df == pytest.approx(5)


def test_groups_without_any_spread_are_told_apart_by_how_rare_such_a_split_is() -> None:
    """5 and 5 clusters: 2 of 252 splits are as extreme, 0.8 %; with 0.05/10 for each of ten pairs
    that is not enough."""
    assert largest({"a": [1.0] * 5, "b": [0.0] * 5}).state == SHOWN
    others = {name: [0.5] * 5 for name in "cde"}
    assert largest({"a": [1.0] * 5, "b": [0.0] * 5, **others}).state == NOT_SHOWN
    assert largest({"a": [0.5] * 5, "b": [0.5] * 5}).state == NOT_SHOWN


def test_texts_that_go_missing_never_show_a_gap_nor_hide_one() -> None:
    ill, well = [0.8, 0.9, 0.8, 0.9, 0.8, 0.9], [0.1, 0.2, 0.1, 0.2, 0.1, 0.2]
    assert largest({"a": [*ill], "b": [*well]}).state == SHOWN
    gone: list[float | None] = [None] * 6
    hidden = largest({"a": gone, "b": [*well]})
    assert (hidden.state, hidden.found) == (NOT_KNOWN, None)
    few = table({"a": [*ill, *ill, None, None], "b": [*well, *well]})
    states = [gaps(few, "domain", "group", {"score": floor})[0].state for floor in (0.0, -9.0)]
    assert states == [SHOWN, NOT_KNOWN]  # 2 of 14 at 0 leave 0.73 − 0.15; at −9 nothing
    third = largest({"a": [*ill], "b": [*well], "c": gone})
    assert third.pairs == 3  # that one group is silent makes no interval narrower
    some = largest({"a": [*well[:5], None, None, None], "b": [*well]})
    assert some.state == NOT_KNOWN


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_gap_that_is_shown_with_texts_missing_is_shown_whatever_they_say(
    data: st.DataObject,
) -> None:
    score = st.floats(0, 1).map(lambda value: round(value, 2))
    values = {name: data.draw(st.lists(st.none() | score, min_size=6, max_size=9)) for name in "ab"}
    before = gaps(table(values), "domain", "group", {"score": 0.0})
    if not before or before[0].state != SHOWN:
        return
    low, high = before[0].least, before[0].most
    filled = {low: [1.0 if one is None else one for one in values[low]],
              high: [0.0 if one is None else one for one in values[high]]}  # fmt: skip
    after = largest(filled)
    assert (after.most, after.least) == (high, low)
    assert after.found is not None
    assert after.found.low > 0 or after.state == SHOWN
