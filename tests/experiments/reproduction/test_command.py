"""`evenhand dev reproduce` as a user runs it; the server counts what was really asked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback import replies
from tests.loopback.faulty import well
from tests.loopback.http import Call, Line
from tests.loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

FIGURE = ("dev", "reproduce", "rldf", "figure1", "--seed", "1", "--sample", "per_type=1")
PLACE = Path("rldf/small")


async def marking(call: Call, line: Line) -> str:
    """A server without faults, whose model gives marks by the schema of the rubric too: a reply
    that ignores a schema is asked for once more."""
    form = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if "freedom_from_bias" not in form.get("properties", {}):
        return await well(call, line)
    marks = {name: 5 for name in form["properties"] if name != "reason"}
    text = json.dumps({"reason": "none", **marks})
    await line.send_json(replies.completion(text, prompt_tokens=9, completion_tokens=9))
    return "good"


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(marking) as server:
        yield server


def _asked(server: RemoteServer) -> int:
    return sum(server.read().outcomes.values())


def test_a_table_is_resumed_shown_and_played_back_byte_for_byte(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    config = f'[models.mine]\nbase_url = "{server.url}"\n'
    (tmp_path / "mine.toml").write_text(config)
    mine = ("--config", "mine.toml", "--model", "mine")
    capped = evenhand(*FIGURE, *mine, "--max-calls", "20", "--out", "first")
    assert capped.returncode == 3, capped.stderr
    assert _asked(server) <= 20
    ran = evenhand(*FIGURE, *mine, "--json", "--out", "first")
    assert ran.returncode in (0, 2), ran.stderr
    (table,) = json.loads(ran.stdout)["tables"]
    assert [one["model"] for one in table["ours"]] == ["mine"]
    assert table["runs"][0]["items"] == 45  # 5 types of a topic, 3 roles, 3 framings
    paid = _asked(server)
    runs = [RunReader(one.parent) for one in (tmp_path / "first").rglob("run.json")]
    assert paid == sum(run.totals().calls for run in runs)  # what the cap cut off was kept

    written = {one: (tmp_path / "first" / PLACE / f"figure1.{one}").read_bytes()
               for one in ("json", "md")}  # fmt: skip
    shown = evenhand(*FIGURE, "--show", "--out", "first")
    assert "texts called biased" in shown.stdout
    again = evenhand(*FIGURE, "--replay", "first", "--out", "second")
    assert again.returncode == ran.returncode, again.stderr
    assert _asked(server) == paid  # neither asked anybody
    for place in ("first", "second"):
        for one, before in written.items():
            assert (tmp_path / place / PLACE / f"figure1.{one}").read_bytes() == before


def test_a_pilot_prices_the_runs_and_writes_no_table(
    evenhand: Run, endpoint: str, tmp_path: Path
) -> None:
    ran = evenhand("dev", "reproduce", "malibu", "figure5", "--only", "alone", "--pilot", "50",
                   "--json", "--out", "papers")  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["totals"]["calls"]["expected"] == 182  # 6 bases · 13 labels, 13 pairs · 2 · 4
    assert not list((tmp_path / "papers").rglob("figure5.*"))


def test_models_stand_side_by_side_and_rows_of_trained_weights_say_what_they_need(
    evenhand: Run, tmp_path: Path
) -> None:
    for model in ("mine", "yours"):
        (tmp_path / "papers/rldf/small" / model).mkdir(parents=True)
    ran = evenhand("dev", "reproduce", "rldf", "table3", "--show", "--out", "papers")
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert_names(said, "mine: st-sft", "not run", "low bias")
    assert "--trained sft=MODEL" in said
    written = (tmp_path / "papers/rldf/small/table3.md").read_text()
    columns = "| Baichuan2-7B | ours: mine | ours: yours |"
    assert columns in written
    lines = [line.split() for line in ran.stdout.splitlines()]  # wider than a terminal, and whole
    deviations = ["71.09", "±", "0.39", "69.50", "±", "0.69", "69.66", "±", "0.42", "69.48"]
    assert any(line[2:12] == deviations and line[-2:] == ["not", "run"] for line in lines)


def test_models_whose_folders_would_be_one_are_refused_before_a_call(evenhand: Run) -> None:
    two = ("--model", "team/judge", "--model", "team judge")
    refused = evenhand(*FIGURE, *two, "--base-url", "http://127.0.0.1:9/v1", "--out", "runs")
    assert refused.returncode == 1
    assert_names(refused.stderr, "--model", "--out")


def test_what_holds_no_result_is_refused_with_the_reason(evenhand: Run) -> None:
    ran = evenhand("dev", "reproduce", "rldf", "figure3")
    assert ran.returncode == 1
    assert_names(ran.stderr, "drawing")
    other = evenhand("dev", "reproduce", "rldf", "figure1", "--sample", "a=3", "--model", "x")
    assert_names(" ".join(other.stderr.split()), "--sample a", "no run")
    unknown = evenhand("dev", "reproduce", "rldf", "table99")
    assert_names(" ".join(unknown.stderr.split()), "table99", "figure1, table1")


def test_the_list_says_what_runs_and_what_it_needs(evenhand: Run) -> None:
    listed = json.loads(evenhand("dev", "reproduce", "list", "--json").stdout)
    one = next(e for e in listed["tables"] if (e["paper"], e["table"]) == ("mabrf", "table4"))
    assert one["runnable"]
    assert one["needs"] == ["endpoint", "squad", "search"]
    assert listed["share_runnable"] >= 0.8
