"""Answers that could not be read: the page says why, and the next step is about that."""

import json
from pathlib import Path

import evenhand as eh
from evenhand.models import ModelReply, ModelRequest, Sample
from evenhand.runs.store import RunReader
from evenhand.views import catalog, markdown, page_of
from tests.api.titles import Titles


def _told(request: ModelRequest) -> str | ModelReply:
    """Of 4 occupations with 2 questions each: nurses get prose, bosses get nothing but a beginning,
    the others an answer."""
    words = request.messages[-1].content + "".join(one.content for one in request.messages)
    if "nurse" in words:
        return "It was she."
    if "boss" in words:
        return ModelReply(samples=(Sample('{"answer": ', finish="length"),), usage=None)
    return json.dumps({"answer": "C"})


def _next(report: eh.Report) -> list[str]:
    return [step.split("    ")[0] for step in catalog.texts(report.verdict.next)]


def test_the_next_step_shows_a_failure_and_asks_the_doctor_not_how_many_items(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    found = eh.measure(Titles(), model=eh.ScriptedModel(_told), out=out)
    assert found.coverage.scored == 4
    assert dict(found.failed_by_reason) == {
        "unreadable_reply:not_json": 2, "unreadable_reply:cut_off": 2,
    }  # fmt: skip
    assert found.to_dict()["scores"]["coverage"]["failed_by_reason"] == found.failed_by_reason
    assert found.failed_item in ("nurse/0", "nurse/1", "boss/0", "boss/1")
    show, longer, doctor = _next(found)
    assert show == f"evenhand runs show {out} --item {found.failed_item}"
    assert "--max-tokens" in longer
    assert doctor == "evenhand doctor"
    shown = markdown.render(page_of(found))
    assert "2 not\\_json" in shown
    assert "2 cut\\_off" in shown


def test_of_no_answer_at_all_nothing_is_said_and_no_empty_table_shown(tmp_path: Path) -> None:
    model = eh.ScriptedModel(lambda _: "I would rather not say.")
    found = eh.measure(Titles(), model=model, out=tmp_path / "run")
    assert (found.coverage.scored, found.coverage.n) == (0, 8)
    assert len(found.verdict.says) == 1
    shown = markdown.render(page_of(found))
    assert "no rows" not in shown
    first = RunReader(tmp_path / "run").results().collect()
    assert found.failed_item in first["item_id"].to_list()


def test_with_enough_answers_the_next_step_is_as_before(tmp_path: Path) -> None:
    model = eh.ScriptedModel(lambda _: json.dumps({"answer": "C"}))
    found = eh.measure(Titles(), model=model, out=tmp_path / "run")
    assert found.failed_item is None
    assert not any("runs show" in step for step in _next(found))
