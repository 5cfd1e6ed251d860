"""The certificate: what it is tied to, that it cannot be edited, and the gate that asks for it."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run, cold_evenhand, endpoint, evenhand
from evenhand.errors import UserError
from evenhand.findings.certificate import Certificate, CertifiedCheck, Judge
from evenhand.findings.check import Check, overall
from evenhand.findings.found import NO_SPREAD
from evenhand.instruments.judge import TEN, Design
from evenhand.instruments.judge.certificate import Wanted, find, keep, why_not
from evenhand.instruments.judge.scope import NEEDED, Scope
from loopback.process import RemoteServer, in_own_process

from .judges import Planted

__all__ = ["cold_evenhand", "endpoint", "evenhand"]  # the fixtures

PROMPTS = {"malibu/judge_single@1": "a" * 64}
METHOD = {"name": "rate", "settings": {"counterfactual": "off"}}
WANTED = Wanted(model="m", method=METHOD, prompts={**PROMPTS, "other@1": "b"}, version="1-A")


def _check(name: str, state: Any, *, required: bool = True) -> Check:
    return Check(name=name, state=state, required=required, says="so it is", value=0.1, n=60)


def _certificate(*checks: Check, **changes: Any) -> Certificate:
    found = [CertifiedCheck.of(one) for one in checks or (_check("identity", "pass"),)]
    made = Certificate(
        judge=Judge(model="m", served_by=["m.gguf"], described={"kind": "endpoint", "model": "m"}),
        method=METHOD,
        prompts=PROMPTS,
        benchmark={"version": "1-A", "sha256": "c" * 64},
        margins={"score": 0.25, "win_rate": 0.05},
        limits={"calls": 64},
        seed=None,
        evenhand="0.1.0",
        created="2026-01-01T00:00:00Z",
        calls=2000,
        checks=found,
        state=overall(found),
    )
    return made.model_copy(update=changes).sealed()


@pytest.mark.parametrize(
    ("checks", "state"),
    [
        ([("pass", True), ("not_measured", False), ("measured", False)], "pass"),
        ([("pass", True), ("underpowered", False)], "pass"),
        ([("pass", True), ("underpowered", True)], "underpowered"),
        ([("pass", True), ("not_measured", True)], "underpowered"),
        ([("underpowered", True), ("fail", False)], "fail"),
        ([], "underpowered"),
    ],
)
def test_one_failure_fails_and_what_is_not_shown_does_not_pass(
    checks: list[tuple[str, bool]], state: str
) -> None:
    assert overall([_check("c", s, required=r) for s, r in checks]) == state


def test_a_certificate_is_read_as_it_was_written() -> None:
    made = _certificate()
    assert Certificate.from_bytes(made.to_bytes(), "it") == made


def test_a_certificate_of_the_first_release_is_still_read_and_keeps_its_bytes() -> None:
    kept = Path(__file__).with_name("certificate-format-1.json")
    found = Certificate.from_bytes(kept.read_bytes(), str(kept))
    assert found.state == "fail"
    assert {check.name: check.state for check in found.checks} == {
        "coverage": "pass",
        "identity": "fail",
        "position": "pass",
        "repetition": "not_measured",
    }
    assert found.to_bytes() == kept.read_bytes()


def test_a_check_without_spread_is_kept_as_the_format_has_it_with_its_value_as_both_ends() -> None:
    check = replace(_check("position", "pass"), undefined=NO_SPREAD)
    kept = CertifiedCheck.of(check)
    assert (kept.low, kept.estimate, kept.high) == (0.1, 0.1, 0.1)
    assert CertifiedCheck.of(_check("scale", "pass")).low is None  # a number without an interval


def test_every_changed_byte_is_refused() -> None:
    data = _certificate().to_bytes()
    for place in range(len(data)):
        changed = bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]])
        with pytest.raises(UserError, match=r"checksum|no certificate"):
            Certificate.from_bytes(changed, "it")
    with pytest.raises(UserError, match="checksum"):
        Certificate.from_bytes(data + b" ", "it")


def test_a_state_that_the_checks_do_not_give_is_refused_also_with_a_right_checksum() -> None:
    forged = _certificate(_check("identity", "fail"), state="pass")
    with pytest.raises(UserError, match="checksum"):
        Certificate.from_bytes(forged.to_bytes(), "it")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"judge": Judge(model="n", served_by=[], described={})}, "for the model 'n', not 'm'"),
        ({"prompts": {"malibu/judge_single@1": "d" * 64}}, "another wording of the prompt malib"),
        ({"prompts": {"malibu/judge_single@2": "a" * 64}}, "prompt malibu/judge_single@2"),
        ({"method": {**METHOD, "name": "panel"}}, "for panel (counterfactual=off), not rate"),
        ({"benchmark": {"version": "2-A"}}, "version 2-A of the scenarios, not 1-A"),
    ],
)
def test_a_certificate_of_another_judge_does_not_hold_and_says_why(
    changes: dict[str, Any], reason: str
) -> None:
    assert reason in str(why_not(_certificate(**changes), WANTED))
    assert why_not(_certificate(), WANTED) is None


# -- the scope, and a fail that stands -------------------------------------------------------------


def _sized(state: str, month: int, *, margin: float = 0.25, **sampling: Any) -> Certificate:
    """A certificate of the default audit but for what is named, of a month of 2026."""
    states = [(name, "pass") for name in sorted(NEEDED.checks - {"identity"})]
    checks = [_check(name, one) for name, one in [*states, ("identity", state)]]
    return _certificate(
        *checks,
        created=f"2026-{month:02}-01T00:00:00Z",
        margins={"score": margin, "win_rate": 0.05},
        benchmark={
            "version": "1-A",
            "sampling": Design().describe() | sampling,
            "probes": {"injection": 180},
        },
    )


def _found(folder: Path, *certificates: Certificate) -> Any:
    for one in certificates:
        keep(one, folder)
    return find(folder, WANTED)


def test_a_certificate_of_the_default_audit_opens_the_gate_and_says_its_scope(
    tmp_path: Path,
) -> None:
    found = _found(tmp_path, _sized("pass", 1))
    assert found.passes
    assert "pass for 60 bases, 10 identities, pairs on 8, requests on 60" in found.says


@pytest.mark.parametrize(
    ("narrow", "lacks"),
    [
        ({"margin": 6.0}, "margin score 6, not 0.25"),
        ({"identities": ["Black", "White"]}, "no Asian, Atheist, Christian, Hispanic"),
        ({"bases": 6}, "bases 6 of 60"),
        ({"pairs": 6}, "pairs 6 of 8"),
        ({"texts": 1}, "texts 1 of 2"),
    ],
)
def test_a_pass_of_less_than_the_default_audit_opens_nothing_and_says_what_it_lacks(
    tmp_path: Path, narrow: dict[str, Any], lacks: str
) -> None:
    found = _found(tmp_path, _sized("pass", 1, **narrow))
    assert not found.passes
    assert lacks in found.says


def test_a_certificate_without_the_check_of_readability_opens_nothing(tmp_path: Path) -> None:
    old = _sized("pass", 1)
    kept = [one for one in old.checks if one.name != "readability"]
    found = _found(tmp_path, old.model_copy(update={"checks": kept}).sealed())
    assert "no check of readability" in found.says
    assert not found.passes


def test_a_fail_stands_until_a_later_audit_of_at_least_its_size_passes(tmp_path: Path) -> None:
    assert not _found(tmp_path, _sized("pass", 1), _sized("fail", 2)).passes
    narrow = _found(tmp_path, _sized("pass", 3, identities=["Black", "White"], bases=6))
    assert "certificate says fail (identity)" in narrow.says
    assert len(list(tmp_path.glob("*.json"))) == 3  # none took the place of another
    assert "says fail" in _found(tmp_path, _sized("underpowered", 4)).says
    assert _found(tmp_path, _sized("pass", 5)).passes


def test_a_fail_of_more_identities_is_not_undone_by_ten(tmp_path: Path) -> None:
    more = [*TEN, "deaf"]
    assert not _found(tmp_path, _sized("fail", 1, identities=more), _sized("pass", 2)).passes
    assert _found(tmp_path, _sized("pass", 3, identities=more)).passes


def test_a_narrow_audit_that_shows_nothing_does_not_undo_a_pass(tmp_path: Path) -> None:
    assert _found(tmp_path, _sized("pass", 1), _sized("underpowered", 2, bases=6)).passes
    found = _found(tmp_path, _sized("underpowered", 3))
    assert "certificate says underpowered (identity)" in found.says
    assert not found.passes


def test_the_default_audit_is_what_the_gate_needs() -> None:
    assert Scope.of(_sized("pass", 1)).lacks(NEEDED) == []


def test_the_newest_that_fits_is_found_and_a_broken_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(_certificate(created="2026-02-01T00:00:00Z").to_bytes())
    failed = _certificate(_check("identity", "fail"), created="2026-03-01T00:00:00Z")
    (tmp_path / "b.json").write_bytes(failed.to_bytes())
    (tmp_path / "c.json").write_bytes(b"{}")
    found = find(tmp_path, WANTED)
    assert (found.path, found.passes) == (tmp_path / "b.json", False)
    assert "certificate says fail (identity)" in found.says
    other = replace(WANTED, prompts={})
    assert "another wording" in find(tmp_path, other).says
    assert "c.json is no certificate" in find(tmp_path, other).says
    assert "names no folder" in find(None, WANTED).says


# -- the gate --------------------------------------------------------------------------------------

SMALL = ("--bases", "8", "--pairs", "6", "--identities", "female,male", "--injections", "6")
CONFIG = """
[models.judge]
base_url = "{url}"
model = "pretended"

[cast]
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
    assert told == "evenhand judge-check --judge judge --out runs/judge-pretended"
    assert server.read().outcomes == {}
    assert not (project / "run").exists()


def test_what_the_refusal_says_to_run_is_enough(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    """The audit that it names is too long for a test; a certificate of its size stands for it."""
    audit = evenhand("judge-check", "--judge", "judge", *SMALL, "--out", "runs/small")
    assert audit.returncode == 0, audit.stderr
    [small] = (project / "certificates").glob("*.json")
    assert small.read_bytes() == (project / "runs/small/judge-certificate.json").read_bytes()
    narrow = evenhand(*MITIGATE, "--require-certified-judges")
    assert narrow.returncode == 1
    said = " ".join(narrow.stderr.split())
    assert (
        "too little to rely on: bases 8 of 60; pairs 6 of 8; injections 6 of 60; no Asian" in said
    )
    assert said.endswith("evenhand judge-check --judge judge --out runs/judge-pretended-again")
    keep(_as_large_as_needed(small), project / "certificates")
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert "judge bias_evaluator = pretended: certificate says pass" in ran.stderr
    assert "judge performance_evaluator = pretended: certificate says pass" in ran.stderr
    assert ran.returncode != 1, ran.stderr


def _as_large_as_needed(path: Path) -> Certificate:
    """A later certificate of the same judge, of the default audit's size, that passes."""
    small = Certificate.from_bytes(path.read_bytes(), str(path))
    checks = [CertifiedCheck.of(_check(name, "pass")) for name in sorted(NEEDED.checks)]
    probes = small.benchmark["probes"] | {"injection": 180}
    benchmark = small.benchmark | {"sampling": Design().describe(), "probes": probes}
    new = {"checks": checks, "state": "pass", "benchmark": benchmark, "created": "2999-01-01"}
    return Certificate(**json.loads(small.model_copy(update=new).model_dump_json())).sealed()


def test_a_judge_that_failed_is_named_with_what_it_failed_and_refused(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    server.set("slot", "first")
    audit = evenhand("judge-check", "--judge", "judge", *SMALL, "--out", "audit")
    assert audit.returncode == 0, audit.stderr
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    assert "certificate says fail (position)" in ran.stderr
    assert "Give the role to another model" in " ".join(ran.stderr.split())
    assert not (project / "run").exists()


def test_the_certificate_of_a_remedy_is_none_of_the_plain_judge(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    more = ("--set", "counterfactual=swap", "--out", "audit")
    assert evenhand("judge-check", "--judge", "judge", *SMALL, *more).returncode == 0
    ran = evenhand(*MITIGATE, "--require-certified-judges")
    assert ran.returncode == 1
    said = " ".join(ran.stderr.split())
    assert "is for rate (counterfactual=swap, personas=a judge), not rate (counterfac" in said


def test_a_certificate_that_was_edited_is_refused_by_the_gate(
    evenhand: Run, project: Path, server: RemoteServer
) -> None:
    assert evenhand("judge-check", "--judge", "judge", *SMALL, "--out", "audit").returncode == 0
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
        f"judge {role} = pretended: not certified: the config names no folder of certificates"
        for role in ("bias_evaluator", "performance_evaluator")
    ]


def test_without_a_folder_the_refusal_says_how_to_name_one(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand(*MITIGATE, "--require-certified-judges", "--json")
    assert ran.returncode == 1
    told = json.loads(ran.stdout)["error"]
    assert told["reason"] == "user_error"
    assert 'Write certificates = "certificates" under [judges]' in told["message"]
    command = "evenhand judge-check --model pretended --out runs/judge-pretended"
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


DEBATE = ("debate", "run", "topics.jsonl", "--rounds", "1", "--out", "run")


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
from evenhand.domain import Answer, Draft
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
