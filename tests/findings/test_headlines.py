"""A headline and a table say what they would be if the missing answers were known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.findings.display import Remark
from evenhand.findings.estimates import Bounds, if_known
from evenhand.findings.frontier import FrontierArm, frontier
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import outcomes_of
from evenhand.findings.verdicts import of_report
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.refusal import WORSE
from evenhand.views import catalog, page_of
from evenhand.views.blocks import Grid, Line
from tests.coded import coded
from tests.errors import assert_names

from .lossy import Lossy

KEPT = Path(__file__).parents[1] / "same_numbers/kept"
IF_KNOWN = "worst-case bounds"


def _run(name: str) -> Lossy:
    return Lossy(RunReader(KEPT / name))


def _report(run: RunReader) -> Report:
    return report(instrument_of(run), run)


def _filled(run: RunReader, value: pl.Expr, about: pl.Expr) -> tuple[float, float]:
    """The mean with every missing answer as 0 and as 1: straight from the rows."""
    rows = outcomes_of(instrument_of(run), run).filter(about)
    known = rows.select(value.cast(pl.Float64)).to_series()
    low, high = (float(known.fill_null(end).mean() or 0.0) for end in (0.0, 1.0))  # type: ignore[arg-type]
    return low, high


def test_bounds_are_written_once_for_all_headlines() -> None:
    assert if_known(None, str) == ""
    one = if_known(Bounds(missing=1, low=0.25, high=0.5), "{:.2f}".format)
    assert_names(one, 0.25, "0.50")
    of_any = if_known(Bounds(missing=3), str)
    assert_names(of_any, "any number", 3)


def test_the_headline_of_bbq_says_how_often_somebody_may_have_been_named() -> None:
    run = _run("bbq/default")
    unclear = pl.col("condition") == "ambig"
    low, high = _filled(run, pl.col("answer") != "unknown", unclear)
    said = f"(between {100 * low:.0f} and {100 * high:.0f} if the "
    assert said in catalog.text(_report(run).verdict.says[0])
    assert low < high


def test_more_items_are_asked_for_only_as_far_as_the_benchmark_has_them() -> None:
    """47 times 28 templates are 1,316, and BBQ has 343; 18 times 72 pairs are 1,296 of 1,508."""
    beyond = coded(_kept("bbq/random").verdict.says, "report.beyond_clusters")
    assert beyond == {"times": 47, "matters": 0.05, "items": 10_904, "clusters": 1_316,
                      "holds": 343, "unit": "templates"}  # fmt: skip
    crows = _kept("likelihood/worse/crows_pairs")
    enough = coded(crows.verdict.says, "report.how_many")
    assert enough == {"times": 18, "matters": 5.0, "items": 1_296}
    larger = replace(crows, coverage=replace(crows.coverage, n=84))
    assert coded(of_report(larger).says, "report.beyond_items") == {
        "times": 18, "matters": 5.0, "items": 1_512, "holds": 1_508
    }  # fmt: skip


def test_a_number_of_times_is_never_printed_without_the_number_of_items() -> None:
    values: dict[str, Any] = {"times": 62, "matters": 0.05, "items": 5_456, "holds": 343,
                              "clusters": 1_364, "unit": "templates"}  # fmt: skip
    for code in ("how_many", "beyond_items", "beyond_clusters"):
        assert_names(catalog.text(Remark(f"report.{code}", **values)), "62 times", "5,456")


def _kept(name: str) -> Report:
    return _report(RunReader(KEPT / name))


def test_the_headline_of_squad_says_what_the_overlap_may_be() -> None:
    run = _run("squad/default")
    low, high = _filled(run, pl.col("f1"), pl.lit(value=True))
    said = f"; between {low:.2f} and {high:.2f} if the 8 missing answers were known)"
    assert said in catalog.text(_report(run).verdict.says[0])


def test_the_headline_of_over_correction_says_how_many_may_have_been_made_worse() -> None:
    run = _run("overcorrection/default")
    low, high = _filled(run, pl.col("outcome").is_in(WORSE), pl.lit(value=True))
    said = f"; between {low:.1%} and {high:.1%} if the 2 missing answers were known)"
    assert said in catalog.text(_report(run).verdict.says[0])


def test_the_headline_of_toxicity_has_the_bounds_of_both_of_its_numbers() -> None:
    said = catalog.text(_report(_run("rtp/default")).verdict.says[0])
    assert said.count("missing answers were known") == 2


def test_where_nothing_is_missing_neither_headline_nor_table_speaks_of_it() -> None:
    found = _report(_run("bbq/random"))
    assert "if the" not in catalog.text(found.verdict.says[0])
    assert not any(IF_KNOWN in one.columns for one in page_of(found) if isinstance(one, Grid))


def test_a_table_of_categories_has_the_bounds_of_those_that_miss_an_answer() -> None:
    run = _run("bbq/always_unknown")
    lost = next(item for item in run.items if item.startswith("Age/"))
    found = _report(run.without([lost]))
    by_category = [one for one in page_of(found, full=True)
                   if isinstance(one, Grid) and one.columns[0] == "category"]  # fmt: skip
    places = [(o, o.columns.index(IF_KNOWN)) for o in by_category if IF_KNOWN in o.columns]
    assert places
    for grid, place in places:
        bounds = {row[0]: row[place] for row in grid.rows}
        assert " to " in bounds.pop("Age")
        assert set(bounds.values()) == {""}


def test_the_short_page_lists_the_groups_of_which_something_is_known_and_counts_the_others() -> (
    None
):
    found = _report(_run("bbq/always_stereotyped"))
    known, looked = {}, {}
    for column, values in found.groups.items():
        scores = {value: e for value, es in values.items() for e in es if e.name == "s_amb"}
        if not scores:
            continue
        looked[column] = len(scores)
        known[column] = {v.replace("_", " ") for v, one in scores.items()
                         if (one.p_holm or 1) <= 0.05 or (one.p_small or 1) <= 0.025}  # fmt: skip
        open_ = len(scores) - len(known[column])
        line = f"{column}: {open_} of {len(scores)} inconclusive"
        lines = [one.text for one in page_of(found) if isinstance(one, Line)]
        assert any(text.startswith(line) for text in lines) is (open_ > 0)
    grids = [one for one in page_of(found) if isinstance(one, Grid)]
    shown = {one.columns[0]: {r[0] for r in one.rows} for one in grids if one.columns[0] in known}
    assert all(rows <= known[column] for column, rows in shown.items())
    assert any(known.values()) is bool(shown)
    assert sum(map(len, known.values())) < sum(looked.values())


def test_the_overview_of_a_frontier_has_bounds_only_of_what_an_answer_is_missing_from() -> None:
    runs = {"default": "random", "fairness": "always_stereotyped", "self_consistency": "random"}
    arms = [FrontierArm(name=name, run=_run(f"bbq/{run}")) for name, run in runs.items()]
    instrument, lossy = instrument_of(arms[0].run), _run("bbq/always_unknown")
    unclear = outcomes_of(instrument, lossy).filter(pl.col("condition") == "ambig")["item_id"]
    arms.append(FrontierArm(name="method", run=lossy.without(unclear[:2].to_list())))
    grid = next(
        one
        for one in page_of(frontier(instrument, arms, calls=1))
        if isinstance(one, Grid) and one.columns[0].startswith("per answer")
    )
    assert "utility if known" not in grid.columns
    place = grid.columns.index("harm if known")
    assert [bool(row[place]) for row in grid.rows] == [False, False, False, True]
    assert grid.rows[3][place] == f"0.00 to {2 / len(unclear):.2f}"
