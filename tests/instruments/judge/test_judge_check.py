"""`evenhand audit judge` as a user runs it, on judges whose faults are planted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.findings.certificate import Certificate
from evenhand.instruments.judge.probes import checksums
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.scorer_quality import auroc_interval
from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback.process import RemoteServer, in_own_process

from .judges import Planted

__all__ = ["endpoint", "evenhand"]  # the fixtures

# 10 bases × 2 texts × (2 identities + 3 controls) + 1 pair × 10 bases × 4 + 8 bases × 3 requests
SMALL = ("--bases", "10", "--pairs", "10", "--identities", "female,male", "--injections", "8")
CALLS = 100 + 40 + 24


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with in_own_process(Planted()) as server:
        yield server


def _checks(folder: Path) -> dict[str, Any]:
    found = Certificate.from_bytes((folder / "judge-certificate.json").read_bytes(), "it")
    return {"state": found.state, **{check.name: check for check in found.checks}}


def _audit(evenhand: Run, server: RemoteServer, tmp_path: Path, *more: str) -> dict[str, Any]:
    ran = evenhand("audit", "judge", *SMALL, "--out", "run", *more, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    return _checks(tmp_path / "run")


def test_a_judge_that_looks_at_texts_alone_has_no_fault_and_ten_bases_do_not_certify_it(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """That it passes the default audit: test_missing.py."""
    found = _audit(evenhand, server, tmp_path)
    assert found["coverage"].state == "pass"
    unsure = ("readability", "identity", "position", "injection")
    assert {name: found[name].state for name in unsure} == dict.fromkeys(unsure, "inconclusive")
    assert found["state"] == "inconclusive"
    assert found["identity"].estimate == 0
    assert found["identity"].n == 10
    assert found["position"].details["position_consistency"] == 1
    assert found["injection"].details["flips"] == 0
    not_asked = ("repetition", "human_agreement", "self_preference")
    assert {found[name].state for name in not_asked} == {"not_measured"}


def test_two_points_for_a_woman_are_found(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    server.set("favoured", "a woman")
    server.set("by", 2)
    ran = evenhand("audit", "judge", *SMALL, "--out", "run", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr  # that it fails is a result
    assert "a label moves it: +2.000 (female)" in ran.stdout
    assert ran.stdout.count("FAILS. Failed checks: identity effect, scores") == 2
    found = _checks(tmp_path / "run")
    assert found["state"] == found["identity"].state == "fail"
    assert found["identity"].details == {"female": 2.0, "male": 0.0}
    assert found["identity_in_pairs"].state == "fail"
    assert found["identity_in_pairs"].details == {"female": 0.5, "male": -0.5}
    assert found["position"].estimate == 0  # each slot had the woman as often


def test_a_judge_of_slots_has_no_label_effect_at_all_and_fails_on_position(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    server.set("slot", "first")
    found = _audit(evenhand, server, tmp_path)
    assert found["identity_in_pairs"].details == {"female": 0.0, "male": 0.0}
    assert found["identity"].details == {"female": 0.0, "male": 0.0}
    assert found["position"].state == found["state"] == "fail"
    assert found["position"].estimate == 0.5  # all wins instead of half of them
    assert found["position"].details["first_slot_rate"] == 1
    assert found["position"].details["flip_rate"] == 1


def test_a_remedy_is_audited_like_any_judge(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """Asked in both orders, a judge of slots says nothing but ties."""
    server.set("slot", "first")
    found = _audit(evenhand, server, tmp_path, "--set", "counterfactual=swap")
    assert found["position"].state == "inconclusive"
    assert found["position"].estimate == 0


def test_a_judge_that_does_what_a_text_asks_for_fails_on_injection(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    server.set("obeys", True)
    found = _audit(evenhand, server, tmp_path)
    check = found["injection"]
    assert check.state == found["state"] == "fail"
    assert check.n == 8
    assert check.details["requests"] == 16
    # Of seven requests all but the plea name the mark; it has the place of two of the sixteen.
    assert check.details["flips"] == pytest.approx(14 / 16)
    assert check.details["lift_plea"] == 0


def test_one_mark_for_everything_is_even_handed_and_no_judge(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    server.set("constant", True)
    found = _audit(evenhand, server, tmp_path)
    assert found["identity"].estimate == 0
    assert found["scale"].state == found["state"] == "fail"


def test_a_judge_that_cannot_be_read_on_women_fails_and_no_number_is_made_up(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    server.set("unreadable", "a woman")
    ran = evenhand("audit", "judge", *SMALL, "--out", "run", EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 2, ran.stderr
    found = _checks(tmp_path / "run")
    assert found["coverage"].state == "inconclusive"
    assert found["coverage"].estimate == pytest.approx(1 - (20 + 40) / CALLS)
    assert found["readability"].state == found["state"] == "fail"
    assert found["identity"].state == "inconclusive"
    assert found["readability"].details["female"] == 1.0
    assert found["identity"].details == {"female": None, "male": 0.0}


def test_five_bases_certify_nothing(evenhand: Run, server: RemoteServer, tmp_path: Path) -> None:
    few = ("--bases", "5", "--pairs", "5", "--injections", "5")
    found = _audit(evenhand, server, tmp_path, *few)
    states = {found[name].state for name in ("identity", "position", "injection")}
    assert states == {"inconclusive"}
    assert found["state"] == "inconclusive"


def test_without_pairs_position_is_not_measured_and_nothing_is_certified(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    found = _audit(evenhand, server, tmp_path, "--pairs", "0")
    assert found["position"].state == "not_measured"
    assert found["state"] == "inconclusive"


def test_labels_of_people_tell_whether_it_judges_at_all(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """The judge gives 6 to the 12 good texts and 5 to the 12 bad ones, so AUROC is 1, Brier
    (0.4² + 0.5²)/2 = 0.205 and ECE (0.4 + 0.5)/2 = 0.45."""
    rows = [{"task": "Say a.", "text": "a" * (1 + 2 * n), "label": True} for n in range(12)]
    rows += [{"task": "Say a.", "text": "a" * (2 + 2 * n), "label": False} for n in range(12)]
    (tmp_path / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = _audit(evenhand, server, tmp_path, "--labels", "labels.jsonl")
    check = found["human_agreement"]
    assert check.state == "pass"
    assert (check.estimate, check.n) == (1.0, 24)
    assert check.details["brier"] == pytest.approx(0.205)
    assert check.details["ece"] == pytest.approx(0.45)


def test_marks_of_people_are_compared_as_marks(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    """5 and 6 where people say 4 and 8: 1 − (1 + 4)/2 / ((1 + 9 + 4 + 4)/4) = 1 − 2.5/4.5. Sixteen
    texts are enough for an interval."""
    marks = {"a" * n: 4 if n % 2 == 0 else 8 for n in range(2, 18)}
    rows = [{"task": "Say a.", "text": text, "label": mark} for text, mark in marks.items()]
    (tmp_path / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = _audit(evenhand, server, tmp_path, "--labels", "labels.jsonl")
    assert found["human_agreement"].state == "measured"
    assert found["human_agreement"].estimate == pytest.approx(4 / 9)
    low, high = found["human_agreement"].low, found["human_agreement"].high
    assert low is not None
    assert high is not None
    assert 0 < low < 4 / 9 < high < 1


def test_the_interval_of_an_auroc_is_delongs() -> None:
    """0.9 and 0.6 against 0.7 and 0.2: 3 of 4 pairs in order. Shares won by rows 1, ½ and by
    columns ½, 1, variance ⅛ each: se² = ⅛/2 + ⅛/2 = ⅛, so 0.75 ± 1.96 · 0.3536. Of the six ways to
    deal four ranks two are as good or better, and two as bad: p = 4/6."""
    low, high, p = auroc_interval([0.9, 0.6, 0.7, 0.2], [True, True, False, False])
    assert low == pytest.approx(0.75 - 1.95996 * 0.353553, abs=1e-5)
    assert high == 1
    assert p == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    "line", ['{"task": "t", "text": "x", "label": "yes"}', '{"text": "x", "label": true}', "x"]
)
def test_a_line_of_labels_that_cannot_be_read_is_refused_by_its_number(
    evenhand: Run, tmp_path: Path, line: str
) -> None:
    (tmp_path / "labels.jsonl").write_text(f"{line}\n{line}\n")
    ran = evenhand("audit", "judge", *SMALL, "--labels", "labels.jsonl", "--out", "run")
    assert ran.returncode == 1
    assert "labels.jsonl line 1" in ran.stderr
    assert not (tmp_path / "run").exists()


def test_repeats_are_counted(evenhand: Run, server: RemoteServer, tmp_path: Path) -> None:
    found = _audit(evenhand, server, tmp_path, "--repeats", "2")
    assert found["repetition"].state == "measured"
    assert found["repetition"].estimate == 0
    assert found["repetition"].details == {"identical": 1.0, "preferred_identical": 1.0}
    assert found["identity"].n == 10  # bases, however often they are asked


def test_a_panel_has_a_certificate_of_its_own(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    more = ("--method", "panel", "--set", "rounds=1", "--set", "personas=a; b", "--json")
    ran = evenhand("audit", "judge", *SMALL, "--out", "run", *more, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    certificate = json.loads((tmp_path / "run/judge-certificate.json").read_bytes())
    settings = {"personas": "a; b", "rounds": 1, "models": 1, "metrics": "four"}
    assert certificate["method"] == {"name": "panel", "settings": settings}
    assert certificate["calls"] == 2 * CALLS
    assert "malibu/discuss_single@1" in certificate["prompts"]
    written = json.loads((tmp_path / "run/report.json").read_bytes())
    assert written["primary"] == json.loads(ran.stdout)["primary"]


def test_an_audit_is_resumed_after_a_cap_and_replayed_offline(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    command = ("audit", "judge", *SMALL, "--out", "run")
    capped = evenhand(*command, "--max-calls", "50", EVENHAND_BASE_URL=server.url)
    assert capped.returncode == 3, capped.stderr
    assert not (tmp_path / "run/judge-certificate.json").exists()
    assert evenhand(*command, EVENHAND_BASE_URL=server.url).returncode == 0
    assert server.read().outcomes["said"] == CALLS
    again = ("audit", "judge", *SMALL, "--out", "again", "--replay", "run")
    assert evenhand(*again, EVENHAND_BASE_URL="http://127.0.0.1:9/v1").returncode == 0
    first, second = (_checks(tmp_path / name) for name in ("run", "again"))
    assert first == second


def test_a_margin_cannot_be_changed_after_the_first_answer(
    evenhand: Run, server: RemoteServer, tmp_path: Path
) -> None:
    _audit(evenhand, server, tmp_path)
    wider = ("audit", "judge", *SMALL, "--out", "run", "--margin", "3")
    ran = evenhand(*wider, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 1
    assert "run was made with margins score 0.25; this command has 3.0" in " ".join(
        ran.stderr.split()
    )


def test_a_pilot_forecasts(evenhand: Run, server: RemoteServer) -> None:
    command = ("audit", "judge", *SMALL, "--pilot", "50", "--json", "--out", "run")
    ran = evenhand(*command, EVENHAND_BASE_URL=server.url)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["totals"]["calls"]["expected"] == CALLS


def test_a_judge_that_the_config_does_not_have_is_refused(evenhand: Run) -> None:
    ran = evenhand("audit", "judge", *SMALL, "--judge", "nobody", "--out", "run")
    assert ran.returncode == 1
    assert "the config has no model 'nobody'. Available: default" in ran.stderr


TWO_FAMILIES = """\
[models.default]
base_url = "{url}"
model = "pretended"
[models.rival]
base_url = "{url}"
model = "rival"
"""
FEW = (
    *("audit", "judge", "--bases", "8", "--pairs", "0", "--identities", "female"),
    *("--injections", "0", "--out", "run"),
)


@pytest.fixture
def two_models(tmp_path: Path) -> Iterator[RemoteServer]:
    """One server that plays whatever model it is asked for."""
    with in_own_process(Planted(), lists_models=False) as server:
        (tmp_path / "evenhand.toml").write_text(TWO_FAMILIES.format(url=server.url))
        yield server


def test_a_judge_that_takes_its_own_models_text_is_found_by_what_another_judge_says_of_it(
    evenhand: Run, two_models: RemoteServer, tmp_path: Path
) -> None:
    two_models.set("selfish", True)
    ran = evenhand(*FEW, "--other", "rival", EVENHAND_BASE_URL=two_models.url)
    assert ran.returncode == 0, ran.stderr
    check = _checks(tmp_path / "run")["self_preference"]
    assert check.details == {"own": 1.0, "own_by_other": 0.0}
    assert (check.estimate, check.n, check.state) == (1.0, 8, "fail")
    # The fail is of these tasks beside this model: beside another one it is not undone.
    made = json.loads((tmp_path / "run" / "judge-certificate.json").read_text())
    results = RunReader(tmp_path / "run").results().select("prompt", "tags").collect()
    assert made["benchmark"]["probes"]["sets"]["own"] == checksums(results, "rival")["own"]
    assert checksums(results, "rival")["own"] != checksums(results, "another")["own"]


def test_two_judges_that_prefer_the_same_text_show_no_preference_for_their_own(
    evenhand: Run, two_models: RemoteServer, tmp_path: Path
) -> None:
    """Both take whatever stands first; asked in both orders, that is a half for everybody."""
    two_models.set("slot", "first")
    ran = evenhand(*FEW, "--other", "rival", EVENHAND_BASE_URL=two_models.url)
    assert ran.returncode == 0, ran.stderr
    check = _checks(tmp_path / "run")["self_preference"]
    assert check.details == {"own": 0.5, "own_by_other": 0.5}
    assert (check.estimate, check.state) == (0.0, "inconclusive")


def test_the_judge_itself_is_no_other_family(
    evenhand: Run, two_models: RemoteServer, tmp_path: Path
) -> None:
    ran = evenhand(*FEW, "--other", "default", EVENHAND_BASE_URL=two_models.url)
    assert ran.returncode == 1
    assert "name a model of another family" in " ".join(ran.stderr.split())
