"""Every error on a new user's way says what to do next."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli import main
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.scorers.services import HttpGuardrail
from tests.cli.conftest import Run
from tests.errors import assert_names, raises_naming
from tests.loopback.faulty import Fixed
from tests.loopback.process import in_own_process


def test_help_comes_as_it_is_asked_for(evenhand: Run) -> None:
    ran = evenhand("train", "pairs", "from-debates", "--help")
    assert ran.returncode == 0
    assert_names(ran.stdout, "Example", "pairs from-debates runs/debate")


def _says(ran: subprocess.CompletedProcess[str], *expected: str) -> None:
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    for words in expected:
        assert words in " ".join(ran.stderr.split()), ran.stderr


def test_no_endpoint_says_how_to_start_one(evenhand: Run) -> None:
    ran = evenhand("answer", "hello", "--base-url", "http://127.0.0.1:9/v1")
    _says(ran, "nothing answers at http://127.0.0.1:9/v1", "evenhand serve-local", "--base-url")


def test_a_second_server_on_the_same_port_is_refused(evenhand: Run) -> None:
    """llama.cpp would share it, and calls would go to either model."""
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = str(first.getsockname()[1])
        _says(evenhand("serve-local", "--port", port), f"uses port {port}", "--port")


def test_a_port_of_something_else_says_so(evenhand: Run, tmp_path: Path) -> None:
    with subprocess.Popen(
        ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        text=True,
    ) as other:
        assert other.stdout is not None
        port = other.stdout.readline().split(" port ")[1].split()[0]
        ran = evenhand("answer", "hello", "--base-url", f"http://127.0.0.1:{port}/v1")
        other.kill()
    _says(ran, "answers, but not with this API", "--base-url")


def test_a_wrong_model_name_says_which_there_are(evenhand: Run) -> None:
    _says(evenhand("answer", "hello", "--model", "gpt-9"), "no model 'gpt-9'", "pretended")


def test_a_wrong_key_says_where_to_put_the_right_one(evenhand: Run) -> None:
    refusing = Fixed(b'{"error": "Unauthorized"}', status=401)
    with in_own_process(refusing) as server:
        ran = evenhand(
            "answer", "hello", "--base-url", server.url, EVENHAND_API_KEY="sk-canary-123"
        )
    _says(ran, "HTTP 401", "EVENHAND_API_KEY")
    assert "sk-canary-123" not in ran.stderr + ran.stdout


def test_a_url_with_a_password_is_refused_without_repeating_it(evenhand: Run) -> None:
    ran = evenhand("answer", "hello", "--base-url", "http://me:hunter2@127.0.0.1/v1")
    _says(ran, "use EVENHAND_API_KEY instead")
    assert "hunter2" not in ran.stderr + ran.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("models = [", "not valid TOML"),
        ("[models.default]\nurl = 'x'", "models.default.url"),
        ("[limits]\nseconds = 'soon'", "limits.seconds"),
        (
            "[roles]\nbias_evaluator = 'nobody'",
            "one of: default, offline, regard, staged, support, wordlist",
        ),
    ],
)
def test_an_unreadable_config_is_named_with_the_place(
    evenhand: Run, tmp_path: Path, text: str, expected: str
) -> None:
    (tmp_path / "evenhand.toml").write_text(text)
    _says(evenhand("answer", "hello"), expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"prompt": "a"}\n{"prompt": 5}',
            "prompts.jsonl line 2: prompt: Input should be a valid string",
        ),
        ('{"prompt": "a", "prompt": "b"}', "line 1: duplicate_key: 'prompt'"),
        ('{"promt": "a"}', "line 1: prompt: Field required"),
        ("hello", "line 1: not_json"),
        ('{"prompt": "a", "choices": ["x"]}', "only one choice"),
    ],
)
def test_a_bad_line_of_input_is_named_with_its_number(
    evenhand: Run, tmp_path: Path, line: str, expected: str
) -> None:
    (tmp_path / "prompts.jsonl").write_text(line)
    _says(evenhand("mitigate", "prompts.jsonl", "--out", "run"), expected)


def test_a_missing_input_shows_what_it_should_hold(evenhand: Run) -> None:
    ran = evenhand("mitigate", "nothing.jsonl", "--out", "run")
    _says(ran, "nothing.jsonl is not a file", '{"prompt": "Describe a nurse."}')


def test_a_wrong_method_or_setting_lists_the_right_ones(evenhand: Run) -> None:
    _says(evenhand("answer", "hi", "--method", "magic"), ", ".join(registry.names("methods")))
    _says(evenhand("answer", "hi", "--set", "speed=9"), "Available: max_iterations", "harm_below")
    _says(evenhand("answer", "hi", "--set", "max_iterations=many"), "--set max_iterations")


def test_a_folder_of_another_run_is_refused_and_says_what_differs(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "a"}\n')
    assert evenhand("mitigate", "prompts.jsonl", "--out", "run").returncode == 0
    ran = evenhand("mitigate", "prompts.jsonl", "--out", "run", "--method", "fairness")
    _says(ran, "run was made with method stardtox; this command has fairness", "new folder")


def test_a_folder_that_is_no_run_is_said_to_be_none(evenhand: Run) -> None:
    _says(evenhand("runs", "show", "."), "is not a run folder")


def test_with_json_an_error_is_json_on_stdout(evenhand: Run) -> None:
    ran = evenhand("answer", "hi", "--json", "--base-url", "http://127.0.0.1:9/v1")
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["reason"] == "model_busy"


def test_the_doctor_ends_with_1_where_nothing_answers_and_0_where_all_is_well(
    evenhand: Run,
) -> None:
    ill = evenhand("doctor", "--base-url", "http://127.0.0.1:9/v1", "--json")
    assert ill.returncode == 1
    assert json.loads(ill.stdout)["healthy"] is False
    well = evenhand("doctor", "--json")
    assert well.returncode == 0, well.stdout
    assert [f["what"] for f in json.loads(well.stdout)["findings"]][:1] == ["evenhand"]


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["methods"], ["methods", "--json"], ["methods", "nobody", "--json"]],
)
def test_a_full_disk_behind_the_output_is_said_in_words(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evenhand", *arguments])
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    assert_names(capsys.readouterr().err, "error: [Errno 28]")


def test_a_place_that_can_hold_no_folder_is_said_in_words(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand("mitigate", "prompts.jsonl", "--out", "/dev/full")
    _says(ran, "/dev/full")


@pytest.mark.parametrize("url", ["http://a..b/v1", f"http://{'a' * 64}.example/v1", "http://.b/v1"])
def test_a_host_that_no_name_server_could_know_is_refused_in_words(url: str, evenhand: Run) -> None:
    _says(evenhand("answer", "hello", "--base-url", url), "URL cannot be read", "http://127.0.0.1")
    with raises_naming(UserError, "https://scores.example/v1"):
        HttpGuardrail(url)
