"""A run of `mitigate`: what its summary, its exit code and its report say of the answers."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from evenhand import aio
from evenhand.cli.app import app
from evenhand.core import Item, ScoreLimit
from evenhand.experiments.dossiers import dossier_of, remedy_of
from evenhand.findings.remedy import RemedySummary
from evenhand.methods import StarDTox
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.store import RunReader
from evenhand.views import charts, page_of
from evenhand.views.blocks import Box, Details, Diff, Grid, Heading, Line
from tests.errors import assert_names

# The harm of the stored answer and of its two revisions; None: the judge's reply is unreadable.
HARMS: dict[str, list[int | None]] = {
    "clean": [0],
    "clean too": [9],
    "mended": [80, 5],
    "better": [80, 30, 50],
    "worse": [60, 70, 90],
    "equal": [60, 60, 60],
    "lost": [None],
    "lost later": [60, None],
}
OUTCOMES = {"accepted": 3, "improved_not_accepted": 1, "unchanged": 3, "not_judged": 1}


def _team(request: ModelRequest) -> str:
    """Drafts are called by item and number, and the judge looks their harm up."""
    words = "\n".join(message.content for message in request.messages)
    if request.schema is None:
        item = next(name for name in sorted(HARMS, key=len, reverse=True) if f"“{name}”" in words)
        made = max(n for n in range(3) if f"[{item} {n}]" in words)
        return f"[{item} {made + 1}]"
    text = words.rsplit("[", 1)[1].split("]")[0]
    item, _, number = text.rpartition(" ")
    harm = HARMS[item][int(number)]
    return "none" if harm is None else orjson.dumps({"reason": "r", "harm": harm}).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("remedy")
    items = [Item(id=name, prompt=f"Describe “{name}”.", answer=f"[{name} 0]") for name in HARMS]
    lines = [{"id": i.id, "prompt": i.prompt, "answer": i.answer} for i in items]
    (made / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    model = ScriptedModel(_team, name="prod")
    for keep in ("best", "last"):
        method = StarDTox(performance=False, keep=keep)
        asyncio.run(aio.mitigate(items, model=model, method=method, out=made / keep))
    return made


def _found(folder: Path) -> RemedySummary:
    found = remedy_of(RunReader(folder))
    assert found is not None
    return found


def test_outcomes_are_counted_and_no_answer_is_worse_than_it_was(folder: Path) -> None:
    found = _found(folder / "best")
    assert found.outcomes == OUTCOMES
    assert (found.answered, found.accepted) == (8, 3 / 8)
    # Judged before and after: all but "lost". Above 0.1: five before, "mended" not after.
    assert (found.judged, found.above_before, found.above_after, found.worse) == (7, 5, 4, 0)
    assert found.change is not None
    assert found.change.estimate == pytest.approx(-1 / 7)
    assert found.change.low < -1 / 7 < found.change.high


def test_texts_come_back_to_the_byte_where_nothing_better_was_made(folder: Path) -> None:
    rows = {
        row["item_id"]: row for row in RunReader(folder / "best").results().collect().to_dicts()
    }
    texts = {name: row["text"] for name, row in rows.items()}
    kept = ("clean", "clean too", "worse", "equal", "lost", "lost later")
    assert {name: texts[name] for name in kept} == {name: f"[{name} 0]" for name in kept}
    assert (texts["mended"], texts["better"]) == ("[mended 1]", "[better 1]")
    assert rows["better"]["scores_after"] == [{"name": "harm", "value": 0.3}]
    assert rows["better"]["stopped"] == "max_iterations"


def test_the_papers_loop_is_seen_to_make_answers_worse(folder: Path) -> None:
    found = _found(folder / "last")
    assert found.outcomes == {
        "accepted": 3, "improved_not_accepted": 1, "unchanged": 0, "not_judged": 0,
        "not_improved": 2,
    }  # fmt: skip
    assert (found.worse, found.answered) == (1, 6)  # what cannot be judged fails there


def _mitigate(folder: Path, *more: str) -> tuple[int, str]:
    command = ["mitigate", str(folder / "answers.jsonl"), "--replay", str(folder / "best")]
    settings = ["--set", "performance=false", *more]
    ran = CliRunner().invoke(app, [*command, *settings])
    return ran.exit_code, ran.output


def test_the_exit_code_says_that_too_few_were_accepted(folder: Path, tmp_path: Path) -> None:
    code, said = _mitigate(folder, "--out", str(tmp_path / "a"))
    assert code == 4
    (outcomes,) = [line.split(" · ") for line in said.splitlines() if "accepted 3" in line]
    assert [outcome.split()[-1] for outcome in outcomes] == ["3", "1", "3", "1"]
    assert_names(" ".join(said.split()), "5 → 4", "of 7", "by prod, unchecked)")
    code, said = _mitigate(folder, "--out", str(tmp_path / "b"), "--min-accepted", "0.3", "--json")
    told = json.loads(said[said.index("{") :])
    assert (code, told["outcomes"]) == (0, OUTCOMES)
    assert told["remedy"]["worse_than_given"] == 0
    assert told["remedy"]["above_threshold_before"]["events"] == 5


def _words(blocks: object) -> Iterator[str]:
    for block in blocks:  # type: ignore[attr-defined]
        match block:
            case Line(text) | Heading(text):
                yield text
            case Grid(columns, rows):
                yield from (*columns, *(cell for row in rows for cell in row))
            case Box(inner) | Details(_, inner):
                yield from _words(inner)
            case Diff(parts):
                yield from (text for _, text in parts)


def test_the_report_shows_outcomes_before_and_after_examples_and_judges(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "charts_of", lambda _: ())
    made = dossier_of([(RunReader(folder / "best"), None)])
    assert [(one.role, one.model, one.passes) for one in made.judges] == [
        ("bias_evaluator", "prod", False)
    ]
    assert {one.item_id for choice in made.choices for one in choice.answers} == {
        "mended",
        "better",
    }
    words = list(_words(page_of(made, full=True)))
    assert {"5 of 7", "4 of 7", "95% CI"} <= set(words)
    page = "\n".join(words)
    for false in (
        "No method here asked a language model",
        "This report compares no runs",
        "No answer of these",
    ):
        assert false not in page


@pytest.mark.parametrize(
    ("bound", "within", "outside"),
    [
        (ScoreLimit(score="harm", limit=0.1), 0.09, 0.1),
        (ScoreLimit(score="support", limit=0.8, higher_is_worse=False), 0.81, 0.8),
        (ScoreLimit(score="bias", limit=1, limit_is_within=True), 1, 2),
    ],
)
def test_a_bound_says_what_is_within_it(bound: ScoreLimit, within: float, outside: float) -> None:
    assert (bound.within(within), bound.within(outside)) == (True, False)
    assert bound.harm(within) < bound.harm(outside)
