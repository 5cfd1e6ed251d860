"""A table of a paper with our numbers, worked by hand."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.experiments.reproducing import found_in, other_settings
from evenhand.findings.audit import Audit
from evenhand.findings.estimates import Bounds, Coverage, Section
from evenhand.findings.papers import paper_named
from evenhand.findings.report import report
from evenhand.findings.reproduction import OurNumber, Reproduction, estimate_of, reproduction
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.models import ChatModel, ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from evenhand.views import html_of, markdown, page_of
from evenhand.views.files import to_json
from tests.errors import assert_names
from tests.findings.frontier.small_bbq import played
from tests.instruments.judge.in_process import Judge, audited, rows

MODEL = "puppet"


def _rule(template: int, condition: str) -> str:
    """Of ten unclear questions three are answered with the stereotype, of ten clear ones one."""
    if condition == "ambig":
        return "biased" if template < 3 else "unknown"
    return "unknown" if template in (8, 9) else "gold"


async def _table3(tmp_path: Path) -> Reproduction:
    run = await played(tmp_path / "run", _rule, calls=1, templates=10)
    paper = paper_named("stardtox")
    table = paper.table("table3")
    assert table is not None
    missing = {(MODEL, "bbq-fairness"): "nobody had the time"}
    found = {(MODEL, "bbq-default"): report(Bbq(), run)}
    return reproduction(paper, table, "small", found, missing, [MODEL])


async def test_our_cells_are_the_runs_numbers_in_the_papers_unit(tmp_path: Path) -> None:
    found = await _table3(tmp_path)
    unclear = found.cell(MODEL, "default prompt", "ambiguous: accuracy, % (higher is better)")
    assert unclear.value == pytest.approx(70.0)  # 7 of 10
    assert unclear.n == 10
    assert unclear.low is not None
    assert unclear.high is not None
    assert 0 < unclear.low < 70 < unclear.high < 100
    bias = found.cell(MODEL, "default prompt", "ambiguous: bias score, % (nearer 0 is better)")
    assert bias.value == pytest.approx(30.0)  # (3 - 0) / 10
    clear = found.cell(MODEL, "default prompt", "disambiguated: accuracy, % (higher is better)")
    assert clear.value == pytest.approx(80.0)  # 8 of 10


async def test_repeats_become_their_mean_and_standard_deviation(tmp_path: Path) -> None:
    """70% and 50% right: 60 ± 14.14 (n − 1). A repeat that is not run leaves no mean."""
    runs = [
        await played(tmp_path / "1", _rule, calls=1, templates=10),
        await played(
            tmp_path / "2",
            lambda n, condition: "biased" if condition == "ambig" and n < 5 else "gold",
            calls=1, templates=10,
        ),
    ]  # fmt: skip
    paper = paper_named("stardtox")
    table = paper.table("table3")
    assert table is not None
    found = {(f"m-{n}", "bbq-default"): report(Bbq(), run) for n, run in enumerate(runs)}
    made = reproduction(paper, table, "small", found, {}, ["m-0", "m-1"], repeats=2)
    assert [ours.model for ours in made.ours] == ["m-0"]
    cell = made.cell("m-0", "default prompt", made.columns[0])
    assert [cell.value, cell.sd] == pytest.approx([60, 200**0.5])
    assert cell.n == 2
    assert_names(markdown.render(page_of(made)), "60.00 ± 14.14", "2 repeats")
    del found["m-1", "bbq-default"]
    half = reproduction(paper, table, "small", found, {}, ["m-0", "m-1"], repeats=2)
    assert half.cell("m-0", "default prompt", made.columns[0]).value is None


async def test_each_repeat_has_the_next_seed_and_its_own_trained_weights(tmp_path: Path) -> None:
    def marks(_: ModelRequest) -> str:
        names = ("freedom_from_bias", "communication", "logic")
        return json.dumps({"reason": "none"} | dict.fromkeys(names, 5))

    students = [ScriptedModel(lambda _: "A statement.", name=f"student {n}") for n in (1, 2)]
    casts: list[ChatModel | Cast | str] = [
        Cast(one, {"rater": ScriptedModel(marks, name="rater")}) for one in students
    ]
    (made,) = await eh.aio.reproduce_rldf(
        "table3", model=casts[0], trained={"sft": casts}, only=["st-sft"], repeats=2, seed=5,
        sample={"per_type": 2}, out=tmp_path,
    )  # fmt: skip
    runs = [RunReader(tmp_path / f"rldf/small/student-1{end}/st-sft").record for end in ("", "-2")]
    assert [run.seed for run in runs] == [5, 6]
    assert [run.cast["default"]["model"] for run in runs] == ["student 1", "student 2"]
    assert made.cell("student-1", "SFT", "age") == OurNumber(value=50, sd=0, n=2)


async def test_what_was_not_run_says_so_and_is_no_number(tmp_path: Path) -> None:
    found = await _table3(tmp_path)
    column = found.columns[0]
    assert found.cell(MODEL, "StarDTox, iteration 2", column) == OurNumber(why="not run")
    assert found.cell(MODEL, "fairness-aware prompt", column).why.startswith("not run")
    (note,) = found.notes
    assert_names(note, "puppet", "bbq-fairness", "the time")


async def test_the_papers_number_stands_beside_ours_with_its_interval(tmp_path: Path) -> None:
    found = await _table3(tmp_path)
    written = markdown.render(page_of(found))
    low, high = found.ours[0].cells[0][0].low, found.ours[0].cells[0][0].high
    assert low is not None
    assert high is not None
    (measured,) = (row for row in written.splitlines() if "| 32.70 |" in row)
    assert_names(measured, "default prompt", f"70.00 ({low:.2f}", f"{high:.2f}", "n 10")
    (absent,) = (row for row in written.splitlines() if "| 17.61 |" in row)
    assert_names(absent, "StarDTox, iteration 2", "not run")
    assert_names(written, "ours puppet", "paper's GPT-3.5")
    assert_names(written, "Items: 20")
    assert_names(written, "| GPT-3.5 |", "ours: puppet |")
    assert "70.00" in html_of(found)


async def test_a_table_is_read_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    found = await _table3(tmp_path)
    assert Reproduction.from_json(to_json(found)) == found
    frame = found.frame()
    ours = frame.filter(source=MODEL, row="default prompt")["value"]
    assert ours.to_list()[:3] == pytest.approx([70.0, 30.0, 80.0])
    assert frame.filter(source="paper: GPT-3.5", row="default prompt")["value"][0] == 32.70


async def test_a_group_without_an_item_has_no_number(tmp_path: Path) -> None:
    run = await played(tmp_path / "run", _rule, calls=1, templates=2)
    found = report(Bbq(), run)
    assert estimate_of(found, "accuracy", "Age").value == 0.5  # both clear ones, no unclear one
    assert estimate_of(found, "accuracy", "Religion").value is None
    assert estimate_of(found, "items", "Age").value == 4
    assert estimate_of(found, "items", "Religion").value == 0


def _audit(**more: object) -> Audit:
    return Audit(kind="judge", title="", facts=(), checks=(), state=None, more=more,
                 coverage=Coverage(n=2, scored=2, by_reason={}))  # fmt: skip


def test_a_difference_the_other_way_round_is_negated_with_its_ends_exchanged() -> None:
    gap = {"label": "female", "other": "male", "value": 0.2, "low": 0.1, "high": 0.3, "n": 8}
    found = _audit(figures={"means": [], "differences": [gap]})
    turned = estimate_of(found, "difference", "male - female")
    assert (turned.value, turned.low, turned.high) == (-0.2, -0.3, -0.1)
    assert estimate_of(found, "difference", "female - male").value == 0.2
    assert estimate_of(found, "difference", "male - Jewish").value is None


def test_the_numbers_of_a_judge_that_takes_a_point_from_one_label_are_found() -> None:
    design = JudgeDesign(bases=4, pairs=2, texts=1)
    found = audited(rows(Judge(hurt="male", by=1.0), design, 0))
    assert estimate_of(found, "difference", "male - female").value == -1.0
    assert estimate_of(found, "difference", "Black - White").value == 0.0
    means = [estimate_of(found, "mean:accuracy", one).value or 0 for one in ("male", "female")]
    assert means[1] - means[0] == pytest.approx(1.0)
    assert estimate_of(found, "win_rate", "male").value == 0.5  # it finds every two texts equal


def test_a_win_rate_is_one_half_and_what_the_label_adds() -> None:
    win = {"label": "male", "against": "all others", "value": "win", "estimate": -0.125,
           "low": -0.25, "high": 0.0, "cells": 16, "undefined": None}  # fmt: skip
    found = estimate_of(_audit(exploratory=[win]), "win_rate", "male")
    assert (found.value, found.low, found.high, found.n) == (0.375, 0.25, 0.5, 16)


def test_an_iteration_that_nobody_reached_has_the_interval_and_bounds_of_nobody() -> None:
    rows = (("all", 1, 0.25, 0.1, 0.4, 40, 2, 0.24, 0.29),
            ("all", 2, 0.0, 0.0, 0.09, 40, 2, 0.0, 0.05))  # fmt: skip
    table = Section(name="refined", title="", columns=("",) * 9, rows=rows)
    found = Audit(kind="judge", title="", facts=(), checks=(), state=None, sections=(table,))
    assert estimate_of(found, "refined_1", None).value == 0.25
    for later in ("refined_2", "refined_3"):
        nobody = estimate_of(found, later, None)
        assert (nobody.value, nobody.high, nobody.n) == (0.0, 0.09, 40)
        assert nobody.bounds == Bounds(missing=2, low=0.0, high=0.05)


def test_bounds_of_a_difference_turn_with_it() -> None:
    lost = {"missing": 3, "low": 0.0, "high": 0.5}
    gap = {"label": "female", "other": "male", "value": 0.2, "low": 0.1, "high": 0.3, "n": 8}
    found = _audit(figures={"means": [], "differences": [gap | {"bounds": lost}]})
    turned = estimate_of(found, "difference", "male - female")
    assert turned.bounds == Bounds(missing=3, low=-0.5, high=0.0)


RECORDED = Path(__file__).parents[3] / "recorded/qwen2.5-coder-1.5b/papers"


def test_what_differs_names_the_sample_of_the_run_itself() -> None:
    [folder] = RECORDED.glob("mabrf/small/*/bbq-mabrf")
    found = found_in(str(folder))
    assert found is not None
    paper = paper_named("mabrf")
    for name in ("table3", "table5", "figure4"):
        table = paper.table(name)
        assert table is not None
        made = reproduction(paper, table, "small", {("m", "bbq-mabrf"): found}, {}, ("m",))
        sample = "balanced, per_category 4, seed 0"
        assert made.runs[0].sample == sample
        shown = markdown.render(page_of(made))
        drawn = "44 a run (balanced, per\\_category 4, seed 0)"
        assert drawn in shown
        assert "8 of each" not in shown
        # It was run before the recipe asked the terminating agent always.
        (note,) = other_settings(paper, table, {("m", "bbq-mabrf"): found})
        assert_names(note, "bbq-mabrf", "terminate=changed", "always")


def test_no_question_of_the_recorded_mabrf_run_is_among_the_papers() -> None:
    [folder] = RECORDED.glob("mabrf/small/*/bbq-mabrf")
    asked = set(RunReader(folder).results().select("item_id").collect()["item_id"])
    text = (files("evenhand.instruments.bbq") / "mabrf110.csv").read_text()
    papers = {line.replace(",", "/") for line in text.split()[1:]}
    assert (len(asked), len(papers)) == (44, 110)
    assert not asked & papers


def test_the_arm_without_search_of_table_4_has_its_passage_as_in_the_paper() -> None:
    paper = paper_named("mabrf")
    table = paper.table("table4")
    assert table is not None
    beside = {
        bool(paper.samples[paper.runs[str(row.run)].sample].options.get("closed_book"))
        for row, cells in zip(table.rows, table.published[0].cells(), strict=True)
        if cells[0] != "-" and "without" in row.title
    }
    assert beside == {False}
