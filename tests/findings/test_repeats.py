"""Mean ± standard deviation over the runs of a setting."""

from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

import evenhand as eh
from evenhand.findings.repeats import repeats
from evenhand.instruments import Grouping
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader
from evenhand.views import page_of
from evenhand.views.blocks import Grid, Line
from evenhand.views.markdown import render
from tests.errors import assert_names, raises_naming

from .marks import SHE, UNKNOWN, Marks, Script, run, steady


class Halves(Marks):
    """Marks, also by the half of the works that a question is about."""

    groups: ClassVar = (Grouping(column="half", measures=("named",)),)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        half = pl.when(pl.col("cluster").cast(pl.Int64) < 15).then(pl.lit("one"))
        return super().outcomes(rows).with_columns(half=half.otherwise(pl.lit("two")))


def _names_in(works: range) -> Script:
    return lambda n, k, request: SHE if n in works else UNKNOWN


def test_the_spread_is_that_over_runs_of_one_setting(tmp_path: Path) -> None:
    """Of 30 works 10, 15 and 20 are named: 1/3, 1/2, 2/3, so 1/2 ± 1/6. In the first half 2/3, 1
    and 1: 8/9 ± √(1/27). One run has no spread."""
    three = [run(tmp_path / f"a{n}", _names_in(range(n)), seed=n) for n in (10, 15, 20)]
    single = [run(tmp_path / "b", _names_in(range(3)), name="other")]
    found = repeats(Halves(), [three, single])
    one, two = found.settings
    assert (one.name, one.seeds) == ("default, m", (10, 15, 20))
    for group, mean, sd in (("all", 1 / 2, 1 / 6), ("one", 8 / 9, 27**-0.5)):
        number = one.number("named", group)
        assert number is not None
        assert (number.mean, number.sd) == pytest.approx((mean, sd))
    alone = two.number("named")
    assert alone is not None
    assert alone.mean == pytest.approx(1 / 10)
    assert alone.sd is None
    (table,) = (block for block in page_of(found) if isinstance(block, Grid))
    assert table.columns == ("", "runs", "all", "one", "two")
    assert table.rows[0][:4] == ("default, m", "3", "0.500 ± 0.167", "0.889 ± 0.192")
    assert table.rows[1][:3] == ("default, other", "1", "0.100")
    assert "0.500 ± 0.167" in render(page_of(found))
    assert found.frame().filter(pl.col("group") == "all")["values"][0].to_list() == pytest.approx(
        [1 / 3, 1 / 2, 2 / 3]
    )


def test_a_value_that_one_run_lacks_leaves_no_mean_and_what_is_missing_is_said(
    tmp_path: Path,
) -> None:
    """Nobody is named in the second run, so of nobody's share is hers."""

    def silent(n: int, k: int, request: ModelRequest) -> str | None:
        return None if n < 3 else UNKNOWN

    runs = [run(tmp_path / "a", _names_in(range(3))), run(tmp_path / "b", silent, seed=2)]
    found = repeats(Marks(), [runs])
    her = found.settings[0].number("she")
    assert her is not None
    assert (her.values, her.mean, her.sd) == ((1.0, None), None, None)
    said = [block.text for block in page_of(found) if isinstance(block, Line)]
    (lost,) = (line for line in said if line.startswith(str(tmp_path / "b")))
    assert_names(lost, "6 of 60")


def test_the_mean_has_bounds_where_a_run_misses_answers(tmp_path: Path) -> None:
    """One run names 3 works of 30; the other none of 27, and 3 are missing: 0 or 3 of 30."""

    def silent(n: int, k: int, request: ModelRequest) -> str | None:
        return None if n < 3 else UNKNOWN

    runs = [run(tmp_path / "a", _names_in(range(3))), run(tmp_path / "b", silent, seed=2)]
    found = repeats(Marks(), [runs])
    named = found.settings[0].number("named")
    assert named is not None
    assert named.bounds is not None
    assert named.mean == pytest.approx((0.1 + 0) / 2)
    assert named.bounds.missing == 6
    assert (named.bounds.low, named.bounds.high) == pytest.approx((0.05, 0.1))
    told = found.frame().filter(name="named", group="all")
    assert told["worst_high"].to_list() == pytest.approx([0.1])
    assert "0.100" in str(page_of(found))


def test_a_setting_is_one_method_and_no_draw_twice(tmp_path: Path) -> None:
    one = run(tmp_path / "a", steady)
    fair = tmp_path / "fair"
    model = eh.ScriptedModel(lambda request: '{"answer": "C"}', name="m")
    eh.measure(Marks(), model=model, out=fair, method="fairness", seed=2)
    with raises_naming(eh.UserError, "two methods"):
        repeats(Marks(), [[one, RunReader(fair)]])
    with raises_naming(eh.UserError, one.path, "same draw"):
        repeats(Marks(), [[one, one]])
