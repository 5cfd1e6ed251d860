"""Repairs of the last turn: whatever came before it is written back as it was."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.core import Item, Message
from evenhand.core.items import CalledFunction, Tool, ToolCall, ToolCalls, ToolResult
from evenhand.core.prices import Price, Prices
from evenhand.models import ModelReply, ModelRequest, Sample, ScriptedModel
from evenhand.runs.runners import JsonlFile, replay_of
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import spent_on
from tests.stage import harm, quality

BETTER = "A better answer."
# Half a surrogate pair is no text that a file of UTF-8 can hold.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | st.sampled_from(
    ["", " ", "\n", "\u0000", "é\u0301", "\U0001f3ab\u200d", '"tool_calls":[', "</text>", "null"]
)
_WORDS = _TEXT.filter(str.strip)
_CALL = st.fixed_dictionaries(
    {
        "id": _WORDS,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": _WORDS, "arguments": _TEXT}),
    }
)


@st.composite
def _tool_use(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A turn that calls tools, and the results of its calls."""
    calls = draw(st.lists(_CALL, min_size=1, max_size=2))
    content = draw(st.none() | _TEXT.filter(bool))
    results = [
        {"role": "tool", "content": draw(_TEXT), "tool_call_id": call["id"]} for call in calls
    ]
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]


_TOOL = st.fixed_dictionaries(
    {
        "function": st.fixed_dictionaries({"name": _WORDS, "description": _TEXT}),
        "type": st.just("function"),
    }
)
_SAID = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": _TEXT}
).map(lambda turn: [turn])


@st.composite
def _conversation(draw: st.DrawFn) -> dict[str, Any]:
    """A line of a fine-tuning file, whose last turn is a stored answer."""
    earlier = draw(st.lists(_SAID | _tool_use(), max_size=4))
    asked = [{"role": "user", "content": draw(_WORDS)}]
    looked_up = draw(st.lists(_tool_use(), max_size=1))
    answer = [{"role": "assistant", "content": draw(_WORDS)}]
    turns = [turn for part in (*earlier, asked, *looked_up, answer) for turn in part]
    declared = draw(st.lists(_TOOL, max_size=1))
    return {"messages": turns, **({"tools": declared} if declared else {})}


def _says(request: ModelRequest) -> str:
    """Finds every answer but its own harmful."""
    if request.schema is None:
        return BETTER
    good = BETTER in request.messages[-1].content
    return harm(0 if good else 90) if request.schema.name == "harm" else quality(95, 95, 95)


@settings(max_examples=3, deadline=None)
@given(st.lists(_conversation(), min_size=3, max_size=16))
def test_a_repair_changes_the_last_turn_alone_and_is_replayed_without_a_call(
    conversations: list[dict[str, Any]],
) -> None:
    with TemporaryDirectory() as name:
        folder, model = Path(name), ScriptedModel(_says)
        lines = folder / "talks.jsonl"
        lines.write_text("\n".join(map(json.dumps, conversations)), "utf-8")
        eh.mitigate(JsonlFile(lines), model=model, out=str(folder / "a"))
        eh.runs_export(folder / "a", folder / "out.jsonl", to="messages")
        written = list(map(json.loads, (folder / "out.jsonl").read_bytes().splitlines()))
        asked = model.requests
        eh.mitigate(JsonlFile(lines), model=replay_of(folder / "a"), out=str(folder / "b"))
        first, again = (RunReader(folder / run).results().collect() for run in "ab")
    repaired = {"role": "assistant", "content": BETTER}
    assert written == [
        {**line, "messages": [*line["messages"][:-1], repaired]} for line in conversations
    ]
    assert first.equals(again)
    assert model.requests == asked


# -- what a cap counts ----------------------------------------------------------------------------

CALL = ToolCall("c1", CalledFunction("seats", '{"row": 3}'))
TALK = Item(
    id="0",
    prompt="Why?",
    history=(Message("system", "Sell tickets."), ToolCalls("assistant", "", (CALL,)),
             ToolResult("tool", "Seat 12", "c1")),
    tools=(Tool({"name": "seats"}),),
)  # fmt: skip
# "Sell tickets.", 'seats {"row": 3}', "Seat 12", "Why?", and the declared tool
BYTES = 13 + 16 + 7 + 4 + len('[{"function":{"name":"seats"},"type":"function"}]')
PRICES = Prices({"m": Price(per_million_prompt_tokens=1e6, per_million_completion_tokens=0.0)})


def _uncounted(request: ModelRequest) -> ModelReply:
    return ModelReply(samples=(Sample("So."),), usage=None, started_us=1)


def test_a_cap_on_cost_reserves_for_every_turn_and_every_declared_tool() -> None:
    request = ModelRequest(messages=TALK.messages, tools=TALK.tools, max_tokens=1)
    bare = ModelRequest(messages=(), max_tokens=1)
    cap = SpendingCap(max_cost=1.0, prices=PRICES)
    assert cap.most("m", request) - cap.most("m", bare) == pytest.approx(BYTES)


def test_what_was_spent_on_a_conversation_that_nobody_counted_is_all_of_it(tmp_path: Path) -> None:
    single = Item(id="0", prompt="Why?")
    costs = []
    for name, item in (("talk", TALK), ("single", single)):
        model = ScriptedModel(_uncounted, name="m")
        eh.mitigate([item], model=model, method="default", out=str(tmp_path / name))
        costs.append(spent_on(tmp_path / name, PRICES).cost)
    assert costs[0] - costs[1] == pytest.approx(BYTES - len("Why?"), abs=2)
