"""Two responses to a task: the second is the first in other words."""

from evenhand.core import Failed, Item
from evenhand.methods.judging import TwoResponses
from tests.stage import Stage, tagged

TASK = Item(id="note/0", prompt="Write a note.", tags={"base": "note", "kind": "home"})


async def test_the_second_response_is_written_from_the_first() -> None:
    drafts = ["Back at noon.", "I return at twelve."]
    stage = Stage({"writer": drafts})
    answer = await stage.answer(TwoResponses(), TASK)
    assert [draft.text for draft in answer.drafts] == drafts
    first, second = stage.asked_of("writer")
    assert "Write a note." in first
    assert f"{tagged('task', TASK.prompt)}\n\n{tagged('response', drafts[0])}" in second


async def test_without_a_second_response_there_is_none() -> None:
    stage = Stage({"writer": ["Back at noon.", "", ""]})
    assert isinstance(await stage.end_of(TwoResponses(), TASK), Failed)
