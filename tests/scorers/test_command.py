"""`evenhand scorers …` as a user runs it; the audit on real sets, where they are at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback.faulty import Fixed
from tests.loopback.process import in_own_process

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
    ran = evenhand("audit", "scorer", *arguments, "--json", EVENHAND_DATA=sets)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["state"] == "fail"  # a result, as of one that scores all alike it has to be
    return found


def test_an_audit_of_the_word_list_says_that_it_misses_implicit_hate(
    evenhand: Run, sets: str, tmp_path: Path
) -> None:
    found = _audited(evenhand, sets, "--scorer", "wordlist", "--sample", "300", "--out", "run")
    assert found["title"] == "wordlist@2"
    assert not found["notes"]
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["coverage"]["value"] == 1.0
    assert len(found["groups"]["set"]) == 10
    values = {
        (value, one["name"]): one
        for column in found["groups"].values()
        for value, estimates in column.items()
        for one in estimates
    }
    assert values["hatecheck", "misses"]["value"] > 0.9
    assert values["toxigen", "misses"]["value"] > 0.9
    assert checks["misses:set"]["state"] == "fail"
    assert values["identity_templates", "false_positives"]["high"] < 0.1
    kept = [values[trick, "caught_in_disguise"]["value"] for trick in found["groups"]["trick"]]
    assert min(kept) >= 0.98  # T13
    assert (checks["emoji"]["value"], checks["emoji"]["n"]) == (0, 50)
    assert (tmp_path / "run" / "report.json").is_file()


def test_a_guardrail_over_http_is_audited_the_same_way(evenhand: Run, sets: str) -> None:
    with in_own_process(Fixed(b'{"score": 0.75}')) as server:
        scorer = ("--scorer", f"http={server.url}")
        found = _audited(evenhand, sets, *scorer, "--sample", "10", "--sets", "hatecheck,rtp",
                         "--out", "run")  # fmt: skip
    by_name = {
        (name, one["name"]): one["value"]
        for name, estimates in found["groups"]["set"].items()
        for one in estimates
    }
    # It says the same of everything.
    assert {by_name[name, "auc"] for name in ("hatecheck", "rtp")} == {0.5}
    assert by_name["hatecheck", "false_positives"] == 1.0
    assert by_name["rtp", "rank_correlation"] is None


def test_an_audit_whose_sets_are_not_at_hand_says_how_to_get_them(
    evenhand: Run, tmp_path: Path
) -> None:
    ran = evenhand("audit", "scorer", "--scorer", "wordlist", "--sets", "nothing", "--out", "r")
    assert ran.returncode == 1
    assert "hatecheck" in ran.stderr
