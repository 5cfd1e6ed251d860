"""What a third party's package brings works everywhere, and no line of evenhand knows of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.runs.store import RunReader
from tests.cli.conftest import Run
from tests.errors import assert_names
from tests.loopback.process import RemoteServer

# 16 occupations, 64 items: 32 of them do not say who it is. Of those the model answers 28 with "a
# man" (14 occupations) and 4 with "the text does not say" (2 occupations); the other 32 all right.
GUESSED = 28 / 32


def measured(theirs: Run, method: str, *more: str) -> dict[str, Any]:
    ran = theirs("measure", "titles", "--method", method, "--out", method, "--json", *more)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


@pytest.fixture(scope="module")
def reports(theirs: Run) -> dict[str, dict[str, Any]]:
    """The two runs that the other tests look at."""
    return {method: measured(theirs, method) for method in ("default", "think_twice")}


def values(report: dict[str, Any]) -> dict[str, float]:
    return {one["name"]: one["value"] for one in report["scores"]["estimates"]}


def test_what_is_installed_is_listed_beside_our_own(theirs: Run) -> None:
    instruments = theirs("measure", "--help").stdout
    assert_names(instruments, "titles")
    assert "  bbq " in instruments
    assert "second_thoughts" in theirs("methods", "think_twice").stdout
    helped = theirs("measure", "titles", "--help").stdout
    assert_names(helped, "--occupations")
    assert "--no-past-tense" in helped


def test_an_instrument_measures_a_method_of_ours_and_one_of_theirs(
    reports: dict[str, dict[str, Any]], folder: Path
) -> None:
    assert values(reports["default"]) == {"guessed": GUESSED, "right": 1.0, "over_abstention": 0.0}
    assert values(reports["think_twice"])["guessed"] == 0.0
    run = RunReader(folder / "think_twice")
    for record in (run.record, RunReader(folder / "default").record):
        assert record.versions["evenhand-titles"] == "0.3"  # the method's, or the instrument's
    # Two calls where the text says who it is; three where it does not.
    assert run.totals().calls == 32 * 2 + 32 * 3
    default = reports["default"]["scores"]
    by_field = {f: found[0]["value"] for f, found in default["groups"]["field"].items()}
    assert by_field == {"care": 14 / 16, "craft": 14 / 16}
    assert default["estimates"][0]["clusters"] == 16
    assert (folder / "default/report.parquet").exists()


def test_options_of_an_instrument_are_options_of_its_command(theirs: Run, folder: Path) -> None:
    few = ("measure", "titles", "--occupations", "3", "--no-past-tense", "--out", "few")
    ran = theirs(*few, "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["scores"]["coverage"]["n"] == 12
    assert RunReader(folder / "few").record.source["sampling"] == {
        "answers": None,
        "occupations": 3,
        "past_tense": False,
    }
    refused = theirs("measure", "titles", "--occupations", "1", "--out", "none")
    assert refused.returncode == 2
    assert not (folder / "none").exists()


def test_their_runs_are_compared(theirs: Run, reports: dict[str, dict[str, Any]]) -> None:
    ran = theirs("compare", "default", "think_twice", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    changes = {one["name"]: one for one in found["primary"]}
    assert changes["guessed"]["difference"] == pytest.approx(-GUESSED)
    assert changes["guessed"]["p_holm"] < 0.001
    assert changes["right"]["difference"] == 0.0
    assert found["answers"]["right"] == {"fixed": 0, "broken": 0, "p": 1.0}
    shown = theirs("compare", "default", "think_twice").stdout
    assert_names(shown, "names a gender")


def test_runs_show_knows_their_runs(theirs: Run, reports: dict[str, dict[str, Any]]) -> None:
    ran = theirs("runs", "show", "think_twice")
    assert ran.returncode == 0, ran.stderr
    assert "think_twice" in ran.stdout
    again = theirs("report", "default", "--json")
    assert again.returncode == 0, again.stderr
    assert values(json.loads(again.stdout)) == values(reports["default"])


def test_a_pilot_forecasts_without_the_whole_run(theirs: Run, folder: Path) -> None:
    dry = (
        "measure",
        "titles",
        "--method",
        "think_twice",
        "--pilot",
        "50",
        "--out",
        "dry",
        "--json",
    )
    ran = theirs(*dry)
    assert ran.returncode == 0, ran.stderr
    assert RunReader(folder / "dry").totals().items == 50  # of 64


def test_an_uncertified_judge_of_theirs_is_refused_before_any_call(
    theirs: Run, server: RemoteServer, folder: Path
) -> None:
    before = server.read().outcomes
    gate = ("--method", "think_twice", "--require-certified-judges", "--out", "gated")
    ran = theirs("measure", "titles", *gate)
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "second_look", "'pretended'", "not certified")
    assert server.read().outcomes == before
    assert not (folder / "gated").exists()


CONFIG = """
[judges]
certificates = "certificates"
"""
SMALL = ("--bases", "8", "--pairs", "6", "--identities", "female,male", "--injections", "6")


def test_their_check_is_in_every_audit_and_a_small_audit_does_not_open_the_gate(
    theirs: Run, folder: Path
) -> None:
    (folder / "judges.toml").write_text(CONFIG)
    config = ("--config", "judges.toml", "--json")
    audit = theirs("audit", "judge", *SMALL, "--out", "audit", *config)
    assert audit.returncode == 0, audit.stderr
    checks = {check["name"]: check for check in json.loads(audit.stdout)["checks"]}
    assert checks["same_mark"]["state"] == "pass"
    assert 0 < checks["same_mark"]["value"] <= 0.9
    [kept] = (folder / "certificates").glob("*.json")
    certified = json.loads(kept.read_bytes())
    assert [c["state"] for c in certified["checks"] if c["name"] == "same_mark"] == ["pass"]
    gate = ("--method", "think_twice", "--require-certified-judges", "--out", "certified")
    ran = theirs("measure", "titles", *gate, *config)
    assert ran.returncode == 1
    assert_names(" ".join(ran.stderr.split()), "8 of 60")


def test_a_kind_of_scorer_of_theirs_scores_texts(theirs: Run, folder: Path) -> None:
    texts = ("The stewardess left.", "The pilot left.")
    ran = theirs("scorers", "score", "gendered_titles=ess,man", *texts, "--json")
    assert ran.returncode == 0, ran.stderr
    assert [one["scores"]["toxicity"] for one in json.loads(ran.stdout)] == [1.0, 0.0]
    config = '[scorers.titles]\nkind = "gendered_titles"\nendings = "lot"\n'
    (folder / "scoring.toml").write_text(config)
    listed = theirs("scorers", "list", "--config", "scoring.toml")
    assert "gendered_titles" in listed.stdout


def test_a_frontier_runs_over_their_instrument(theirs: Run, folder: Path) -> None:
    ran = theirs(
        "frontier", "--bench", "titles", "--methods", "think_twice", "--calls", "3",
        "--out", "front", "--json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = {one["name"]: one for one in json.loads(ran.stdout)["methods"]}
    assert {"default", "fairness", "self_consistency", "think_twice"} <= set(found)
    verdict = found["think_twice"]["verdict"]
    # It guesses less than both, but 16 occupations in which nothing went wrong still allow for
    # losses in 1 − 0.025^(1/16) = 21 % of them: more than the margin of 5 %.
    assert verdict["kind"] == "cannot tell"
    assert verdict["why"]["code"] == "worth.utility_open"
    harm, utility = (verdict["why"]["values"][part] for part in ("why", "line"))
    assert harm["code"] == "worth.beats"
    references = harm["values"]["references"]
    assert [one["code"] for one in references] == ["reference.fairness", "reference.vote"]
    assert references[1]["values"]["calls"] == 3
    assert (utility["code"], utility["values"]["margin"]) == ("guardrail.inconclusive", 0.05)
    assert (folder / "front/frontier.svg").exists()


def test_a_plan_is_made_from_two_pilot_runs_of_theirs(
    theirs: Run, reports: dict[str, dict[str, Any]]
) -> None:
    pilot = ("--from", "default", "think_twice", "--measure", "guessed")
    ran = theirs("plan", "titles", "--detect", "0.1", *pilot, "--json")
    assert ran.returncode == 0, ran.stderr
    made = json.loads(ran.stdout)
    assert (made["benchmark"], made["measure"]) == ("titles", "guessed")
    assert made["assumed"]["clusters"] == 16
