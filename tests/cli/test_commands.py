"""What a person at the terminal sees, and what a program reads."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import BIN, Run, clean_environment
from tests.errors import assert_names
from tests.loopback.faulty import Capacity, Fixed
from tests.loopback.process import in_own_process


def _prompts(folder: Path, count: int = 6) -> Path:
    file = folder / "prompts.jsonl"
    file.write_text(
        "".join(
            json.dumps({"id": f"p{n}", "prompt": f"Describe {n}."}) + "\n" for n in range(count)
        )
    )
    return file


def test_answer_prints_the_answer_and_nothing_else_on_stdout(cold_evenhand: Run) -> None:
    ran = cold_evenhand("answer", "Describe a nurse.")
    assert ran.returncode == 0
    assert re.fullmatch(r"A draft .*\n", ran.stdout)
    assert len(ran.stdout.splitlines()) == 1


def test_the_trace_shows_who_said_what_the_scores_why_it_stopped_and_the_cost(
    evenhand: Run,
) -> None:
    shown = evenhand("answer", "Describe a nurse.", "--show-trace").stdout
    for expected in ("1. generator", "2. bias_evaluator", "3. performance_evaluator"):
        assert expected in shown
    scores = ["draft", "harm", "fluency", "coherence", "relevance"]
    assert scores in [line.split() for line in shown.splitlines()]
    assert "stopped: accepted" in shown or "stopped: max_iterations" in shown
    assert "calls," in shown
    assert "tokens" in shown


def test_answer_says_on_stderr_how_it_came_about_and_what_it_took(evenhand: Run) -> None:
    """Three calls at the least: a draft, and a verdict on harm and on quality."""
    told = evenhand("answer", "Describe a nurse.").stderr
    stopped, harm, *_ = told.split(" · ")
    assert re.match(r"accepted\b", stopped)
    assert re.match(r"harm \d\.\d\d", harm)
    assert_names(told, "own judgement)")
    calls, tokens = re.search(r"(\d+) calls, ([\d,]+) tokens", told).groups()  # type: ignore[union-attr]
    traced = evenhand("answer", "Describe a nurse.", "--show-trace")
    assert f"{calls} calls, {tokens} tokens" in traced.stdout
    assert "--show-trace" not in traced.stderr


def test_a_scorer_that_judged_is_named_and_not_taken_for_the_model(evenhand: Run) -> None:
    told = evenhand("answer", "Describe a nurse.", "--set", "bias_brain=rule").stderr
    assert "(by " in told
    assert "own judgement" not in told


def _first_line(command: list[str], folder: Path, url: str, stream: str) -> tuple[str, bool]:
    """The first line of a stream, and whether the command was still at work when it came."""
    with subprocess.Popen(
        [str(BIN / "evenhand"), *command],
        cwd=folder,
        env={**clean_environment(), "EVENHAND_BASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines = iter(getattr(process, stream).readline, "")
        line = next(line for line in lines if not line.startswith("asking"))
        working = process.poll() is None
        process.kill()
    return line, working


def test_with_the_trace_each_turn_is_announced_when_it_is_there(tmp_path: Path) -> None:
    with in_own_process(Capacity(limit=9, latency=0.7)) as server:
        command = ["answer", "Describe a nurse.", "--show-trace"]
        line, working = _first_line(command, tmp_path, server.url, "stderr")
    assert working
    turn, seconds, *_ = line.split(" · ")
    assert turn == "1. generator"
    assert seconds.startswith("0.")


def test_the_doctor_says_each_thing_when_it_is_known(tmp_path: Path) -> None:
    with in_own_process(Capacity(limit=9, latency=0.7)) as server:
        line, working = _first_line(["doctor"], tmp_path, server.url, "stdout")
    assert working
    assert line.startswith("ok  evenhand")


def test_answer_as_json_holds_every_turn(evenhand: Run) -> None:
    ran = evenhand("answer", "Describe a nurse.", "--show-trace", "--json")
    said = json.loads(ran.stdout)
    assert said["text"] == said["drafts"][-1]["text"]
    assert [turn["role"] for turn in said["turns"]][:1] == ["generator"]
    assert all(turn["prompt_sha256"] for turn in said["turns"])


def test_a_multiple_choice_answer_is_one_of_the_choices(evenhand: Run) -> None:
    options = ["The old man", "The young man", "Not known"]
    choices = [part for option in options for part in ("--choice", option)]
    ran = evenhand("answer", "Who forgot?", "--context", "Two men met.", *choices, "--json")
    said = json.loads(ran.stdout)
    assert said["text"] == options[said["choice"]]


TURNS = [
    {"role": "system", "content": "You sell tickets."},
    {"role": "user", "content": "A seat for Aïcha?"},
    {"role": "assistant", "content": "Seat 12."},
    {"role": "user", "content": "Why that one?"},
]


def test_answer_continues_the_conversation_of_a_file(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(json.dumps({"messages": TURNS}, indent=1))
    command = ("answer", "--messages", "talk.json", "--method", "default", "--show-trace")
    ran = evenhand(*command, "--json")
    assert ran.returncode == 0, ran.stderr
    (turn,) = json.loads(ran.stdout)["turns"]
    assert turn["messages"] == TURNS


@pytest.mark.parametrize(
    ("arguments", "lines", "facts"),
    [
        (["Hello.", "--messages", "talk.jsonl"], 1, ["prompt", "--messages FILE"]),
        (["--context", "A."], 1, ["prompt", "--messages FILE"]),
        (["--messages", "talk.jsonl"], 2, ["2 lines", "evenhand mitigate talk.jsonl"]),
        (["--messages", "talk.jsonl", "--context", "A."], 1, ["--context"]),
        (["--messages", "nowhere.json"], 1, ["nowhere.json"]),
    ],
)
def test_answer_says_what_is_wrong_with_a_conversation(
    evenhand: Run, tmp_path: Path, arguments: list[str], lines: int, facts: list[str]
) -> None:
    (tmp_path / "talk.jsonl").write_text((json.dumps({"messages": TURNS}) + "\n") * lines)
    ran = evenhand("answer", *arguments)
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), *facts)


def test_a_benchmark_that_reads_no_conversations_names_the_commands_that_do(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "talk.jsonl").write_text(json.dumps({"messages": TURNS}) + "\n")
    ran = evenhand("measure", "rankings", "--tasks", "talk.jsonl", "--out", "run")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "talk.jsonl line 1", "--prompts-file", "mitigate")


def test_mitigate_shows_failures_first_and_replays_equal(evenhand: Run, tmp_path: Path) -> None:
    _prompts(tmp_path)
    first = evenhand("mitigate", "prompts.jsonl", "--out", "one", "--json")
    assert first.returncode == 0, first.stderr
    numbers = json.loads(first.stdout)
    assert (numbers["planned"], numbers["answered"], numbers["coverage"]) == (6, 6, 1.0)
    nowhere = "http://127.0.0.1:9/v1"
    replayed = evenhand(
        "mitigate", "prompts.jsonl", "--out", "two", "--replay", "one", "--base-url", nowhere
    )
    assert replayed.returncode == 0, replayed.stderr
    for run, file in (("one", "a.jsonl"), ("two", "b.jsonl")):
        assert evenhand("runs", "export", run, "--out", file).returncode == 0
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert "all intact" in evenhand("runs", "verify", "one").stdout
    assert "1. generator" in evenhand("runs", "show", "one", "--item", "p3").stdout


def test_a_second_run_of_the_same_command_has_nothing_left_to_do(
    evenhand: Run, tmp_path: Path
) -> None:
    _prompts(tmp_path)
    command = ("mitigate", "prompts.jsonl", "--out", "run", "--json")
    first, second = evenhand(*command), evenhand(*command)
    assert json.loads(first.stdout) == json.loads(second.stdout)


def test_coverage_below_the_floor_ends_with_code_2_and_says_so_first(
    evenhand: Run, tmp_path: Path
) -> None:
    _prompts(tmp_path)
    refusing = Fixed(b'{"error": {"message": "not today"}}', status=403)
    with in_own_process(refusing) as server:
        ran = evenhand("mitigate", "prompts.jsonl", "--out", "run", "--base-url", server.url)
    assert ran.returncode == 2
    assert_names(ran.stdout.splitlines()[0], "0.0%", "95%")
    assert ran.stdout.splitlines()[1].strip() == "6 failed: model_refused"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly_and_the_same_command_resumes(
    evenhand: Run, tmp_path: Path, number: signal.Signals
) -> None:
    _prompts(tmp_path, 200)
    with in_own_process(Capacity(limit=1000, latency=0.2)) as server:
        command = ["mitigate", "prompts.jsonl", "--out", "run", "--concurrency", "10", "--json"]
        process = subprocess.Popen(
            [str(BIN / "evenhand"), *command],
            cwd=tmp_path,
            env={**clean_environment(), "EVENHAND_BASE_URL": server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not any(b"R " in file.read_bytes() for file in tmp_path.glob("run/journal/*")):
            time.sleep(0.05)
        process.send_signal(number)
        said, told = process.communicate(timeout=800)
        assert process.returncode == 130
        assert_names(told, "same command")
        done = json.loads(said)
        assert 0 < done["answered"] < 200
        assert done["failed"] == 0
        server.set("latency", 0.0)
        resumed = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert json.loads(resumed.stdout)["answered"] == 200
