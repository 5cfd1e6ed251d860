"""The front: what it keeps, what it leaves out, and that it needs both."""

from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.findings.frontier import front
from tests.errors import raises_naming
from tests.stage import golden

Points = list[tuple[int, int, int]]
some_points = st.lists(st.tuples(*[st.integers(0, 6)] * 3), max_size=25)


def _dominates(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def test_the_golden_vector_is_reproduced() -> None:
    vector = golden("pareto_1")
    points = vector["inputs"]["points"]
    kept = front([(point["cost"], -point["quality"]) for point in points])
    assert sorted(points[place]["name"] for place in kept) == vector["expected"]["front"]


def test_equal_points_stay_together_and_the_order_is_that_of_the_input() -> None:
    assert front([(2.0, 1.0), (3.0, 3.0), (1.0, 2.0), (2.0, 1.0)]) == [0, 2, 3]
    assert front([]) == []


@given(some_points)
def test_no_point_of_the_front_is_dominated(points: Points) -> None:
    for place in front(points):
        assert not any(_dominates(other, points[place]) for other in points)


@given(some_points)
def test_every_other_point_is_dominated_by_one_of_the_front(points: Points) -> None:
    kept = front(points)
    for place in set(range(len(points))) - set(kept):
        assert any(_dominates(points[best], points[place]) for best in kept)


def test_a_point_without_a_number_is_refused() -> None:
    with raises_naming(UserError, "not a number"):
        front([(1.0, float("nan")), (0.0, 1.0)])
