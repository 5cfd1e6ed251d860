"""T8 as a user meets it: the key is in the environment, the command fails, the screen is shared."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback.http import Call, Line
from tests.loopback.process import in_own_process

from .test_secrets import CANARY, everything_in, leaks

__all__ = ["endpoint", "evenhand"]  # the fixtures

COMMANDS: dict[str, list[str]] = {
    "doctor": ["doctor"],
    "answer": ["answer", "Describe a nurse.", "--show-trace", "--show-prompts"],
    "mitigate": ["mitigate", "prompts.jsonl", "--out", "run"],
    "wrong-model": ["answer", "Describe a nurse.", "--model", "another"],
}


@dataclass
class Echoes:
    """Refuses everything and says with which key it was asked, as some gateways do."""

    status: int

    async def __call__(self, call: Call, line: Line) -> str:
        key = call.headers["authorization"]
        error = {"error": {"message": f"Incorrect API key provided: {key}", "headers": key}}
        await line.send_json(error, status=self.status, headers={"x-echo": key})
        return "echoed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status", "lists_models", "json"),
    [
        pytest.param("doctor", 401, False, False, id="doctor-401-at-once"),
        pytest.param("doctor", 403, True, False, id="doctor-403-when-asked"),
        pytest.param("doctor", 200, False, True, id="doctor-200-without-a-list"),
        pytest.param("answer", 403, True, False, id="answer-403"),
        pytest.param("answer", 403, True, True, id="answer-403-json"),
        pytest.param("mitigate", 403, True, True, id="mitigate-403"),
        pytest.param("wrong-model", 403, True, False, id="another-model"),
    ],
)
def test_a_command_that_fails_shows_no_key(
    evenhand: Run, command: str, status: int, lists_models: bool, json: bool, tmp_path: Path
) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    arguments = [*COMMANDS[command], *(["--json"] if json else [])]
    with in_own_process(Echoes(status), lists_models=lists_models) as server:
        # Some write the key into the address too.
        done = evenhand(
            *arguments,
            EVENHAND_API_KEY=CANARY,
            EVENHAND_BASE_URL=f"{server.url}?api_key={CANARY}",
            PYTHONASYNCIODEBUG="1",
        )
        assert sum(server.read().outcomes.values()) > 0 or command == "wrong-model"
    print(done.returncode, done.stdout, done.stderr)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    for text in (done.stdout, done.stderr, *everything_in(tmp_path)):
        assert leaks(text) == []
        # A table may break a key into lines that each look harmless.
        assert leaks("".join(re.findall(r"[!-~]+", text))) == []
