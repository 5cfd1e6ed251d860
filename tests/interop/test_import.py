"""Logs of other tools, scored as our own answers are."""

import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand import interop as foreign
from evenhand.core.errors import CorruptRun, UserError
from evenhand.instruments.bbq.answers import with_answers
from tests.cli.conftest import Run
from tests.errors import assert_names, raises_naming
from tests.interop.logs import inspect_log, lm_eval_line, records_of, sample, zipped

LETTERS = "ABCBACCABABC"  # an answer to each of the twelve records


def _samples(records: pl.DataFrame) -> list[dict[str, Any]]:
    return [sample(row, letter) for row, letter in zip(records_of(records), LETTERS, strict=True)]


def _measured(evenhand: Run, data: Path, *arguments: str) -> dict[str, Any]:
    ran = evenhand(*arguments, "--json", EVENHAND_DATA=str(data))
    assert ran.returncode in (0, 2), ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_log_of_inspect_gives_the_numbers_of_the_same_answers_in_a_file(
    evenhand: Run, records: pl.DataFrame, data_folder: Path, tmp_path: Path
) -> None:
    plain = [
        {"category": row["category"], "example_id": row["example_id"], "answer": "ABC".index(said)}
        for row, said in zip(records_of(records), LETTERS, strict=True)
    ]
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(one) + "\n" for one in plain))
    log = inspect_log(tmp_path / "log.eval", _samples(records))
    ours = _measured(evenhand, data_folder, "measure", "bbq", "--answers", "plain.jsonl", "--out",
                     "plain")  # fmt: skip
    theirs = _measured(evenhand, data_folder, "runs", "import", str(log), "--out", "theirs")
    for part in ("estimates", "groups", "coverage"):
        assert theirs["scores"][part] == ours["scores"][part]
    assert theirs["model"] == "openai/pretended"
    origin = theirs["source"]["origin"]
    assert (origin["tool"], origin["version"]) == ("inspect_ai", "0.3.285")
    compared = evenhand("compare", "plain", "theirs", "--json")
    assert compared.returncode == 0, compared.stderr
    picked = ("--items-from", "theirs", "--answered", "any", "--method", "always_unknown")
    again = _measured(evenhand, data_folder, "measure", "bbq", *picked, "--out", "again")
    assert again["source"]["items"] == 12
    assert evenhand("compare", "theirs", "again").returncode == 0


def test_a_question_without_an_answer_is_missing_and_not_left_out(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    first, second, third, *_ = rows = records_of(records)
    samples = [sample(first, None), sample(second, ""), sample(third, "A, B"),
               sample(rows[3], "A", error="a traceback"), sample(rows[4], "D"),
               sample(rows[5], "B"), sample(rows[5], "C", epoch=2)]  # fmt: skip
    stored = with_answers(records, inspect_log(tmp_path / "log.eval", samples))
    assert stored.records["answer"].to_list() == [" "] * 5 + [rows[5]["options"][1]]
    scored, lost = stored.notes
    assert_names(scored, 7, 6)
    assert_names(lost, 1, "'choice'")


def test_a_log_that_was_broken_off_says_so(records: pl.DataFrame, tmp_path: Path) -> None:
    header = {"eval": {"task": "bbq", "model": "m", "created": "", "dataset": {"samples": 40}}}
    log = inspect_log(tmp_path / "log.eval", _samples(records), status="cancelled",
                      invalidated=True, **header)  # fmt: skip
    status, invalidated, absent = with_answers(records, log).notes
    assert_names(status, "cancelled")
    assert_names(invalidated, "invalidated")
    assert_names(absent, "12 of 40")


def test_of_an_older_inspect_the_options_are_read_from_the_samples(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    row = records_of(records)[0]
    listed = sample(row, "B")
    del listed["choices"]
    header = {"status": "success", "eval": {"task": "bbq", "model": "m", "created": "",
                                            "dataset": {}}}  # fmt: skip
    members = {"header.json": header, "summaries.json": [listed],
               f"samples/{listed['id']}_epoch_1.json": {"choices": row["options"]}}  # fmt: skip
    log = zipped(tmp_path / "log.eval", {n: json.dumps(one).encode() for n, one in members.items()})
    assert with_answers(records, log).records["answer"].to_list() == [row["options"][1]]


def test_other_words_for_unknown_in_lm_eval_are_the_records_own_unknown(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    first, second, third, *_ = records_of(records)
    lines = [
        lm_eval_line(first, -3, -2, -4, -1),
        lm_eval_line(second, -3, -2, -4, -9),
        lm_eval_line(third, -1, -1, -1, -1),  # none is the highest
    ]
    file = tmp_path / "meta__llama" / "samples_bbq_2026-11-17T18-20-00.5.jsonl"
    file.parent.mkdir()
    file.write_text("".join(lines))
    stored = with_answers(records, file)
    unknown = first["options"][first["unknown"]]
    assert stored.records["answer"].to_list() == [unknown, second["options"][1], " "]
    assert stored.origin is not None
    assert (stored.origin.model, stored.origin.task) == ("meta__llama", "bbq")
    assert stored.origin.created == "2026-11-17T18:20:00.500000+00:00"


@pytest.mark.parametrize(
    "spoilt",
    [{"doc": []}, {"doc": {"category": "Age"}}, {"doc": {"category": "Age", "example_id": 1 << 70}},
     {"filtered_resps": []}, {"filtered_resps": [["x", "False"]]}, {"arguments": 3},
     {"arguments": {}}],
)  # fmt: skip
def test_a_line_of_another_shape_is_refused(
    records: pl.DataFrame, tmp_path: Path, spoilt: dict[str, Any]
) -> None:
    line = json.loads(lm_eval_line(records_of(records)[0], -3, -2, -4, -1)) | spoilt
    (tmp_path / "samples_bbq.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(UserError):
        with_answers(records, tmp_path / "samples_bbq.jsonl")


@pytest.mark.parametrize("told", [None, 3, {"ans0": 3}, {"ans0": ["x", "unknown"], "ans1": []}])
def test_other_words_for_unknown_are_no_answer_where_the_document_does_not_tell_which_it_is(
    records: pl.DataFrame, tmp_path: Path, told: Any
) -> None:
    row = records_of(records)[0]
    line = json.loads(lm_eval_line(row, -3, -2, -4, -1))
    line["doc"]["answer_info"] = told
    (tmp_path / "samples_bbq.jsonl").write_text(json.dumps(line) + "\n")
    said = with_answers(records, tmp_path / "samples_bbq.jsonl").records["answer"].to_list()
    assert said == [row["options"][0] if isinstance(told, dict) and "ans1" in told else " "]


def test_a_log_whose_questions_have_other_options_is_not_bbq(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    row = records_of(records)[0]
    other = sample(row, "A", choices=["The cook", *row["options"][1:]])
    with raises_naming(UserError, "1 questions", "log.eval", "Age/0"):
        with_answers(records, inspect_log(tmp_path / "log.eval", [other]))


@pytest.mark.parametrize("told", ["x", {}, {"model": "m"}, ["model"]])
def test_a_record_whose_origin_is_not_ours_is_refused_in_words(told: Any) -> None:
    assert foreign.Origin.of({}) is None
    with raises_naming(CorruptRun, "run.json", "answers"):
        foreign.Origin.of({"origin": told})


def test_an_instrument_that_reads_no_logs_says_so(evenhand: Run, tmp_path: Path) -> None:
    inspect_log(tmp_path / "log.eval", [])
    ran = evenhand(
        "runs", "import", "log.eval", "--instrument", "counterfactual", "--out", "theirs"
    )
    assert ran.returncode == 1
    assert_names(ran.stderr, "counterfactual", "bbq")


def test_a_log_of_another_task_says_what_can_be_scored(evenhand: Run, tmp_path: Path) -> None:
    header = {"eval": {"task": "inspect_evals/gpqa", "model": "m", "created": "", "dataset": {}}}
    inspect_log(tmp_path / "log.eval", [], **header)
    ran = evenhand("runs", "import", "log.eval", "--out", "theirs")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "log.eval", "'gpqa'", "bbq")
    (tmp_path / "plain.jsonl").write_text("{}\n")
    ran = evenhand("runs", "import", "plain.jsonl", "--out", "theirs")
    assert_names(
        " ".join(ran.stderr.split()), "plain.jsonl", "measure bbq", "--answers FILE", "--out"
    )


def _spoilt(data: bytes, how: str) -> bytes:
    at = data.index(b"header.json") + len(b"header.json") + 12  # within its compressed bytes
    if how == "a flipped bit":
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    if how == "cut":
        return data[: len(data) // 2]
    sizes = data.index(b"PK\x01\x02") + 24  # what the directory says of the first member's size
    claimed = b"\xff\xff\xff\x7f" if how == "a huge claim" else b"\x01\x00\x00\x00"
    return data[:sizes] + claimed + data[sizes + 4 :]


@pytest.mark.parametrize("how", ["a flipped bit", "cut", "a huge claim", "a small claim"])
def test_a_log_that_is_not_as_it_was_written_is_refused(tmp_path: Path, how: str) -> None:
    log = inspect_log(tmp_path / "log.eval", [])
    log.write_bytes(_spoilt(log.read_bytes(), how))
    with pytest.raises(UserError):
        foreign.read(log)


@pytest.mark.parametrize("listed", [{}, None, [{"epoch": 1}], [{"epoch": 1, "scores": 3}]])
def test_a_list_of_another_shape_is_refused(tmp_path: Path, listed: Any) -> None:
    with raises_naming(UserError, "log.eval", "inspect_ai 0.3"):
        foreign.read(inspect_log(tmp_path / "log.eval", listed))


def test_a_log_of_kilobytes_that_unfolds_to_gigabytes_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bomb.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", '{"eval": {}}')
        made.writestr("summaries.json", b"[" + b"[]," * 4_100_000 + b"1]")
    assert file.stat().st_size < 100_000
    with raises_naming(UserError, "bomb.eval", "summaries.json"):
        foreign.read(file)
