"""`evenhand measure rtp` and `evenhand compare` as a user runs them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.runs.store import RunReader
from evenhand.scorers import WordList
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.instruments.realtoxicityprompts.servers import FlakyGuardrail, Writer
from tests.loopback.process import RemoteServer, in_own_process

__all__ = ["endpoint", "evenhand"]  # the fixtures

NOBODY = "http://127.0.0.1:1/v1"
LINES = ("You idiot.", "A calm walk.", "You stupid moron.", "I'm sorry, but I can't continue.")
SMALL = ("--prompts", "5", "--continuations", "4", "--scorer", "wordlist")
RULE = ("--method", "stardtox", "--set", "bias_brain=rule", "--set", "performance=false")


@pytest.fixture
def writer() -> Iterator[RemoteServer]:
    with in_own_process(Writer(LINES)) as server:
        yield server


@pytest.fixture
def rtp(evenhand: Run, rtp_folder: Path, writer: RemoteServer) -> Run:
    """`evenhand measure rtp …` with the model that writes the lines above."""

    def run(*arguments: str, **environment: str) -> Any:
        given = {"EVENHAND_DATA": str(rtp_folder), "EVENHAND_BASE_URL": writer.url, **environment}
        return evenhand("measure", "rtp", *arguments, **given)

    return run


def _report(ran: Any, code: int = 0) -> dict[str, Any]:
    assert ran.returncode == code, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _values(report: dict[str, Any], group: str = "all") -> dict[str, float | None]:
    scores = report["scores"]
    estimates = scores["estimates"] if group == "all" else scores["groups"]["bucket"][group]
    return {e["name"]: e["value"] for e in estimates}


def _section(report: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(report["scores"]["sections"][name]["rows"])


def _asked(server: RemoteServer) -> int:
    return sum(server.read().outcomes.values())


def test_toxicity_is_measured_from_prompts_to_report(
    rtp: Run, writer: RemoteServer, tmp_path: Path
) -> None:
    report = _report(rtp(*SMALL, "--out", "run", "--json"))
    assert _asked(writer) == 40  # 2 buckets × 5 prompts × 4
    for group in ("all", "moderate", "high"):
        found = _values(report, group)
        assert found["expected_max_toxicity"] == pytest.approx(0.6975)
        assert found["average_toxicity"] == pytest.approx(1.1475 / 4)
        assert (found["toxicity_probability"], found["refusal"]) == (1.0, 0.25)
    assert report["source"]["buckets"] == {"high": 5, "moderate": 5}
    written = json.loads((tmp_path / "run/report.json").read_text())
    assert _section(written, "scoring")["scorer"] == WordList().name
    scores = pl.read_parquet(tmp_path / "run/scores.parquet")
    assert sorted(scores["text"]) == sorted(LINES)
    groups = pl.read_parquet(tmp_path / "run/report.parquet")["group"].unique().to_list()
    assert sorted(groups) == ["all", "high", "moderate"]


def test_the_report_says_that_only_30_moderate_prompts_are_at_hand(rtp: Run) -> None:
    arguments = ("--prompts", "31", "--continuations", "1", "--scorer", "wordlist")
    shown = rtp(*arguments, "--out", "run")
    assert shown.returncode == 0, shown.stderr
    assert_names(shown.stdout, "moderate", "30 prompts", 31)


def test_a_finished_run_is_scored_again_without_a_call_or_an_endpoint(
    rtp: Run, writer: RemoteServer, tmp_path: Path
) -> None:
    _report(rtp(*SMALL, "--out", "run", "--json"))
    before = _asked(writer)
    with in_own_process(FlakyGuardrail()) as guardrail:
        other = (*SMALL[:4], "--scorer", f"http={guardrail.url}/check")
        report = _report(rtp(*other, "--out", "run", "--json", EVENHAND_BASE_URL=NOBODY))
    assert _asked(writer) == before
    assert _section(report, "scoring")["scorer"].startswith("http@1+")
    assert _values(report)["expected_max_toxicity"] == pytest.approx(0.8)
    assert pl.read_parquet(tmp_path / "run/scores.parquet")["scorer"].n_unique() == 2
    # With another method the folder is another run's: it is refused, not scored.
    refused = rtp(*SMALL, "--method", "fairness", "--out", "run")
    assert refused.returncode == 1
    assert_names(refused.stderr, "method", "fairness", "--out")


def test_a_guardrail_that_breaks_on_some_texts_leaves_them_missing_and_ends_with_code_2(
    evenhand: Run, rtp_folder: Path, tmp_path: Path
) -> None:
    lines = tuple(f"Line {n} of an idiot." for n in range(10, 20))  # of these it breaks on 19
    with in_own_process(Writer(lines)) as model, in_own_process(FlakyGuardrail()) as guardrail:
        given = {"EVENHAND_DATA": str(rtp_folder), "EVENHAND_BASE_URL": model.url}
        size = ("--prompts", "2", "--continuations", "10", "--out", "run")
        ran = evenhand(
            "measure", "rtp", *size, "--scorer", f"http={guardrail.url}/check", "--json", **given
        )
    report = _report(ran, code=2)
    coverage = report["scores"]["coverage"]
    assert (coverage["n"], coverage["scored"], coverage["coverage"]) == (40, 36, 0.9)
    assert coverage["by_reason"] == {"scorer: http_500": 4}
    assert _values(report)["average_toxicity"] == pytest.approx(0.8)  # and not .72


def test_the_scorer_that_steers_is_refused_before_anything_is_asked(
    rtp: Run, writer: RemoteServer, tmp_path: Path
) -> None:
    refused = rtp(*SMALL, *RULE, "--out", "run")
    assert refused.returncode == 1
    assert "--allow-circular" in refused.stderr
    assert _asked(writer) == 0
    assert not (tmp_path / "run").exists()
    # In the cast, but asked by nobody: an LLM is the judge in the loop.
    method = ("--method", "stardtox", "--set", "max_iterations=0")
    assert rtp(*SMALL, *method, "--out", "llm").returncode == 0


def test_a_circular_report_says_so_before_any_number_also_when_compared(
    rtp: Run, evenhand: Run
) -> None:
    shown = rtp(*SMALL, *RULE, "--allow-circular", "--out", "circular")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[1].startswith(f"CIRCULAR: {WordList().name} ")
    # Once it is there it is refused again, from what its turns say.
    refused = rtp(*SMALL, *RULE, "--out", "circular")
    assert refused.returncode == 1
    _report(rtp(*SMALL, "--out", "plain", "--json"))
    compared = evenhand("compare", "plain", "circular").stdout
    assert 0 < compared.index("CIRCULAR") < compared.index("average toxicity")


def test_quality_is_judged_in_a_second_run_over_the_stored_texts(
    rtp: Run, writer: RemoteServer, tmp_path: Path
) -> None:
    report = _report(rtp(*SMALL, "--quality", "2", "--out", "run", "--json"))
    assert _asked(writer) == 40 + 20
    judged = _section(report, "quality")
    assert (judged["judged"], judged["failed"]) == (20, 0)
    assert report["further"]["quality"]["calls"] == 20
    found = {e["name"]: e for e in report["scores"]["estimates"]}
    assert (found["fluency"]["value"], found["coherence"]["value"]) == (95.0, 95.0)
    assert (found["fluency"]["n"], found["fluency"]["clusters"]) == (20, 10)
    assert any(
        {"models", "own", "higher"} <= set(re.findall(r"\w+", note))
        for note in report["scores"]["notes"]
    )
    inner = RunReader(tmp_path / "run/quality").results().collect()
    assert set(inner["text"]) <= set(LINES)
    # Again: nothing is left to ask, neither of the writer nor of the judge.
    _report(rtp(*SMALL, "--quality", "2", "--out", "run", "--json"))
    assert _asked(writer) == 60


def test_a_cap_is_for_texts_and_judge_together(rtp: Run, writer: RemoteServer) -> None:
    ran = rtp(*SMALL, "--quality", "2", "--max-calls", "45", "--out", "run", "--json")
    assert ran.returncode == 3, ran.stderr
    assert _asked(writer) <= 45


def test_a_replay_writes_the_same_rows_offline(rtp: Run, tmp_path: Path) -> None:
    _report(rtp(*SMALL, "--out", "run", "--json"))
    again = rtp(*SMALL, "--out", "again", "--replay", "run", "--json", EVENHAND_BASE_URL=NOBODY)
    _report(again)
    first, second = (RunReader(tmp_path / name).results().collect() for name in ("run", "again"))
    assert first.equals(second)


def test_asking_equal_words_once_would_make_continuations_equal_and_is_refused(rtp: Run) -> None:
    refused = rtp(*SMALL, "--dedupe", "--out", "run")
    assert (refused.returncode, "--dedupe" in refused.stderr) == (1, True)


def test_two_runs_are_compared_prompt_by_prompt_with_what_got_worse(
    rtp: Run, evenhand: Run, rtp_folder: Path
) -> None:
    _report(rtp(*SMALL, "--quality", "1", "--out", "before", "--json"))
    refusals = ("I'm sorry, but I can't continue this text.",)
    with in_own_process(Writer(refusals)) as silent:
        after = rtp(
            *SMALL, "--quality", "1", "--out", "after", "--json", EVENHAND_BASE_URL=silent.url
        )
        _report(after)
    found = json.loads(evenhand("compare", "before", "after", "--json").stdout)
    primary = {c["name"]: c for c in found["primary"]}
    assert primary["expected_max_toxicity"]["difference"] == pytest.approx(-0.6975)
    assert primary["average_toxicity"]["difference"] == pytest.approx(-1.1475 / 4)
    assert primary["expected_max_toxicity"]["n"] == 10
    # A refusal is as harmless as can be, and of no use.
    lines = {line["name"]: line for line in found["guardrails"]}
    assert lines["refusal"]["state"] == "violated"
    assert "+0.750" in lines["refusal"]["says"]["text"]
    assert lines["length"]["state"] == "violated"
    assert "+129%" in lines["length"]["says"]  # 3.5 → 8 words
    # The judge likes both runs equally, which ten prompts do not show; it also wrote them.
    assert lines["fluency"]["state"] == "inconclusive"
    assert_names(lines["quality_judge_1"]["says"], "judge", "model that wrote")
    assert lines["quality_judge_1"]["state"] == "inconclusive"
    shown = evenhand("compare", "before", "after").stdout
    assert re.search(r"✗ refusal rate", shown)
    back = json.loads(evenhand("compare", "after", "before", "--json").stdout)
    (refusals,) = (line for line in back["guardrails"] if line["name"] == "refusal")
    assert refusals["state"] != "violated"


def test_runs_that_no_scorer_has_scored_both_are_not_compared(rtp: Run, evenhand: Run) -> None:
    _report(rtp(*SMALL, "--out", "a", "--json"))
    with in_own_process(FlakyGuardrail()) as guardrail:
        other = (*SMALL[:4], "--scorer", f"http={guardrail.url}/check")
        _report(rtp(*other, "--out", "b", "--json"))
    refused = evenhand("compare", "a", "b")
    assert refused.returncode == 1
    assert_names(refused.stderr, "different scorers")
