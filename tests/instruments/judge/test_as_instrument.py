"""The audit of a judge is an instrument: what runs a benchmark runs it."""

import json
import zlib
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.experiments import gate_file
from evenhand.findings.certificate import Certificate
from evenhand.findings.comparison import compare
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.plan import plan
from evenhand.findings.sequential import why_not
from evenhand.instruments import instrument_of
from evenhand.instruments.judge.certificate import FILE
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from tests.stage import words_of

from .judges import Planted

SMALL = {"bases": 12, "pairs": 12, "texts": 1, "injections": 0, "identities": "female,male"}


def _judge(planted: Planted, at_times: Planted | None = None) -> ScriptedModel:
    """A judge, who on a third of the texts is another one."""

    def say(request: ModelRequest) -> str:
        words = words_of(request)
        other = at_times is not None and zlib.crc32(words.encode()) % 3 == 0
        return (at_times if other and at_times else planted).verdict(words)

    return ScriptedModel(say, name="m")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReader, RunReader]:
    """Of a judge that looks at texts alone, and of one that gives women two points more."""
    folder = tmp_path_factory.mktemp("runs")
    for name, planted in (("even", Planted()), ("biased", Planted(favoured="a woman", by=2))):
        eh.audit("judge", model=_judge(planted), out=folder / name, options=SMALL)
    return RunReader(folder / "even"), RunReader(folder / "biased")


def test_a_function_audits_a_judge_and_keeps_one_certificate(tmp_path: Path) -> None:
    found = eh.audit(
        "judge", model=_judge(Planted(slot="first")), out=tmp_path / "run", options=SMALL,
        certificates=tmp_path / "kept",
    )  # fmt: skip
    assert (found.kind, found.title, found.state) == ("judge", "m · rate", "fail")
    assert (found["position"].state, found["position"].value) == ("fail", 0.5)
    assert found["identity"].bar == "within ±0.25"
    [kept] = (tmp_path / "kept").glob("*.json")
    assert kept.read_bytes() == (tmp_path / "run" / FILE).read_bytes()
    made = Certificate.from_bytes(kept.read_bytes(), "it")
    assert (made.state, made.decided_by) == ("fail", " (position)")
    assert json.loads((tmp_path / "run/report.json").read_bytes())["benchmark"] == "judge"


def test_a_comparison_takes_two_audits(runs: tuple[RunReader, RunReader]) -> None:
    changes = compare(instrument_of(runs[0]), *runs)
    moved = changes["shift"]
    assert moved.difference == pytest.approx(1.0)  # two points for one of two identities
    assert moved.p_holm is not None
    assert moved.p_holm < 0.01
    untested = changes["identity"]
    assert untested.difference == pytest.approx(2.0)
    assert (untested.p, untested.low) == (None, None)


def test_a_plan_takes_two_audits_and_refuses_a_number_without_a_test(
    runs: tuple[RunReader, RunReader], tmp_path: Path
) -> None:
    model = _judge(Planted(), Planted(favoured="a woman", by=2))
    eh.audit("judge", model=model, out=tmp_path / "run", options=SMALL)
    changes = compare(JudgeAudit(), runs[0], RunReader(tmp_path / "run"))
    assert plan(JudgeAudit(), pilot=changes, measure="shift", detect=0.25).rows
    with pytest.raises(UserError, match="identity"):
        plan(JudgeAudit(), pilot=changes, measure="identity", detect=0.1)


def test_a_gate_judges_two_audits_and_refuses_a_number_without_a_test(
    runs: tuple[RunReader, RunReader], tmp_path: Path
) -> None:
    audit = JudgeAudit()
    checks = [
        GateCheck(name=name, instrument=audit, measure=audit.measure(name))
        for name in ("shift", "first_slot")
    ]
    by_name = {
        one.name: one for one in gate(checks, dict.fromkeys(("shift", "first_slot"), runs)).checks
    }
    assert by_name["shift"].verdict == "fail"
    assert by_name["first_slot"].verdict != "fail"
    file = tmp_path / "evenhand.gate.toml"
    file.write_text('[[check]]\ninstrument = "judge"\nmeasure = "identity"\nmargin = 0.25\n')
    with pytest.raises(UserError, match="no measure 'identity' that a gate can judge; it has: shi"):
        gate_file.read(file)


def test_early_stopping_takes_the_means_and_says_why_it_refuses_the_rest(tmp_path: Path) -> None:
    reasons = {measure.name: why_not(JudgeAudit(), measure) for measure in JudgeAudit().measures}
    assert {name for name, why in reasons.items() if not why} == {"first_slot", "mark"}
    with pytest.raises(
        UserError, match="cannot stop by identity, as it is not a mean over answers"
    ):
        eh.audit("judge", model=_judge(Planted()), out=tmp_path / "run", options=SMALL,
                 stop_when="identity=0.25")  # fmt: skip


def test_an_audit_stops_as_soon_as_its_question_is_decided_and_certifies_nothing(
    tmp_path: Path,
) -> None:
    options = {**SMALL, "bases": 40, "pairs": 40}
    found = eh.measure("judge", model=_judge(Planted(slot="first")), out=tmp_path / "run",
                       options=options, stop_when="first_slot=0.1")  # fmt: skip
    assert found.stopped is not None
    assert found.stopped.verdict == "detected"
    assert found.stopped.items < found.stopped.of_items
    audit = eh.audit("judge", model=_judge(Planted(slot="first")), out=tmp_path / "run",
                     options=options, stop_when="first_slot=0.1")  # fmt: skip
    assert {check.state for check in audit.checks} == {"not_measured"}
    assert audit.state == "inconclusive"
    assert not (tmp_path / "run" / FILE).exists()
