"""Variance components and dependability against published figures, sums by hand, and planted
effects."""

from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.dependability import (
    ITEM,
    CrossedDesign,
    components,
    dependability,
    totals_of,
)
from tests.errors import raises_naming

# Shrout & Fleiss 1979, table 2: six targets, four judges. Their ICC(2,1) and ICC(2,4) are Φ.
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def found_of(values: object, levels: dict[str, list[int]]) -> dict[tuple[str, ...], float]:
    table = totals_of(values).sum(axis=0, keepdims=True)  # type: ignore[arg-type]
    return {e: float(v[0]) for e, v in components(table, CrossedDesign.of(levels)).items()}


def phi_of(values: object, levels: dict[str, list[int]], of: str, **sizes: int) -> float:
    found = {e: np.array([v]) for e, v in found_of(values, levels).items()}
    return float(dependability(found, of, sizes)[0])


def test_components_of_a_table_of_six_numbers_are_those_by_hand() -> None:
    """Items 1.5, 4, 6.5; runs 3, 5; MS 12.5, 6 and 0.5: (12.5 − 0.5)/2, (6 − 0.5)/3, 0.5."""
    found = found_of([[1, 2], [3, 5], [5, 8]], {"order": [0, 1]})
    assert found == pytest.approx({(ITEM,): 6, ("order",): 11 / 6, (ITEM, "order"): 0.5})
    assert phi_of([[1, 2], [3, 5], [5, 8]], {"order": [0, 1]}, ITEM, order=1) == pytest.approx(0.72)


def test_dependability_of_shrout_and_fleiss_targets_is_the_published_one() -> None:
    judges = {"judge": [1, 2, 3, 4]}
    assert phi_of(TARGETS, judges, ITEM, judge=1) == pytest.approx(0.29, abs=0.005)
    assert phi_of(TARGETS, judges, ITEM, judge=4) == pytest.approx(0.62, abs=0.005)


def by_loops(cube: np.ndarray, names: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """A second route: effects as means of means, sums of squares over the whole cube, and the
    expected mean squares solved from the top down."""
    axes = range(cube.ndim)
    mean = {kept: cube.mean(axis=tuple(a for a in axes if a not in kept), keepdims=True)
            for size in range(cube.ndim + 1) for kept in combinations(axes, size)}  # fmt: skip
    squares = {}
    for kept in mean:
        if kept:
            parts = [p for size in range(len(kept) + 1) for p in combinations(kept, size)]
            effect = sum((-1) ** (len(kept) - len(part)) * mean[part] for part in parts)
            total = float((np.broadcast_to(effect, cube.shape) ** 2).sum())
            squares[kept] = total / prod(cube.shape[a] - 1 for a in kept)
    found: dict[tuple[int, ...], float] = {}
    for kept in sorted(squares, key=len, reverse=True):
        above = sum(
            found[other] * prod(cube.shape[a] for a in axes if a not in other)
            for other in found
            if set(kept) < set(other)
        )
        found[kept] = (squares[kept] - above) / prod(cube.shape[a] for a in axes if a not in kept)
    return {tuple(names[a] for a in kept): value for kept, value in found.items()}


def test_components_of_three_facets_agree_with_expected_mean_squares_solved_in_loops() -> None:
    rng = np.random.default_rng(3)
    cube = rng.normal(size=(7, 3, 2, 4))
    runs = list(product(range(3), range(2), range(4)))
    shuffled = rng.permutation(len(runs))
    levels = {
        name: [runs[place][facet] for place in shuffled]
        for facet, name in enumerate(("order", "wording", "seed"))
    }
    found = found_of(cube.reshape(7, -1)[:, shuffled], levels)
    assert found == pytest.approx(by_loops(cube, (ITEM, "order", "wording", "seed")))


def test_planted_variances_are_found() -> None:
    """Items of variance 4, orders 1, wordings 0.25, items by order 0.5, the rest 1; 25 orders and
    20 wordings, so that their own variances are known well enough."""
    rng = np.random.default_rng(0)
    shape = (300, 25, 20)
    cube = (
        2 * rng.normal(size=(300, 1, 1))
        + rng.normal(size=(1, 25, 1))
        + 0.5 * rng.normal(size=(1, 1, 20))
        + np.sqrt(0.5) * rng.normal(size=(300, 25, 1))
        + rng.normal(size=shape)
    )
    runs = list(product(range(25), range(20)))
    levels = {"order": [a for a, _ in runs], "wording": [b for _, b in runs]}
    table = cube.reshape(300, -1)
    sums = np.concatenate([[300.0], table.sum(0), (table.T @ table).ravel()])[None]
    found = {e: float(v[0]) for e, v in components(sums, CrossedDesign.of(levels)).items()}
    assert found[(ITEM,)] == pytest.approx(4, rel=0.2)
    assert found[("order",)] == pytest.approx(1, rel=0.5)
    assert found[("wording",)] == pytest.approx(0.25, rel=0.5)
    assert found[(ITEM, "order")] == pytest.approx(0.5, rel=0.05)
    assert found[(ITEM, "wording")] == pytest.approx(0, abs=0.01)
    assert found[(ITEM, "order", "wording")] == pytest.approx(1, rel=0.02)


def test_noise_alone_is_not_dependable_and_items_alone_are() -> None:
    rng = np.random.default_rng(1)
    two = {"seed": [1, 2]}
    assert phi_of(rng.normal(size=(2_000, 2)), two, ITEM, seed=1) < 0.06
    same = np.repeat(rng.normal(size=(50, 1)), 2, axis=1)
    assert phi_of(same, two, ITEM, seed=1) == pytest.approx(1)


def test_where_nothing_varies_dependability_has_no_value() -> None:
    assert np.isnan(phi_of([[0.1, 0.1]] * 5, {"seed": [1, 2]}, ITEM, seed=1))


def test_systems_are_told_apart_by_their_means_over_items() -> None:
    """Two systems 1 apart on every item, nothing else varies: the items' own variance is error of a
    system's score only where it is absolute; here it is 0, and Φ is 1."""
    values = [[0, 0, 1, 1]] * 4
    levels = {"system": [0, 0, 1, 1], "seed": [1, 2, 1, 2]}
    assert phi_of(values, levels, "system", item=4, seed=2) == pytest.approx(1)


@pytest.mark.parametrize(
    "levels",
    [
        {"order": [0, 0, 1], "seed": [1, 2, 1]},
        {"order": [0, 1, 0, 1], "seed": [1, 2, 1, 2]},
        {"order": [0, 0]},
    ],
)
def test_runs_that_are_not_fully_crossed_are_refused(levels: dict[str, list[int]]) -> None:
    with pytest.raises(Undefined):
        CrossedDesign.of(levels)


def test_a_missing_value_is_refused() -> None:
    with raises_naming(UserError, "item", "run", "missing"):
        totals_of([[1.0, float("nan")], [0.0, 1.0]])
