"""A reward model drives nothing before the probes of its own weights pass."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from typer.testing import CliRunner

from evenhand.cli.audit import audit
from evenhand.errors import UserError
from evenhand.training.gate import record, require_passed

PASSED = {"passed": True, "prefers": [], "topics": 60}
FAILED = {"passed": False, "prefers": ["key:refusal"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "model.safetensors").write_bytes(b"weights")
    (made / "config.json").write_text("{}")
    (made / "chat_template.jinja").write_text("{{ messages }}")
    return made


def test_a_model_that_was_never_probed_is_refused_with_the_command_to_run(folder: Path) -> None:
    with pytest.raises(
        UserError, match=f"not been probed.*audit reward --weights {folder} --pairs"
    ):
        require_passed(folder, force=False)
    assert require_passed(folder, force=True).startswith("forced, although")


def test_a_model_that_passed_is_let_through(folder: Path, tmp_path: Path) -> None:
    record(folder, tmp_path, PASSED)
    assert require_passed(folder, force=False) == "the reward model passed its probes"


def test_probes_on_four_topics_are_no_pass_whatever_they_say(folder: Path, tmp_path: Path) -> None:
    record(folder, tmp_path, PASSED | {"topics": 4})
    with pytest.raises(UserError, match="probed on 4 topics, and 35 are the least"):
        require_passed(folder, force=False)


def test_a_model_with_an_open_check_is_refused_by_its_name(folder: Path, tmp_path: Path) -> None:
    record(folder, tmp_path, PASSED | {"passed": False, "open": ["key:refusal"]})
    with pytest.raises(UserError, match="not shown to be sound: key:refusal"):
        require_passed(folder, force=False)


def test_a_model_that_failed_is_refused_with_what_it_prefers(folder: Path, tmp_path: Path) -> None:
    record(folder, tmp_path, FAILED)
    with pytest.raises(UserError, match="failed its probes: key:refusal"):
        require_passed(folder, force=False)
    assert "key:refusal" in require_passed(folder, force=True)


@pytest.mark.parametrize("name", ["model.safetensors", "chat_template.jinja", "config.json"])
def test_probes_of_other_weights_or_of_another_template_do_not_count(
    folder: Path, tmp_path: Path, name: str
) -> None:
    record(folder, tmp_path, PASSED)
    (folder / name).write_bytes(b"others")
    with pytest.raises(UserError, match=f"of another model \\({name} changed"):
        require_passed(folder, force=False)


def test_probes_copied_to_a_model_with_one_more_shard_do_not_count(
    folder: Path, tmp_path: Path
) -> None:
    record(folder, tmp_path, PASSED)
    (folder / "model-00002.safetensors").write_bytes(b"more")
    with pytest.raises(UserError, match=r"model-00002\.safetensors changed"):
        require_passed(folder, force=False)


def test_a_scale_set_after_the_probes_does_not_undo_them(folder: Path, tmp_path: Path) -> None:
    record(folder, tmp_path, PASSED)
    (folder / "reward_scale.json").write_text('{"shift": 1.0, "scale": 2.0}')
    require_passed(folder, force=False)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"passed": true}', '{"passed": "yes"}'])
def test_probes_that_cannot_be_read_are_no_pass(folder: Path, text: str) -> None:
    (folder / "probes.json").write_text(text)
    with pytest.raises(UserError, match="cannot be read"):
        require_passed(folder, force=False)


def test_the_record_knows_the_pairs_it_was_made_with(
    folder: Path, tmp_path: Path, toy_pairs: Path
) -> None:
    other = shutil.copytree(toy_pairs, tmp_path / "other")
    first = json.loads(record(folder, toy_pairs, PASSED).read_text())["pairs_sha256"]
    assert json.loads(record(folder, other, PASSED).read_text())["pairs_sha256"] == first
    next(other.rglob("*.parquet")).write_bytes(b"changed")
    assert json.loads(record(folder, other, PASSED).read_text())["pairs_sha256"] != first


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
    stored = json.loads((made / "probes.json").read_text())
    failed = [check["name"] for check in printed["checks"] if check["state"] == "fail"]
    assert stored["prefers"] == failed != []
    assert (printed["coverage"]["scored"], printed["topics"]) == (8, 4)
    assert printed["method"]["settings"]["texts"] == 1
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= set(stored["model"])
    padding = next(check for check in stored["checks"] if check["name"] == "padding")
    assert padding["state"] == "pass"
    with pytest.raises(UserError, match="failed its probes"):
        require_passed(made, force=False)
