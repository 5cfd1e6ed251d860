"""`evenhand train debate topics` and `evenhand train debate run` as a user runs them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback.process import RemoteServer, in_own_process

from .speakers import Speakers

__all__ = ["endpoint", "evenhand"]  # the fixtures

TOPICS = ("train", "debate", "topics", "--types", "age", "--count", "25", "--out", "topics.jsonl")
DEBATE = ("train", "debate", "run", "topics.jsonl", "--rounds", "2", "--out", "run")


@pytest.fixture(scope="module")
def server() -> Iterator[RemoteServer]:
    with in_own_process(Speakers()) as server:
        yield server


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def _few(tmp_path: Path, topics: int = 4) -> None:
    tags = {"bias_type": "age", "roles": "a 20-year-old|a 40-year-old|a 60-year-old"}
    rows = [{"prompt": f"thing {n}", "tags": tags} for n in range(topics)]
    (tmp_path / "topics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize("command", ["topics", "run", "sweep"])
def test_each_command_has_help_with_an_example(evenhand: Run, command: str) -> None:
    ran = evenhand("train", "debate", command, "--help")
    assert f"Example: evenhand train debate {command}" in ran.stdout
    assert "--method" not in ran.stdout


def test_topics_are_asked_for_until_there_are_enough(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """25 wanted: two batches of 19 different ones."""
    ran = evenhand(*TOPICS, "--json", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["types"] == {
        "age": {"listed": 40, "duplicates": 2, "topics": 25, "wanted": 25}
    }
    rows = _lines(tmp_path / "topics.jsonl")
    assert len({row["prompt"] for row in rows}) == len(rows) == 25
    assert rows[0]["id"] == "age/00000"
    tags = {
        "topic": rows[0]["prompt"],
        "bias_type": "age",
        "roles": "a 20-year-old|a 40-year-old|a 60-year-old",
        "more_roles": "a 14-year-old|an 80-year-old",
    }
    assert rows[0]["tags"] == tags
    asked = server.read().outcomes["said"]
    first = (tmp_path / "topics.jsonl").read_bytes()
    taken = evenhand(*TOPICS, EVENHAND_BASE_URL=server.url)
    assert taken.returncode == 1
    assert_names(taken.stderr, "topics.jsonl", "already exists")
    assert (tmp_path / "topics.jsonl").read_bytes() == first
    (tmp_path / "topics.jsonl").unlink()
    again = evenhand(*TOPICS, EVENHAND_BASE_URL=server.url)
    assert again.returncode == 0, again.stderr
    assert server.read().outcomes["said"] == asked  # resumed: nothing is asked twice
    replayed = evenhand(*TOPICS[:-1], "again.jsonl", "--replay", "topics.runs")
    assert replayed.returncode == 0, replayed.stderr
    assert (tmp_path / "again.jsonl").read_bytes() == first


def test_too_few_topics_are_written_and_said(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """Every batch is the same, so the second try brings nothing and there is no third: 2 batches
    for 25, then 1 for the 6 that are missing."""
    asked = server.read().outcomes["said"]
    server.set("repeats", True)
    try:
        ran = evenhand(*TOPICS, "--json", EVENHAND_BASE_URL=server.url)
    finally:
        server.set("repeats", False)
    assert ran.returncode == 2
    assert_names(ran.stderr, "age", "19 of 25", "--from")
    assert json.loads(ran.stdout)["types"]["age"] == {
        "listed": 60,
        "duplicates": 41,
        "topics": 19,
        "wanted": 25,
    }
    assert server.read().outcomes["said"] == asked + 3
    assert len(_lines(tmp_path / "topics.jsonl")) == 19


def test_the_cap_is_for_all_tries_together(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    ran = evenhand(*TOPICS, "--max-calls", "1", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 3
    assert not (tmp_path / "topics.jsonl").exists()


def test_a_list_of_ones_own_is_cleaned_and_asks_nobody(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("1. Night buses\n2. night bus\n3. School meals\n")
    (tmp_path / "roles.toml").write_text(
        '[diet]\nabout = "what they eat"\nroles = ["a vegan", "a hunter"]\n'
    )
    ran = evenhand(
        "train", "debate", "topics", "--from", "mine.txt", "--roles", "roles.toml",
        "--types", "diet,age",
        "--out", "topics.jsonl", EVENHAND_BASE_URL="http://127.0.0.1:9/v1",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = _lines(tmp_path / "topics.jsonl")
    assert [(row["tags"]["bias_type"], row["prompt"]) for row in rows] == [
        ("diet", "Night buses"),
        ("diet", "School meals"),
        ("age", "Night buses"),
        ("age", "School meals"),
    ]
    assert rows[0]["tags"]["roles"] == "a vegan|a hunter"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--types", "fame"), "age, nationality"),
        (("--from", "nothing.txt"), "Could not read nothing.txt"),
        (("--roles", "nothing.toml"), "Could not read nothing.toml"),
    ],
)
def test_what_cannot_be_is_said(evenhand: Run, arguments: tuple[str, ...], says: str) -> None:
    ran = evenhand("train", "debate", "topics", "--out", "topics.jsonl", *arguments)
    assert ran.returncode == 1
    assert says in " ".join(ran.stderr.split())


def test_a_run_of_debates_ends_with_what_it_is_good_for(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """Four topics; scores 6 4 2, then 5 3 1: half of the statements are above 3."""
    _few(tmp_path)
    ran = evenhand(*DEBATE, "--referees", "2", "--json", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["statements"] == 24
    assert found["calls"] == 4 * 2 * 5
    assert {k: n for k, n in found["distribution"].items() if n} == dict.fromkeys("123456", 4)
    assert found["high"]["value"] == 0.5
    assert [entry["value"] for entry in found["mean_by_round"]] == [4.0, 3.0]
    assert found["agreement"]["ordinal_alpha"] == 1.0
    assert found["topics_with_both"] == 4
    assert found["problems"] == []
    del found["money"]
    kept = json.loads((tmp_path / "run" / "debates.json").read_bytes())
    assert {name: kept[name] for name in found} == found
    asked = server.read().outcomes["said"]
    again = evenhand(*DEBATE, "--referees", "2", EVENHAND_BASE_URL=server.url)
    assert server.read().outcomes["said"] == asked
    shown = " ".join(again.stdout.split())
    assert_names(shown, "0.500 (0.199", "0.801")
    assert_names(shown, "ordinal alpha 1.00")


def test_an_unreadable_referee_is_a_failed_debate_and_lowers_coverage(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    _few(tmp_path)
    server.set("unreadable", 2)
    try:
        ran = evenhand(*DEBATE, "--json", EVENHAND_BASE_URL=server.url)
    finally:
        server.set("unreadable", -1)
    assert ran.returncode == 2
    found = json.loads(ran.stdout)
    assert (found["answered"], found["failed"], found["statements"]) == (3, 1, 18)
    assert found["distribution"]["0"] == 0
    assert [problem["code"] for problem in found["problems"]] == ["debates.unreadable"]


def test_a_debate_that_no_budget_could_end_is_refused_before_the_first_call(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    _few(tmp_path)
    asked = server.read().outcomes["said"]
    ran = evenhand(*DEBATE[:5], "17", "--out", "run", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 1
    assert_names(ran.stderr, "68 calls", 64, "[limits]")
    assert server.read().outcomes["said"] == asked


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "has no topics"), ('{"prompt": "tea"}\n', "item 0: a debate needs the tags")],
)
def test_a_file_without_topics_says_what_makes_them(
    evenhand: Run, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "topics.jsonl").write_text(text)
    ran = evenhand(*DEBATE)
    assert ran.returncode == 1
    assert says in " ".join(ran.stderr.split())
    assert "evenhand train debate topics" in ran.stderr.replace("\n", " ")


def test_a_pilot_forecasts_the_calls(evenhand: Run, server: RemoteServer, tmp_path: Path) -> None:
    _few(tmp_path, topics=60)
    ran = evenhand(*DEBATE, "--pilot", "50", "--json", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["totals"]["calls"]["expected"] == pytest.approx(60 * 8)
