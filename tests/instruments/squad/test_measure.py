"""`evenhand measure squad` as a user runs it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.findings.scoring import outcomes_of
from evenhand.instruments.squad.instrument import Squad
from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback import replies
from tests.loopback.faulty import Fixed
from tests.loopback.http import Call, Line
from tests.loopback.process import in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

PUBLISHED = {
    "bert_single_google": (78.742, 81.775),
    "nlnet_single_msra": (75.828, 78.778),
    "bidaf_selfattn_elmo_single": (65.704, 67.876),
}


def _measured(run: Run, data: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    ran = run("measure", "squad", *arguments, "--json", EVENHAND_DATA=str(data), **environment)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def _official(report: dict[str, Any]) -> dict[str, Any]:
    return dict(report["scores"]["sections"]["as_others_print_it"]["rows"])


def _values(report: dict[str, Any]) -> dict[str, float]:
    return {e["name"]: e["value"] for e in report["scores"]["estimates"]}


def test_the_predictions_of_three_models_give_their_published_scores_and_are_compared(
    evenhand: Run, squad_folder: Path
) -> None:
    for name, published in PUBLISHED.items():
        file = squad_folder / f"squad_v2/model_predictions/{name}.json.gz"
        report = _measured(evenhand, squad_folder, "--answers", str(file), "--out", name)
        official = _official(report)
        assert (round(official["exact"], 3), round(official["f1"], 3)) == published
        totals = [official[f"{part}total"] for part in ("", "HasAns_", "NoAns_")]
        assert totals == [11_873, 5_928, 5_945]
        exact = report["scores"]["estimates"][0]
        assert (exact["n"], exact["clusters"]) == (11_873, 35)
        assert exact["value"] == pytest.approx(official["exact"] / 100)
        assert exact["low"] < exact["value"] < exact["high"]
        assert report["cost"]["calls"]["total"] == 0
    worse = evenhand("compare", "bert_single_google", "bidaf_selfattn_elmo_single", "--json")
    found = json.loads(worse.stdout)
    f1 = found["primary"][0]
    assert round(100 * f1["difference"], 3) == round(67.876 - 81.775, 3)
    crossed = [line["says"]["text"] for line in found["guardrails"] if line["state"] == "violated"]
    assert any(line.startswith("F1 fell") for line in crossed)
    shown = evenhand("compare", "bert_single_google", "bidaf_selfattn_elmo_single").stdout
    assert shown.splitlines()[2].startswith("REGRESSED.")


class Reader:
    """Says France to a question about a country, breaks at one about a year, else abstains."""

    async def __call__(self, call: Call, line: Line) -> str:
        asked = call.body["messages"][-1]["content"].partition("<question>")[2]
        if "country" in asked:
            text = "France"
        elif "year" in asked:
            return await Fixed(b"no", status=400)(call, line)
        else:
            text = "No answer."
        await line.send_json(replies.completion(text, prompt_tokens=9, completion_tokens=1))
        return "said"


@pytest.fixture(scope="module")
def reader() -> Iterator[str]:
    with in_own_process(Reader()) as server:
        yield server.url


def test_a_model_that_abstains_is_right_where_there_is_no_answer_and_is_called_over_abstaining(
    evenhand: Run, squad_folder: Path, tmp_path: Path, reader: str
) -> None:
    ran = evenhand(
        *("measure", "squad", "--questions", "700", "--out", "run", "--json"),
        EVENHAND_DATA=str(squad_folder),
        EVENHAND_BASE_URL=reader,
    )
    report = json.loads(ran.stdout)
    rows = outcomes_of(Squad(), RunReader(tmp_path / "run"))
    lost = rows.filter(pl.col("state") == "missing")
    asked_for_a_year = len(lost)
    assert asked_for_a_year > 5
    assert report["scores"]["coverage"]["by_reason"] == {"missing": asked_for_a_year}
    # Missing answers are in no rate: neither right nor wrong, neither silent nor not.
    known = rows.filter(pl.col("state") == "scored")
    silent = known.filter(pl.col("answerable") & pl.col("abstained"))
    values = _values(report)
    answerable = known.filter(pl.col("answerable"))
    assert values["over_abstention"] == pytest.approx(len(silent) / len(answerable))
    assert values["over_abstention"] > 0.9
    assert values["no_answer"] > 0.9
    official = _official(report)
    assert official["exact_missing_wrong"] < official["exact"]
    assert ran.returncode == (2 if report["scores"]["coverage"]["coverage"] < 0.95 else 0)


def test_stored_answers_are_taken_word_for_word_and_a_models_words_are_read(
    evenhand: Run, squad_folder: Path, tmp_path: Path
) -> None:
    answers = {
        "56ddde6b9a695914005b9628": "france",  # golds: France
        "5ad39d53604f3c001a3fe8d1": "NO ANSWER",  # has none; these words are not silence
        "5ad39d53604f3c001a3fe8d2": "",  # has none
        "56ddde6b9a695914005b962a": "",  # has one
    }
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    report = _measured(evenhand, squad_folder, "--answers", "answers.json", "--out", "run")
    official = _official(report)
    assert (official["HasAns_exact"], official["NoAns_exact"], official["total"]) == (50, 50, 4)
    (note,) = report["scores"]["notes"]
    assert_names(note, "1 articles")
    # One article says next to nothing of others: no spread, and nearly everything is allowed.
    exact = report["scores"]["estimates"][0]
    assert (exact["undefined"], exact["clusters"]) == ("no_spread", 1)
    assert exact["high"] - exact["low"] > 0.9


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"56ddde6b9a695914005b9628": "x", "nobody": "y"}', "1 of 2 answers"),
        ('["x"]', "line 1"),
        ('{"56ddde6b9a695914005b9628": 7}', "must be a text"),
    ],
)
def test_answers_that_cannot_be_scored_are_refused_in_words(
    evenhand: Run, squad_folder: Path, tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "answers.json").write_text(text)
    data = {"EVENHAND_DATA": str(squad_folder)}
    ran = evenhand("measure", "squad", "--answers", "answers.json", "--out", "run", **data)
    assert (ran.returncode, why in ran.stderr.replace("\n", " ")) == (1, True), ran.stderr
    assert not (tmp_path / "run").exists()
