"""Stored decisions of made-up people: counted by hand, compared, and read strictly."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.measures import Measure
from evenhand.findings.ratios import INCONCLUSIVE, SHOWN, GroupingResult
from evenhand.findings.summed_statistics import Mean
from evenhand.instruments.decisions import tables
from evenhand.instruments.decisions.data import (
    LARGEST,
    Outcomes,
    above,
    median_of,
    outcomes_in,
    read_people,
)
from evenhand.instruments.decisions.instrument import Decisions
from evenhand.instruments.decisions.judged import (
    LEFT_OUT,
    NO_RATIO,
    SelectionCounts,
    judged,
    uneven,
)
from evenhand.runs.store import RunReader
from tests.coded import codes
from tests.errors import Fact, assert_names, raises_naming

_Table = list[list[int]]


def _csv(path: Path, *cells: tuple[str, str, int], head: str = "sex,selected") -> Path:
    lines = [f"{sex},{outcome}" for sex, outcome, times in cells for _ in range(times)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


async def test_a_group_that_is_behind_is_shown_with_the_laws_table(tmp_path: Path) -> None:
    """20 of 100 women and 50 of 100 men: 0.2 over 0.5."""
    file = _csv(tmp_path / "p.csv", ("woman", "1", 20), ("woman", "0", 80), ("man", "yes", 50),
                ("man", "no", 50), ("", "yes", 3), ("Unknown", "no", 4))  # fmt: skip
    found = await eh.aio.measure(
        "decisions",
        out=tmp_path / "run",
        options={"table": file, "groups": "sex", "outcome": "selected"},
    )
    table = found.section("ratios_0")
    assert table is not None
    assert table.rows[0][:6] == ("man", 100, 50, "50.0%", "1.00", "2.50")
    assert table.rows[1][:6] == ("woman", 100, 20, "20.0%", "0.40", "0.40")
    assert [row[-1] for row in table.rows] == [SHOWN, SHOWN, NO_RATIO]
    assert table.rows[2][:4] == ("unknown", 7, 3, "42.9%")
    assert found.verdict.state == "detected"
    [one] = found.estimates
    assert (one.name, one.n) == ("sex=man", 200)
    assert one.value == pytest.approx(0.3)
    assert one.low is not None
    assert one.low > 0
    assert found.section("preset") is None
    tests = found.section("tests")
    assert tests is not None
    assert tests.rows[0][3] == SHOWN


async def test_two_tools_on_the_same_people_are_compared(tmp_path: Path) -> None:
    """One takes men alone, the other every second person."""
    rng = np.random.default_rng(1)
    sexes = rng.choice(["woman", "man"], 200)
    for name, chosen in (("a", sexes == "man"), ("b", rng.random(200) < 0.5)):
        rows = [{"sex": str(s), "selected": bool(c)} for s, c in zip(sexes, chosen, strict=True)]
        file = tmp_path / f"{name}.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)))
        await eh.aio.measure(
            "decisions",
            out=tmp_path / name,
            options={"table": file, "groups": "sex", "outcome": "selected"},
        )
    diff = eh.compare(tmp_path / "a", tmp_path / "b")
    change = diff["sex=man"]
    assert change.before == pytest.approx(1)  # all men, and no woman
    assert change.after == pytest.approx(0, abs=0.15)
    assert "comparison.better" in codes(diff.verdict.says)
    worse = eh.compare(tmp_path / "b", tmp_path / "a")
    assert "comparison.worse" in codes(worse.verdict.says)
    named = replace(Measure(name="sex=man", label="", statistic=Mean(pl.col("x"))), margin=0.05)
    check = GateCheck(name="men", instrument=Decisions(), measure=named)
    pair = RunReader(tmp_path / "b"), RunReader(tmp_path / "a")
    assert gate([check], {"men": pair}).verdict == "fail"
    assert gate([check], {"men": (pair[1], pair[0])}).verdict == "pass"
    other = replace(check, measure=replace(named, name="sex=x"))
    assert "they have: sex=man" in gate([other], {"men": pair}).says


def test_the_short_command_writes_the_rules_statements_and_leaves_small_groups_out(
    tmp_path: Path,
) -> None:
    file = _csv(tmp_path / "p.csv", ("woman", "1", 60), ("woman", "0", 140), ("man", "1", 70),
                ("man", "0", 130), ("other", "1", 3))  # fmt: skip
    said = "--groups sex --outcome selected --preset nyc-ll144 --leave-out-small --out"
    ran = CliRunner().invoke(
        app, ["audit", "decisions", str(file), *said.split(), str(tmp_path / "run")]
    )
    assert ran.exit_code == 0, ran.output
    sections = json.loads((tmp_path / "run/report.json").read_text())["scores"]["sections"]
    assert [row[-1] for row in sections["ratios_0"]["rows"]][-1] == LEFT_OUT
    assert "not legal advice" in sections["preset"]["note"]
    assert not [name for name in sections if name.startswith("threshold")]


def _counts(people: list[int], read: list[int], selected: list[int]) -> SelectionCounts:
    groups = tuple((str(one),) for one in range(len(people)))
    tables_ = [np.array([one]) for one in (people, read, selected)]
    return SelectionCounts(groups, tables_[0], tables_[1], tables_[2], (0, 0, 0))


def _judged(counts: SelectionCounts) -> GroupingResult:
    rows = [
        {
            "stratum": str(row),
            "group": json.dumps(list(group)),
            "people": counts.people[row, place],
            "read": counts.read[row, place],
            "selected": counts.selected[row, place],
        }
        for row in range(len(counts.people))
        for place, group in enumerate(counts.groups)
    ]
    return judged(pl.DataFrame(rows), ["sex"], draws=1000).groupings[0]


def _states(counts: SelectionCounts) -> list[str]:
    return [one.state for one in _judged(counts).groups]


def test_missing_outcomes_are_counted_the_worst_way() -> None:
    """30 of 100 to 50 of 100 is shown; were 20 more of the first unknown, it could be 50 of 120."""
    assert _states(_counts([100, 100], [100, 100], [30, 50])) == [SHOWN, SHOWN]
    some = _counts([120, 100], [100, 100], [30, 50])
    assert _states(some) == [INCONCLUSIVE, INCONCLUSIVE]
    ends = tables.if_known(_judged(some).groups[0])
    assert ends == pytest.approx((30 / 120 / 0.5, 50 / 120 / 0.5))


@settings(max_examples=12, deadline=None)
@given(st.integers(20, 60), st.integers(20, 60), st.integers(1, 15), st.booleans(), st.booleans())
def test_an_outcome_that_is_lost_makes_no_state_sure(
    x: int, y: int, lost: int, first: bool, chosen: bool
) -> None:
    people, selected = [120, 120], [x, y]
    before = _states(_counts(people, people, selected))
    read, place = list(people), 0 if first else 1
    read[place] -= lost
    if chosen:
        selected[place] -= min(lost, selected[place])
    after = _states(_counts(people, read, selected))
    for one, other in zip(before, after, strict=True):
        assert other in (one, INCONCLUSIVE)


def test_the_test_fills_missing_outcomes_in_against_a_finding() -> None:
    sure = uneven(_counts([100, 100], [100, 100], [30, 60]))
    filled = uneven(_counts([130, 100], [100, 100], [30, 60]))
    assert sure is not None
    assert filled is not None
    assert sure < 0.001 < filled


def _outcomes(cells: list[str], words: Outcomes) -> list[str]:
    return pl.DataFrame({"answer": cells}).select(words.read()).to_series().to_list()


def test_an_outcome_is_read_strictly_and_anything_else_is_missing() -> None:
    yes, no = ["1", "Yes", "TRUE", " selected ", "1.0"], ["0", "no", "False", "rejected", "0.0"]
    assert _outcomes(yes, Outcomes()) == ["1"] * 5
    assert _outcomes(no, Outcomes()) == ["0"] * 5
    others = ["", "maybe", "2", "not selected", "10", "nan", "=1"]
    assert _outcomes(others, Outcomes()) == [""] * 7


_WORDS = ["Not hired"] * 5 + ["Hired"] * 3 + ["Withdrawn"] * 2 + [" hired"]


@pytest.mark.parametrize(
    ("selected", "rejected", "facts"),
    [
        ((), (), ("Not hired 5", "Hired 3", "Withdrawn 2", "hired 1", "--selected")),
        (("Hired",), (), ("Not hired 5", "hired 1", "--rejected")),
        (("Hird",), ("Not hired",), ("No cell", "'hird'", "Hired 3")),
        (("Hired",), ("HIRED",), ("p.csv: 'hired'", "Hired 3")),
    ],
)
def test_words_that_say_nothing_are_named_with_how_often_they_come(
    selected: tuple[str, ...], rejected: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    with raises_naming(UserError, "Decision", *facts):
        outcomes_in(Path("p.csv"), "Decision", pl.Series(_WORDS), selected, rejected)


def test_a_user_says_which_words_mean_what_and_the_rest_is_missing() -> None:
    words = outcomes_in(Path("p.csv"), "Decision", pl.Series(_WORDS), ["hired"], ["Not hired"])
    assert _outcomes(["Hired", "NOT HIRED", "Withdrawn", "yes"], words) == ["1", "0", "", ""]


@pytest.mark.parametrize(
    ("encoding", "separator"),
    [("utf-8", ";"), ("utf-8-sig", "\t"), ("cp1252", ";"), ("utf-16", ","), ("latin-1", ",")],
)
def test_a_table_is_read_as_people_have_it(tmp_path: Path, encoding: str, separator: str) -> None:
    file = tmp_path / "p.csv"
    lines = ["Genre,Décision", "Françoise,oui", "João,non"]
    mark = "\x81" if encoding == "latin-1" else ""  # has no sign in cp1252
    text = "\r\n".join(lines).replace(",", separator) + f"{mark}\r\n"
    file.write_bytes(text.encode(encoding))
    if mark:
        with raises_naming(UserError, "p.csv", "Décision"):
            read_people(file, ["Décision"], "Genre", None)
        return
    people = read_people(file, ["Genre"], "Décision", None)
    assert people["group"].struct.field("Genre").to_list() == ["Françoise", "João"]
    assert people["answer"].to_list() == ["oui", "non"]


def test_a_refused_run_takes_no_folder_and_the_next_says_how_the_table_was_read(
    tmp_path: Path,
) -> None:
    file = tmp_path / "p.csv"
    rows = ["femme;Embauchée;x"] * 30 + ["homme;Refusé;x"] * 5 + ["homme;Embauchée;x"] * 25
    file.write_bytes("\n".join(["sexe;décision;site", *rows, "femme;Refusé;x"]).encode("cp1252"))
    words = ["--groups", "sexe", "--outcome", "décision", "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(app, ["audit", "decisions", str(file), *words])
    assert isinstance(refused.exception, UserError)
    assert_names(str(refused.exception), "Embauchée 55", "Refusé 6")
    assert not (tmp_path / "run").exists()
    said = ["--selected", "Embauchée", "--rejected", "Refusé"]
    ran = CliRunner().invoke(app, ["audit", "decisions", str(file), *words, *said])
    assert ran.exit_code == 0, ran.output
    assert_names(ran.output, "cp1252", "semicolons")


def test_two_columns_are_shown_crossed_and_each_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    rows = [f"{sex},{race},{n % 2}" for sex in "wm" for race in "ab" for n in range(20)]
    file.write_text("\n".join(["sex,race,selected", *rows]))
    ran = CliRunner().invoke(app, [
        "audit", "decisions", str(file), "--groups", "sex,race", "--outcome", "selected", "--out",
        str(tmp_path / "run"),
    ])  # fmt: skip
    assert ran.exit_code == 0, ran.output
    for columns in ("sex × race", "sex", "race"):
        assert f", by {columns}\n" in ran.output


def test_a_page_and_a_pack_of_decisions_speak_of_people_and_of_no_model(tmp_path: Path) -> None:
    """Nobody who was selected stands there as an example of harm; rates are given by group."""
    file = _csv(tmp_path / "p.csv", ("woman", "1", 20), ("woman", "0", 80), ("man", "yes", 50),
                ("man", "no", 50))  # fmt: skip
    run = tmp_path / "run"
    options = ["--groups", "sex", "--outcome", "selected", "--out", str(run)]
    assert CliRunner().invoke(app, ["audit", "decisions", str(file), *options]).exit_code == 0
    page = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["report", str(run), "--out", str(page)]).exit_code == 0
    text = page.read_text()
    for words in ("what the model did", "worst by", "Over-correction", "Can the judge"):
        assert words not in text
    assert_names(text, "woman", "20.0%", "50.0%")
    packed = CliRunner().invoke(
        app,
        ["runs", "pack", str(run), "--out", str(tmp_path / "p.zip"), "--framework", "eu-ai-act"],
    )
    assert packed.exit_code == 0, packed.output
    with zipfile.ZipFile(tmp_path / "p.zip") as pack:
        texts = {name: pack.read(name).decode() for name in pack.namelist()
                 if name.endswith((".md", ".json"))}  # fmt: skip
    [act] = [text for name, text in texts.items() if name.endswith("eu-ai-act.md")]
    rows = {row[0]: row for line in act.splitlines() if len(row := line[2:].split(" | ")) > 3}
    metrics = rows["Annex IV, 2(g): metrics"]
    assert metrics[2].startswith("evidence")
    for clause, absent in (
        ("Annex IV, 2(g): tests", "no accuracy was measured"),
        ("Article 15(1) to (3)", "no accuracy was measured"),
        ("Annex XI, section 2, 1", "no model was asked"),
    ):
        assert rows[clause][2].startswith("not covered")
        assert rows[clause][4].startswith(absent)
    for words in (
        "no number is given by group",
        "the model answers",
        "fairnessAssessments",
        "eee/",
    ):
        assert words not in act
    [bom] = [text for text in texts.values() if '"CycloneDX"' in text]
    [part] = json.loads(bom)["components"]
    assert part["type"] == "application"
    assert "the model none" not in bom


def test_a_score_at_the_median_is_not_above_it_and_what_is_no_number_is_missing() -> None:
    cells = ["1", "2", "2,5", "nan", "inf", "1e999", "", "two", "1,000"]
    found = pl.DataFrame({"answer": cells})
    assert found.select(above((2.0, 2.0))).to_series().to_list() == ["0", "0", "1", *[""] * 6]
    apart = pl.DataFrame({"answer": ["1", "2", "2.5", "3", "4"]}).select(above((2.0, 3.0)))
    assert apart.to_series().to_list() == ["0", "0", "", "", "1"]


@pytest.mark.parametrize(
    ("scores", "least", "most"),
    [
        ("1 2 3 4 5", 3, 3),
        ("1 2 3 4", 2.5, 2.5),
        ("1 2 3 4 ?", 2, 3),  # the fifth is below all of them, or above
        ("1 2 ? ?", -LARGEST, LARGEST),  # of the middle two one may be anything
        ("1.7e308 1.7e308", 1.7e308, 1.7e308),
    ],
)
def test_missing_scores_move_the_median_and_nobody_is_judged_between_its_ends(
    scores: str, least: float, most: float
) -> None:
    people = pl.DataFrame({"answer": scores.replace("?", "-").split()})
    assert median_of(people, "score") == (least, most)


def test_many_names_of_one_column_are_refused_though_few_are_complete(tmp_path: Path) -> None:
    lines = [f"u{n},,{n % 2}" for n in range(60)] + ["a,x,1", "b,x,0", "a,y,1"]
    file = tmp_path / "p.csv"
    file.write_text("\n".join(["sex,race,selected", *lines]))
    with raises_naming(UserError, "62 groups", "sex × race", 50, "--groups"):
        read_people(file, ["sex", "race"], "selected", None)


def test_with_clusters_and_missing_outcomes_no_test_is_made() -> None:
    """Filling each cluster evenly is not the filling that makes the sums most even."""
    strata = [[1_000, 1_000], [50, 50], [10, 10]]
    read, selected = [[1_000, 1_000], [0, 0], [10, 10]], [[340, 260], [0, 0], [5, 5]]
    several = _in_strata(strata, read, selected)
    assert uneven(several) is None
    known = [[340, 260], [0, 50], [5, 5]]
    assert (uneven(_in_strata(strata, strata, known)) or 0) > 0.05


def _in_strata(people: _Table, read: _Table, selected: _Table) -> SelectionCounts:
    tables_ = [np.array(one) for one in (people, read, selected)]
    return SelectionCounts((("a",), ("b",)), tables_[0], tables_[1], tables_[2], (0, 0, 0))


@pytest.mark.parametrize(
    ("name", "text", "facts"),
    [
        ("p.csv", b"sex,selected\na,1\nb,0,9\n", ("p.csv", "Schema")),
        ("p.csv", b"sex,selected,sex\na,1,b\n", ("two columns", "'sex'")),
        ("p.csv", b"sex,chosen\na,1\n", ("column 'selected'", "'chosen'")),
        ("p.csv", b"", ("column 'sex'",)),
        ("p.csv", b"\xff\xfes\x00e", ("p.csv", "utf-16")),
        ("p.csv", b"sex,selected\na\x1b[31m,1\nb,0\n", (r"'a\x1b[31m'", "'sex'", 100)),
        ("p.csv", b"sex,selected\na,1\na,0\n", ("two groups", "--groups")),
        (
            "p.csv",
            b"sex,selected\n" + b"".join(b"g%d,1\n" % n for n in range(51)),
            ("51 groups", 50, "--groups"),
        ),
        (
            "p.jsonl",
            b'{"sex": "a", "sex": "b", "selected": 1}\n',
            ("line 1", "duplicate_key", "'sex'"),
        ),
        ("p.jsonl", b'{"sex": "a", "selected": NaN}\n', ("line 1", "not_finite")),
        ("p.jsonl", b'{"sex": ["a"], "selected": 1}\n', ("line 1", "sex.str")),
        ("p.jsonl", b'{"selected": 1}\n', ("line 1", "column 'sex'", "'selected'")),
        ("p.xlsx", b"PK", ("p.xlsx", ".csv", ".jsonl")),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_audited_is_refused_in_words(
    tmp_path: Path, name: str, text: bytes, facts: tuple[Fact, ...]
) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    with raises_naming(UserError, *facts):
        read_people(file, ["sex"], "selected", None)


@pytest.mark.parametrize(
    ("given_", "fact"),
    [
        ({}, "--table"),
        ({"table": "p.csv"}, "--groups"),
        ({"table": "p.csv", "groups": "sex"}, "--outcome"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "score": "b"}, "--score"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "preset": "mars"}, "nyc-ll144"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "leave_out_small": True}, "preset"),
    ],
)
def test_what_is_not_said_is_asked_for(given_: dict[str, object], fact: str) -> None:
    instrument = Decisions()
    with raises_naming(UserError, fact):
        instrument.source(None, instrument.options_from(given_))  # type: ignore[arg-type]


def test_only_the_rule_that_has_a_threshold_gets_one_and_every_preset_says_how_it_was_read() -> (
    None
):
    found = {name: tables.preset(name) for name in tables.names()}
    assert [name for name, one in found.items() if one.threshold is not None] == ["eeoc-ugesp"]
    assert len(found) == 6
    assert all("check before use" in one.read for one in found.values())
    assert [name for name, one in found.items() if one.small] == ["nyc-ll144"]


def test_a_plan_says_what_it_lacks() -> None:
    two = ["--groups", "2", "--ratio", "0.8"]
    for said, lacks in (
        (two[2:], "--groups"),
        (two, "--rate"),
        ([*two, "--rate", "0"], "a rate and a ratio between 0 and 1"),
    ):
        ran = CliRunner().invoke(app, ["plan", "decisions", *said])
        assert isinstance(ran.exception, UserError)
        assert lacks in str(ran.exception)
