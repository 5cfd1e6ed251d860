"""Does looking things up help? The two arms as a user runs them, over a corpus of the user's."""

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
from tests.loopback.http import Call, Line
from tests.loopback.process import in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

CONFIG = '[search]\nengine = "corpus"\npath = "evidence/"\n'


class Librarian:
    """Looks up what a question about a country is about, and something that no file holds for one
    about a year. Says France if there is evidence, else abstains."""

    async def __call__(self, call: Call, line: Line) -> str:
        words = call.body["messages"][-1]["content"]
        kind = replies.schema_name(call.body)
        text = json.dumps(self._typed(kind, words)) if kind else self._answer(words)
        await line.send_json(replies.completion(text, prompt_tokens=9, completion_tokens=1))
        return kind or "answer"

    def _typed(self, kind: str, words: str) -> dict[str, Any]:
        if kind == "factsummary":
            fact = {"fact": "The country is France.", "source": 1}
            return {"facts": [fact], "contradictions": [], "gaps": []}
        asked = words.partition("<question>")[2]
        queries = {"country": "country and border", "year": "zebra stripes"}
        return {
            "groups": [],
            "queries": [query for word, query in queries.items() if word in asked],
        }

    def _answer(self, words: str) -> str:
        return "France" if "<evidence>\nFacts:\n- The country is France." in words else "NO ANSWER"


@pytest.fixture(scope="module")
def librarian() -> Iterator[str]:
    with in_own_process(Librarian()) as server:
        yield server.url


@pytest.fixture
def measured(evenhand: Run, squad_folder: Path, tmp_path: Path, librarian: str) -> Run:
    """`evenhand measure squad` with a corpus of one file."""
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/france.md").write_text("# France\nThe country with a long border.\n")
    (tmp_path / "evenhand.toml").write_text(CONFIG)

    def run(method: str, *more: str) -> Any:
        arguments = ("--method", method, "--questions", "350", "--out", method, *more)
        data = {"EVENHAND_DATA": str(squad_folder), "EVENHAND_BASE_URL": librarian}
        return evenhand("measure", "squad", *arguments, **data)

    return run


def _asked(run: RunReader) -> dict[str, str]:
    """By item, the hash of the request for its answer."""
    turns = run.turns().filter(pl.col("role") == "generator").select("item_id", "request")
    return dict(turns.collect().iter_rows())


def _mean(run: RunReader, column: str, answerable: bool) -> float:
    rows = outcomes_of(Squad(), run).filter(pl.col("answerable") == answerable)
    mean = rows[column].mean()
    assert isinstance(mean, float)
    return mean


def test_what_was_found_is_all_that_tells_the_two_arms_apart(
    measured: Run, evenhand: Run, tmp_path: Path
) -> None:
    for method in ("default", "search_first"):
        ran = measured(method)
        assert ran.returncode == 0, ran.stderr
    plain, looked_up = (RunReader(tmp_path / name) for name in ("default", "search_first"))
    results = looked_up.results().collect()
    found = dict(results.select("item_id", pl.col("stopped") == "single_pass").iter_rows())
    assert 3 < sum(found.values()) < 60
    assert set(results["stopped"]) == {"single_pass", "no_evidence"}
    before, after = _asked(plain), _asked(looked_up)
    assert {item: before[item] != after[item] for item in before} == found

    compared = json.loads(evenhand("compare", "default", "search_first", "--json").stdout)
    changes = {one["name"]: one["difference"] for one in compared["primary"]}
    for name, column, answerable in (
        ("f1_has_answer", "f1", True),
        ("no_answer", "abstained", False),
    ):
        change = _mean(looked_up, column, answerable) - _mean(plain, column, answerable)
        assert changes[name] == pytest.approx(change)
    assert changes["no_answer"] < 0  # France, where the passage says nothing


def test_nothing_is_asked_where_nobody_searches(measured: Run, tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text("")
    ran = measured("search_first")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "[search]")


def test_mabrf_has_no_answer_to_a_question_without_choices_and_says_what_has(
    measured: Run,
) -> None:
    ran = measured("mabrf", "--set", "search=true")
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "search_first")


def test_a_cap_before_the_first_answer_is_a_cap_and_the_run_goes_on_from_there(
    measured: Run, tmp_path: Path
) -> None:
    capped = measured("search_first", "--max-calls", "1")
    assert capped.returncode == 3, capped.stderr
    assert_names(" ".join(capped.stderr.split()), "--max-calls")
    assert measured("search_first").returncode == 0
    assert RunReader(tmp_path / "search_first").totals().items == 350
