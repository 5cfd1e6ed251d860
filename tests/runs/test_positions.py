"""`Positions` is a set of integers, one bit each: held against Python's own set."""

import time
from itertools import chain, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.runs.store.ledger import Positions

MOST = 200  # far beyond a byte, so that ranges begin, end and lie within bytes in every way
spans = st.tuples(st.integers(0, MOST), st.integers(0, MOST)).map(
    lambda pair: (min(pair), max(pair))
)


def filled(ranges: list[tuple[int, int]]) -> tuple[Positions, set[int]]:
    ours, plain = Positions(), set[int]()
    for start, stop in ranges:
        ours.add_range(start, stop)
        plain.update(range(start, stop))
    return ours, plain


@given(st.lists(spans, max_size=8), spans)
@example([], (0, 0))
@example([(0, 8)], (0, 9))
@example([(7, 9)], (0, 16))
@example([(8, 16), (24, 32)], (5, 40))
@example([(3, 5)], (4, 4))
def test_positions_say_what_a_plain_set_says(
    ranges: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    ours, plain = filled(ranges)
    start, stop = asked
    assert [n in ours for n in range(MOST + 20)] == [n in plain for n in range(MOST + 20)]
    assert ours.overlaps(start, stop) == bool(plain & set(range(start, stop)))
    gaps = list(ours.missing(start, stop))
    named = list(chain.from_iterable(range(*gap) for gap in gaps))
    assert named == [n for n in range(start, stop) if n not in plain]
    # As few ranges as can be: none is empty, and between two of them something is present.
    assert all(first < last for first, last in gaps)
    assert all(end < begin for (_, end), (begin, _) in pairwise(gaps))


def test_an_empty_set_holds_nothing_and_misses_everything_as_one_range() -> None:
    empty = Positions()
    assert 0 not in empty
    assert not empty.overlaps(0, 10**6)
    assert list(empty.missing(0, 10**9)) == [(0, 10**9)]
    assert list(empty.missing(5, 5)) == []


@pytest.mark.parametrize("stop", [7, 8, 9, 15, 16, 17])
def test_what_lies_beyond_the_last_byte_known_is_missing(stop: int) -> None:
    ours, _ = filled([(0, stop)])
    assert stop - 1 in ours
    assert stop not in ours
    assert 10**12 not in ours
    assert not ours.overlaps(stop, stop + 1000)
    assert list(ours.missing(0, 10**12)) == [(stop, 10**12)]
    assert list(ours.missing(10**6, 10**6 + 3)) == [(10**6, 10**6 + 3)]


def test_a_range_added_twice_or_over_another_changes_nothing_else() -> None:
    ours, _ = filled([(3, 21), (3, 21), (10, 12)])
    assert list(ours.missing(0, 30)) == [(0, 3), (21, 30)]


def test_a_hundred_million_items_in_shares_are_entered_and_looked_through_in_seconds() -> None:
    """As a resumed run does it: a share of the middle was never handed in."""
    items, share, lost = 10**8, 1024, 50_000 * 1024
    ours, began = Positions(), time.process_time()
    for start in range(0, items, share):
        if start != lost:
            assert not ours.overlaps(start, min(start + share, items))
            ours.add_range(start, min(start + share, items))
    entered = time.process_time()
    assert list(ours.missing(0, items)) == [(lost, lost + share)]
    gaps = [gap for start in range(0, items, share) for gap in ours.missing(start, start + share)]
    assert gaps == [(lost, lost + share), (items, items + share - items % share)]
    looked = time.process_time()
    print(f"entered in {entered - began:.2f} s, looked through in {looked - entered:.2f} s")
    assert entered - began < 10.0
    assert looked - entered < 10.0
