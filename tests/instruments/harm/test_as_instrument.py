"""The audit of a harm policy is an instrument: what runs a benchmark runs it."""

import json
import re
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.experiments.measuring import concluded
from evenhand.findings.comparison import compare
from evenhand.findings.gate import GateCheck, gate
from evenhand.findings.plan import plan
from evenhand.findings.report import report
from evenhand.findings.sequential import why_not
from evenhand.instruments import instrument_of
from evenhand.instruments.harm.certificate import FILE
from evenhand.instruments.harm.instrument import HarmAudit
from evenhand.instruments.harm.policy import OwnHarm
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from evenhand.scorers import ScorerModel
from evenhand.scorers.harm import HarmJudge
from tests.instruments.harm.test_reading import WORDS, harm_of
from tests.stage import words_of

ROWS = [
    {"text": f"{word} the {who}.", "harm": harm, **({} if harm else {"group": "work"})}
    for word, harm in (("Refuse", True), ("Invite", False))
    for who in WORDS
]


def _cast(harm: OwnHarm, found: str = "refuse") -> Cast:
    """A judge that goes by a word of the text, in whatever letters."""

    def say(request: ModelRequest) -> str:
        text = re.findall(r"<text>\n(.*?)\n</text>", words_of(request), re.S)[0]
        breaks = "yes" if re.search(found, text.lower()) else "no"
        return json.dumps({"reason": "so it reads", "breaks": breaks})

    model = ScriptedModel(say, name="m")
    players = {
        role: ScorerModel(HarmJudge(harm.asked, model, swapped=role != "harm"))
        for role in ("harm", "harm_swapped")
    }
    return Cast(model, players)


@pytest.fixture(scope="module")
def harm(tmp_path_factory: pytest.TempPathFactory) -> OwnHarm:
    own: OwnHarm = harm_of(tmp_path_factory.mktemp("harm"), ROWS)
    return own


@pytest.fixture(scope="module")
def runs(harm: OwnHarm, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReader, RunReader]:
    """Of the judge that finds every harm, and of one that misses it from the letter "m" on."""
    folder = tmp_path_factory.mktemp("runs")
    for name, words in (("all", "refuse"), ("half", "refuse the [a-l]")):
        eh.measure(HarmAudit(harm), model=_cast(harm, words), out=folder / name)
    return RunReader(folder / "all"), RunReader(folder / "half")


def test_the_run_alone_says_which_instrument_made_it_and_what_it_showed(
    runs: tuple[RunReader, RunReader],
) -> None:
    found, half = (report(instrument_of(run), run) for run in runs)
    assert isinstance(found.instrument, HarmAudit)
    assert (found["sensitivity"].value, found["sensitivity"].n) == (1, 24)
    assert found["sensitivity"].low == pytest.approx(0.025 ** (1 / 24))
    assert half["sensitivity"].value == 0.5


def test_a_comparison_a_plan_and_a_gate_take_two_audits(runs: tuple[RunReader, RunReader]) -> None:
    changes = compare(instrument_of(runs[0]), *runs)
    lost = changes["sensitivity"]
    assert lost.difference == -0.5
    assert lost.p_holm is not None
    assert lost.p_holm < 0.01
    assert plan(HarmAudit(), pilot=changes, measure="sensitivity", detect=0.1).rows
    check = GateCheck(name="c", instrument=HarmAudit(), measure=HarmAudit().measure("sensitivity"))
    (judged,) = gate([check], {"c": runs}).checks
    assert judged.verdict == "fail"


def test_early_stopping_takes_the_shares_and_says_why_it_refuses_the_rest() -> None:
    reasons = {measure.name: why_not(HarmAudit(), measure) for measure in HarmAudit().measures}
    assert {name for name, why in reasons.items() if not why} == {
        "sensitivity", "false_alarms", "paraphrase", "order", "benign_sets",
    }  # fmt: skip


def test_an_audit_stops_as_soon_as_a_bound_is_decided(harm: OwnHarm, tmp_path: Path) -> None:
    found = eh.measure(
        HarmAudit(harm), model=_cast(harm), out=tmp_path / "run", stop_when="false_alarms=0.9"
    )
    assert found.stopped is not None
    assert found.stopped.verdict == "ruled_out"
    assert found.stopped.items < found.stopped.of_items


def test_the_audit_of_a_part_of_the_items_writes_no_certificate(
    harm: OwnHarm, tmp_path: Path
) -> None:
    audit = HarmAudit(harm, certificates=tmp_path / "kept")
    found = eh.measure(audit, model=_cast(harm), out=tmp_path / "run", max_calls=40)
    assert found.not_run
    assert concluded(audit, audit.options(), found).state == "inconclusive"
    assert not (tmp_path / "run" / FILE).exists()
    assert not (tmp_path / "kept").exists()


def test_a_name_alone_reads_runs_and_asks_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="audit harm NAME"):
        eh.measure("harm", model=ScriptedModel(lambda _: ""), out=tmp_path / "run")
