"""What a verdict on decisions is worth: without bias, with it, in any order of the rows."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulated.people import KINDS, People, counted_people
from evenhand.findings.ratios import INCONCLUSIVE, NOT_SHOWN, SHOWN, GroupResults
from evenhand.instruments.decisions.judged import counted, judged

Cells = list[tuple[str, int, int]]


def _judged(people: People, draws: int | None = None) -> GroupResults:
    table = pl.DataFrame(
        {
            "group": [f'["{one}"]' for one in people.group],
            "selected": people.selected,
            "stratum": people.stratum or [""] * len(people.group),
        },
        schema_overrides={"selected": pl.Int64},
    )
    return judged(counted([table]), ["group"], draws=draws)


def _states(found: GroupResults) -> dict[str, str]:
    return {one.name: one.state for one in found.groupings[0].groups}


def _verdict(people: People, draws: int | None = None) -> str:
    return _judged(people, draws).state


@pytest.mark.parametrize(
    "chosen", [[90] * 8, [90, 92, 88, 91, 89, 90, 93, 87], [300, 304, 296, 302]]
)
def test_groups_that_were_evened_out_are_never_called_biased(chosen: list[int]) -> None:
    size = 300 if len(chosen) == 8 else 1000
    found = _judged(counted_people("even", [(f"g{n}", size, x) for n, x in enumerate(chosen)]))
    assert found.state == "inconclusive" if len(chosen) == 8 else "ruled_out"
    assert found.groupings[0].p == pytest.approx(1, abs=0.05)
    assert SHOWN not in _states(found).values()


def test_large_groups_at_one_rate_exclude_what_matters() -> None:
    assert _judged(counted_people("even", [("a", 4000, 1200), ("b", 4000, 1210)])).state == (
        "ruled_out"
    )


def test_twenty_people_of_a_third_group_do_not_hide_what_is_shown_of_ten_thousand() -> None:
    """White 1,500 of 5,000, Black 1,230 of 5,000: 0.82. Six of 20 others change nothing."""
    two: Cells = [("White", 5000, 1500), ("Black", 5000, 1230)]
    alone = _judged(counted_people("two", two))
    both = _judged(counted_people("three", [*two, ("Pacific Islander", 20, 6)]))
    assert _states(alone) == {"White": SHOWN, "Black": SHOWN}
    assert _states(both) == {"White": SHOWN, "Black": SHOWN, "Pacific Islander": INCONCLUSIVE}
    ends = [one.groupings[0].groups[0].contrast for one in (alone, both)]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1].ratio_high == pytest.approx(ends[0].ratio_high, abs=0.02)


def test_a_page_on_a_small_minority_says_one_thing() -> None:
    """4,980 of 9,960 and 14 of 40: p 0.08, an interval that holds 1, and no verdict."""
    found = _judged(counted_people("tri", [("A", 9960, 4980), ("B", 40, 14)]))
    grouping = found.groupings[0]
    assert found.state == "inconclusive"
    assert _states(found) == {"A": INCONCLUSIVE, "B": INCONCLUSIVE}
    one = grouping.groups[1].contrast
    assert one is not None
    assert (one.ratio, one.p) == pytest.approx((0.7, 0.081), abs=0.003)
    assert one.ratio_low < 1 < one.ratio_high
    assert grouping.p == pytest.approx(0.08, abs=0.01)


def test_a_minority_that_is_excluded_wholly_is_seen() -> None:
    assert _judged(counted_people("none", [("A", 9960, 4980), ("B", 40, 0)])).state == "detected"


def test_missing_outcomes_leave_shown_what_they_cannot_change_and_prove_nothing() -> None:
    """178 of 600 men, 110 of 568 women, 32 more women unknown: 142 of 600 at most. With 90 unknown,
    200 of 658 could have been selected, as many as of the men."""
    men = ("men", 600, 178, 0)
    some = _judged(counted_people("some", [men, ("women", 568, 110, 32)]))
    many = _judged(counted_people("many", [men, ("women", 568, 110, 90)]))
    assert (some.state, many.state) == ("detected", "inconclusive")
    women = some.groupings[0].groups[1]
    assert women.contrast is not None
    assert women.selections is not None
    most = women.selections.for_less
    assert most.ratio(most.selected) == pytest.approx(142 / 600 / (178 / 600))
    assert women.contrast.ratio_high < 1
    even = counted_people("lost", [("a", 4000, 1200, 0), ("b", 4000, 1200, 1500)])
    assert _judged(even).state == "inconclusive"


def test_a_group_that_applied_where_few_are_selected_is_not_called_behind() -> None:
    """Of 90 women and 10 men a tenth is selected for one job, of 10 and 90 half for the other."""
    cells = (("1", "w", 90, 9), ("1", "m", 10, 1), ("2", "w", 10, 5), ("2", "m", 90, 45))
    group: list[str] = []
    selected: list[int | None] = []
    stratum: list[str] = []
    for place, sex, people, chosen in cells:
        group += [sex] * people
        selected += [1] * chosen + [0] * (people - chosen)
        stratum += [place] * people
    assert _verdict(People("", group, selected)) == "detected"
    assert _verdict(People("", group, selected, stratum)) == "inconclusive"


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_order_of_the_rows_says_nothing(table: int, order: int) -> None:
    people = KINDS[table % len(KINDS)](np.random.default_rng(table))
    again = people.shuffled(np.random.default_rng(order))
    assert _verdict(again, 200) == _verdict(people, 200)
    assert repr(_judged(again, 200)) == repr(_judged(people, 200))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 80), st.floats(0, 1), st.integers(0, 6)), min_size=2,
             max_size=5)
)  # fmt: skip
def test_outcome_p_interval_and_verdict_agree_on_every_page(
    rows: list[tuple[int, float, int]],
) -> None:
    cells = [(f"g{n}", size, round(size * rate), lost)
             for n, (size, rate, lost) in enumerate(rows)]  # fmt: skip
    if not sum(cell[2] for cell in cells):
        return
    people = counted_people("any", cells)
    found = _judged(people, 200)
    assert found.state == _verdict(people, 200)
    for one in found.groupings[0].tested:
        assert one.contrast is not None
        low, high = one.contrast.ratio_low, one.contrast.ratio_high
        holds = np.isnan(low) or low <= 1 <= high
        assert (one.state == SHOWN) == (one.contrast.p <= 0.05) == (not holds)
        assert (one.state == NOT_SHOWN) <= (low >= 0.8 and high <= 1.25)
    if found.state == "ruled_out":
        assert set(_states(found).values()) == {NOT_SHOWN}
