"""Runs in the form of other tools: what they open, and what must not be read into it."""

import csv
import json
import math
import zlib
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.experiments.exchange import ExportResult, export
from evenhand.findings.report import report
from evenhand.instruments import DataFolder, instrument_of
from evenhand.instruments.bbq.answers import with_answers
from evenhand.methods import named
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader
from evenhand.views.export import FORMS
from evenhand.views.export.spreadsheet import cell
from tests.cli.conftest import Run
from tests.errors import assert_names, raises_naming
from tests.experiments.packs.eee_fields import Record
from tests.interop.exporting import (
    KEPT,
    Opened,
    answered,
    exported,
    imported,
    made,
    opened,
    reported,
    source_of,
    written,
)
from tests.interop.inspect_fields import Header, Listed, Sample
from tests.interop.logs import records_of

RECORDED = Path(__file__).parents[2] / "recorded/qwen2.5-coder-1.5b"
NOWHERE = DataFolder(local=None, cache=Path("/nowhere"))  # no data are needed
TAKEN = st.lists(st.sampled_from([0, 1, 2, None]), min_size=12, max_size=12)


def _drawn(records: pl.DataFrame) -> pl.DataFrame:
    """Twelve records, as `logs.py` picks them."""
    return pl.DataFrame(records_of(records), schema=records.schema)


@settings(max_examples=4)
@given(TAKEN.filter(any), st.integers(0, 9), st.sampled_from(["inspect", "lm-eval"]))
def test_an_export_that_is_imported_has_the_scores_of_its_run_to_the_bit(
    records: pl.DataFrame,
    tmp_path_factory: pytest.TempPathFactory,
    taken: list[int | None],
    seed: int,
    form: str,
) -> None:
    """Whatever was answered, and in whatever order the items were asked."""
    place = tmp_path_factory.mktemp("trip")
    first = made(source_of(answered(_drawn(records), taken), seed), place / "first")
    stored = with_answers(records, exported(first, records, form, place / "log"))
    again = imported(stored, place / "again")
    before, after = reported(first), reported(again)
    assert after.estimates == before.estimates
    assert after.groups == before.groups
    assert after.with_masked == before.with_masked
    assert (after.coverage.n, after.coverage.scored) == (12, 12 - taken.count(None))
    assert stored.origin is not None
    assert (stored.origin.tool, stored.origin.version) == ("evenhand", "0.0.1")


def test_an_item_without_an_answer_is_never_an_incorrect_one(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    def say(request: ModelRequest) -> str:
        """One in three cannot be read, also when it is asked again."""
        words = request.messages[1].content.partition("\nA. ")[0]
        drawn = zlib.crc32(words.encode())
        return "no idea" if drawn % 3 == 0 else json.dumps({"answer": "AB"[drawn % 2]})

    wrong_gold = records.filter("masked").head(2)
    drawn = pl.concat([_drawn(records), wrong_gold])
    run = made(source_of(drawn), tmp_path / "run", named("default")(), say)
    rows = RunReader(run).results().collect().to_dicts()
    failed = {row["item_id"] for row in rows if row["status"] != "answered"}
    log = Opened(exported(run, records, "inspect", tmp_path / "log"))
    assert 0 < len(failed) < len(rows)
    values = []
    for whole, short in zip(log.samples, log.listed, strict=True):
        assert (whole["id"], whole["scores"] is None) == (short["id"], short["scores"] is None)
        if whole["metadata"]["evenhand"]["item_id"] in failed:
            assert whole["scores"] is None
            assert whole["error"]["message"].startswith("unreadable_reply")
            assert short["error"]
            assert whole["output"]["choices"] == []
        else:
            assert "error" not in whole
            values.append(whole["scores"]["choice"]["value"])
    tags = [{tag["name"]: tag["value"] for tag in row["tags"]} for row in rows]
    kept = [(row["choice"], tag) for row, tag in zip(rows, tags, strict=True)
            if row["status"] == "answered"]  # fmt: skip
    wrong = sum(choice != int(tag["gold"]) and tag["masked"] == "0" for choice, tag in kept)
    unsure = sum(tag["masked"] == "1" for _, tag in kept)
    assert values.count("I") == wrong
    assert sum(isinstance(one, float) and math.isnan(one) for one in values) == unsure
    stored = with_answers(records, tmp_path / "log/log.eval").records
    item = pl.format("{}/{}", "category", "example_id")
    said = dict(stored.select(item.alias("item"), "answer").iter_rows())
    for row in rows:  # also of records whose gold is wrong, and whose score is NaN
        assert said[row["item_id"]] == (row["text"] or " ")


def _kept(name: str, form: str, out: Path) -> ExportResult:
    return export(str(KEPT / name), out, NOWHERE, form)


def test_an_export_has_the_fields_that_inspect_reads_and_the_numbers_of_the_report(
    tmp_path: Path,
) -> None:
    _kept("rtp/stardtox", "inspect", tmp_path / "a.eval")
    reader, log = RunReader(KEPT / "rtp/stardtox"), Opened(tmp_path / "a.eval")
    header = Header.model_validate(log.header)
    assert log.start == {key: log.header[key] for key in ("version", "eval", "plan")}
    samples = [Sample.model_validate(one) for one in log.samples]
    listed = [Listed.model_validate(one) for one in log.listed]
    assert (
        [one.id for one in samples] == [one.id for one in listed] == header.eval.dataset.sample_ids
    )
    assert [f"samples/{one.id}_epoch_1.json" for one in samples] == [
        name for name in log.names if name.startswith("samples/")
    ]
    assert header.eval.metadata["made_by"].startswith("evenhand ")
    found = report(instrument_of(reader), reader)
    for one, result in zip(found.estimates, header.results.scores, strict=True):
        told = {name: metric.value for name, metric in result.metrics.items()}
        parts = {"estimate": one.value, "low": one.low, "high": one.high}
        assert told == {name: value for name, value in parts.items() if value is not None}
        having = sum(one.name in (sample.scores or {}) for sample in samples)
        assert (result.scored_samples or 0) == having
        assert result.unscored_samples in (None, len(samples) - having)
    totals = reader.totals()
    used = header.stats.model_usage.values()
    assert sum(one.input_tokens for one in used) == totals.prompt_tokens
    assert sum(one.output_tokens for one in used) == totals.completion_tokens
    assert header.results.completed_samples == totals.answered
    # Every word of every agent, in its order.
    turns = reader.turns().collect().to_dicts()
    for one in log.samples[:20]:
        mine = [
            turn for turn in turns if turn["position"] == one["metadata"]["evenhand"]["position"]
        ]
        said = [(*(each["content"] for each in turn["messages"]), *turn["texts"]) for turn in mine]
        assert [message["content"] for message in one["messages"]] == [*chain(*said)]
        assert {message["metadata"]["agent"] for message in one["messages"]} == {
            turn["role"] for turn in mine
        }


def test_the_same_run_gives_the_same_bytes(records: pl.DataFrame, tmp_path: Path) -> None:
    run = made(source_of(answered(_drawn(records), [0, 1, None] * 4)), tmp_path / "run")
    first, again = opened(run, records), opened(run, records)
    for form in FORMS:
        one, other = written(first, form, tmp_path / "a"), written(again, form, tmp_path / "b")
        assert one.relative_to(tmp_path / "a") == other.relative_to(tmp_path / "b")
        assert one.read_bytes() == other.read_bytes()


def test_the_hub_and_every_eval_ever_read_what_is_exported(tmp_path: Path) -> None:
    (hub,) = _kept("bbq/cot", "hf", tmp_path / "repo").files
    assert hub == str(tmp_path / "repo/.eval_results/evenhand.yaml")
    entries = parse_eval_result_entries(yaml.safe_load(Path(hub).read_text()))
    reader = RunReader(KEPT / "bbq/cot")
    found = report(instrument_of(reader), reader)
    main = [found[measure.name].value for measure in found.instrument.primary()]
    assert [one.value for one in entries] == main
    first = Path(hub).read_bytes()
    with raises_naming(UserError, ".eval_results/evenhand.yaml", "--out"):
        _kept("overcorrection/default", "hf", tmp_path / "repo")
    assert Path(hub).read_bytes() == first
    (file,) = _kept("bbq/cot", "eee", tmp_path / "eee").files
    record = Record.model_validate_json(Path(file).read_bytes())
    assert record.evaluation_results[0].score_details.score == found.estimates[0].value
    assert record.source_metadata.additional_details["run"] == "runs/cot"  # no path of this disk


@pytest.mark.parametrize(
    ("text", "held"),
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1"),
     ("\r=1", "'=1"), ("\n=1", "'\n=1"), ("  =1", "'  =1"), ("\u200b=1", "'=1"), ("＝1", "'＝1"),
     ("\u3000=1", "'\u3000=1"), ("\xa0+1", "'\xa0+1"), ("﹦1", "'﹦1"),
     ("'=1", "'=1"), ("a=1", "a=1"), ("", ""), ("The old man", "The old man")],
)  # fmt: skip
def test_no_text_in_a_cell_can_be_a_formula(text: str, held: str) -> None:
    assert cell(text) == held


def test_where_an_endpoint_is_stays_at_home(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    export(str(RECORDED / "frontier/self_consistency"), path, NOWHERE, "csv")
    assert "(an address)" in path.read_text()
    assert "127.0.0.1" not in path.read_text()


@pytest.mark.parametrize(
    ("out", "facts"),
    [
        (Path("s3://bucket/items.csv"), ("s3:/bucket/items.csv", "--out")),
        (Path(), ("a folder", "--to csv")),
    ],
)
def test_an_address_and_a_folder_are_no_place_for_a_file(out: Path, facts: tuple[str, ...]) -> None:
    with raises_naming(UserError, *facts):
        export(str(KEPT / "bbq/cot"), out, NOWHERE, "csv")


def test_a_cell_is_no_longer_than_a_spreadsheet_holds() -> None:
    assert len(cell("=" + "x" * 40_000)) == 32_767
    assert cell("x" * 32_767) == "x" * 32_767


def test_a_table_has_numbers_as_numbers_and_what_is_missing_as_nothing(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    hostile = answered(_drawn(records), [0, 1, None] * 4).with_columns(
        question=pl.lit("=HYPERLINK(1)"), against=pl.lit("@x")
    )
    run = made(source_of(hostile), tmp_path / "run")
    path = exported(run, records, "csv", tmp_path / "table")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")  # Excel takes it for UTF-8
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file, quoting=csv.QUOTE_MINIMAL))
    assert len(rows) == 12
    for row, kept in zip(rows, RunReader(run).results().collect().to_dicts(), strict=True):
        assert row["prompt"] == "'=HYPERLINK(1)"
        assert row["tag.group"] == "'@x"
        assert row["text"] == (kept["text"] or "")
        assert row["choice"] == ("" if kept["choice"] is None else str(kept["choice"]))
        assert (row["measure.accuracy"] == "") == (row["status"] == "failed")
        assert row["measure.s_amb"] in ("", "0.0", "1.0", "-1.0")
        assert (row["measure.s_amb"] != "") == (
            row["status"] == "answered" and row["tag.condition"] == "ambig"
        )
    assert {row["measure.s_amb"] for row in rows} >= {"-1.0"}


def test_what_a_run_lacks_is_said_with_the_next_command(tmp_path: Path) -> None:
    def refused(name: str, form: str, out: str, *facts: str) -> None:
        with raises_naming(UserError, *facts):
            _kept(name, form, tmp_path / out)

    refused("squad/default", "lm-eval", "a", "of bbq", "of squad", "--out items.csv")
    refused("bbq/cot", "inspect", "a.json", "a.json", ".eval", f"--out {tmp_path / 'a.eval'}")
    (tmp_path / "a.csv").write_text("mine")
    refused("bbq/cot", "csv", "a.csv", "a.csv", "--out")
    refused("bbq/cot", "hf", "a.csv", "a.csv", "--to hf", "a folder")
    assert (tmp_path / "a.csv").read_text() == "mine"
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs/pairs.json").write_text("{}")
    with raises_naming(
        UserError, "pairs", "datasets.load_dataset", "hf upload", "--repo-type dataset"
    ):
        export(str(tmp_path / "pairs"), tmp_path / "b", NOWHERE, "hf")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_run_over_other_questions_than_bbqs_is_not_exported_as_bbq(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    with raises_naming(UserError, "'Age/0'", "--to csv"):
        exported(KEPT / "bbq/cot", records, "inspect", tmp_path / "log")


def test_the_command_says_what_it_wrote_and_that_a_run_is_not_finished(
    evenhand: Run, tmp_path: Path
) -> None:
    run = str(KEPT / "bbq/unfinished")
    ran = evenhand("runs", "export", run, "--out", "items.csv", "--json")
    assert ran.returncode == 2, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    size = (tmp_path / "items.csv").stat().st_size
    assert said["files"] == {"items.csv": size}
    assert (said["items"], said["not_run"]) == (150, 82)
    assert_names(ran.stderr, "82 items")
    ran = evenhand("runs", "export", run, "--to", "xlsx", "--out", "items.xlsx")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "'xlsx'", "inspect, eee, hf", "messages, csv")
