"""The card of a trained model says what was done, what was found and what is not known."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenhand.core.errors import UserError
from evenhand.training import cards
from evenhand.training.probes import CERTIFICATE_FILE
from evenhand.training.recipes import RewardRecipe
from tests.errors import assert_names, raises_naming

UNMEASURED = "Not measured yet"
CHANGE = {
    "name": "s_amb",
    "before": 0.2,
    "after": 0.125,
    "difference": -0.075,
    "low": -0.1,
    "high": -0.05,
    "p": 0.0001,
    "p_holm": 0.0004,
    "n": 600,
    "clusters": 20,
}
AUDIT = {
    "state": "fail",
    "checks": [
        {"name": "accuracy", "bar": "above 0.5", "state": "pass", "estimate": 0.875},
        {"name": "key:refusal", "bar": "at most 0.1", "state": "fail", "estimate": None},
    ],
}


def _record(reward: Path | None = None) -> dict[str, Any]:
    return {
        "stage": "reward",
        "recipe": RewardRecipe().describe(),
        "versions": {"trl": "1.16.0"},
        "base": {"folder": "/home/someone/runs/sft/model", "sha256": "ab" * 32},
        "reward_model": None if reward is None else {"folder": str(reward), "sha256": "cd" * 32},
        "world_size": 2,
        "metrics": {"loss": 0.123456},
    }


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "small-hf"
    folder.mkdir()
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Small\n")
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def _rows(text: str) -> set[tuple[str, ...]]:
    """The rows of all tables of a card."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return {tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines}


def _head(model: Path) -> dict[str, Any]:
    text = (model / "README.md").read_text()
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def _write(model: Path, stage: str, base: Path, pairs: Path, **more: Any) -> str:
    cards.write_model_card(model, stage=stage, base=base, pairs=pairs, record=_record(**more))
    return (model / "README.md").read_text()


def test_a_card_names_base_licence_data_referee_and_prompts(
    model: Path, base: Path, toy_pairs: Path
) -> None:
    text = _write(model, "sft", base, toy_pairs)
    head = _head(model)
    assert head["license"] == "apache-2.0"
    assert head["base_model"] == "small-hf"
    assert head["datasets"] == [toy_pairs.name]
    assert head["pipeline_tag"] == "text-generation"
    assert ("age", "12", "4") in _rows(text)
    assert ("profession", "12", "4") in _rows(text)
    assert "Referee: scripted" in text
    assert f"`rldf/debater@1`: sha256 `{'0' * 64}`" in text
    assert UNMEASURED in text
    assert "paper 002, 4.1" in text, "each number stands with its source"
    assert "loss 0.1235" in text


def test_hub_readers_accept_the_head(model: Path, base: Path, toy_pairs: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    (model / CERTIFICATE_FILE).write_text(json.dumps(AUDIT))
    _write(model, "reward", base, toy_pairs)
    read = hub.ModelCard.load(model / "README.md").data
    assert read.library_name == "transformers"
    assert read.pipeline_tag == "text-classification"
    (result,) = read.eval_results
    assert (result.metric_type, result.metric_value) == ("accuracy", 0.875)


def test_probes_that_failed_are_said_in_the_card_of_the_reward_model_and_of_what_it_drove(
    tmp_path: Path, model: Path, base: Path, toy_pairs: Path
) -> None:
    assert_names(_write(model, "reward", base, toy_pairs), "not audited")
    (model / CERTIFICATE_FILE).write_text(json.dumps(AUDIT))
    cards.rewrite(model)
    driven = tmp_path / "driven"
    driven.mkdir()
    of_policy = _write(driven, "rloo", base, toy_pairs, reward=model)
    for text in ((model / "README.md").read_text(), of_policy):
        assert "**not passed**" in text
        assert ("key:refusal", "at most 0.1", "not known", "fail") in _rows(text)
    assert "model-index" not in _head(driven), "the accuracy is that of another model"


def test_a_card_does_not_say_where_folders_lie_on_this_machine(
    model: Path, base: Path, toy_pairs: Path
) -> None:
    _write(model, "sft", base, toy_pairs)
    shipped = "".join(file.read_text() for file in model.iterdir())
    assert "/home/someone" not in shipped
    assert str(base) not in shipped
    assert "folder sft" in shipped


def test_measurements_before_and_after_come_first_with_the_guardrails_on_top(
    tmp_path: Path, model: Path, base: Path, toy_pairs: Path
) -> None:
    _write(model, "ppo", base, toy_pairs)
    empty = {**CHANGE, "difference": None, "n": 0}
    accuracy = "accuracy fell: -0.100"
    bbq = {
        "guardrails": [accuracy],
        "primary": [CHANGE],
        "before": {"run": "a"},
        "categories": [{"category": "Age", "s_amb": CHANGE}, {"category": "SES", "s_amb": empty}],
    }
    undefined = {**CHANGE, "difference": None, "undefined": "0 rows"}
    fell_text = "language-model score fell: -3.0"
    fell = {
        "name": "lms",
        "state": "violated",
        "says": {"code": "guardrail.worse", "values": {}, "text": fell_text},
    }
    may = {"name": "ss_distance", "state": "inconclusive", "says": "ss may have moved"}
    likelihood = {
        "sets": [
            {"benchmark": "crows_pairs", "primary": [{**CHANGE, "name": "stereotype"}],
             "guardrails": [fell, may]},
            {"benchmark": "stereoset", "primary": [undefined], "guardrails": [],
             "groups": {"task": {"intersentence": [CHANGE]}}},
        ],
    }  # fmt: skip
    for name, found in (("bbq", bbq), ("likelihood", likelihood)):
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
        cards.renew(model, [tmp_path / f"{name}.json"])
    text = (model / "README.md").read_text()
    row = ("0.200", "0.125", "-0.075", "-0.100 to -0.050", "<0.001 (Holm)", "600")
    rows = _rows(text)
    assert ("s_amb", *row) in rows
    assert ("crows_pairs, stereotype", *row) in rows
    assert ("Age, s_amb", *row) in rows
    assert "SES" not in text, "nothing was compared there"
    assert ("stereoset, s_amb", "", "", "undefined: 0 rows", "", "", "") in rows
    group = "stereoset, task, intersentence, s_amb"
    assert (group, *row) in rows
    assert f"guardrail crossed**: crows_pairs: {fell_text}" in text
    assert "may have moved" not in text, "it is not shown"
    assert text.index(f"guardrail crossed**: {accuracy}") < text.index("| s_amb |")
    assert text.index("| s_amb |") < text.index("## Data")
    assert UNMEASURED not in text


def test_what_is_no_comparison_and_what_is_no_model_are_refused(
    tmp_path: Path, model: Path, base: Path, toy_pairs: Path
) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    with raises_naming(UserError, base, "card.json"):
        cards.rewrite(base)
    _write(model, "sft", base, toy_pairs)
    before = (model / "README.md").read_text()
    with raises_naming(UserError, "other.json", "evenhand compare"):
        cards.renew(model, [tmp_path / "other.json"])
    with raises_naming(UserError, "none.json", "Errno 2"):
        cards.renew(model, [tmp_path / "none.json"])
    assert (model / "README.md").read_text() == before
