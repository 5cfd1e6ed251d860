"""A dry run asks nothing: no endpoint is there, and every number is worked out by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.cli.execution import _without_pilot
from evenhand.core import Item
from evenhand.experiments.dry_run import declared_calls
from evenhand.methods.build import build_method

NOBODY = "http://127.0.0.1:9/v1"  # nothing answers there
TEXT = Item(id="1", prompt="Who?")
CHOICE = Item(id="1", prompt="Who?", choices=("a", "b", "c"))
PRICES = """currency = "USD"
[models.mine]
per_million_prompt_tokens = 1.0
per_million_completion_tokens = 4.0
"""


def _run(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*words, "--dry-run", "--json", "--base-url", NOBODY])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("method", "settings", "item", "calls"),
    [
        ("default", [], TEXT, (1, 1)),
        ("stardtox", [], CHOICE, (2, 6)),
        ("stardtox", [], TEXT, (3, 9)),
        ("self_consistency", [], CHOICE, (5, 5)),
        ("self_consistency", ["calls=3"], CHOICE, (3, 3)),
        ("panel", ["rounds=3"], TEXT, (12, 12)),  # four personas
        ("rotated", [], CHOICE, (3, 3)),
        ("always_unknown", [], CHOICE, (0, 0)),
    ],
)
def test_the_calls_of_an_item_are_those_that_its_method_declares(
    method: str, settings: list[str], item: Item, calls: tuple[int, int]
) -> None:
    assert declared_calls(build_method(method, settings, None), item) == calls


def test_mitigate_is_priced_without_an_endpoint_and_leaves_no_folder(tmp_path: Path) -> None:
    """Two prompts whose first request has as many characters, at 4 to a token."""
    file, prices, out = tmp_path / "p.jsonl", tmp_path / "prices.toml", tmp_path / "run"
    file.write_text('{"prompt": "Who is at fault?"}\n{"prompt": "Who was the one?"}\n')
    prices.write_text(PRICES)
    found = _run(
        *("mitigate", str(file), "--method", "default", "--out", str(out)),
        *("--model", "mine", "--prices", str(prices), "--max-tokens", "100"),
    )
    assert found["calls_made"] == 0
    assert found["calls"] == [2, 2]
    [run] = found["runs"]
    assert (run["items"], run["completion_tokens"]) == (2, [200, 200])
    tokens = run["prompt_tokens"][0]
    prompt = "Who is at fault?"
    assert tokens >= 2 * len(prompt) / 4
    assert run["cost"] == pytest.approx([(tokens + 4 * 200) / 1e6] * 2)
    assert not out.exists()


def test_a_table_none_of_whose_rows_can_be_run_says_why_and_ends_with_code_2(
    tmp_path: Path,
) -> None:
    found = _run("dev", "reproduce", "rldf", "table4", "--out", str(tmp_path / "papers"), code=2)
    assert found["runs"] == []
    assert set(found["cannot_run"]) == {"model: st-rldf", "model: st-self"}
    assert all("--trained" in why for why in found["cannot_run"].values())


def test_runs_that_are_played_back_are_named_and_only_where_there_are_some(
    tmp_path: Path,
) -> None:
    found = _run("dev", "reproduce", "malibu", "figure5", "--out", str(tmp_path / "papers"))
    assert found["played_back"] == []
    assert sum(one["items"] for one in found["runs"]) > 0


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (["measure", "--pilot", "9", "--out", "x"], ["measure", "--out", "x"]),
        (["measure", "--pilot=9", "--out", "x"], ["measure", "--out", "x"]),
        (["measure", "--out", "x"], ["measure", "--out", "x"]),
    ],
)
def test_the_next_command_is_the_same_without_the_pilot(typed: list[str], kept: list[str]) -> None:
    assert _without_pilot(typed) == kept
