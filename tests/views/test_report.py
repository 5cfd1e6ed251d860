"""The page that is handed over: what is on it, in which order, by which rule, and the same bytes
every time."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from evenhand import UserError
from evenhand.cli.app import app
from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import compare, together
from evenhand.findings.estimates import Bounds
from evenhand.findings.examples import choose
from evenhand.instruments import instrument_named
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views import charts, html, markdown, page_of
from evenhand.views.blocks import (
    Block,
    Box,
    Details,
    Diff,
    Figure,
    Grid,
    Heading,
    Line,
    Tiles,
    diff,
)
from evenhand.views.dossier_summary import RunNames
from evenhand.views.report_page import tiles
from evenhand.views.visible import visible
from tests.coded import coded
from tests.errors import assert_names, raises_naming
from tests.views.conftest import KEPT


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts have tests of their own, and take long."""
    monkeypatch.setattr(charts, "charts_of", lambda _: ())


def _words(page: list[Block] | tuple[Block, ...]) -> Iterator[str]:
    """Every word of a page, in its order."""
    for block in page:
        match block:
            case Line(text) | Heading(text):
                yield text
            case Grid(columns, rows):
                yield from (*columns, *(cell for row in rows for cell in row))
            case Box(inner) | Details(_, inner):
                yield from _words(inner)
            case Diff(parts):
                yield from (text for _, text in parts)


def test_the_answer_stands_first_and_the_parts_have_their_order(dossier: CombinedReport) -> None:
    parts = [b.text for b in page_of(dossier, full=True) if isinstance(b, Heading) and b.level == 2]
    assert parts == [
        "What changed",
        "Guardrails",
        "Who is affected",
        "Examples",
        "Judges",
        "Cost",
        "Each run by itself",
        "Method and limits",
    ]
    page = html.document(page_of(dossier, full=True), dossier.title)
    assert page.count('<a href="#part-') == page.count('<h2 id="part-') == len(parts)
    assert "INCONCLUSIVE." in page.partition("What changed</h2>")[0]


def test_the_first_screen_has_three_numbers_of_the_first_comparison_and_names_no_folder(
    dossier: CombinedReport,
) -> None:
    first = page_of(dossier)
    [tiles] = [block for block in first if isinstance(block, Tiles)]
    changes = {measure.label: change for change, measure in dossier.comparisons[0].judged()}
    assert len(tiles.tiles) == 3
    for tile in tiles.tiles:
        before, after = (float(end) for end in tile.value.split(" → "))
        change = changes[tile.label]
        assert (before, after) == pytest.approx((change.before, change.after), abs=0.005)
        assert f"{change.effect:+.2f}, 95% CI" in tile.detail
    named = [word for word in _words(first) if not word.startswith("evenhand ")]
    assert not [word for word in named if str(KEPT) in word]
    whole = page_of(dossier, full=True)
    assert whole[: len(first)] == first


def test_a_number_with_missing_answers_has_its_worst_case_bounds_on_the_first_screen(
    dossier: CombinedReport,
) -> None:
    """A mean that leaves out answers must not look complete."""
    report = dossier.reports[0]
    measure = report.instrument.primary()[0]
    bounds = Bounds(missing=3, low=-0.75, high=0.5)
    estimates = tuple(
        replace(estimate, bounds=bounds) if estimate.name == measure.name else estimate
        for estimate in report.estimates
    )
    [tile, *_] = tiles(replace(report, estimates=estimates))
    assert tile.label == measure.label
    assert "-0.75 to +0.50" in tile.detail


def test_a_single_cluster_has_no_interval_on_the_first_screen(dossier: CombinedReport) -> None:
    report = dossier.reports[0]
    alone = tuple(replace(estimate, clusters=1) for estimate in report.estimates)
    assert not any("95% CI" in tile.detail for tile in tiles(replace(report, estimates=alone)))


def test_runs_of_one_model_and_method_are_named_by_their_folders_too() -> None:
    runs = [RunReader(KEPT / "squad" / name) for name in ("default", "one_article")]
    dossier = dossier_of([(run, None) for run in runs])
    names = RunNames(dossier)
    assert [names.of(str(run.path)).rpartition(" ")[2] for run in runs] == [
        "(default)",
        "(one_article)",
    ]


def test_a_run_is_held_against_the_first_of_its_instrument_with_holm_over_all(
    dossier: CombinedReport,
) -> None:
    pairs = [(one.before.run, one.after.run) for one in dossier.comparisons]
    assert pairs == [
        (str(KEPT / "bbq/default"), str(KEPT / "bbq/self_debias_reprompting")),
        (str(KEPT / "overcorrection/default"), str(KEPT / "overcorrection/fairness")),
    ]
    alone = [
        compare(Bbq(), *(RunReader(KEPT / name) for name in ("bbq/default",
                                                             "bbq/self_debias_reprompting"))),
        compare(instrument_named("overcorrection"), *(RunReader(KEPT / f"overcorrection/{name}")
                                    for name in ("default", "fairness"))),
    ]  # fmt: skip
    wanted = [change for one in together(alone) for change in one.primary]
    assert [change for one in dossier.comparisons for change in one.primary] == wanted
    # Five changes are looked at and not four: the least p is multiplied by 5.
    least = min(change.p or 1.0 for change in alone[0].primary)
    first = min(change.p_holm or 1.0 for change in dossier.comparisons[0].primary)
    assert first == pytest.approx(5 * least)


def test_what_cannot_be_compared_is_said_and_not_compared() -> None:
    runs = [RunReader(KEPT / "squad" / name) for name in ("default", "one_article")]
    found = dossier_of([(run, None) for run in runs])
    assert found.comparisons == ()
    assert "different samples" in found.not_compared[0]
    words = list(_words(page_of(found, full=True)))
    assert any(word.startswith("Not compared:") for word in words)
    assert any(word.startswith("This report compares no runs") for word in words)


def test_a_run_that_is_named_twice_is_not_compared_with_itself() -> None:
    run = RunReader(KEPT / "bbq/default")
    found = dossier_of([(run, None), (RunReader(KEPT / "bbq/default"), None)])
    assert len(found.reports) == 1
    assert found.comparisons == ()


def test_answers_are_chosen_by_the_stated_rule() -> None:
    before, after = (RunReader(KEPT / "bbq" / name) for name in ("default", "fairness"))
    # By a second route: where the context says nothing, "unknown" before and somebody after.
    rows = [{row["item_id"]: row for row in run.results().collect().to_dicts()}
            for run in (before, after)]  # fmt: skip
    worse = []
    for item, row in rows[1].items():
        tags = {tag["name"]: tag["value"] for tag in row["tags"]}
        choices = [rows[0][item]["choice"], row["choice"]]
        unclear, unknown = tags["condition"] == "ambig", int(tags["unknown"])
        if unclear and choices[0] == unknown and choices[1] not in (unknown, None):
            worse.append(item)
    worse.sort(key=lambda item: hashlib.sha256(item.encode()).hexdigest())
    found = choose(Bbq(), after, before)
    assert [one.item_id for one in found.answers[:2]] == worse[:2]
    assert len(worse) > 2
    assert coded(found.rule, "examples.rule")["worse"] == 2
    assert all(one.turns and one.baseline for one in found.answers)


def test_a_judge_is_vouched_for_by_an_audit_of_the_same_judge_alone(
    dossier: CombinedReport,
) -> None:
    judges = [(one.role, one.model, one.passes) for one in dossier.judges]
    assert judges == [("bias_evaluator", "stardtox", False)]
    assert "No judge here is certified" in " ".join(_words(page_of(dossier, full=True)))
    without = replace(dossier, judges=(), audits=())
    assert "asked a language model to judge" in " ".join(_words(page_of(without, full=True)))


def test_the_same_runs_give_the_same_bytes_and_ten_of_them_less_than_a_megabyte(
    dossier: CombinedReport, tmp_path: Path
) -> None:
    again = dossier_of([(RunReader(one.run), None) for one in dossier.folders[4:]])
    part = replace(
        dossier, reports=dossier.reports[4:], comparisons=(), choices=dossier.choices[4:],
        folders=dossier.folders[4:],
    )  # fmt: skip
    assert again.to_dict() == part.to_dict()
    for number, found in enumerate((again, part)):
        for ending in ("html", "md", "json"):
            found.save(str(tmp_path / f"{number}.{ending}"))
    for ending in ("html", "md", "json"):
        assert (tmp_path / f"0.{ending}").read_bytes() == (tmp_path / f"1.{ending}").read_bytes()
    several = ("reports", "comparisons", "choices", "folders")
    ten = replace(dossier, **{name: getattr(dossier, name) * 5 for name in several})
    assert len(ten.reports) > 10
    assert len(html.document(page_of(ten, full=True), "").encode()) < 1_000_000


def test_hashes_of_a_run_are_those_of_its_bytes(dossier: CombinedReport) -> None:
    first = dossier.folders[0]
    held = Path(first.run, "run.json").read_bytes()
    assert first.digests["run.json"] == hashlib.sha256(held).hexdigest()
    shown = " ".join(_words(page_of(dossier, full=True)))
    assert all(digest in shown for one in dossier.folders for digest in one.digests.values())


def test_pictures_are_images_and_stop_where_the_page_would_grow_large(
    dossier: CombinedReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = charts.Chart("one", "A chart", "what it shows", "<svg>" + " " * 100_000)
    monkeypatch.setattr(charts, "installed", lambda: True)
    monkeypatch.setattr(charts, "charts_of", lambda _: (drawn,))
    page = page_of(dossier, full=True)
    assert len([block for block in page if isinstance(block, Figure)]) == 4
    assert any("more charts" in word for word in _words(page))
    assert html.document(page, "").count('<img src="data:image/svg+xml,') == 4


def test_without_the_extra_the_page_says_how_to_have_pictures(
    dossier: CombinedReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "installed", lambda: False)
    words = " ".join(_words(page_of(dossier, full=True)))
    assert "pip install 'evenhand[report]'" in words


def test_without_a_browser_a_pdf_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with raises_naming(UserError, "Chromium", "apt-get install chromium", "report.html"):
        html.pdf("<!doctype html>")


def test_words_are_told_apart_and_a_long_text_takes_no_long_time() -> None:
    before, after = "she is a good nurse", "they are a nurse"
    assert diff(before, after).parts == (
        ("gone", "she is"), ("new", "they are"), ("same", "a"), ("gone", "good"), ("same", "nurse"),
    )  # fmt: skip
    long = diff("a b " * 100_000, "b a " * 100_000)
    kind, rest = long.parts[-1]
    assert kind == "same"
    assert_names(rest, "199,600")


def test_markdown_of_new_blocks_cannot_leave_its_place() -> None:
    text = "</summary><script>x</script>\n\n# big | ~~y~~"
    made = markdown.render([
        Heading(text), Details(text, (Line(text),)), Diff((("same", "# a"), ("gone", text))),
        Figure(text, text, text), Box((Line(text),)),
    ])  # fmt: skip
    assert "<script>" not in made.replace("\\<script>", "")
    assert [line for line in made.splitlines() if line.startswith("# ")] == []
    assert made.count("</summary>") - made.count("\\</summary>") == 1


@pytest.mark.parametrize(
    "sign", "\ufe0f \U000e0101 \u3164 \u034f \u2028 \u202e \U0001d173".split(" ")
)
def test_selectors_fillers_and_turns_of_direction_are_not_shown(sign: str) -> None:
    assert visible(f"a{sign}b") == "ab"


def test_the_command_writes_what_was_asked_for_and_says_when_a_run_is_not_finished(
    tmp_path: Path,
) -> None:
    run, out = str(KEPT / "bbq/unfinished"), tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", run, "--out", str(out), "--title", "Bot <4>"])
    assert done.exit_code == 2, done.output
    page = out.read_text()
    assert "<title>Bot &lt;4&gt;</title>" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    with_file, without = (
        CliRunner().invoke(app, ["report", run, "--json", *more])
        for more in (("--out", str(tmp_path / "again.html")), ())
    )
    assert orjson.loads(with_file.stdout) == orjson.loads(without.stdout)
    assert (with_file.exit_code, without.exit_code) == (2, 2)
    wrong = CliRunner().invoke(app, ["report", run, "--out", str(tmp_path / "x.pdf")])
    assert isinstance(wrong.exception, UserError)
    nothing = CliRunner().invoke(app, ["report", run, run])
    assert "--out report.html" in str(nothing.exception)
