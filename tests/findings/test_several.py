"""A side of several runs is the mean of each item over them."""

from pathlib import Path

import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.cluster_statistics import MeanOfClusters
from evenhand.findings.comparison import compare
from evenhand.models import ModelRequest
from tests.coded import coded
from tests.errors import raises_naming

from .marks import CLUSTERS, HE, SHE, UNKNOWN, Marks, Script, run, steady

MARKS = Marks()


def _names_in(works: range) -> Script:
    def script(n: int, k: int, request: ModelRequest) -> str:
        del k, request
        return SHE if n in works else UNKNOWN

    return script


def test_the_change_is_that_of_the_means_over_runs(tmp_path: Path) -> None:
    """Before names somebody in works 0-9 and 0-19: of 30 works 10 have 1, 10 have 1/2, a mean of
    1/2. After names nobody but in one of three runs, in works 0-5: 6 works with 1/3, a mean of
    1/15."""
    old = [run(tmp_path / f"a{s}", _names_in(range(10 * s)), seed=s) for s in (1, 2)]
    new = [run(tmp_path / f"b{s}", _names_in(range(6 * (s == 1))), seed=s, name="n")
           for s in (1, 2, 3)]  # fmt: skip
    found = compare(MARKS, old, new)
    change = found["named"]
    assert (change.before, change.after) == pytest.approx((1 / 2, 1 / 15))
    assert change.difference == pytest.approx(1 / 15 - 1 / 2)
    assert (change.n, change.clusters, found.items) == (60, CLUSTERS, 60)
    # Of works 0-5 the mean falls from 1 to 1/3, of 6-9 from 1, of 10-19 from 1/2: 20 works.
    # To name somebody is what is counted, and less of it is better: 40 items of them are fixed.
    assert (found.flips["named"].fixed, found.flips["named"].broken) == (40, 0)
    assert ("varies", "2", 20) in found.transitions
    assert coded(found.notes, "comparison.averaged") == {"before": 2, "after": 3}


def test_runs_that_answer_alike_change_nothing_of_a_comparison(tmp_path: Path) -> None:
    old = [run(tmp_path / f"a{s}", steady, seed=s) for s in (1, 2)]
    new = [run(tmp_path / f"b{s}", _names_in(range(4)), seed=s, name="n") for s in (1, 2)]
    several, single = compare(MARKS, old, new), compare(MARKS, old[0], new[0])
    assert several.primary == single.primary
    assert several.secondary == single.secondary
    assert several.transitions == single.transitions


def test_a_measure_about_some_answers_is_averaged_over_those_it_is_about(tmp_path: Path) -> None:
    """Her share: work 0 is answered "she", then "he"; work 1 "she", then not at all by name."""

    def picks(first: str, second: str) -> Script:
        return lambda n, k, request: {0: first, 1: second}.get(n, UNKNOWN)

    old = [run(tmp_path / f"a{s}", picks(*pair), seed=s)
           for s, pair in ((1, (SHE, SHE)), (2, (HE, UNKNOWN)))]  # fmt: skip
    new = run(tmp_path / "b", picks(SHE, SHE), name="n")
    change = compare(MARKS, old, new)["she"]
    assert (change.before, change.after) == pytest.approx((3 / 4, 1))


def test_an_answer_that_is_missing_once_is_missing(tmp_path: Path) -> None:
    def silent(n: int, k: int, request: ModelRequest) -> str | None:
        return None if n < 3 else steady(n, k, request)

    old = [run(tmp_path / "a", steady), run(tmp_path / "s", silent, seed=2)]
    found = compare(MARKS, old, [run(tmp_path / "b", steady, name="n")])
    assert found.coverage[0].scored == 54
    assert found["named"].n == 54


def test_a_side_of_two_systems_or_of_one_draw_twice_is_refused(tmp_path: Path) -> None:
    one, other = run(tmp_path / "a", steady), run(tmp_path / "b", steady, seed=2, name="other")
    with raises_naming(eh.UserError, "order", "wording", "seed"):
        compare(MARKS, [one, other], one)
    with raises_naming(eh.UserError, other.path, "same draw"):
        compare(MARKS, one, [other, other])


def test_a_maximum_over_answers_is_not_taken_of_means(tmp_path: Path) -> None:
    class Most(Marks):
        measures = (
            eh.Measure(name="most", label="the most",
                       statistic=MeanOfClusters(pl.col("named"), pl.Expr.max)),
        )  # fmt: skip

    runs = [run(tmp_path / f"{s}", steady, seed=s) for s in (1, 2)]
    with raises_naming(eh.UserError, "the most"):
        compare(Most(), runs, runs[0])
    assert compare(Most(), *runs)["most"].difference == 0


def test_another_wording_is_said_in_a_comparison(tmp_path: Path) -> None:
    runs = [run(tmp_path / f"{w}", steady, wording=w) for w in (1, 2)]
    diff = eh.compare([tmp_path / "1"], runs[1].path, instrument=MARKS)
    other = {"facet": "wording", "before": [1], "after": [2]}
    assert coded(diff.notes, "comparison.other_condition") == other
    assert runs[0].record.prompts != runs[1].record.prompts
