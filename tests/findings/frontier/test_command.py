"""`evenhand frontier` as a user runs it; the server counts what was really asked."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import spent_on
from tests.cli.conftest import BIN, Run, clean_environment, endpoint, evenhand
from tests.errors import Fact, assert_names
from tests.loopback.faulty import Capacity, well
from tests.loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

METHODS = "cot,stardtox,stardtox:critique=empty"
SAMPLE = ("--per-category", "4", "--seed", "1")
NAMES = ["default", "fairness", "self_consistency", "cot", "stardtox", "stardtox:critique=empty"]


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(well) as server:
        yield server


def _asked(server: RemoteServer) -> int:
    return sum(server.read().outcomes.values())


def _command(*more: str, methods: str = METHODS) -> list[str]:
    return ["frontier", "--bench", "bbq", "--methods", methods, *SAMPLE, "--out", "front", *more]


def _calls(folder: Path) -> int:
    """What was sent: the votes of fewer calls sent nothing, and equal calls of two methods one."""
    runs = [run.parent for run in folder.glob("*/run.json")]
    asked = [run for run in runs if not run.name.startswith("self_consistency-")]
    return sum(spent_on(run, None).calls for run in asked)


def test_every_method_is_run_on_the_same_items_and_compared(
    evenhand: Run, server: RemoteServer, data_folder: Path, tmp_path: Path
) -> None:
    environment = {"EVENHAND_BASE_URL": server.url, "EVENHAND_DATA": str(data_folder)}
    ran = evenhand(*_command("--json"), **environment)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert [entry["name"] for entry in report["methods"]][:6] == NAMES
    assert_names(ran.stderr, "6 of 6", "stardtox:critique=empty")
    assert _asked(server) == _calls(tmp_path / "front")
    empty = tmp_path / "front" / "stardtox-critique-empty"
    assert spent_on(empty, None).calls < RunReader(empty).totals().calls  # its drafts were there
    found = {entry["name"]: entry for entry in report["methods"]}
    assert found["self_consistency"]["cost"]["calls"]["mean"] == 9.0  # the odd number after 8
    assert found["stardtox"]["method"]["settings"]["max_iterations"] == 3  # 2 + 2 · 3 calls
    for name in NAMES[3:]:
        equal = int(found[name]["cost"]["calls"]["mean"] + 0.5) // 2 * 2 + 1
        vote = f"self_consistency:calls={equal}"
        assert found[name]["equal_calls"] == vote
        assert found[vote]["cost"]["calls"]["mean"] == equal
        assert found[name]["verdict"]["kind"] in ("not worth it", "cannot tell", "worth it")
    _same_items(tmp_path / "front")

    paid, before = _asked(server), (tmp_path / "front/frontier.json").read_bytes()
    again = evenhand(*_command(), **environment)
    assert again.returncode == 0, again.stderr
    assert _asked(server) == paid  # all was done
    assert (tmp_path / "front/frontier.json").read_bytes() == before
    shown = again.stdout.replace("\n", " ")
    assert (
        shown.index("worse than")
        < shown.index("verdict, worst first")
        < shown.index("per answer (")
    )


def _same_items(front: Path) -> None:
    runs = [RunReader(run.parent) for run in front.glob("*/run.json")]
    assert len(runs) > len(NAMES)
    items = [run.results().select("item_id", "tags").collect() for run in runs]
    assert all(one.equals(items[0]) for one in items)
    for run in runs:  # each call may be asked for once more
        name = Path(run.path).name
        vote = "9" if name == "self_consistency" else name.partition("self_consistency-")[2]
        assert run.record.limits["calls"] == 2 * int(vote or 8)


def test_a_frontier_that_was_interrupted_goes_on_and_pays_nothing_twice(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    with in_own_process(Capacity(limit=16, latency=0.1)) as slow:
        environment = {"EVENHAND_BASE_URL": slow.url, "EVENHAND_DATA": str(data_folder)}
        stopped = subprocess.Popen(
            [str(BIN / "evenhand"), *_command("--concurrency", "4", methods="cot")],
            cwd=tmp_path,
            env={**clean_environment(), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        # default and fairness are done, and of the votes some items: each asks nine times.
        _until(lambda: slow.read().outcomes.get("good", 0) >= 44 + 44 + 5 * 9)
        stopped.send_signal(signal.SIGINT)
        _, said = stopped.communicate(timeout=800)
        assert stopped.returncode == 130, said
        assert_names(" ".join(said.split()), "same command")
        assert not (tmp_path / "front/frontier.json").exists()
        assert not (tmp_path / "front/cot").exists()
        done = RunReader(tmp_path / "front/self_consistency").totals().items
        assert 0 < done < 44
        slow.set("latency", 0.0)
        ran = evenhand(*_command("--json", methods="cot"), **environment)
        assert ran.returncode == 0, ran.stderr
        good = slow.read().outcomes["good"]
    assert [entry["name"] for entry in json.loads(ran.stdout)["methods"]][:4] == NAMES[:4]
    assert good == _calls(tmp_path / "front")


def _until(seen: Any) -> None:
    give_up = time.monotonic() + 400
    while not seen():
        assert time.monotonic() < give_up, "the run did not get going"
        time.sleep(0.02)


def test_a_cap_is_for_all_methods_together(
    evenhand: Run, server: RemoteServer, data_folder: Path, tmp_path: Path
) -> None:
    environment = {"EVENHAND_BASE_URL": server.url, "EVENHAND_DATA": str(data_folder)}
    capped = evenhand(*_command("--max-calls", "300", methods="cot"), **environment)
    assert (capped.returncode, _asked(server)) == (3, 300)  # 44 + 44 and a part of 396
    said = " ".join(capped.stderr.split())
    assert "stopped at --max-calls" in said
    assert "300 calls" in said
    assert not (tmp_path / "front/cot").exists()
    higher = evenhand(*_command("--max-calls", "9999", "--json", methods="cot"), **environment)
    assert higher.returncode == 0, higher.stderr
    assert _asked(server) == _calls(tmp_path / "front")


def test_critiques_are_borrowed_from_the_run_beside_it_and_are_no_calls(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    methods = ("--methods", "stardtox:critique=other,stardtox", *SAMPLE)
    ran = evenhand("frontier", *methods, "--out", "front", "--json", EVENHAND_DATA=str(data_folder))
    assert ran.returncode == 0, ran.stderr
    found = {entry["name"]: entry for entry in json.loads(ran.stdout)["methods"]}
    run = RunReader(tmp_path / "front/stardtox-critique-other")
    turns = run.turns().collect()
    lent = turns.filter(turns["role"] == "other_critique")
    assert 0 < len(lent) < len(turns)
    assert run.record.cast["other_critique"]["kind"] == "borrowed"
    cost = found["stardtox:critique=other"]["cost"]["calls"]
    assert cost["total"] == len(turns) - len(lent)
    assert cost["mean"] <= 8


def test_a_pilot_says_what_all_methods_will_cost_and_the_frontier_goes_on_from_it(
    evenhand: Run, server: RemoteServer, data_folder: Path
) -> None:
    environment = {"EVENHAND_BASE_URL": server.url, "EVENHAND_DATA": str(data_folder)}
    command = ("frontier", "--methods", "cot", "--per-category", "8", "--out", "front", "--json")
    dry = evenhand(*command, "--pilot", "50", **environment)
    assert dry.returncode == 0, dry.stderr
    expected = json.loads(dry.stdout)
    assert list(expected["methods"]) == ["default", "fairness", "self_consistency", "cot"]
    assert _asked(server) == 50 * (1 + 1 + 9 + 1)
    assert expected["totals"]["calls"]["expected"] == 88 * (1 + 1 + 9 + 1)
    assert expected["totals"]["cost"]["expected"] is None  # no prices
    shown = evenhand(*command[:-1], "--pilot", "50", **environment).stdout
    assert_names(shown, "50 of 88")
    done = evenhand(*command, **environment)
    assert done.returncode == 0, done.stderr
    assert _asked(server) == 88 * (1 + 1 + 9 + 1)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("--methods", "nonsense"), ("method 'nonsense'", "stardtox, mabrf")),
        (("--methods", "cot:depth=2"), ("cot", "setting 'depth'")),
        (("--methods", "stardtox:critique=other"), ("'stardtox'", "--methods")),
        (("--methods", "stardtox", "--calls", "1"), ("stardtox", "2 calls")),
        (("--method", "nonsense"), ("method 'nonsense'", "stardtox, mabrf")),
        (("--bench", "other"), ("instrument 'other'", "bbq")),
        (("--bench", "squad"), ("squad", "no harm")),
        (("--confirm", "--preset", "all"), ("seed", "same items", "bbq")),
        (("--sample", "questions=9"), ("bbq", "option 'questions'")),
        (("--sample", "per_category=3"), ("per_category is 3", 4)),
        (("--sample", "per_category=few"), ("per_category", "valid integer")),
    ],
)
def test_a_list_that_cannot_be_run_is_refused_before_anything_is_asked(
    evenhand: Run,
    data_folder: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    facts: tuple[Fact, ...],
) -> None:
    ran = evenhand("frontier", *arguments, "--out", "front", EVENHAND_DATA=str(data_folder))
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), *facts)
    assert not (tmp_path / "front").exists()
