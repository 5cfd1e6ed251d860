"""What is shown of a run and of one conversation: failures first, nothing cut in silence."""

from dataclasses import replace

import orjson

from evenhand.core import Answer, Draft, Turn
from evenhand.core.errors import UserError
from evenhand.core.items import CalledFunction, Tool, ToolCall, ToolCalls
from evenhand.findings.cost import Money
from evenhand.findings.summary import Summary
from evenhand.views import markdown, page_of
from evenhand.views.timeline_page import conversation, timeline, transcript
from tests.errors import assert_names, raises_naming

SUMMARY = Summary(
    run="runs/first",
    method={"name": "stardtox", "settings": {"max_iterations": 1}},
    cast={"default": {"model": "small"}},
    seed=None,
    created="2026-01-01T00:00:00Z",
    planned=100,
    answered=90,
    failed_by_reason={"model_refused": 4},
    changed=30,
    calls=188,
    prompt_tokens=1200,
    completion_tokens=300,
    items_without_token_count=0,
    tags_taken_off=0,
    money=Money(cost=None, currency=None),
)


def test_what_is_not_run_yet_is_missing_as_what_failed_is() -> None:
    """90 of 100 answered, 4 failed: 6 are not run, and coverage is 90 %, not 90/94."""
    assert (SUMMARY.failed, SUMMARY.not_run) == (4, 6)
    assert SUMMARY.coverage.coverage == 0.9
    assert SUMMARY.coverage.below_floor
    assert SUMMARY.coverage.by_reason == {"model_refused": 4, "not_run": 6}
    assert not replace(SUMMARY, answered=96).coverage.below_floor


def test_a_summary_says_what_failed_before_any_count() -> None:
    text = markdown.render(page_of(SUMMARY))
    assert text.index("Coverage 90.0%") < text.index("4 failed") < text.index("answered")
    assert "188 (2.00" in text  # 188 calls for 94 items  # 188 calls for 94 items
    assert "no price file" in text


def test_a_run_without_items_has_no_coverage_rather_than_a_full_one() -> None:
    empty = replace(SUMMARY, planned=0, answered=0, failed_by_reason={}, calls=0)
    assert empty.coverage.coverage is None
    assert "no items" in markdown.render(page_of(empty))


def test_a_finding_that_is_no_table_says_how_to_save_it() -> None:
    with raises_naming(UserError, ".json", ".md", ".html", ".pdf"):
        SUMMARY.frame()


def test_a_reply_that_calls_a_tool_and_the_declared_tools_are_shown() -> None:
    call = ToolCall("c1", CalledFunction("seats", '{"row": 3}'))
    turn = _turn(texts=("",), tool_calls=orjson.dumps([[call]]).decode())
    text = markdown.render(conversation([turn], (), "single_pass"))
    assert "seats" in text
    asked = transcript([ToolCalls("assistant", "Hm.", (call,))], [Tool({"name": "seats"})])
    assert [line.text for line in asked] == ["tools: seats", 'assistant: Hm.\nseats {"row": 3}']


def _turn(**given: object) -> Turn:
    turn = Turn(
        position=0,
        item_id="0",
        index=0,
        role="generator",
        prompt="stardtox/write@1",
        prompt_sha256="",
        request="",
        occurrence=0,
        model="small",
        messages=(),
        settings="{}",
        started_us=0,
        seconds=1.5,
        attempts=1,
        texts=("A nurse helps.",),
        prompt_tokens=20,
        completion_tokens=5,
    )
    return replace(turn, **given)  # type: ignore[arg-type]


def test_a_timeline_ends_with_the_answer_and_what_it_took() -> None:
    drafts = (Draft(text="Rude.", scores={"harm": 0.6}), Draft(text="Kind."))
    answer = Answer(drafts=drafts, stopped="accepted")
    judged = _turn(index=1, role="judge", texts=('{"harm": 0.6}',), prompt_tokens=None)
    text = markdown.render(timeline(answer, [_turn(), judged]))
    assert text.index(r"1\. generator") < text.index("A nurse helps.") < text.index(r"2\. judge")
    assert "harm: 0.6" in text  # a typed reply, field by field
    rows = "| first | 0.60 |\n| revision 1 | - |"  # no score is not a 0
    assert rows in text  # no score is not a 0
    assert_names(text, "2 calls", "25 tokens", "1 turns")
    assert text.rstrip().endswith("Kind.")


def test_a_failed_turn_and_a_cut_reply_say_that_they_are() -> None:
    failed = _turn(texts=(), error="model_busy", error_message="503")
    text = markdown.render(conversation([failed, _turn(texts=("x" * 1000,))], (), "model_busy"))
    assert "FAILED (model\\_busy): 503" in text
    assert "(300 more)" in text
    assert "stopped: model\\_busy" in text
