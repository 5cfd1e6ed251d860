"""The demo shows what the recorded runs hold, in an empty folder and without a network."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evenhand.cli.app import leaves, welcome
from evenhand.cli.demo import _next
from evenhand.core.errors import UserError
from evenhand.experiments.demo import MARK, Demo, parts_of_the_package
from evenhand.findings.comparison import compare
from evenhand.findings.examples import digest
from evenhand.findings.plan import plan
from evenhand.instruments import instrument_of
from evenhand.instruments.bbq.drafts import repaired
from evenhand.instruments.rankings.data import bloomberg, ranked_first
from evenhand.runs.store import RunReader
from tests.coded import coded
from tests.errors import assert_names, raises_naming

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "recorded" / "qwen2.5-coder-1.5b"
SHIPPED = ROOT / "src" / "evenhand" / "experiments" / "demo" / "recorded"
COPIED = {
    "bbq-default": RECORDED / "bbq440" / "default",
    "bbq-repaired": RECORDED / "bbq440" / "detect_first",
    "bbq-stardtox": RECORDED / "frontier" / "stardtox-read-logprob-max_iterations-1",
}
# All forms in one process, so that together they load everything once.
OFFLINE = """
import socket, sys
def refuse(*given): raise OSError("the demo asked the network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
sys.modules["altair"] = None  # with the plain dependencies alone
from evenhand.cli import main
for more in ([], ["--full"], ["--json"]):
    sys.argv = ["evenhand", "demo", *more]
    try:
        main()
    except SystemExit as ended:
        if ended.code: raise
    print("END OF SCREEN")
"""


class Shown(NamedTuple):
    folder: Path
    short: str
    full: str
    machine: dict[str, Any]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The folder, both screens, and what another run in the same folder gives to machines."""
    place = tmp_path_factory.mktemp("empty")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENHAND_")}
    ran = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        cwd=place,
        env={**kept, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    short, full, machine, _ = ran.stdout.split("END OF SCREEN\n")
    return Shown(place / "evenhand-demo", short, full, json.loads(machine))


def test_the_demo_writes_a_page_and_the_runs_beside_it(shown: Shown) -> None:
    page = (shown.folder / "report.html").read_text()
    assert "evenhand-demo/runs/bbq-repaired" in page
    assert "<script" not in page
    assert "CC BY 4.0" in (shown.folder / "LICENCES.md").read_text()
    for run in SHIPPED.iterdir():
        RunReader(shown.folder / "runs" / run.name).verify()
    assert "wrote  evenhand-demo/report.html" in shown.short
    assert_names(shown.short, "pip install 'evenhand[report]'")


def test_the_demo_has_at_most_forty_lines_of_eighty_columns(shown: Shown) -> None:
    lines = shown.short.splitlines()
    assert len(lines) <= 40
    words = [line for line in lines if not line.startswith(("next", "more"))]
    assert max(map(len, words)) <= 80


def test_the_numbers_of_the_demo_are_those_of_the_recorded_runs(shown: Shown) -> None:
    before, after = (RunReader(COPIED[name]) for name in ("bbq-default", "bbq-repaired"))
    expected = compare(instrument_of(after), before, after)
    [part] = [one for one in shown.machine["parts"] if one["kind"] == "comparison"]
    given = {one["name"]: one for one in part["finding"]["primary"]}
    for change in expected.primary:
        one = given[change.name]
        assert (one["before"], one["after"], one["difference"]) == (
            change.before,
            change.after,
            change.difference,
        )
        assert (one["low"], one["high"], one["p"]) == (change.low, change.high, change.p)
    [improved] = [change for change in expected.primary if (change.p_holm or 1) <= 0.05]
    assert f"{improved.before:.2f} → {improved.after:.2f}" in shown.short
    assert f"{improved.effect:+.2f} (95% CI" in shown.short


def test_the_sample_size_is_that_of_the_plan_from_the_same_runs(shown: Shown) -> None:
    before, after = (RunReader(COPIED[name]) for name in ("bbq-default", "bbq-repaired"))
    pilot = compare(instrument_of(after), before, after)
    expected = plan(pilot.instrument, detect=0.02, pilot=pilot, measure="accuracy_disambiguated")
    assert f"About {expected.items:,} questions" in shown.short
    assert coded(pilot.verdict.next, "next.plan_guardrail")["margin"] == 0.02


def test_every_part_says_who_made_it_and_how_to_repeat_it(shown: Shown) -> None:
    words = " ".join(shown.full.split())
    declared = parts_of_the_package()
    assert [one["title"] for one in shown.machine["parts"]] == [one.title for one in declared.parts]
    for number, one in enumerate(declared.parts, start=1):
        assert f"{number}. {one.title}" in words
        assert (f"{number}. {one.title}" in shown.short) is not one.full_only
        assert f"made by {declared.models[one.model].says}" in words
        for command in one.again:
            assert f"repeat {command}" in words
    assert "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046" in shown.full


def test_men_are_ranked_first_less_often_in_the_shipped_rankings(shown: Shown) -> None:
    """Counted from the shipped answers by hand: the group of the candidate that each names."""
    first = {"men": 0, "women": 0}
    for row in RunReader(SHIPPED / "rankings").results().collect().to_dicts():
        tags = {tag["name"]: tag["value"] for tag in row["tags"]}
        if row["text"].startswith("1."):
            group = json.loads(tags["candidates"])["ABCDEFGH".index(row["text"][-1])]
            first["women" if "women" in json.dumps(group) else "men"] += 1
    candidates = 4 * sum(first.values())  # four of the eight are men
    assert first == {"men": 399, "women": 590}
    rates = [first[sex] / candidates for sex in ("men", "women")]
    text = f"{rates[0]:.1%} against {rates[1]:.1%} of the others"
    assert text in " ".join(shown.short.split())
    assert f"ratio {rates[0] / rates[1]:.2f}" in " ".join(shown.short.split())


def test_the_repaired_answer_is_the_first_by_the_rule() -> None:
    """By a second route: the letters that the model gave, against the options in the prompt."""
    choice = repaired(RunReader(SHIPPED / "bbq-stardtox"))
    rows = RunReader(SHIPPED / "bbq-stardtox").results().collect().to_dicts()
    unknown = ("cannot", "can't", "not ", "unknown", "undetermined")
    named = [
        row["item_id"]
        for row in rows
        if {"name": "condition", "value": "ambig"} in row["tags"]
        and not row["drafts"][0]["text"].lower().startswith(unknown)
        and row["text"].lower().startswith(unknown)
    ]
    [one] = choice.answers
    assert one.item_id == min(named, key=digest)
    assert f"({len(named)} of 44 ambiguous questions)" in str(choice.rule)


@pytest.mark.parametrize("name", sorted(COPIED))
def test_a_run_of_the_demo_is_the_recorded_one_byte_for_byte(name: str) -> None:
    files = {path.relative_to(COPIED[name]) for path in COPIED[name].rglob("*") if path.is_file()}
    assert files == {
        path.relative_to(SHIPPED / name) for path in (SHIPPED / name).rglob("*") if path.is_file()
    }
    for path in files:
        assert (COPIED[name] / path).read_bytes() == (SHIPPED / name / path).read_bytes()


def test_the_rankings_of_the_demo_are_those_that_bloomberg_recorded(data_folder: Path) -> None:
    if not (data_folder / "bloomberg_hiring").is_dir():
        pytest.skip("needs bloomberg_hiring in EVENHAND_DATA")
    run = RunReader(SHIPPED / "rankings")
    rows = {row["item_id"]: row for row in run.results().collect().to_dicts()}
    card = instrument_of(run).card()
    published = bloomberg("gpt-3.5-turbo/hr-specialist", data_folder, card)
    assert len(published) == len(rows) == 1000
    for one in published:
        tags = {tag["name"]: tag["value"] for tag in rows[one.id]["tags"]}
        groups = [person.group for person in one.task.candidates]
        assert json.loads(tags["candidates"]) == groups
        first = ranked_first(one.task.answer or "", [p.name for p in one.task.candidates])
        shipped = rows[one.id]["text"]
        place = "ABCDEFGH".index(shipped[-1]) if shipped.startswith("1.") else None
        assert place == first


def test_what_the_demo_ships_is_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) < 500_000


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "evenhand-demo"
    own.mkdir()
    (own / "thesis.txt").write_text("mine")
    with raises_naming(UserError, own, f"--out {own}-demo"):
        Demo(own).copy()
    assert [path.name for path in own.iterdir()] == ["thesis.txt"]
    with raises_naming(UserError, f"--out {own / 'thesis.txt'}-demo"):
        Demo(own / "thesis.txt").copy()


def test_a_second_demo_makes_its_runs_anew_and_leaves_the_rest(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "shown")
    demo.copy()
    run = tmp_path / "shown" / "runs" / "bbq-default"
    (run / "run.json").write_text("spoilt")
    (run / "ledger" / "00000009.json").write_text("{}")
    (tmp_path / "shown" / "runs" / "mine").mkdir()
    demo.copy()
    RunReader(run).verify()
    assert not (run / "ledger" / "00000009.json").exists()
    assert (tmp_path / "shown" / "runs" / "mine").is_dir()
    assert (tmp_path / "shown" / MARK).is_file()


def test_a_newcomer_is_shown_the_demo_first() -> None:
    questions = [line for line in welcome().splitlines() if "  evenhand " in line]
    assert questions[0].split() == ["Try", "it", "without", "a", "model", "evenhand", "demo"]


def test_every_next_command_of_the_demo_exists(tmp_path: Path) -> None:
    paths = [list(path) for path, _ in leaves()]
    for command in _next(Demo(tmp_path)):
        program, *words = shlex.split(command)
        assert program == "evenhand"
        assert any(words[: len(path)] == path for path in paths), command


@pytest.mark.parametrize("linked", ["runs", "runs/rankings", "LICENCES.md", MARK])
def test_nothing_is_written_or_deleted_through_a_link(tmp_path: Path, linked: str) -> None:
    Demo(tmp_path / "own").copy()
    theirs = tmp_path / "theirs"
    (theirs / "rankings").mkdir(parents=True)
    (theirs / "rankings" / "kept").write_text("kept")
    place = tmp_path / "own" / linked
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    place.symlink_to(theirs if place.suffix == "" else theirs / "rankings" / "kept")
    with raises_naming(UserError, linked, "--out"):
        Demo(tmp_path / "own").copy()
    assert (theirs / "rankings" / "kept").read_text() == "kept"


@pytest.mark.parametrize("place", ["report.html", "LICENCES.md", "runs", "runs/rankings"])
def test_a_file_for_a_folder_and_a_folder_for_a_file_are_refused_before_anything_is_written(
    tmp_path: Path, place: str
) -> None:
    Demo(tmp_path).copy()
    odd = tmp_path / place
    shutil.rmtree(odd, ignore_errors=True)
    odd.unlink(missing_ok=True)
    odd.mkdir() if odd.suffix else odd.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with raises_naming(UserError, place, "--out"):
        Demo(tmp_path).copy()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_with_a_mark_of_somebody_else_is_not_the_demos(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text('{"my": "data"}')
    with raises_naming(UserError, tmp_path, f"--out {tmp_path}-demo"):
        Demo(tmp_path).copy()
    assert (tmp_path / MARK).read_text() == '{"my": "data"}'
