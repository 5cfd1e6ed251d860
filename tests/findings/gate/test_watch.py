"""`evenhand monitor` as cron runs it, against a real server on this machine."""

import json
import re
from pathlib import Path

import pytest

from evenhand.experiments.gate_file import read
from evenhand.findings.monitoring import MonitoringLook, monitoring
from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, evenhand
from tests.coded import codes
from tests.errors import assert_names
from tests.findings.gate import texts
from tests.loopback.process import RemoteServer

__all__ = ["evenhand"]  # the fixture

RECORDED = Path(__file__).parents[3] / "recorded/qwen2.5-coder-1.5b/frontier"
WATCH = ("monitor", "evenhand.gate.toml", "--false-alarm-every", "10", "--out", "kept")


def test_looks_are_steady_until_something_changes_and_the_alarm_says_since_when(
    tmp_path: Path, server: RemoteServer, evenhand: Run
) -> None:
    texts.write(tmp_path)
    codes = [evenhand(*WATCH).returncode for _ in range(3)]
    assert codes == [4, 0, 0]  # the first has nothing to be held against
    server.set("fault", "some worse")
    ran = evenhand(*WATCH, "--report", "watch.html")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "Watch: FAIL" in ran.stdout
    assert re.search(r"since [-\d]+ [:\d]+\.\s", ran.stdout)
    page = (tmp_path / "watch.html").read_text()
    assert_names(page, "made worse", "0 to 0.583", "alarms: 1")
    # It begins anew there: the worse texts are what the next looks are held against.
    shown = evenhand(*WATCH, "--json")
    assert shown.returncode == 0, shown.stdout
    found = json.loads(shown.stdout)
    worse = found["numbers"][0]
    assert [one["estimate"]["value"] for one in worse["points"]] == [0, 0, 0, 14 / 24, 14 / 24]
    assert worse["changes"][0]["since"] == worse["points"][3]["began"]
    assert found["looks"] == 5


def test_a_look_that_fails_is_no_all_clear_and_a_stopped_one_is_gone_on_with(
    tmp_path: Path, server: RemoteServer, evenhand: Run
) -> None:
    server.set("fault", "")
    texts.write(tmp_path)
    assert evenhand(*WATCH).returncode == 4
    capped = evenhand(*WATCH, "--max-calls", "12")
    assert capped.returncode == 3, capped.stderr
    left_out = evenhand(*WATCH, "--show", "--json")
    assert left_out.returncode == 4
    assert json.loads(left_out.stdout)["notes"][0]["code"] == "look.unfinished"
    before = sum(server.read().outcomes.values())
    assert evenhand(*WATCH).returncode == 0
    assert sum(server.read().outcomes.values()) - before == 12
    server.set("fault", "half")
    half = evenhand(*WATCH, "--json")
    numbers = json.loads(half.stdout)["numbers"]
    assert numbers[0]["points"][-1]["why"]["code"] == "look.few_scored"
    assert numbers[0]["points"][-1]["evidence"] == 0  # it is no look at this number …
    assert numbers[-1]["points"][-1]["estimate"]["value"] == 0.5
    assert half.returncode == 1  # … and that answers are missing is an alarm of its own
    assert numbers[-1]["changes"]


def test_a_measure_that_is_no_mean_and_a_time_that_is_none_are_refused(
    tmp_path: Path, evenhand: Run
) -> None:
    texts.write(tmp_path)
    never = evenhand(*WATCH, "--every", "soon")
    assert never.returncode == 5  # 1 is an alarm, and nothing else
    assert_names(never.stderr, "--every soon", "24h", "7d")
    empty = evenhand(*WATCH, "--show")
    assert empty.returncode == 5
    assert "no look yet" in empty.stderr


def test_a_check_that_is_added_begins_then_and_the_looks_of_before_stay(
    tmp_path: Path, server: RemoteServer, evenhand: Run
) -> None:
    server.set("fault", "")
    texts.write(tmp_path)
    file = tmp_path / "evenhand.gate.toml"
    whole = file.read_text()
    one, two = whole.split("[[check]]")[1:]
    file.write_text("[[check]]" + one)
    assert [evenhand(*WATCH).returncode for _ in range(2)] == [4, 0]
    file.write_text("[[check]]" + one + "[[check]]" + two.replace("margin", "set = []\nmargin"))
    before = sum(server.read().outcomes.values())
    added = evenhand(*WATCH, "--json")
    assert sum(server.read().outcomes.values()) - before == texts.TEXTS  # a look of its own
    found = json.loads(added.stdout)
    assert found["looks"] == 3
    assert [bool(one["why"]) for one in found["numbers"][0]["points"]] == [False] * 3
    assert [bool(one["why"]) for one in found["numbers"][1]["points"]] == [True, True, False]
    assert added.returncode == 4  # of the added number this is the first look


def test_missing_answers_of_a_small_group_are_no_all_clear(tmp_path: Path) -> None:
    """In two looks 4 of 88 answers are missing, which is little; but one in each of the two
    templates that one check is about, and none that the first check is about."""
    file = tmp_path / "evenhand.gate.toml"
    check = '[[check]]\ninstrument = "bbq"\nmargin = 0.1\ngroup = {{ category = "{}" }}\n'
    file.write_text(check.format("Religion") + check.format("Age"))
    checks = read(file).checks
    runs = [RunReader(RECORDED / name) for name in ("default", "self_consistency")]
    looks = [
        MonitoringLook(began=str(n), place=str(n), runs={one.name: runs[n // 2] for one in checks})
        for n in range(4)
    ]
    found = monitoring(checks, looks)
    religion, age, missing = found.numbers
    assert found.verdict == "error"
    assert not religion.last.why
    assert codes(age.last.why) == ["look.few_scored_of_it"]
    assert missing.last.estimate is not None
    assert missing.last.estimate.value == pytest.approx(4 / 88)


def test_a_report_that_cannot_be_written_hides_no_verdict(
    tmp_path: Path, server: RemoteServer, evenhand: Run
) -> None:
    server.set("fault", "")
    texts.write(tmp_path)
    before = sum(server.read().outcomes.values())
    wrong = evenhand(*WATCH, "--report", "watch.csv")
    assert wrong.returncode == 5
    assert sum(server.read().outcomes.values()) == before  # said before anything is asked
    nowhere = evenhand(*WATCH, "--report", "no/such/folder/watch.json", "--json")
    assert json.loads(nowhere.stdout)["verdict"] == "inconclusive"
    assert nowhere.returncode == 5
