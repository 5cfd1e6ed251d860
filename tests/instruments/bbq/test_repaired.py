"""Recorded answers of a real model, kept where the context decides the question."""

import gzip
import json
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling, sample
from evenhand.methods import named
from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, endpoint, evenhand

__all__ = ["endpoint", "evenhand"]  # the fixtures

# As on the page of results: before and after, answers fixed and broken, of 1,192.
RESULTS = {
    "race": ((0.4195, 0.0117), (0.1846, 0.0084), (243, 0), (0, 9)),
    "arc": ((0.6074, 0.0185), (0.2819, 0.0117), (351, 0), (0, 8)),
}


def _write_answers(data: Path, cache: Path, kind: str, to: Path) -> None:
    """Write the answers to the default sample of the six categories that were recorded."""
    drawn = sample(BbqData(local=data, cache=cache).records(), BbqSampling())
    wanted = set(drawn.select("category", "example_id").iter_rows())
    with to.open("w") as out:
        for file in sorted((data / "bbq/results_unifiedqa").glob("preds_*.jsonl.gz")):
            category = file.name.removeprefix("preds_").removesuffix(".jsonl.gz")
            with gzip.open(file, "rt") as lines:
                rows = [json.loads(line) for line in lines]
            for row in rows:
                if (category, row["example_id"]) in wanted:
                    answer = {
                        "category": category,
                        "example_id": row["example_id"],
                        "answer": row[f"unifiedqa-t5-11b_pred_{kind}"],
                    }
                    out.write(f"{json.dumps(answer)}\n")


@pytest.mark.parametrize("kind", RESULTS)
def test_the_classifier_takes_unsupported_answers_of_unifiedqa_away_without_a_call(
    evenhand: Run, data_folder: Path, tmp_path: Path, kind: str
) -> None:
    _write_answers(data_folder, tmp_path, kind, tmp_path / "answers.jsonl")
    remedy = ("--method", "detect_first", "--set", "choice_brain=rule")
    places = {"EVENHAND_DATA": str(data_folder), "EVENHAND_BASE_URL": "http://127.0.0.1:9/v1"}
    first = ("measure", "bbq", "--answers", "answers.jsonl", "--out", "before")
    assert evenhand(*first, **places).returncode == 0
    second = ("measure", "bbq", "--answers", "before", *remedy, "--out", "after")
    ran = evenhand(*second, **places)
    assert ran.returncode == 0, ran.stderr
    compared = compare(Bbq(), RunReader(tmp_path / "before"), RunReader(tmp_path / "after"))
    assert compared.repairs
    assert [difference.part for difference in compared.differ] == ["method"]
    unsupported, bias, fixed, broken = RESULTS[kind]
    for name, numbers in (("unsupported_attribution", unsupported), ("s_amb", bias)):
        change = compared[name]
        assert (change.before, change.after) == pytest.approx(numbers, abs=0.00006), name
    ambiguous, sure = (compared.flips[f"accuracy_{c}"] for c in ("ambiguous", "disambiguated"))
    assert (ambiguous.fixed, ambiguous.broken) == fixed
    assert (sure.fixed, sure.broken) == broken
    assert compared.verdict.state == "detected"


def test_a_method_that_would_ignore_stored_answers_is_refused(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "answers.jsonl").write_text(
        '{"category": "Age", "example_id": 0, "answer": "The grandson"}\n'
    )
    asked = ("--answers", "answers.jsonl", "--method", "self_consistency", "--out", "run")
    ran = evenhand("measure", "bbq", *asked, EVENHAND_DATA=str(data_folder))
    assert ran.returncode == 1
    assert "self_consistency" in ran.stderr
    assert not (tmp_path / "run").exists()


def test_in_python_stored_answers_are_repaired_without_a_model_and_a_null_stays_missing(
    data_folder: Path, tmp_path: Path
) -> None:
    lines = [{"category": "Age", "example_id": number, "answer": None if number == 1 else 0}
             for number in range(8)]  # fmt: skip
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    before, after = tmp_path / "before", tmp_path / "after"
    remedy = named("detect_first")(choice_brain="rule")
    eh.measure("bbq", out=before, options={"answers": tmp_path / "a.jsonl"}, data=data_folder)
    eh.measure("bbq", out=after, options={"answers": before}, method=remedy, data=data_folder)
    for run in (before, after):
        coverage = report(Bbq(), RunReader(run)).coverage
        assert (coverage.n, coverage.scored) == (8, 7)
    stopped = RunReader(after).results().collect()["stopped"]
    assert {"undecided", "single_pass"} >= set(stopped.drop_nulls())
