"""The gate: a run whose judges must be certified asks nobody before each of them is."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.findings.certificate import Certificate, CertifiedCheck
from evenhand.instruments.judge.certificate import NEEDED, keep
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.runs.store.run_record import now
from tests.cli.conftest import Run, cold_evenhand, endpoint, evenhand
from tests.loopback.process import RemoteServer, in_own_process

from .judges import Planted

__all__ = ["cold_evenhand", "endpoint", "evenhand"]  # the fixtures

SMALL = ("--bases", "10", "--pairs", "10", "--identities", "female,male", "--injections", "8")
CONFIG = """
[models.judge]
base_url = "{url}"
model = "pretended"

[roles]
bias_evaluator = "judge"
performance_evaluator = "judge"

[judges]
certificates = "certificates"
"""


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(Planted()) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: RemoteServer) -> Path:
    """A prompt to answer, and a config whose judge is another model than the default one."""
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    (tmp_path / "evenhand.toml").write_text(CONFIG.format(url=server.url))
    return tmp_path


MITIGATE = ("mitigate", "prompts.jsonl", "--method", "stardtox", "--out", "run")


def test_a_cast_with_an_uncertified_judge_is_refused_before_any_call(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    assert "certificates has no certificate of the model 'pretended'" in ran.stderr
    told = ran.stderr.splitlines()[-1].strip()
    assert told == "evenhand audit judge --judge judge --out runs/judge-pretended"
    assert server.read().outcomes == {}
    assert not (project / "run").exists()


def test_what_the_refusal_says_to_run_is_enough(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    """The audit that it names is too long for a test; a certificate of its size stands for it."""
    audit = evenhand("audit", "judge", "--judge", "judge", *SMALL, "--out", "runs/small")
    assert audit.returncode == 0, audit.stderr
    [small] = (project / "certificates").glob("*.json")
    assert small.read_bytes() == (project / "runs/small/judge-certificate.json").read_bytes()
    narrow = evenhand(*MITIGATE, "--require-certified-judges")
    assert narrow.returncode == 1
    said = " ".join(narrow.stderr.split())
    assert "too little to rely on: bases 10 of 60; injections 8 of 60; no Asian" in said
    assert said.endswith("evenhand audit judge --judge judge --out runs/judge-pretended-again")
    keep(_as_large_as_needed(small), project / "certificates")
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert "judge bias_evaluator = pretended: certificate says pass" in ran.stderr
    assert "judge performance_evaluator = pretended: certificate says pass" in ran.stderr
    assert ran.returncode != 1, ran.stderr


def _as_large_as_needed(path: Path) -> Certificate:
    """A later certificate of the same judge, of the default audit's size, that passes."""
    small = Certificate.from_bytes(path.read_bytes(), str(path))
    checks = [
        CertifiedCheck(name=name, state="pass", required=True, says="so it is")
        for name in sorted(NEEDED.checks)
    ]
    probes = small.benchmark["probes"] | {"injection": 180}
    benchmark = small.benchmark | {"sampling": JudgeDesign().describe(), "probes": probes}
    new = {"checks": checks, "state": "pass", "benchmark": benchmark, "created": now()}
    return Certificate(**json.loads(small.model_copy(update=new).model_dump_json())).sealed()


def test_a_judge_that_failed_is_named_with_what_it_failed_and_refused(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    server.set("slot", "first")
    audit = evenhand("audit", "judge", "--judge", "judge", *SMALL, "--out", "audit")
    assert audit.returncode == 0, audit.stderr
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    assert "certificate says fail (position)" in ran.stderr
    assert "Assign the role to another model" in " ".join(ran.stderr.split())
    assert not (project / "run").exists()


def test_the_certificate_of_a_remedy_is_none_of_the_plain_judge(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    more = ("--set", "counterfactual=swap", "--out", "audit")
    assert evenhand("audit", "judge", "--judge", "judge", *SMALL, *more).returncode == 0
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    said = " ".join(ran.stderr.split())
    assert (
        "is for rate (counterfactual=swap, metrics=four, personas=a judge, read=json), "
        "not rate (counterfac"
    ) in said


def test_a_certificate_that_was_edited_is_refused_by_the_gate(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    assert evenhand("audit", "judge", "--judge", "judge", *SMALL, "--out", "audit").returncode == 0
    [kept] = (project / "certificates").glob("*.json")
    edited = json.loads(kept.read_bytes())
    edited["judge"]["model"] = "another"
    kept.write_text(json.dumps(edited, indent=2))
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    assert "does not match its checksum" in ran.stderr


def test_without_the_option_the_state_is_said_and_the_run_goes_on(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand(*MITIGATE)
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stderr.splitlines() if line.startswith("judge ")]
    assert lines == [
        f"judge {role} = pretended: not certified: the config names no folder of certificates; "
        "not probed: evenhand doctor --probe --model pretended"
        for role in ("bias_evaluator", "performance_evaluator")
    ]


def test_without_a_folder_the_refusal_says_how_to_name_one(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand(*MITIGATE, "--require-certified-judges", "--json")
    assert ran.returncode == 1
    told = json.loads(ran.stdout)["error"]
    assert told["reason"] == "user_error"
    assert 'Write certificates = "certificates" under [judges]' in told["message"]
    command = "evenhand audit judge --model pretended --out runs/judge-pretended"
    assert told["message"].endswith(command)


def test_a_method_without_a_judge_needs_no_certificate(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    plain = ("mitigate", "prompts.jsonl", "--method", "default", "--out", "run")
    ran = evenhand(*plain, "--require-certified-judges")
    assert ran.returncode == 0, ran.stderr
    assert "judge " not in ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("measure", "bbq", "--method", "mabrf"),
        ("frontier", "--methods", "cot,stardtox", "--calls", "8"),
    ],
)
def test_measuring_refuses_before_the_first_of_all_its_calls(
    evenhand: Run, project: Path, server: RemoteServer, data_folder: Path, command: tuple[str, ...]
) -> None:
    """A frontier begins with methods that have no judge: they are not run either."""
    options = ("--per-category", "4", "--out", "run", "--require-certified-judges")
    given = {"EVENHAND_DATA": str(data_folder), "EVENHAND_BASE_URL": server.url}
    ran = evenhand(*command, *options, **given)
    assert ran.returncode == 1
    assert "has no certificate of the model 'pretended'" in " ".join(ran.stderr.split())
    assert server.read().outcomes == {}
    assert not (project / "run").exists()


DEBATE = ("train", "debate", "run", "topics.jsonl", "--rounds", "1", "--out", "run")


def test_the_referee_of_a_debate_needs_a_certificate(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    tags = {"topic": "gardening", "bias_type": "age", "roles": "a boy|a man"}
    topic = {"id": "age/0", "prompt": "gardening", "tags": tags}
    (project / "topics.jsonl").write_text(json.dumps(topic) + "\n")
    config = (project / "evenhand.toml").read_text()
    (project / "evenhand.toml").write_text(config.replace("bias_evaluator", "referee"))
    ran = evenhand(*DEBATE, "--require-certified-judges")
    assert ran.returncode == 1
    assert "referee is played by 'pretended': not certified" in " ".join(ran.stderr.split())
    assert server.read().outcomes == {}
    assert not (project / "run").exists()


THEIRS = """
from dataclasses import dataclass
from typing import ClassVar
from evenhand.agents import Agent
from evenhand.core import Answer, Draft
from evenhand.methods.stardtox import TEXT_JUDGE, WRITER
from dataclasses import replace

CRITIC = replace(TEXT_JUDGE, role="oracle")

@dataclass(frozen=True)
class Theirs:
    name: ClassVar[str] = "theirs"
    hidden: bool = False

    def agents(self):
        return (WRITER,) if self.hidden else (WRITER, CRITIC)

    async def answer(self, item, ask):
        text = (await ask(WRITER, prompt=item.prompt)).text
        verdict = await ask(CRITIC, prompt=item.prompt, draft=text)
        return Answer(drafts=(Draft(text=text, scores={"harm": verdict.harm}),), stopped="once")
"""


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("false", "oracle is played by 'pretended': not certified"),
        ("true", "asks 'oracle' as a judge with the prompt stardtox/judge_text@"),
    ],
)
def test_a_judge_of_another_package_cannot_escape_the_gate(
    cold_evenhand: Run, project: Path, hidden: str, said: str
) -> None:
    """Its role has a name that nobody here knows; where its method hides it, it is not asked."""
    place = project / "installed"
    about = place / "theirs-1.dist-info"
    about.mkdir(parents=True)
    (place / "theirs.py").write_text(THEIRS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[evenhand.methods]\ntheirs = theirs:Theirs\n")
    config = (project / "evenhand.toml").read_text()
    (project / "evenhand.toml").write_text(config.replace("bias_evaluator", "oracle"))
    command = ("mitigate", "prompts.jsonl", "--method", "theirs", "--set", f"hidden={hidden}")
    path = os.pathsep.join(filter(None, (str(place), os.environ.get("PYTHONPATH"))))
    gate = ("--out", "run", "--require-certified-judges")
    ran = cold_evenhand(*command, *gate, PYTHONPATH=path)
    assert ran.returncode == 1
    assert said in " ".join(ran.stderr.split())
