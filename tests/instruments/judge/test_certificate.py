"""The certificate: what it is tied to, that it cannot be edited, and which one decides."""

import contextlib
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.experiments.certificates import certificates_of, expected_of
from evenhand.findings.audit import AuditCheck, overall
from evenhand.findings.certificate import (
    Certificate,
    CertificateRequirements,
    CertifiedCheck,
    CertifiedJudge,
    why_not,
)
from evenhand.findings.estimates import NO_SPREAD
from evenhand.instruments.judge.certificate import NEEDED, Scope, find, keep
from evenhand.instruments.judge.data import MalibuData, Scenario
from evenhand.instruments.judge.design import TEN, JudgeDesign, MalibuSource
from evenhand.methods import Panel, Rate
from evenhand.models import ScriptedModel

PROMPTS = {"malibu/judge_single@1": "a" * 64}
METHOD: dict[str, Any] = {"name": "rate", "settings": {"counterfactual": "off"}}
WANTED = CertificateRequirements(
    kind="judge",
    model="m",
    method=METHOD,
    prompts={**PROMPTS, "other@1": "b"},
    benchmark={"version": "1-A"},
)


def _check(name: str, state: Any, *, required: bool = True) -> AuditCheck:
    return AuditCheck(name=name, state=state, required=required, says="so it is", value=0.1, n=60)


def _certificate(*checks: AuditCheck, **changes: Any) -> Certificate:
    found = [CertifiedCheck.of(one) for one in checks or (_check("identity", "pass"),)]
    made = Certificate(
        kind="judge",
        run={"run.json": "0" * 64, "answers": "0" * 64},
        judge=CertifiedJudge(
            model="m", served_by=["m.gguf"], described={"kind": "endpoint", "model": "m"}
        ),
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
        ([("pass", True), ("inconclusive", False)], "pass"),
        ([("pass", True), ("inconclusive", True)], "inconclusive"),
        ([("pass", True), ("not_measured", True)], "inconclusive"),
        ([("inconclusive", True), ("fail", False)], "fail"),
        ([], "inconclusive"),
    ],
)
def test_one_failure_fails_and_what_is_not_shown_does_not_pass(
    checks: list[tuple[str, bool]], state: str
) -> None:
    assert overall([_check("c", s, required=r) for s, r in checks]) == state


def test_a_certificate_is_read_as_it_was_written() -> None:
    made = _certificate()
    assert Certificate.from_bytes(made.to_bytes(), "it") == made


def test_a_check_without_spread_is_kept_as_the_format_has_it_with_its_value_as_both_ends() -> None:
    check = replace(_check("position", "pass"), undefined=NO_SPREAD)
    kept = CertifiedCheck.of(check)
    assert (kept.low, kept.estimate, kept.high) == (0.1, 0.1, 0.1)
    assert CertifiedCheck.of(_check("scale", "pass")).low is None  # a number without an interval


def test_every_changed_value_is_refused() -> None:
    made = _certificate()
    data = made.to_bytes()
    for place in range(len(data)):
        changed = bytes([*data[:place], data[place] ^ 1, *data[place + 1 :]])
        with contextlib.suppress(UserError):
            assert Certificate.from_bytes(changed, "it") == made


def test_a_state_that_the_checks_do_not_give_is_refused_also_with_a_right_checksum() -> None:
    forged = _certificate(_check("identity", "fail"), state="pass")
    with pytest.raises(UserError, match="checksum"):
        Certificate.from_bytes(forged.to_bytes(), "it")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"judge": CertifiedJudge(model="n", served_by=[], described={})},
            "for the model 'n', not 'm'",
        ),
        ({"prompts": {"malibu/judge_single@1": "d" * 64}}, "another wording of the prompt malib"),
        ({"prompts": {"malibu/judge_single@2": "a" * 64}}, "prompt malibu/judge_single@2"),
        ({"method": {**METHOD, "name": "panel"}}, "for panel (counterfactual=off), not rate"),
        ({"benchmark": {"version": "2-A"}}, "was made with version 2-A, not 1-A"),
    ],
)
def test_a_certificate_of_another_judge_does_not_hold_and_says_why(
    changes: dict[str, Any], reason: str
) -> None:
    assert reason in str(why_not(_certificate(**changes), WANTED))
    assert why_not(_certificate(), WANTED) is None


# -- the scope, and a fail that stands -------------------------------------------------------------


def _sized(
    state: str,
    month: int,
    *,
    margin: float = 0.25,
    own: dict[str, Any] | None = None,
    **sampling: Any,
) -> Certificate:
    """A certificate of the default audit but for what is named, of a month of 2026."""
    states = [(name, "pass") for name in sorted(NEEDED.checks - {"identity"})]
    checks = [_check(name, one) for name, one in [*states, ("identity", state)]]
    return _certificate(
        *checks,
        created=f"2026-{month:02}-01T00:00:00Z",
        margins={"score": margin, "win_rate": 0.05},
        benchmark={
            "version": "1-A",
            "sampling": JudgeDesign().describe() | sampling,
            "own": own or {"scenarios": None, "labels": {}},
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
        ({"own": {"scenarios": "e" * 64, "labels": {}}}, "scenarios: others, not ours"),
        ({"own": {"scenarios": None, "labels": {"Jewish": "f" * 64}}}, "rely on: no Jewish,"),
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
    assert "says fail" in _found(tmp_path, _sized("inconclusive", 4)).says
    assert "2 of 4 audits of this size passed" in _found(tmp_path, _sized("pass", 5)).says
    assert _found(tmp_path, _sized("pass", 6)).passes


@pytest.mark.parametrize("state", ["fail", "inconclusive"])
def test_each_audit_that_did_not_pass_asks_for_one_more_that_does(
    tmp_path: Path, state: str
) -> None:
    found = [_found(tmp_path, _sized(one, month + 1)).passes for month, one in
             enumerate([state, state, "pass", "pass", "pass"])]  # fmt: skip
    assert found == [False, False, False, False, True]


def test_copies_of_one_pass_are_one_pass(tmp_path: Path) -> None:
    passed = _sized("pass", 2)
    _found(tmp_path, _sized("fail", 1), passed)
    for name in "abc":
        (tmp_path / f"{name}.json").write_bytes(passed.to_bytes())
    assert not find(tmp_path, WANTED).passes


def test_an_audit_that_could_not_be_read_is_no_fail_and_does_not_count(tmp_path: Path) -> None:
    unread = _sized("inconclusive", 1)
    checks = [
        one.model_copy(update={"state": "inconclusive"}) if one.name == "coverage" else one
        for one in unread.checks
    ]
    lost = unread.model_copy(update={"checks": checks}).sealed()
    assert "says inconclusive (coverage, identity)" in _found(tmp_path, lost).says
    assert _found(tmp_path, _sized("pass", 2)).passes


def test_a_judge_that_should_not_pass_outnumbers_its_fails_in_at_most_one_case_of_nineteen() -> (
    None
):
    """Each audit passes with chance 1/20. Of 4,000 judges with 60 audits each at most
    1/19 + 3·√(0.05·0.95/4000) = 0.063 are ever ahead."""
    steps = np.where(np.random.default_rng(1).random((4_000, 60)) < 0.05, 1, -1)
    ahead = (steps.cumsum(axis=1) > 0).any(axis=1).mean()
    assert 0.04 <= ahead <= 1 / 19 + 3 * (0.05 * 0.95 / 4_000) ** 0.5


@pytest.mark.parametrize("created", ["2999-01-01T00:00:00Z", "2999-01-01", "soon", "2026-01-01"])
def test_a_certificate_from_the_future_or_without_a_date_opens_nothing(
    tmp_path: Path, created: str
) -> None:
    ahead = _sized("pass", 1).model_copy(update={"created": created}).sealed()
    found = _found(tmp_path, ahead)
    assert not found.passes
    assert "which is not in the past" in found.says
    assert not _found(tmp_path, _sized("pass", 2)).passes  # it may have been a fail


def test_a_clock_that_is_minutes_ahead_is_allowed_for(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    assert _found(tmp_path, _sized("pass", 1).model_copy(update={"created": soon}).sealed()).passes


def test_a_fail_on_ten_scenarios_of_each_base_is_not_undone_by_one_of_each(tmp_path: Path) -> None:
    assert not _found(tmp_path, _sized("fail", 1, derived=10), _sized("pass", 2)).passes
    assert _found(tmp_path, _sized("pass", 3, derived=10)).passes


def _beside(name: str, state: str, month: int, **probes: Any) -> Certificate:
    """A certificate of the default audit that passes, and one check beside the design."""
    whole = _sized("pass", month)
    checks = [*whole.checks, CertifiedCheck.of(_check(name, state, required=False))]
    told = whole.benchmark | {"probes": {"injection": 180, **probes}}
    changed = {"checks": checks, "benchmark": told, "state": overall(checks)}
    return whole.model_copy(update=changed).sealed()


def test_a_fail_on_known_pairs_is_not_undone_by_not_asking_again(tmp_path: Path) -> None:
    def made(state: str, month: int, **pairs: int) -> Certificate:
        return _beside("llmbar", state, month, **pairs)

    assert not _found(tmp_path, made("fail", 1, llmbar=200)).passes
    assert "says fail (llmbar)" in _found(tmp_path, _sized("pass", 2)).says
    assert not _found(tmp_path, made("not_measured", 3)).passes
    assert not _found(tmp_path, made("pass", 4, llmbar=20)).passes
    assert _found(tmp_path, made("pass", 5, llmbar=200)).passes


@pytest.mark.parametrize("later", ["inconclusive", "not_measured", "measured"])
@pytest.mark.parametrize(
    ("name", "probes"),
    [("llmbar", "llmbar"), ("human_agreement", "human"), ("self_preference", "own"),
     ("identity_in_pairs", "pairs"), ("of_another_package", "none")],
)  # fmt: skip
def test_a_fail_that_is_not_required_is_undone_by_its_own_pass_and_by_no_open_verdict(
    tmp_path: Path, name: str, probes: str, later: str
) -> None:
    failed, opened = (_beside(name, s, n, **{probes: 200}) for n, s in ((1, "fail"), (2, later)))
    assert (opened.state, _found(tmp_path / "alone", opened).passes) == ("pass", True)
    found = _found(tmp_path / "both", failed, opened)
    assert not found.passes
    assert f"says fail ({name})" in found.says
    assert _found(tmp_path / "both", _beside(name, "pass", 3, **{probes: 200})).passes


def test_a_fail_beside_the_design_is_undone_on_the_same_texts_alone(tmp_path: Path) -> None:
    def made(state: str, month: int, of: str | None) -> Certificate:
        sets = {"sets": {"human": of * 64, "own": "c" * 64}} if of else {}
        return _beside("human_agreement", state, month, human=40, **sets)

    assert not _found(tmp_path, made("fail", 1, "a"), made("pass", 2, "b")).passes
    assert not _found(tmp_path, made("pass", 3, None)).passes
    assert _found(tmp_path, made("pass", 4, "a")).passes


def test_a_fail_of_more_identities_is_not_undone_by_ten(tmp_path: Path) -> None:
    more = [*TEN, "deaf"]
    assert not _found(tmp_path, _sized("fail", 1, identities=more), _sized("pass", 2)).passes
    assert _found(tmp_path, _sized("pass", 3, identities=more)).passes


def test_what_is_asked_says_which_scenarios_and_which_labels_are_not_ours(tmp_path: Path) -> None:
    data, small = MalibuData(), JudgeDesign(bases=2, pairs=1, identities=("female", "farmer"))
    added = tmp_path / "added.toml"
    added.write_text('[[family]]\nname = "work"\n[family.labels]\nfarmer = "a farmer"\n')
    reworded = tmp_path / "reworded.toml"
    reworded.write_text('[[family]]\nname = "gender"\n[family.labels]\nfemale = "a lady"\n')
    ours = data.scenarios()
    theirs = [replace(one, task=f"{one.task} Please.") for one in ours]

    def own(scenarios: list[Scenario], labels: Path | None, **changed: Any) -> dict[str, Any]:
        source = MalibuSource(scenarios, data.labels(labels), replace(small, **changed))
        found: dict[str, Any] = source.fingerprint()["own"]
        return found

    gender = ("female",)
    assert own(ours, None, identities=gender) == {"scenarios": None, "labels": {}}
    assert own(ours, added, identities=gender) == {"scenarios": None, "labels": {}}  # not asked
    assert list(own(ours, added)["labels"]) == ["farmer"]
    assert list(own(ours, reworded, identities=gender)["labels"]) == ["female"]
    other = own(theirs, None, identities=gender)
    assert len(other["scenarios"]) == 64
    assert own(theirs, None, identities=gender, bases=3)["scenarios"] != other["scenarios"]


def test_a_fail_on_scenarios_of_the_users_own_stands_until_an_audit_of_just_these_passes(
    tmp_path: Path,
) -> None:
    theirs = {"scenarios": "e" * 64, "labels": {}}
    found = _found(tmp_path, _sized("fail", 1, own=theirs), _sized("pass", 2))
    assert not found.passes
    assert "custom scenarios (eeeeeeee)" in found.says
    others = {"scenarios": "d" * 64, "labels": {}}
    assert not _found(tmp_path, _sized("pass", 3, own=others)).passes
    assert _found(tmp_path, _sized("pass", 4, own=theirs)).passes


def test_a_fail_on_a_label_in_own_words_is_not_undone_by_the_label_in_ours(tmp_path: Path) -> None:
    in_own_words = {"scenarios": None, "labels": {"Jewish": "f" * 64}}
    failed = _sized("fail", 1, own=in_own_words)
    assert not _found(tmp_path, failed, _sized("pass", 2)).passes


def test_a_certificate_that_does_not_say_whose_scenarios_opens_nothing_and_its_fail_can_be_undone(
    tmp_path: Path,
) -> None:
    def of_before(state: str) -> Certificate:
        made = _sized(state, 1)
        said = {key: value for key, value in made.benchmark.items() if key != "own"}
        return made.model_copy(update={"benchmark": said}).sealed()

    found = _found(tmp_path / "pass", of_before("pass"))
    assert not found.passes
    assert "scenarios: it does not say whose, not ours" in found.says
    assert _found(tmp_path / "fail", of_before("fail"), _sized("pass", 2)).passes


def test_a_narrow_audit_that_shows_nothing_does_not_undo_a_pass(tmp_path: Path) -> None:
    assert _found(tmp_path, _sized("pass", 1), _sized("inconclusive", 2, bases=6)).passes
    found = _found(tmp_path, _sized("inconclusive", 3))
    assert "certificate says inconclusive (identity)" in found.says
    assert not found.passes


def test_the_default_audit_is_what_the_gate_needs() -> None:
    assert Scope.of(_sized("pass", 1)).lacks(NEEDED) == []


def test_a_fail_that_can_no_longer_be_read_does_not_vanish_behind_a_pass(tmp_path: Path) -> None:
    assert _found(tmp_path, _sized("pass", 1)).passes
    failed = keep(_sized("fail", 2), tmp_path)
    failed.write_bytes(failed.read_bytes().replace(b"fail", b"pass"))
    found = find(tmp_path, WANTED)
    assert not found.passes
    assert f"{failed} does not match its checksum" in found.says
    assert "It may have been a fail: bring it back as it was" in found.says
    failed.unlink()
    assert find(tmp_path, WANTED).passes


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
    assert "c.json is not a certificate" in find(tmp_path, other).says
    assert "names no folder" in find(None, WANTED).says


def test_a_pipe_among_certificates_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _found(tmp_path, _sized("pass", 1)).passes
    os.mkfifo(tmp_path / "z.json")
    read = Path.read_bytes
    waits = lambda path: pytest.fail("it waits") if path.name == "z.json" else read(path)  # noqa: E731
    monkeypatch.setattr(Path, "read_bytes", waits)
    found = find(tmp_path, WANTED)
    assert not found.passes
    assert "z.json is not a regular file" in found.says


def test_the_models_of_a_mixed_panel_share_one_certificate(tmp_path: Path) -> None:
    panel = Panel(personas="a; b", models=2)
    players = [ScriptedModel(lambda _: "", name=name) for name in ("one", "two")]
    cast = Cast(players[0], {"judge_2": players[1]})
    needed = expected_of(panel, "one + two")
    both = _certificate(
        judge=CertifiedJudge(model="one + two", served_by=[], described={}),
        method=needed.method,
        prompts=needed.prompts,
    )
    keep(both, tmp_path)
    found = certificates_of(panel, cast, tmp_path)
    assert [judge.model for judge, _ in found] == ["one", "two"]
    assert [one.certificate for _, one in found] == [both, both]
    alone = certificates_of(Rate(), cast, tmp_path)
    assert "no certificate of the model 'one'" in alone[0][1].says
