"""Every recipe names parts that exist, every table is listed, and typed numbers agree with each
other."""

import re
from collections.abc import Iterator

import pytest

from evenhand.agents.agent import repairs_of
from evenhand.cli.app import leaves
from evenhand.core.errors import UserError
from evenhand.findings.papers import (
    OF_RUN,
    PAPERS,
    SIZES,
    Paper,
    RunSpec,
    TableLine,
    number,
    paper_named,
)
from evenhand.findings.reproduction import catalogue
from evenhand.instruments import Instrument, instrument_named
from evenhand.instruments.bbq.drafts import of_drafts
from evenhand.methods.build import build_method
from evenhand.statistics.metrics.malibu import METRICS
from tests.errors import assert_names, raises_naming

OF_AUDITS = {"difference", "win_rate", *(f"mean:{metric}" for metric in (*METRICS, "combined"))}

ALL = dict(leaves())


def _instrument(paper: Paper, run: RunSpec) -> Instrument:
    """The instrument as it reads this run: BBQ has more to say of drafts."""
    found = instrument_named(paper.samples[run.sample].instrument)
    return of_drafts(found) if found.name == "bbq" and repairs_of(run.method) else found


def _problem(paper: Paper, cell: TableLine) -> str | None:
    """What a cell asks for that there is not."""
    if cell.run is None or cell.measure is None:
        return None
    run = paper.runs[cell.run]
    if paper.samples[run.sample].instrument == "judge":
        return None if cell.measure in OF_AUDITS else f"no audit has {cell.measure}"
    if cell.measure == "items":
        return None
    if re.fullmatch(r"refined_\d+", cell.measure):
        return None if repairs_of(run.method) else f"{run.method} refines nothing"
    instrument = _instrument(paper, run)
    if cell.measure not in {one.name for one in instrument.measures}:
        return f"{instrument.name} has no measure {cell.measure}"
    grouped = any(cell.measure in one.measures for one in instrument.groups)
    return None if cell.group is None or grouped else f"{cell.measure} is not given by group"


def _cells(paper: Paper) -> Iterator[tuple[str, TableLine]]:
    for table in paper.tables:
        for row in table.rows:
            for column in table.columns:
                yield table.name, table.address(row, column)


@pytest.mark.parametrize("name", PAPERS)
def test_every_cell_of_a_recipe_asks_for_a_measure_that_there_is(name: str) -> None:
    paper = paper_named(name)
    found = {(table, why) for table, cell in _cells(paper) if (why := _problem(paper, cell))}
    assert not found


def test_a_measure_that_was_renamed_is_found() -> None:
    paper = paper_named("stardtox")
    cell = TableLine(title="", run="bbq-default", measure="accuracy_unclear")
    assert_names(_problem(paper, cell) or "", "bbq", "accuracy_unclear")
    first = TableLine(title="", run="bbq-default", measure="accuracy_first")  # drafts alone have it
    assert_names(_problem(paper, first) or "", "bbq", "accuracy_first")
    grouped = TableLine(title="", run="bbq-default", measure="accuracy_aligned", group="Age")
    assert_names(_problem(paper, grouped) or "", "accuracy_aligned", "group")


@pytest.mark.parametrize("name", PAPERS)
def test_every_run_of_a_recipe_names_a_method_settings_and_options_that_there_are(
    name: str,
) -> None:
    paper = paper_named(name)
    for run in paper.runs.values():
        build_method(run.method, run.assignments)
        sample = paper.samples[run.sample]
        for size in SIZES:
            given = sample.at(size)
            folders = {k: v.removeprefix(OF_RUN) if isinstance(v, str) else v
                       for k, v in given.items()}  # fmt: skip
            instrument_named(sample.instrument).options_from(folders)


def test_no_run_and_no_sample_is_there_for_nothing() -> None:
    for paper in map(paper_named, PAPERS):
        used = set(paper.in_order(name for table in paper.tables for name in table.runs()))
        assert used == set(paper.runs), paper.name
        assert {run.sample for run in paper.runs.values()} == set(paper.samples), paper.name


@pytest.mark.parametrize("name", PAPERS)
def test_the_commands_that_make_trained_weights_have_the_options_they_are_given(name: str) -> None:
    for weights in paper_named(name).trained.values():
        for line in weights.commands:
            program, *words = line.split()
            path = next(path for path in ALL if list(path) == words[: len(path)])
            assert program == "evenhand"
            there = {o for p in ALL[path].params for o in p.opts}
            assert {word for word in words if word.startswith("--")} <= there, line


def test_a_run_comes_after_the_one_that_it_waits_for() -> None:
    stardtox, rldf = paper_named("stardtox"), paper_named("rldf")
    assert stardtox.in_order(["bbq-stardtox-1"]) == ["bbq-stardtox", "bbq-stardtox-1"]
    assert stardtox.waits_for("rtp-stardtox-without-1") == {"rtp-stardtox-without"}
    assert rldf.in_order(["framings"]) == ["st-default", "framings"]


def test_every_table_and_figure_of_the_papers_is_listed() -> None:
    found = catalogue()
    there = {(one.paper, one.table) for one in found.entries}
    numbers = {"stardtox": (3, 3), "mabrf": (5, 7), "rldf": (14, 13), "malibu": (0, 9)}
    for paper, (tables, figures) in numbers.items():
        wanted = {(paper, f"table{n}") for n in range(1, tables + 1)}
        wanted |= {(paper, f"figure{n}") for n in range(1, figures + 1)}
        assert {one for one in there if one[0] == paper} == wanted
    assert len(found.entries) == 54


def test_four_of_five_results_can_be_run_and_all_others_say_why_not() -> None:
    found = catalogue()
    assert found.share >= 0.8
    for one in found.entries:
        assert bool(one.reason) != one.runnable, (one.paper, one.table)
        assert one.needs or not one.runnable
    listed = found.to_dict()
    assert {"paper", "table", "runnable", "needs"} <= listed["tables"][0].keys()


def _printed(paper: str, table: str, system: str) -> list[list[float | None]]:
    found = paper_named(paper).table(table)
    assert found is not None
    said = next(one for one in found.published if one.system == system)
    return [[number(cell) for cell in row] for row in said.cells()]


@pytest.mark.parametrize("model", ["Qwen1.5-7B", "Llama2-7B"])
def test_numbers_that_the_paper_prints_in_three_tables_were_typed_alike(model: str) -> None:
    by_method = _printed("rldf", "table3", model)[-1]  # RLDF, whose teacher is GPT-3.5
    by_mode = _printed("rldf", "table4", model)[1]  # bias score, teacher-student
    by_teacher = _printed("rldf", "table5", model)[0]  # GPT-3.5
    assert by_method == by_mode == by_teacher
    logic = _printed("rldf", "table11", model)[-1]
    assert logic == _printed("rldf", "table4", model)[5] == _printed("rldf", "table14", model)[0]


def test_counts_add_up_to_the_totals_that_the_papers_print() -> None:
    bbq = [row[0] or 0 for row in _printed("rldf", "table6", "as printed")]
    assert sum(bbq[:-1]) == bbq[-1] == 58_492
    for column, total in ((0, 15_590), (1, 5_305)):
        counts = [row[column] or 0 for row in _printed("mabrf", "table1", "as printed")]
        assert sum(counts[:-1]) == counts[-1] == total


@pytest.mark.parametrize("judge", ["DeepSeek-v3", "GPT-4o mini"])
def test_differences_of_identities_add_up_but_for_rounding(judge: str) -> None:
    """a - c is (a - b) + (b - c); each is rounded to two digits."""
    table = paper_named("malibu").table("figure4")
    assert table is not None
    cells = [row[1] for row in _printed("malibu", "figure4", judge)]
    gap = dict(zip((one.title for one in table.rows), cells, strict=True))
    labels = [*dict.fromkeys(title.partition(" - ")[0] for title in gap), "Atheist"]
    for i, a in enumerate(labels):
        for j, b in enumerate(labels[i + 1 :], i + 1):
            for c in labels[j + 1 :]:
                one, two, both = (gap[f"{x} - {y}"] or 0 for x, y in ((a, b), (b, c), (a, c)))
                assert abs(one + two - both) <= 0.0151, (a, b, c)


def test_a_paper_that_is_not_there_is_refused() -> None:
    with raises_naming(UserError, "'nobody'", "stardtox, mabrf, rldf"):
        paper_named("nobody")
