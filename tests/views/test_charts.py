"""Charts: an SVG that runs nothing, shows what is not known as such, and can be seen by all."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import pytest

from evenhand.core.errors import UserError
from evenhand.findings.audit import audit_of
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.estimates import Estimate
from evenhand.findings.paired_totals import PairedBin
from evenhand.findings.report import Report, report
from evenhand.instruments import instrument_of
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views.charts import Chart, chart, charts_of, heat
from evenhand.views.charts.before_after import DumbbellRow, SlopeLine, apart, dots, dumbbell, slope
from evenhand.views.charts.forest import ForestPanel, ForestRow, forest
from evenhand.views.charts.of_report import estimate_row
from tests.errors import assert_names, raises_naming

KEPT = Path(__file__).parents[1] / "same_numbers/kept"
_SVG = "{http://www.w3.org/2000/svg}"
_DRAWN = {"svg", "style", "g", "path", "line", "text", "tspan", "rect"}  # no script, image or link
HOSTILE = "<script>alert(1)</script>]]>\x1b[2J\u202e & \"'"


@cache
def _report(name: str) -> Report:
    run = RunReader(KEPT / name)
    return report(instrument_of(run), run)


@cache
def _comparison(before: str, after: str) -> Comparison:
    runs = RunReader(KEPT / before), RunReader(KEPT / after)
    return compare(instrument_of(runs[0]), *runs)


@cache
def _drawn() -> dict[str, tuple[Chart, ...]]:
    return {
        "report": charts_of(_report("bbq/default")),
        "comparison": charts_of(_comparison("bbq/default", "bbq/fairness")),
        "audit": charts_of(audit_of(_report("judge/few_bases"))),
    }


def _every() -> Iterator[Chart]:
    for charts in _drawn().values():
        yield from charts


def _words(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{_SVG}text")]


def _entry(alt_text: str, label: str) -> str:
    """What a chart's words say of one of its rows."""
    _, _, entries = alt_text.partition(". ")
    return next(one for one in re.split(r"; (?![^(]*\))", entries) if one.startswith(label))


def _forest(*rows: ForestRow, line: float | None = None) -> ElementTree.Element:
    panel = ForestPanel(rows=rows, axis="share", line=line, within=(0, 1), from_zero=True)
    return ElementTree.fromstring(forest("one", "One", [panel], ()).svg)


def _bars(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Where the colouguardrails begin, and how long they are, in pixels."""
    found = []
    for line in root.iter(f"{_SVG}line"):
        if line.get("stroke") in chart.MARKS:
            place = re.match(r"translate\(([-\d.]+)", line.get("transform", ""))
            assert place is not None
            found.append((float(place[1]), float(line.get("x2", 0))))
    return found


def _points(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in root.iter(f"{_SVG}path") if one.get("fill") in chart.MARKS]


def test_each_finding_has_the_charts_that_it_has_data_for() -> None:
    names = {kind: [one.name for one in charts] for kind, charts in _drawn().items()}
    assert names == {
        "report": ["estimates", "by_category"],
        "comparison": ["changes", "slope_category", "pairs", "answers", "cost"],
        "audit": ["identities", "labels"],
    }
    assert charts_of("no finding") == ()


def test_a_chart_is_one_image_with_its_words_and_nothing_that_runs_or_is_fetched() -> None:
    for one in _every():
        root = ElementTree.fromstring(one.svg)
        assert (root.tag, root.get("role"), root.get("aria-label")) == (
            f"{_SVG}svg",
            "img",
            one.alt,
        )
        assert {part.tag.removeprefix(_SVG) for part in root.iter()} <= _DRAWN
        attributes = {name for part in root.iter() for name in part.attrib}
        assert not {name for name in attributes if name.startswith("on") or "href" in name}
        assert "id" not in attributes  # several charts stand in one page
        assert not re.search(r"url\(|@import|@font-face|data:", one.svg)
        assert len(one.svg) < 60_000
        assert one.title in _words(one.svg)


def test_the_words_of_a_chart_hold_its_numbers() -> None:
    drawn = {one.name: one for one in _every()}
    accuracy = _entry(drawn["estimates"].alt, Bbq().measure("accuracy_disambiguated").label)
    assert_names(accuracy, "↑: 0.79", "(0.68 to 0.87)", "n 107")
    assert_names(
        _entry(drawn["by_category"].alt, "Disability status"), "? +0.25", "one cluster", "n 4"
    )
    assert_names(drawn["estimates"].alt, "(±0.05)")
    assert_names(drawn["by_category"].alt, "(±0.1)")  # of a group twice is asked
    assert_names(drawn["answers"].alt, "ambig/biased: 41", "→ 21")
    male = _entry(drawn["identities"].alt, "male")
    assert_names(male, "? +0.00", "no spread", "1 missing", "n 3")


def test_a_dot_of_a_pair_lies_before_across_and_after_upwards_and_judges_nothing() -> None:
    places = [
        PairedBin(before=0, after=1, clusters=30),
        PairedBin(before=1, after=0.5, clusters=10),
    ]
    found = dots("pairs", "Pairs", places, "templates", "share")
    root = ElementTree.fromstring(found.svg)
    marks = _points(root)
    assert {one.get("fill") for one in marks} == {chart.PLAIN}
    spots = [
        re.match(r"translate\(([-\d.]+),([-\d.]+)\)", one.get("transform", "")) for one in marks
    ]
    # Both axes go from -0.05 to 1.05 in 260 pixels, upwards from below.
    at = [float(part) for one in spots if one for part in one.groups()]
    assert at == pytest.approx([260 * part / 1.1 for part in (0.05, 0.05, 1.05, 0.55)])
    assert_names(found.alt, "40 templates", 30, 10, 0)
    assert_names(found.alt, "0.00 to 1.00:", "1.00 to 0.50:")


def test_the_same_specification_gives_the_same_bytes_whatever_a_notebook_has_set() -> None:
    panel = ForestPanel(rows=[ForestRow(label="a", value=0.5, low=0.4, high=0.6)], axis="share")
    found = forest("one", "One", [panel], ())
    with alt.theme.enable("dark"):
        assert forest("one", "One", [panel], ()) == found


def test_a_name_from_outside_is_words_and_is_cut() -> None:
    found = _report("bbq/default")
    names = (HOSTILE, "x" * 10_000, "x" * 9_999)
    groups = {"category": dict(zip(names, found.groups["category"].values(), strict=False))}
    drawn = charts_of(replace(found, groups=groups))[1]
    words = _words(drawn.svg)
    assert "<script>alert(1)</script>]]>[2J & \"'" in words
    assert words.count("x" * 47 + "…") == 2  # two groups stay two rows
    assert "<script" not in drawn.svg
    assert len(drawn.svg) < 60_000


def test_signs_that_xml_lacks_end_no_process_wherever_they_stand() -> None:
    said = "a\x00\x1b\ufffe\uffff\ud800b"
    panel = ForestPanel(rows=[ForestRow(label=said, value=0.5, says=said)], axis=said, title=said)
    words = _words(forest("one", said, [panel], [said]).svg)
    assert words.count("ab") == 6  # title, heading, name, number, axis, legend
    assert not [word for word in words if "\ufffe" in word]


def test_an_interval_is_drawn_where_its_ends_are() -> None:
    root = _forest(ForestRow(label="a", value=0.5, low=0.25, high=0.75))
    ((start, length),) = _bars(root)
    # The axis goes from 0 to 0.75 and a twentieth of that more, in 300 pixels.
    assert start == pytest.approx(300 * 0.25 / 0.7875, abs=0.01)
    assert length == pytest.approx(300 * 0.5 / 0.7875, abs=0.01)


def test_a_value_without_an_interval_is_hollow_and_has_no_bar() -> None:
    says = "0.50 (one cluster only)"
    root = _forest(ForestRow(label="a", value=0.5, says=says))
    assert _bars(root) == []
    assert [one.get("fill-opacity") for one in _points(root)] == ["0"]
    assert says in [one.text for one in root.iter(f"{_SVG}text")]


def test_what_has_no_value_is_words_alone() -> None:
    root = _forest(
        ForestRow(label="a", value=None, says="not measured"), ForestRow(label="b", value=0.5)
    )
    assert len(_points(root)) == 1
    assert "not measured" in [one.text for one in root.iter(f"{_SVG}text")]


def test_missing_answers_that_could_be_anything_reach_over_the_whole_axis() -> None:
    root = _forest(ForestRow(label="a", value=0.5, low=0.4, high=0.6, bounds=(None, None)))
    assert (0.0, 300.0) in _bars(root)


def test_one_cluster_is_not_drawn_as_an_interval() -> None:
    alone = Estimate(name="s_amb", value=0.2, low=0.1, high=0.3, n=4, clusters=1)
    row = estimate_row("Age", alone, Bbq().measure("s_amb"))
    assert (row.value, row.has_interval) == (0.2, False)
    assert_names(row.says, "+0.20", "one cluster")


def test_names_at_the_end_of_a_slope_are_moved_apart_about_where_they_were() -> None:
    assert apart([50.0, 10.0], 12) == [50, 10]
    assert apart([20.0, 20.0, 20.0], 12) == [8, 20, 32]
    # 10 and 12 make a group of two around 11, which then reaches the one at 22.
    assert apart([22.0, 10.0, 12.0], 12) == pytest.approx([44 / 3 + 12, 44 / 3 - 12, 44 / 3])


def test_words_at_the_right_have_room_in_wide_letters_whatever_they_were_measured_with() -> None:
    # Letters that are narrow where the picture is measured, and 6.5 px each as a reader has them:
    # that is DejaVu Sans at 12 px over our texts, the widest that is common.
    narrow = "i" * 40
    line = SlopeLine(label=narrow, before=0, after=1, written=("0", "1"), change="+1.00")
    pair = DumbbellRow(label="kind", before=1, after=2, says=narrow)
    wanted = {
        slope("one", "One", [line], ()): 260 + 26 + 6.5 * len(f"? {narrow} 1; change +1.00"),
        dumbbell("one", "One", [("items", [pair])]): 300 + 14 + 6.5 * len(narrow),
    }
    long_title = forest(
        "one", narrow * 5, [ForestPanel(rows=[ForestRow(label="a", value=0)], axis="")], ()
    )
    wanted[long_title] = 16 + 8 * 200  # bold, and larger
    for drawn, pixels in wanted.items():
        assert float(ElementTree.fromstring(drawn.svg).get("width", 0)) >= pixels


def _luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(weight * v for weight, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _mixed(colour: str, page: str, opacity: float) -> str:
    both = [(int(colour[at : at + 2], 16), int(page[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in both)


def test_marks_and_words_have_contrast_on_a_light_and_on_a_dark_page() -> None:
    assert _contrast("#ffffff", "#000000") == pytest.approx(21)
    for page, ink in (chart.LIGHT, chart.DARK):
        assert all(_contrast(colour, page) >= 3 for colour in chart.MARKS)
        assert _contrast(_mixed(ink, page, chart.FAINT), page) >= 4.5
        cells = [_mixed(colour, page, heat.STRONGEST) for colour in (chart.BAD, chart.PLAIN)]
        assert all(_contrast(ink, cell) >= 4.5 for cell in cells)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with raises_naming(UserError, "altair", "'evenhand[report]'"):
        charts_of(_report("bbq/default"))
