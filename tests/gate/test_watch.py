"""`evenhand watch` as cron runs it, against a real server on this machine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Run, evenhand
from gate import texts
from loopback.process import RemoteServer, in_own_process

__all__ = ["evenhand"]  # the fixture

WATCH = ("watch", "evenhand.gate.toml", "--false-alarm-every", "10", "--out", "kept")


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with in_own_process(texts.Corrector()) as running:
        yield running


@pytest.fixture(scope="module")
def endpoint(server: RemoteServer) -> str:
    return server.url


def test_looks_are_steady_until_something_changes_and_the_alarm_says_since_when(
    tmp_path: Path, server: RemoteServer, evenhand: Run
) -> None:
    texts.write(tmp_path)
    codes = [evenhand(*WATCH).returncode for _ in range(3)]
    assert codes == [4, 0, 0]  # the first has nothing to be held against
    server.set("fault", "some worse")
    ran = evenhand(*WATCH, "--report", "watch.html")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "Watch: ALARM" in ran.stdout
    assert re.search(r"it rose, likeliest since [-\d]+ [:\d]+\.\s+Nothing else that is", ran.stdout)
    assert (
        "Over time. made worse from 0 to 0.583, 1 alarms" in (tmp_path / "watch.html").read_text()
    )
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
    assert "not finished" in json.loads(left_out.stdout)["notes"][0]
    before = sum(server.read().outcomes.values())
    assert evenhand(*WATCH).returncode == 0
    assert sum(server.read().outcomes.values()) - before == 12
    server.set("fault", "half")
    half = evenhand(*WATCH, "--json")
    numbers = json.loads(half.stdout)["numbers"]
    assert "could be scored" in numbers[0]["points"][-1]["why"]
    assert numbers[0]["points"][-1]["evidence"] == 0  # it is no look at this number …
    assert numbers[-1]["points"][-1]["estimate"]["value"] == 0.5
    assert half.returncode == 1  # … and that answers are missing is an alarm of its own
    assert numbers[-1]["changes"]


def test_a_measure_that_is_no_mean_and_a_time_that_is_none_are_refused(
    tmp_path: Path, evenhand: Run
) -> None:
    texts.write(tmp_path)
    never = evenhand(*WATCH, "--every", "soon")
    assert never.returncode == 1
    assert "such as 30m, 24h or 7d" in never.stderr
    empty = evenhand(*WATCH, "--show")
    assert empty.returncode == 5
    assert "no look yet" in empty.stderr
