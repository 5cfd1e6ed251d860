"""`evenhand runs`: what lies in a folder, what a run cost, and refusals that lead on."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Run
from tests.errors import assert_names

PRICES = """
[models.pretended]
per_million_prompt_tokens = 1.0
per_million_completion_tokens = 1.0
"""


@pytest.fixture
def ran(evenhand: Run, tmp_path: Path) -> Run:
    """Two runs of two items each, one within a folder of the other's siblings."""
    lines = [json.dumps({"id": f"p{n}", "prompt": f"Describe {n}."}) for n in range(2)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(lines))
    (tmp_path / "prices.toml").write_text(PRICES)
    for out in ("runs/one", "runs/deep/two"):
        done = evenhand("mitigate", "prompts.jsonl", "--method", "default", "-o", out)
        assert done.returncode == 0, done.stderr
    return evenhand


def test_the_list_holds_every_run_below_with_what_it_is_and_how_far(ran: Run) -> None:
    listed = json.loads(ran("runs", "list", "--json").stdout)
    assert {line["run"] for line in listed} == {"runs/one", "runs/deep/two"}
    for line in listed:
        assert (line["kind"], line["method"], line["model"]) == ("jsonl", "default", "pretended")
        assert (line["done"], line["planned"], line["cost"]) == (2, 2, None)
    shown = ran("runs", "list", "runs/deep").stdout
    assert "2 of 2" in shown
    assert "runs/one" not in shown


def test_the_list_and_the_run_say_what_was_spent(ran: Run) -> None:
    shown = json.loads(ran("runs", "show", "runs/one", "--prices", "prices.toml", "--json").stdout)
    tokens = shown["prompt_tokens"] + shown["completion_tokens"]
    assert shown["money"] == {"cost": pytest.approx(tokens / 1e6), "currency": "USD"}
    listed = json.loads(ran("runs", "list", "runs/one", "--prices", "prices.toml", "--json").stdout)
    assert listed[0]["cost"] == pytest.approx(tokens / 1e6)
    assert_names(ran("runs", "show", "runs/one").stdout, "cost:", "(--prices FILE)")


def test_prices_of_the_config_are_used_without_being_named(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text(PRICES.replace("[models", "[prices.models"))
    assert " USD" in ran("runs", "show", "runs/one").stdout


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(ran: Run, tmp_path: Path) -> None:
    (tmp_path / "runs/one/run.json").write_text("{}")
    listed = {line["run"]: line for line in json.loads(ran("runs", "list", "--json").stdout)}
    assert_names(listed["runs/one"]["problem"], "runs/one/run.json", "record")
    assert listed["runs/deep/two"]["problem"] is None
    assert_names(" ".join(ran("runs", "list").stdout.split()), "runs/one/run.json", "record")


def test_an_empty_folder_says_how_a_run_begins(evenhand: Run) -> None:
    assert_names(evenhand("runs", "list").stdout, "measure bbq", "--out")


def test_an_item_that_is_not_there_is_answered_with_a_command_that_works(ran: Run) -> None:
    refused = ran("runs", "show", "runs/one", "--item", "0")
    assert refused.returncode == 1
    said = " ".join(refused.stderr.split())
    assert_names(said, "'0'", "p0")
    command = shlex.split(said.partition("all of them: evenhand ")[2])
    assert ran(*command).returncode == 0


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_csv_or_text_file_is_answered_with_what_to_give(
    evenhand: Run, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("prompt\nDescribe a nurse.\n")
    refused = evenhand("mitigate", name, "--out", "run")
    assert refused.returncode == 1
    assert_names(" ".join(refused.stderr.split()), name, '{"prompt":', "Parquet")


def test_a_status_that_cannot_be_read_or_is_of_the_future_tells_of_no_living_process(
    ran: Run, tmp_path: Path
) -> None:
    place = tmp_path / "runs/one/status.json"
    seen = {**json.loads(place.read_bytes()), "state": "running"}
    for garbage in (b"garbled", b"[]", b'{"state": "running"}', b'{"updated": "2026"}'):
        place.write_bytes(garbage)
        done = ran("runs", "status", "runs/one")
        assert done.returncode == 1
        assert_names(" ".join(done.stderr.split()), "status.json", "runs show runs/one")
        assert "Traceback" not in done.stderr
    place.write_text(json.dumps({**seen, "updated": "2099-01-01T00:00:00+00:00"}))
    shown = ran("runs", "status", "runs/one").stdout
    assert_names(" ".join(shown.split()), "future", "process")


def test_rows_of_a_table_with_the_same_id_are_told_apart_by_their_positions(
    evenhand: Run, tmp_path: Path
) -> None:
    table = pl.DataFrame({"prompt": ["Describe a nurse.", "And a boss."], "ticket": [7, 7]})
    table.write_parquet(tmp_path / "tickets.parquet")
    given = ("tickets.parquet", "--id-column", "ticket", "--method", "default", "-o", "runs/t")
    assert evenhand("mitigate", *given).returncode == 0
    refused = evenhand("runs", "show", "runs/t", "--item", "7")
    assert refused.returncode == 1
    assert_names(" ".join(refused.stderr.split()), "2 items", "'7'", "0, 1", "--position 0")
    shown = evenhand("runs", "show", "runs/t", "--item", "7", "--position", "1", "--json")
    turns = json.loads(shown.stdout)["turns"]
    assert {turn["position"] for turn in turns} == {1}


def test_an_empty_input_ends_with_code_1_and_words(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    done = evenhand("mitigate", "none.jsonl", "--method", "default", "-o", "runs/none")
    assert done.returncode == 1
    assert_names(" ".join(done.stderr.split()), "none.jsonl", "no items")
