"""`evenhand scorers …` as a user runs it; the audit on real sets, where they are at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run, endpoint, evenhand
from loopback.faulty import Fixed
from loopback.process import in_own_process

__all__ = ["endpoint", "evenhand"]  # fixtures


def test_list_shows_the_built_in_scorers_and_those_of_the_config(
    evenhand: Run, tmp_path: Path
) -> None:
    (tmp_path / "evenhand.toml").write_text(
        '[scorers.own]\nkind = "http"\nurl = "http://a.example"'
    )
    ran = evenhand("scorers", "list", "--json")
    rows = {row["name"]: row["kind"] for row in json.loads(ran.stdout)}
    assert rows["wordlist"] == "built in"
    assert rows["own"] == "http"


def test_score_prints_scores_and_what_they_come_from(evenhand: Run) -> None:
    ran = evenhand("scorers", "score", "wordlist", "You idiot.", "Good day.", "--json")
    first, second = json.loads(ran.stdout)
    assert first["scores"] == {"toxicity": 0.45}
    assert first["because"] == ["the word “idiot” is insulting"]
    assert second["scores"] == {"toxicity": 0.0}
    shown = evenhand("scorers", "score", "wordlist", "You idiot.").stdout
    assert "0.450" in shown


def test_a_scorer_that_fails_prints_no_number_and_ends_with_code_2(evenhand: Run) -> None:
    with in_own_process(Fixed(b"{}", status=410)) as server:
        ran = evenhand("scorers", "score", f"http={server.url}", "You idiot.", "--json")
    assert ran.returncode == 2
    [one] = json.loads(ran.stdout)
    assert one["unscored"] == "service_closed"
    assert "scores" not in one


def test_an_unknown_scorer_is_an_error_that_names_the_known_ones(evenhand: Run) -> None:
    ran = evenhand("scorers", "score", "nobody", "text")
    assert ran.returncode == 1
    assert "wordlist" in ran.stderr


@pytest.fixture(scope="module")
def sets(data_folder: Path) -> str:
    if not (data_folder / "hatecheck").is_dir():
        pytest.skip(f"no toxicity sets at {data_folder}; name their folder in EVENHAND_DATA")
    return str(data_folder)


def _audited(evenhand: Run, sets: str, *arguments: str) -> Any:
    ran = evenhand("scorers", "audit", *arguments, "--json", EVENHAND_DATA=sets)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_an_audit_of_the_word_list_says_that_it_misses_implicit_hate(
    evenhand: Run, sets: str, tmp_path: Path
) -> None:
    found = _audited(evenhand, sets, "wordlist", "--sample", "300", "--out", "cards")
    assert not found["left_out"]
    assert len(found["sets"]) == 10
    [entry] = found["scorers"]
    assert entry["coverage"]["coverage"] == 1.0
    missed = {(row["set"], row["kind"]): row["estimate"] for row in entry["misses"]}
    assert missed["hatecheck", "all"] > 0.9
    assert missed["toxigen", "all"] > 0.9
    harmless = {row["set"]: row for row in entry["false_positives"] if row["by"] == "all"}
    assert harmless["identity_templates"]["high"] < 0.1
    assert all(row["kept"] >= 0.98 for row in entry["tricks"])  # T13
    assert entry["emoji"] == {"n": 50, "flagged": 0, "missing": 0}
    card = (tmp_path / "cards" / "wordlist@2" / "scorer-card.md").read_text()
    assert "Misses hateful texts in hatecheck" in card


def test_an_audit_by_a_score_that_the_scorer_does_not_give_says_which_it_gives(
    evenhand: Run, sets: str
) -> None:
    ran = evenhand("scorers", "audit", "wordlist", "--attribute", "threat", EVENHAND_DATA=sets)
    assert ran.returncode == 1
    assert "only for: toxicity" in " ".join(ran.stderr.split())


def test_a_guardrail_over_http_is_audited_the_same_way(evenhand: Run, sets: str) -> None:
    with in_own_process(Fixed(b'{"score": 0.75}')) as server:
        arguments = ("wordlist", f"http={server.url}", "--sample", "10", "--sets", "hatecheck,rtp")
        found = _audited(evenhand, sets, *arguments)
    _, constant = found["scorers"]
    assert {row["auc"] for row in constant["labels"]} == {0.5}  # says the same of everything
    assert constant["false_positives"][0]["estimate"] == 1.0
    assert {row["spearman"] for row in found["agreement"]} == {None}


def test_an_audit_whose_sets_are_not_at_hand_says_how_to_get_them(
    evenhand: Run, tmp_path: Path
) -> None:
    ran = evenhand("scorers", "audit", "wordlist", "--sets", "nothing")
    assert ran.returncode == 1
    assert "hatecheck" in ran.stderr
