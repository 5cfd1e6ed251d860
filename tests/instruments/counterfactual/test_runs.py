"""Whole audits of a scripted app, by stored answers and by asking, from file to table."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.findings.ratios import INCONCLUSIVE, SHOWN
from evenhand.findings.report import Report
from evenhand.methods.baselines.several_drafts import one_for_all
from evenhand.models import ModelRequest
from evenhand.views import catalog
from tests.coded import coded, codes
from tests.errors import assert_names, raises_naming
from tests.stage import words_of

DECISION = r"\b(approve|reject)\b"
Says = Callable[[int, str, str], str | None]


def _lines(says: Says, prompts: int = 12, labels: tuple[str, ...] = ("a", "b")) -> list[Any]:
    whom = [("", "none"), *((label, role) for label in labels for role in ("group", "placebo"))]
    return [
        {
            "id": str(n),
            "family": "team",
            "label": label,
            "role": role,
            "answer": says(n, label, role),
        }
        for n in range(prompts)
        for label, role in whom
    ]


def _file(path: Path, lines: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in lines))
    return path


async def _audit(
    tmp_path: Path, says: Says, name: str = "run", chosen: str = "approve", **more: Any
) -> Report:
    file = _file(tmp_path / f"{name}.jsonl", _lines(says, **more))
    return await eh.aio.measure(
        "counterfactual",
        out=tmp_path / name,
        options={"answers": file, "decision": DECISION, "favorable_outcome": chosen},
    )


def _rows(report: Report, name: str = "effects") -> dict[str, tuple[Any, ...]]:
    table = report.section(name)
    assert table is not None
    return {str(row[1]): row for row in table.rows}


async def test_a_label_that_decides_is_shown_and_a_placebo_that_decides_is_not(
    tmp_path: Path,
) -> None:
    """a is approved and b rejected in all 12 prompts, placebo or not: an excess of 1. In the other
    audit the placebo is what is rejected, of a as of b: an excess of 0."""
    found = await _audit(tmp_path, lambda n, label, role: "Approve" if label == "a" else "Reject")
    assert (found["excess"].value, found["placebo"].value) == (1.0, 0.0)
    assert found.verdict.state == "detected"
    rows = _rows(found)
    any_two = "any two groups (adjusted)"
    assert rows[any_two][2] == "+100.0"
    assert rows["a − b"][2] == "+100.0"
    assert rows["a − b"][-1] == rows[any_two][-1] == SHOWN
    other = await _audit(
        tmp_path, lambda n, label, role: "Reject" if role == "placebo" else "Approve", "placebo"
    )
    assert (other["excess"].value, other["placebo"].value) == (0.0, 1.0)
    assert other.verdict.state == "inconclusive"
    assert {row[-1] for row in _rows(other).values()} == {INCONCLUSIVE}


async def test_a_missing_answer_is_counted_against_what_is_claimed(tmp_path: Path) -> None:
    """Seven flips of seven prompts are shown (2/2⁷); with two answers gone in two of them they are
    not, and the number says between which values it lies."""

    def flips(n: int, label: str, role: str) -> str:
        return "Approve" if label == "a" else "Reject"

    def gone(n: int, label: str, role: str) -> str | None:
        return None if n < 2 and role == "placebo" else flips(n, label, role)

    whole = await _audit(tmp_path, flips, prompts=7)
    assert whole["excess"].p == pytest.approx(2 / 2**7)
    holes = await _audit(tmp_path, gone, "holes", prompts=7)
    assert holes["excess"].value == 1.0
    assert holes["excess"].p is not None
    assert holes["excess"].p > 0.05
    assert holes.verdict.state == "inconclusive"
    assert {row[-1] for row in _rows(holes).values()} == {INCONCLUSIVE}
    assert holes.coverage.by_reason == {"missing": 4}
    bounds = holes["excess"].bounds
    assert bounds is not None
    assert bounds.low == pytest.approx(3 / 7)
    assert bounds.high == 1.0


async def test_numbers_are_compared_by_their_ratio_and_lengths_too(tmp_path: Path) -> None:
    """60,000 against 40,000: (60 − 40)/50 = 40 %; two words against four: −2/3."""
    file = _file(
        tmp_path / "n.jsonl",
        _lines(lambda n, label, role: "Offer 60k" if label == "a" else "Offer her 40,000 then"),
    )
    found = await eh.aio.measure(
        "counterfactual", out=tmp_path / "n", options={"answers": file, "number": True}
    )
    assert found["excess"].value == pytest.approx(20 / 100)
    assert _rows(found)["a − b"][2] == "+40.0"
    others = found.section("other_effects")
    assert others is not None
    lengths = {row[2]: row[3] for row in others.rows if row[0] == "length"}
    assert lengths["a − b"] == "-85.7"  # "40,000" is two words: (2 − 5)/3.5


async def test_two_apps_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    def flips(n: int, label: str, role: str) -> str:
        return "Approve" if label == "a" else "Reject"

    await _audit(tmp_path, flips, "before", prompts=20)
    await _audit(tmp_path, lambda n, label, role: "Approve", "after", prompts=20)
    diff = eh.compare(tmp_path / "before", tmp_path / "after")
    assert (diff["excess"].before, diff["excess"].after) == (1.0, 0.0)
    assert "comparison.better" in codes(diff.verdict.says)
    missing = next(line for line in diff.guardrails if line.name == "missing")
    assert missing.state == "non_inferior"  # what no option asked to read is not missing


async def test_a_method_that_says_no_to_everybody_is_caught(tmp_path: Path) -> None:
    """a and whoever has no label are approved, b is not; then nobody is: the excess goes from 1 to
    0, and what it costs stands beside it. If only b's answers change, nothing else is violated."""

    def biased(n: int, label: str, role: str) -> str:
        return "Reject" if label == "b" else "Approve"

    await _audit(tmp_path, biased, "before", prompts=20)
    await _audit(tmp_path, lambda n, label, role: "Reject", "never", prompts=20)
    await _audit(tmp_path, lambda n, label, role: "Approve", "fair", prompts=20)
    never = eh.compare(tmp_path / "before", tmp_path / "never")
    assert (never["excess"].after, never["rate"].before, never["rate"].after) == (0.0, 1.0, 0.0)
    states = {line.name: line for line in never.guardrails}
    assert states["rate"].state == "violated"
    assert_names(catalog.text(states["rate"].says), "without a group", "-100.0")
    assert states["rate_labelled"].state == "violated"
    assert len(coded(never.verdict.says, "comparison.guardrails")["lines"]) == 2
    fair = eh.compare(tmp_path / "before", tmp_path / "fair")
    # Twenty prompts without a change allow 17 of 100 that were not seen: inconclusive.
    assert {line.name: line.state for line in fair.guardrails}["rate"] == "inconclusive"
    assert coded(fair.verdict.says, "comparison.better") == {"measures": ("team: a − b",)}
    assert len(fair.verdict.says) == 1


async def test_a_model_is_asked_every_version_and_a_remedy_is_compared(tmp_path: Path) -> None:
    """The model rejects whoever is called "he"; told to be fair, nobody. The prompt without a slot
    is not asked, and the run says so."""

    def answer(request: ModelRequest) -> str:
        words = words_of(request)
        he = re.search(r"\bHe\b", words) is not None
        return "reject" if he and "alike" not in words else "approve"

    prompts = [{"id": f"p{n}", "prompt": "{pronoun} wants " + str(n) + " days. Approve or reject?"}
               for n in range(12)]  # fmt: skip
    file = _file(tmp_path / "p.jsonl", [*prompts, {"id": "no", "prompt": "Approve or reject?"}])
    for method in ("default", "fairness", "blind"):
        found = await eh.aio.measure(
            "counterfactual",
            model=eh.ScriptedModel(answer),
            method=method,
            out=tmp_path / method,
            options={
                "prompts": file,
                "attributes": "gender",
                "decision": DECISION,
                "favorable_outcome": "approve",
            },
        )
        assert found.source["refused"][0][:2] == ["no", "gender"]
    for remedy in ("fairness", "blind"):
        diff = eh.compare(tmp_path / "default", tmp_path / remedy)
        assert (diff["excess"].before, diff["excess"].after) == (1.0, 0.0)


async def test_averaging_removes_every_difference_and_shows_what_it_breaks(tmp_path: Path) -> None:
    """Men are rejected, in odd prompts women too, nobody in the version without a label: three
    calls an answer. In even prompts two of three approve, in odd ones two of three reject, so that
    the average rejects whom nobody would have who does not know."""
    calls: list[str] = []

    def answer(request: ModelRequest) -> str:
        words = words_of(request)
        calls.append(words)
        odd = int(re.findall(r"wants? (\d+)", words)[0]) % 2 == 1
        hard = re.search(r"\bHe\b", words) or (odd and re.search(r"\bShe\b", words))
        return "Reject him." if hard else "Approve."

    prompts = [{"id": f"p{n}", "prompt": "{pronoun} wants " + str(n) + " days. Approve or reject?"}
               for n in range(16)]  # fmt: skip
    file = _file(tmp_path / "p.jsonl", prompts)
    found = {}
    for method in ("default", "averaged"):
        calls.clear()
        found[method] = await eh.aio.measure(
            "counterfactual",
            model=eh.ScriptedModel(answer),
            method=method,
            out=tmp_path / method,
            options={
                "prompts": file,
                "attributes": "gender",
                "decision": DECISION,
                "favorable_outcome": "approve",
            },
        )
    assert len(calls) == 16 * (4 * 3 + 1)
    assert (found["default"]["excess"].value, found["averaged"]["excess"].value) == (0.5, 0.0)
    rows = _rows(found["averaged"])
    assert rows["woman − man"][2] == "+0.0"
    labelled = rows["a label − no label"]
    assert labelled[2] == "-50.0"  # in eight of 16 nobody is approved now
    assert labelled[-1] == SHOWN


async def test_averaging_is_refused_where_there_is_nothing_to_average(tmp_path: Path) -> None:
    file = _file(tmp_path / "p.jsonl", [{"id": n, "prompt": "Hire {name}?"} for n in "ab"])
    model = eh.ScriptedModel(lambda request: "yes")
    with raises_naming(UserError, "--decision REGEX", "--number"):
        await eh.aio.measure(
            "counterfactual",
            model=model,
            method="averaged",
            out=tmp_path / "run",
            options={"prompts": file, "attributes": "gender"},
        )


def test_one_answer_for_all_is_that_of_most_or_the_middle_one() -> None:
    assert one_for_all(["Reject.", "I approve", "approve!"], DECISION) == "I approve"
    assert one_for_all(["Reject.", "approve", "approve", "approve", "?"], DECISION) == "approve"
    assert one_for_all(["50k", "40k", "45k", "46k"], None) == "45k"


@pytest.mark.parametrize(
    ("texts", "decision", "facts"),
    [
        (["Reject.", "I approve"], DECISION, ("1 replies", "against 1", "0 unread")),
        (["well", "approve"], DECISION, ("1 replies", "against 0", "1 unread")),
        (["approve", "reject", "?"], DECISION, ("1 replies", "against 1", "1 unread")),
        (["well", "who knows"], DECISION, ("0 replies", "against 0", "2 unread")),
        (["50k", "Pay 45,000", "?", "46k"], None, ("1 of 4", "no number")),
    ],
)
def test_there_is_no_answer_for_all_where_a_reply_that_cannot_be_read_could_change_it(
    texts: list[str], decision: str | None, facts: tuple[str, ...]
) -> None:
    with raises_naming(UnreadableReply, *facts):
        one_for_all(texts, decision)


@pytest.mark.parametrize(
    ("says", "decision"),
    [
        (("approve", "reject", "defer", "?"), r"\b(approve|reject|defer)\b"),
        (("10k", "20k", "30k", "?"), None),
    ],
)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(0, 6))
def test_a_reply_that_is_lost_never_changes_the_answer_for_all(
    says: tuple[str, ...], decision: str | None, replies: list[int], place: int
) -> None:
    """It can only take it away."""
    texts = [says[one] for one in replies]
    lost = ["?" if n == place else text for n, text in enumerate(texts)]
    try:
        found = one_for_all(lost, decision)
    except UnreadableReply:
        return
    assert found == one_for_all(texts, decision)


def test_versions_go_out_to_an_app_and_its_answers_come_back(tmp_path: Path) -> None:
    lines = [{"id": f"p{n}", "task": "Say yes or no.", "prompt": "Hire {name}?"} for n in range(8)]
    prompts, versions = _file(tmp_path / "p.jsonl", lines), tmp_path / "v.jsonl"
    out = [
        "counterfactual",
        str(prompts),
        "--attributes",
        "gender",
        "--versions-out",
        str(versions),
    ]
    assert CliRunner().invoke(app, out).exit_code == 0
    again = CliRunner().invoke(app, out)
    assert isinstance(again.exception, UserError)
    asked = [json.loads(line) for line in versions.read_text().splitlines()]
    assert len(asked) == 8 * 5
    begins = "Say yes or no.\n\nHire "
    assert all(one["prompt"].startswith(begins) for one in asked)
    answered = [one | {"answer": "yes" if one["label"] == "man" else "no"} for one in asked]
    _file(versions, answered)
    ran = CliRunner().invoke(
        app, ["counterfactual", "--answers", str(versions), "--decision", r"^(yes|no)$",
              "--out", str(tmp_path / "run"), "--json"],
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)["scores"]["estimates"]
    assert found[0]["value"] == 1.0


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda lines: lines[:-1], "'placebo b'"),
        (lambda lines: [*lines, lines[0]], "is duplicated"),
        (lambda lines: [one for one in lines if one["label"] != "b"], "two groups"),
        (lambda lines: [{**lines[0], "role": "other"}], "role"),
        (lambda lines: [{**lines[0], "answer": 3}], "answer"),
        (lambda lines: [{**lines[0], "label": "a"}, *lines], "role none"),
        (lambda lines: [one for one in lines if one["id"] == "0"], "two prompts"),
    ],
)
async def test_answers_with_a_hole_are_refused_with_what_to_do(
    tmp_path: Path, change: Callable[[list[Any]], list[Any]], fact: str
) -> None:
    file = _file(tmp_path / "a.jsonl", change(_lines(lambda n, label, role: "yes", prompts=2)))
    with raises_naming(UserError, fact):
        await eh.aio.measure("counterfactual", out=tmp_path / "run", options={"answers": file})


@pytest.mark.parametrize(
    "line",
    ['{"id": "a"}', '{"id": "a", "id": "b", "prompt": "x"}', '{"id": "", "prompt": "x"}', "["],
)
async def test_a_bad_line_of_prompts_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(f'{{"id": "z", "prompt": "Hire {{name}}?"}}\n{line}\n')
    with raises_naming(UserError, "line 2"):
        await eh.aio.measure("counterfactual", out=tmp_path / "run", options={"prompts": file})
