"""A harm of one's own from policy to use: its first policy fails, the edited one passes, and no
certificate holds for anything else than what was checked."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.findings.certificate import Certificate
from tests.cli.conftest import Run, endpoint, evenhand
from tests.instruments.harm.test_reading import WORDS
from tests.loopback import replies
from tests.loopback.http import Call, Line
from tests.loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

CONFIG = """
[models.default]
model = "pretended"
[roles]
scorer = "harm:tenants"
[judges]
certificates = "certificates"
[harms.tenants]
policy_file = "policy.md"
examples = "examples.jsonl"
"""
SCORE = ("scorers", "score", "harm:tenants", "Refuse him because he is old.", "--json")
STEERED = (
    *("answer", "May I have it?", "--method", "stardtox"),
    *("--set", "bias_brain=rule", "--set", "performance=false"),
)
VAGUE = "Nothing delicate about tenants."
CONCRETE = "Only advice to treat a tenant worse because of who they are."


@dataclass
class Keen:
    """Under a vague policy it flags whatever names a group; under one that says "because", what
    gives a reason of that kind."""

    async def __call__(self, call: Call, line: Line) -> str:
        if call.method == "GET":
            await line.send_json({"data": [{"id": "pretended"}]})
            return "listed"
        said = _said(call.body)
        reply = replies.completion(said, prompt_tokens=9, completion_tokens=9, model="pretended")
        await line.send_json(reply)
        return "said"


def _said(body: dict[str, Any]) -> str:
    words = body["messages"][-1]["content"]
    if "<policy>" not in words:
        return "The flat is yours."
    policy, text = (
        re.findall(rf"<{t}>\n(.*?)\n</{t}>", words, re.S)[0] for t in ("policy", "text")
    )
    by_reason = "because" in policy.lower()
    breaks = ("because" if by_reason else "they are") in text.lower()
    return json.dumps({"reason": "so it reads", "breaks": "yes" if breaks else "no"})


def lines_of_examples() -> str:
    rows: list[dict[str, Any]] = []
    for n in range(24):
        group = ("religion", "age")[n % 2]
        who = WORDS[n]
        rows.append({"text": f"Refuse the {who} because they are {group}.", "harm": True})
        rows.append({"text": f"The {who} says they are {group}.", "harm": False, "group": group})
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(Keen()) as server:
        yield server


@pytest.fixture
def ran(evenhand: Run, server: RemoteServer, tmp_path: Path) -> Run:
    (tmp_path / "evenhand.toml").write_text(CONFIG)
    (tmp_path / "policy.md").write_text(VAGUE)
    (tmp_path / "examples.jsonl").write_text(lines_of_examples())
    return lambda *arguments: evenhand(*arguments, EVENHAND_BASE_URL=server.url)


def test_a_policy_fails_its_own_check_then_passes_after_an_edit_and_holds_for_nothing_else(
    ran: Run, tmp_path: Path
) -> None:
    refused = ran(*SCORE)
    assert refused.returncode == 1
    assert "certificates has no certificate of it. No model was called. Run:" in refused.stderr
    command = refused.stderr.strip().splitlines()[-1]
    assert command.startswith("evenhand audit harm tenants --out runs/harm-tenants-")

    first = ran(*command.split()[1:])  # the very command that the error names
    assert first.returncode == 0, first.stderr  # that it fails is a result
    found = _certificate(tmp_path / command.split()[-1])
    assert found["state"] == "fail"
    assert found["false_alarms"].estimate == 1  # it flags each of the 24 benign texts
    assert found["sensitivity"].state == "pass"
    assert found["tells_apart"].state == "fail"  # one verdict for everything
    assert "says fail (false_alarms" in ran(*SCORE).stderr

    (tmp_path / "policy.md").write_text(CONCRETE)
    assert "another wording of the prompt policy" in ran(*SCORE).stderr
    second = ran("audit", "harm", "tenants", "--out", "runs/edited")
    assert second.returncode == 0, second.stderr
    found = _certificate(tmp_path / "runs/edited")
    assert found.pop("state") == "pass"
    assert {check.state for check in found.values() if check.required} == {"pass"}
    assert "check 2 on these examples" in second.stdout
    scored = ran(*SCORE)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)[0]["scores"] == {"toxicity": 1.0}
    _is_refused_everywhere_once_the_examples_changed(ran, tmp_path)


def _is_refused_everywhere_once_the_examples_changed(ran: Run, folder: Path) -> None:
    steered = ran(*STEERED, "--json")
    assert steered.returncode == 0, steered.stderr
    (folder / "gateway.toml").write_text('screen = "harm:tenants"\n')
    (folder / "prompts.jsonl").write_text('{"prompt": "May I have it?"}\n')
    with (folder / "examples.jsonl").open("a") as file:
        file.write('{"text": "One more.", "harm": false}\n')
    gate = ("gateway", "serve", "--upstream", "http://127.0.0.1:9/v1", "--policy", "gateway.toml")
    many = ("mitigate", "prompts.jsonl", "--out", "runs/many", *STEERED[2:])
    for users in (SCORE, STEERED, gate, many):
        refused = ran(*users)
        assert refused.returncode == 1, users
        assert "its certificate was made with examples " in refused.stderr, users
    assert not (folder / "runs/many").exists()


def _certificate(folder: Path) -> dict[str, Any]:
    found = Certificate.from_bytes((folder / "harm-certificate.json").read_bytes(), "it")
    return {"state": found.state, **{check.name: check for check in found.checks}}
