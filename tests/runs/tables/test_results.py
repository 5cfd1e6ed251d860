"""From a table to a table: the columns of a result that a table's owner joins back."""

from pathlib import Path
from typing import Any

import pytest

from evenhand.agents import Cast
from evenhand.core import Answer, Answered, Draft, Event, Failed, Item, Result
from evenhand.methods import DefaultPrompt, Method, StarDTox
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader

from .writing import opened, write

ITEM = Item(id="i", prompt="p", answer="stored")
ROUGH, SMOOTH = {"harm": 0.7, "fluency": 0.9}, {"harm": 0.0, "fluency": 0.95}


def answered(*drafts: Draft) -> Answered:
    return Answered(0, ITEM, Answer(drafts=drafts, stopped="accepted"), 3, 1, 1)


@pytest.mark.parametrize(
    ("event", "before", "scores_before", "scores_after"),
    [
        pytest.param(
            answered(Draft(text="a", scores=ROUGH)), "a", ROUGH, ROUGH, id="accepted at once"
        ),
        pytest.param(
            answered(
                Draft(text="a", scores=ROUGH),
                Draft(text="b", scores={"harm": 0.2}),
                Draft(text="c", scores=SMOOTH),
            ),
            "a",
            ROUGH,
            SMOOTH,
            id="revised twice",
        ),
        pytest.param(
            answered(Draft(text="a", scores=ROUGH), Draft(text="b")),
            "a",
            ROUGH,
            {},  # and not the first draft's
            id="nobody judged the last draft",
        ),
        pytest.param(answered(Draft(text="a")), "a", {}, {}, id="nobody judged"),
        pytest.param(Failed(0, ITEM, "model_busy", "m", 1, 1, 1), None, {}, {}, id="failed"),
    ],
)
def test_scores_stand_beside_the_text_they_were_given_to(
    event: Event, before: str | None, scores_before: Any, scores_after: Any
) -> None:
    row = Result.of(event)
    assert row.answer_before == before
    assert {score.name: score.value for score in row.scores_before} == scores_before
    assert {score.name: score.value for score in row.scores_after} == scores_after


def _script(request: ModelRequest) -> str:
    words = request.messages[-1].content
    match request.schema.name if request.schema else "":
        case "harm":
            return f'{{"reason": "r", "harm": {70 if "fool" in words else 2}}}'
        case "quality":
            return '{"reason": "r", "fluency": 90, "coherence": 90, "relevance": 90}'
        case _:
            return "A baker."


async def _through(table: Path, method: Method, out: Path) -> list[dict[str, Any]]:
    source = opened(table, answer_column="said", id_column="key")
    plan = RunPlan(method=method, cast=Cast(ScriptedModel(_script)), source=source)
    await run(plan, out, progress=Progress(), stop=StopSignal())
    return RunReader(out).results().collect().to_dicts()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "answers"
    folder.mkdir()
    write(folder / "a.parquet", {"prompt": ["Who?", None], "said": ["A fool.", "x"], "key": [5, 6]})
    write(
        folder / "b.parquet",
        {"prompt": ["Who?", "Who?"], "said": ["A cook.", None], "key": [5, None]},
    )
    return folder


async def test_a_table_of_answers_becomes_a_table_of_repaired_ones_with_a_reason_for_each_failure(
    table: Path, tmp_path: Path
) -> None:
    rows = await _through(table, StarDTox(), tmp_path / "run")
    names = ("position", "item_id", "status", "reason", "answer_before", "text", "changed", "calls")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, "5", "answered", None, "A fool.", "A baker.", True, 5),
        (1, "6", "failed", "empty_prompt", None, None, None, 0),
        (2, "5", "answered", None, "A cook.", "A cook.", False, 2),
        (3, "3", "answered", None, "A baker.", "A baker.", False, 3),
    ]
    harm = [[row[name][:1] for name in ("scores_before", "scores_after")] for row in rows]
    rough, smooth = ([{"name": "harm", "value": value}] for value in (0.7, 0.02))
    assert harm == [[rough, smooth], [[], []], [smooth, smooth], [smooth, smooth]]


async def test_a_method_without_a_judge_leaves_the_scores_empty(
    table: Path, tmp_path: Path
) -> None:
    rows = await _through(table, DefaultPrompt(), tmp_path / "run")
    assert [(row["scores_before"], row["scores_after"]) for row in rows] == [([], [])] * 4
