"""Stored decisions of made-up people: counted by hand, compared, and read strictly."""

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.errors import UserError
from evenhand.findings.ratios import NOT_SHOWN, SHOWN, TOO_FEW
from evenhand.instruments.decisions import presets, tables
from evenhand.instruments.decisions.counted import Counts, ahead
from evenhand.instruments.decisions.data import read_people
from evenhand.instruments.decisions.instrument import Decisions
from evenhand.instruments.decisions.source import LARGEST, median_of

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
        "decisions", out=tmp_path / "run", table=file, groups="sex", outcome="selected"
    )
    table = found.section("ratios_0")
    assert table is not None
    assert table.rows[0][:5] == ("man", 100, 50, "50.0%", "1.00")
    assert table.rows[1][:5] == ("woman", 100, 20, "20.0%", "0.40")
    assert [row[-1] for row in table.rows] == [NOT_SHOWN, SHOWN, tables.NO_RATIO]
    assert table.rows[2][:4] == ("unknown", 7, 3, "42.9%")
    assert found.verdict.state == "shown"
    assert found["favoured"].n == 200
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
            "decisions", out=tmp_path / name, table=file, groups="sex", outcome="selected"
        )
    diff = eh.compare(tmp_path / "a", tmp_path / "b")
    change = diff["favoured"]
    assert change.before == pytest.approx(0.25, abs=0.02)  # q(1 − q) of two halves
    assert change.after == pytest.approx(0, abs=0.05)
    assert "shown better" in diff.verdict.says[0]


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
    assert [row[-1] for row in sections["ratios_0"]["rows"]][-1] == tables.LEFT_OUT
    assert "not legal advice" in sections["preset"]["note"]
    assert not [name for name in sections if name.startswith("threshold")]


def _counts(people: list[int], read: list[int], selected: list[int]) -> Counts:
    groups = tuple((str(one),) for one in range(len(people)))
    tables_ = [np.array([one]) for one in (people, read, selected)]
    return Counts(groups, tables_[0], tables_[1], tables_[2], (0, 0, 0))


def _states(counts: Counts) -> list[str]:
    judged = tables.Judged(counts, clustered=False)
    return [judged.state(place, judged.ends(place)[0]) for place in range(len(counts.groups))]


def test_missing_outcomes_are_counted_the_worst_way() -> None:
    """30 of 100 to 50 of 100 is shown; were 20 more of the first unknown, it could be 50."""
    assert _states(_counts([100, 100], [100, 100], [30, 50])) == [SHOWN, NOT_SHOWN]
    assert _states(_counts([120, 100], [100, 100], [30, 50])) == [TOO_FEW, NOT_SHOWN]
    judged = tables.Judged(_counts([120, 100], [100, 100], [30, 50]), clustered=False)
    assert judged.if_known(0) == pytest.approx((30 / 120 / 0.5, 50 / 120 / 0.5))


@settings(max_examples=6)
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
        assert other in (one, TOO_FEW)


def test_the_test_fills_missing_outcomes_in_against_a_finding() -> None:
    sure = tables.uneven(_counts([100, 100], [100, 100], [30, 60]))
    filled = tables.uneven(_counts([130, 100], [100, 100], [30, 60]))
    assert sure is not None
    assert filled is not None
    assert sure < 0.001 < filled


def _people(groups: str, selected: str) -> pl.DataFrame:
    return pl.DataFrame({
        "item_id": [str(n) for n in range(len(groups))], "stratum": "",
        "group": [f'["{g}"]' for g in groups], "is_known": True,
        "selected": [None if s == "?" else int(s) for s in selected],
    })  # fmt: skip


def _slowly(groups: str, selected: str) -> dict[str, float]:
    """The same rule, person by person."""
    ids = [str(n) for n in range(len(groups))]
    ids.sort(key=lambda n: int.from_bytes(hashlib.sha256(n.encode()).digest()[:8], "little"))
    found = {}
    for turn, name in enumerate(ids):
        past = [int(n) for n in ids[:turn] if selected[int(n)] != "?"]
        left = [int(n) for n in ids[turn:] if selected[int(n)] != "?"]
        rate = sum(selected[n] == "1" for n in past) / max(len(past), 1)
        named = set()
        for group in set(groups):
            own = [n for n in past if groups[n] == group]
            if own and sum(selected[n] == "1" for n in own) / len(own) > rate + 1e-12:
                named.add(group)
        share = sum(groups[n] in named for n in left) / max(len(left), 1)
        found[name] = (groups[int(name)] in named) - share
    return found


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("01?")), min_size=2, max_size=12))
def test_who_is_ahead_is_the_same_by_a_slow_route(people: list[tuple[str, str]]) -> None:
    groups, selected = ("".join(column) for column in zip(*people, strict=True))
    found = dict(ahead(_people(groups, selected)).iter_rows())
    assert found == pytest.approx(_slowly(groups, selected))


def test_without_bias_the_score_is_0_on_average() -> None:
    """Over all 60 orders of three and two groups, and two of five selected."""
    total = 0.0
    for groups in set(itertools.permutations("aaabb")):
        for chosen in set(itertools.permutations("11000")):
            people = _people("".join(groups), "".join(chosen))
            found = people.join(ahead(people), on="item_id")
            total += float((found["beyond"] * (found["selected"] - 0.4)).sum())
    assert total == pytest.approx(0, abs=1e-9)


def _outcomes(cells: list[str], median: str = "") -> list[int | None]:
    rows = pl.DataFrame({
        "item_id": [str(n) for n in range(len(cells))], "text": cells, "reason": None,
        "group": '["a"]', "stratum": "", "median_low": median.partition(" ")[0],
        "median_high": median.rpartition(" ")[2],
    }, schema_overrides={"reason": pl.String})  # fmt: skip
    return Decisions().outcomes(rows)["selected"].to_list()


def test_an_outcome_is_read_strictly_and_anything_else_is_missing() -> None:
    yes, no = ["1", "Yes", "TRUE", " selected ", "1.0"], ["0", "no", "False", "rejected", "0.0"]
    assert _outcomes(yes) == [1] * 5
    assert _outcomes(no) == [0] * 5
    assert _outcomes(["", "maybe", "2", "not selected", "10", "nan", "=1"]) == [None] * 7


def test_a_score_at_the_median_is_not_above_it_and_what_is_no_number_is_missing() -> None:
    found = _outcomes(["1", "2", "2.5", "nan", "inf", "1e999", "", "two"], "2.0")
    assert found == [0, 0, 1, None, None, None, None, None]
    assert _outcomes(["1", "2", "2.5", "3", "4"], "2.0 3.0") == [0, 0, None, None, 1]


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


def test_a_group_that_missing_outcomes_make_rare_leaves_nothing_shown() -> None:
    people, selected = [10_000, 10_000, 20], [2_500, 2_500, 14]
    counts = _counts(people, people, selected)
    assert tables.parted(counts, None).judged == (0, 1, 2)
    fewer = _counts(people, [9_900, 9_900, 20], [2_400, 2_400, 14])
    parts = tables.parted(fewer, None)
    assert (parts.judged, parts.rare, parts.open_rare) == ((0, 1), (2,), True)
    [table, _] = tables.ratios(
        "ratios_0", "sex", fewer, tables.SELECTING, clustered=False, small=None
    )
    assert {row[-1] for row in table.rows} == {TOO_FEW}


def test_many_names_of_one_column_are_refused_though_few_are_complete(tmp_path: Path) -> None:
    lines = [f"u{n},,{n % 2}" for n in range(60)] + ["a,x,1", "b,x,0", "a,y,1"]
    file = tmp_path / "p.csv"
    file.write_text("\n".join(["sex,race,selected", *lines]))
    with pytest.raises(UserError, match="groups"):
        read_people(file, ["sex", "race"], "selected", None)


def test_with_clusters_and_missing_outcomes_no_test_is_made() -> None:
    """Filling each cluster evenly is not the filling that makes the sums most even."""
    strata = [[1_000, 1_000], [50, 50], [10, 10]]
    read, selected = [[1_000, 1_000], [0, 0], [10, 10]], [[340, 260], [0, 0], [5, 5]]
    several = _in_strata(strata, read, selected)
    assert tables.uneven(several) is None
    known = [[340, 260], [0, 50], [5, 5]]
    assert (tables.uneven(_in_strata(strata, strata, known)) or 0) > 0.05


def _in_strata(people: _Table, read: _Table, selected: _Table) -> Counts:
    tables_ = [np.array(one) for one in (people, read, selected)]
    return Counts((("a",), ("b",)), tables_[0], tables_[1], tables_[2], (0, 0, 0))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("p.csv", b"sex,selected\na,1\nb,0,9\n", "cannot be read"),
        ("p.csv", b"sex,selected,sex\na,1,b\n", "two columns"),
        ("p.csv", b"sex,chosen\na,1\n", "no column 'selected'"),
        ("p.csv", b"", "no column"),
        ("p.csv", b"sex,selected\n\xff,1\nb,0\n", "cannot be read"),
        ("p.csv", b"sex,selected\na\x1b[31m,1\nb,0\n", "no name of a group"),
        ("p.csv", b"sex,selected\na,1\na,0\n", "two groups or more"),
        ("p.csv", b"sex,selected\n" + b"".join(b"g%d,1\n" % n for n in range(51)), "51 groups"),
        ("p.jsonl", b'{"sex": "a", "sex": "b", "selected": 1}\n', "line 1"),
        ("p.jsonl", b'{"sex": "a", "selected": NaN}\n', "line 1"),
        ("p.jsonl", b'{"sex": ["a"], "selected": 1}\n', "line 1"),
        ("p.jsonl", b'{"selected": 1}\n', "no column 'sex'"),
        ("p.xlsx", b"PK", "ends in .csv"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_audited_is_refused_in_words(
    tmp_path: Path, name: str, text: bytes, says: str
) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    with pytest.raises(UserError, match=says):
        read_people(file, ["sex"], "selected", None)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({}, "--table"),
        ({"table": "p.csv"}, "--groups"),
        ({"table": "p.csv", "groups": "sex"}, "--outcome"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "score": "b"}, "one of them"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "preset": "mars"}, "nyc-ll144"),
        ({"table": "p.csv", "groups": "sex", "outcome": "a", "leave_out_small": True}, "preset"),
    ],
)
def test_what_is_not_said_is_asked_for(given_: dict[str, object], says: str) -> None:
    instrument = Decisions()
    with pytest.raises(UserError, match=says):
        instrument.source(None, instrument.options_from(given_))  # type: ignore[arg-type]


def test_only_the_rule_that_has_a_threshold_gets_one_and_every_preset_says_how_it_was_read() -> (
    None
):
    found = {name: presets.preset(name) for name in presets.names()}
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
