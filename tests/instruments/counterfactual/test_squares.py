"""The excess of a square, by hand and by what must hold of it whatever the answers are."""

from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.instruments.counterfactual.contrasts import excesses, paired

WHO = [("woman", "group"), ("man", "group"), ("woman", "placebo"), ("man", "placebo")]


def square(column: str, values: Any, kind: Any = None) -> pl.DataFrame:
    """Four answers of one prompt: woman, man, and a placebo of each."""
    rows = [
        {"item_id": f"{label}/{role}", "cluster": "p", "family": "gender", "repeat": 1,
         "place": "", "turn": 0, "label": label, "role": role,
         "other": "man" if label == "woman" else "woman"}
        for label, role in WHO
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(pl.Series(column, values, dtype=kind))


def excess(column: str, values: Any, kind: Any = None) -> float | None:
    found = excesses(square(column, values, kind))[f"excess.{column}"]
    return None if found.null_count() else float(found.mean())  # type: ignore[arg-type]


def test_a_flip_counts_where_it_comes_back_under_the_placebo_the_same_way() -> None:
    """(a₁ − a₂)(b₁ − b₂) of decisions: 1 for the same flip twice, −1 for opposite ones, else 0."""
    for a1, a2, b1, b2 in product((0, 1), repeat=4):
        said = ["yes" if one else "no" for one in (a1, a2, b1, b2)]
        assert excess("decision", said) == (a1 - a2) * (b1 - b2)


def test_numbers_and_words_are_apart_by_their_share() -> None:
    """Numbers: 100 and 300 are 200/400 apart, each from the other's placebo, and 0 from its own.
    Words: {a, b} and {a, c} share one of three words."""
    assert excess("number", [100.0, 300.0, 100.0, 300.0]) == pytest.approx(0.5)
    assert excess("number", [0.0, 0.0, 0.0, 0.0]) == 0.0
    bags = [["a", "b"], ["a", "c"], ["b", "a"], ["c", "a"]]
    assert excess("bag", bags) == pytest.approx(2 / 3)
    assert excess("bag", [[], [], [], []], pl.List(pl.String)) == 0.0
    found = excesses(square("number", [100.0, 100.0, 300.0, 300.0]))
    assert found["own_placebo.number"].to_list() == [
        0.5,
        0.5,
    ]  # what the placebo does is not the label
    assert found["excess.number"].to_list() == [0.0, 0.0]


_SQUARE = st.lists(st.floats(0, 1e6), min_size=4, max_size=4)


@settings(max_examples=5)
@given(st.lists(_SQUARE, min_size=10, max_size=10))
def test_two_placebos_that_change_places_change_the_sign(squares: list[list[float]]) -> None:
    def all_of(order: tuple[int, ...]) -> list[float]:
        frames = [
            square("number", [values[place] for place in order]).with_columns(
                pl.lit(str(number)).alias("cluster"), pl.format("{}/{}", pl.lit(number), "item_id")
            )
            for number, values in enumerate(squares)
        ]
        frames = [one.drop("item_id").rename({"literal": "item_id"}) for one in frames]
        found = excesses(pl.concat(frames))
        by_square = found.group_by(pl.col("item_id").str.split("/").list.first(),
                                   maintain_order=True)  # fmt: skip
        return by_square.agg(pl.col("excess.number").mean())["excess.number"].to_list()

    one, two = all_of((0, 1, 2, 3)), all_of((0, 1, 3, 2))
    assert one == pytest.approx([-value for value in two], abs=1e-9)
    assert all(-1 <= value <= 1 for value in one)


@pytest.mark.parametrize("missing", range(4))
def test_a_square_with_a_missing_answer_has_no_excess_where_it_is_needed(missing: int) -> None:
    said: list[str | None] = ["yes", "no", "yes", "no"]
    said[missing] = None
    found = excesses(square("decision", said)).sort("item_id")["excess.decision"].to_list()
    if missing < 2:  # an answer about a label is needed by its own row alone
        assert found == ([1.0, None] if missing == 0 else [None, 1.0])
    else:
        assert found == [None, None]


@settings(max_examples=30)
@given(st.sets(st.text(min_size=1, max_size=3), min_size=2, max_size=9), st.text(max_size=4))
def test_labels_are_paired_both_ways_and_one_of_an_odd_number_stays_alone(
    labels: set[str], key: str
) -> None:
    found = paired(sorted(labels), key)
    assert len(found) == len(labels) // 2 * 2
    assert all(found[other] == label != other for label, other in found.items())
    assert found == paired(sorted(labels, reverse=True), key)
