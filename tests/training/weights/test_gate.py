"""A reward model drives nothing before the audit of its own weights passed."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from typer.testing import CliRunner

from evenhand.cli.audit import audit
from evenhand.core.errors import UserError
from evenhand.findings.audit import overall
from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge
from evenhand.runs.store import RunReader
from evenhand.training.probes import (
    CERTIFICATE_FILE,
    CHECKS,
    checksums_of,
    identity_of,
    method,
    require_passed,
)
from tests.errors import assert_names, raises_naming


def certify(folder: Path, **changes: Any) -> None:
    """Put a certificate of this very model into its folder."""
    states: dict[str, Any] = dict.fromkeys(sorted(CHECKS), "pass") | changes.pop("states", {})
    checks = [
        CertifiedCheck(name=name, state=state, required=True, says="")
        for name, state in states.items()
    ]
    judge = CertifiedJudge(model=identity_of(folder), served_by=[], described=checksums_of(folder))
    made = Certificate(
        kind="reward",
        run={"run.json": "0" * 64, "answers": "0" * 64},
        judge=judge,
        method=method(),
        prompts={},
        benchmark={"topics": 60},
        margins={},
        limits={},
        seed=None,
        evenhand="0",
        created="2026-01-01T00:00:00Z",
        calls=0,
        checks=checks,
        state=overall(checks),
    )
    (folder / CERTIFICATE_FILE).write_bytes(made.model_copy(update=changes).sealed().to_bytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "model.safetensors").write_bytes(b"weights")
    (made / "config.json").write_text("{}")
    (made / "chat_template.jinja").write_text("{{ messages }}")
    return made


def test_a_model_that_was_never_audited_is_refused_with_the_command_to_run(folder: Path) -> None:
    with raises_naming(UserError, "certificate", "audit reward", f"--weights {folder}", "--pairs"):
        require_passed(folder, force=False)
    assert require_passed(folder, force=True).startswith("forced, although")


def test_a_model_that_passed_is_let_through(folder: Path) -> None:
    certify(folder)
    assert_names(require_passed(folder, force=False), "passed")


def test_an_audit_on_four_topics_is_no_pass_whatever_it_says(folder: Path) -> None:
    certify(folder, benchmark={"topics": 4})
    with raises_naming(UserError, "4 topics", 35):
        require_passed(folder, force=False)


@pytest.mark.parametrize("state", ["inconclusive", "fail", "not_measured"])
def test_a_model_with_a_check_that_does_not_pass_is_refused_by_its_name(
    folder: Path, state: str
) -> None:
    certify(folder, states={"key:refusal": state})
    with raises_naming(UserError, "(key:refusal)"):
        require_passed(folder, force=False)
    assert "key:refusal" in require_passed(folder, force=True)


@pytest.mark.parametrize("name", ["model.safetensors", "chat_template.jinja", "config.json"])
def test_an_audit_of_other_weights_or_of_another_template_does_not_count(
    folder: Path, name: str
) -> None:
    certify(folder)
    (folder / name).write_bytes(b"others")
    with raises_naming(UserError, CERTIFICATE_FILE, f"({name} changed"):
        require_passed(folder, force=False)


def test_a_certificate_copied_to_a_model_with_one_more_shard_does_not_count(folder: Path) -> None:
    certify(folder)
    (folder / "model-00002.safetensors").write_bytes(b"more")
    with raises_naming(UserError, CERTIFICATE_FILE, "(model-00002.safetensors changed"):
        require_passed(folder, force=False)


def test_a_scale_set_after_the_audit_does_not_undo_it(folder: Path) -> None:
    certify(folder)
    (folder / "reward_scale.json").write_text('{"shift": 1.0, "scale": 2.0}')
    require_passed(folder, force=False)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "pass"}', '{"state": true}'])
def test_a_certificate_that_cannot_be_read_is_no_pass(folder: Path, text: str) -> None:
    (folder / CERTIFICATE_FILE).write_text(text)
    with raises_naming(UserError, folder / CERTIFICATE_FILE, "certificate", "audit reward"):
        require_passed(folder, force=False)


def test_the_command_probes_a_model_and_an_untrained_one_fails(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    made = tmp_path / "reward"
    AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1).save_pretrained(made)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(made)
    call = ["reward", "--weights", str(made), "--pairs", str(toy_pairs), "--json"]
    ran = CliRunner().invoke(audit, [*call, "--out", str(tmp_path / "run")])
    assert ran.exit_code == 2, ran.output
    printed: dict[str, Any] = json.loads(ran.stdout)
    stored = Certificate.from_bytes((made / CERTIFICATE_FILE).read_bytes(), CERTIFICATE_FILE)
    assert stored.state == printed["state"] == "fail"
    assert stored.run == RunReader(tmp_path / "run").digests()
    states = {check["name"]: check["state"] for check in printed["checks"]}
    assert {check.name: check.state for check in stored.checks} == states
    assert (printed["coverage"]["scored"], printed["topics"]) == (8, 4)
    assert printed["method"]["settings"]["texts"] == 1
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= set(stored.judge.described)
    assert states["padding"] == "pass"
    with raises_naming(UserError, "fail", "key:refusal", "certificate"):
        require_passed(made, force=False)
