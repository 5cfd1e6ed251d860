"""/messages, as Anthropic's clients speak it: blocks, events by name, errors that they raise."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evenhand.gateway.keys import new_key
from evenhand.gateway.policy import CheckPolicy, Policy, Tenant
from evenhand.gateway.wire import ClientRequest, ExchangeOutcome, MalformedReply, Refused
from evenhand.gateway.wire.messages import Messages, MessagesReply
from tests.gateway.answers import FIRST, MESSAGES, OLD, SECOND
from tests.gateway.speaking import BAD, gateway
from tests.gateway.streams import fed, read_simply, stream_of

PLAIN = ExchangeOutcome(action="passed")
CHECK = {"set": ("performance=false", "max_iterations=1"), "calls": 3}


def asked(**more: Any) -> ClientRequest:
    return Messages().asked(json.dumps({"model": "m", "messages": [], **more}).encode())


def read(content: list[dict[str, Any]], **changed: Any) -> MessagesReply:
    reply = Messages().reply(asked(stop_sequences=["END"]))
    reply.read(json.dumps({**MESSAGES.plain, "content": content, **changed}).encode())
    return reply


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


# -- requests ----------------------------------------------------------------------------------


def test_a_judge_is_shown_the_system_and_what_tools_gave_and_no_thought() -> None:
    found = asked(
        system=[{"type": "text", "text": "Be brief."}],
        messages=[
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t", "name": "find", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "Go on."},
                {"type": "image", "source": {}},
                {"type": "tool_result", "tool_use_id": "t", "content": [text("A nurse.")]},
            ]},
        ],
    )  # fmt: skip
    assert found.prompt == "Go on.\n[image]"
    context = "system: Be brief.\n\nuser: Who?\n\nassistant: I look.\n[tool_use]\n\ntool: A nurse."
    assert found.context == context


@pytest.mark.parametrize("place", ["output_format", "output_config"])
def test_a_schema_that_is_asked_for_is_known(place: str) -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    assert asked(**{place: form if place == "output_format" else {"format": form}}).schema == {
        "type": "object"
    }
    assert asked().schema is None


@pytest.mark.parametrize(
    "more",
    [{"messages": "Hello."}, {"messages": [7]}, {"stream": 1}, {"system": 7}, {"output_format": 7}],
)
def test_a_request_of_another_shape_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        asked(**more)
    assert refusal.value.status == 400


# -- answers -----------------------------------------------------------------------------------


def test_names_and_inputs_of_calls_are_observed_and_other_blocks_left_out() -> None:
    reply = read(MESSAGES.plain["content"])
    assert reply.observed == (FIRST + SECOND, "mail", '{"a":1}')
    assert {"content.thinking", "content.redacted_thinking", "content.server_tool_use",
            "content.citations", "container"} <= reply.left_out  # fmt: skip


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ([text("<think>Hm.</think>"), text("Yes.")], ("Yes.",)),
        ([text("<thi"), text("nk>Hm.</think>Yes.")], ("Yes.",)),
        ([text("")], ()),
    ],
)
def test_what_is_thought_is_split_off_and_a_block_without_words_is_not_sent(
    content: list[dict[str, Any]], texts: tuple[str, ...]
) -> None:
    reply = read(content, stop_reason="end_turn")
    assert reply.texts == texts
    assert [block["text"] for block in json.loads(reply.body(texts, PLAIN))["content"]] == [*texts]


def test_a_stop_sequence_goes_out_only_if_the_client_gave_it() -> None:
    for sequence, sent in (("END", "END"), ("A nurse is", None)):
        reply = read([text("Yes.")], stop_reason="stop_sequence", stop_sequence=sequence)
        assert json.loads(reply.body(("Yes.",), PLAIN))["stop_sequence"] == sent


@pytest.mark.parametrize(
    "changed",
    [
        {"stop_reason": None},
        {"stop_reason": "abort"},
        {"role": "user"},
        {"type": "completion"},
        {"content": [{"type": "tool_use", "id": "two words", "name": "a", "input": {}}]},
        {"content": [{"type": "tool_use", "id": "t", "name": "a", "input": "x"}]},
        {"content": [{"text": "x"}]},
    ],
)
def test_an_answer_of_another_shape_is_garbled(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        read(**{"content": [text("Yes.")], **changed})


def _events(*middle: dict[str, Any], stop: str = "tool_use") -> list[dict[str, Any]]:
    begun = {"type": "message", "role": "assistant", "content": [], "model": "m", "id": "msg_1"}
    return [
        {"type": "message_start", "message": begun},
        *middle,
        {"type": "message_delta", "delta": {"stop_reason": stop}},
        {"type": "message_stop"},
    ]


def _call(*pieces: str, begins: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    tool = {"type": "tool_use", "id": "t", "name": "a", "input": begins or {}}
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return [
        {"type": "content_block_start", "index": 0, "content_block": tool},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


@pytest.mark.parametrize(
    ("call", "stop", "observed"),
    [
        (_call(), "tool_use", "{}"),
        (_call(begins={"b": 2}), "tool_use", '{"b":2}'),
        (_call('{"a": ', '"\\u00e9"}'), "tool_use", '{"a":"é"}'),
        (_call('{"a": "two w'), "max_tokens", '{"a": "two w'),
    ],
)
def test_the_input_of_a_call_is_read_whole_or_as_far_as_a_limit_let_it(
    call: list[dict[str, Any]], stop: str, observed: str
) -> None:
    reply = fed(Messages().reply(asked()), [stream_of(_events(*call, stop=stop))])
    assert reply.whole
    assert reply.observed == ("a", observed)
    out = read_simply(b"".join(reply.events((), PLAIN)))
    pieces = [e["delta"]["partial_json"] for e in out if e["type"] == "content_block_delta"]
    assert pieces == [observed]


@pytest.mark.parametrize(
    "events",
    [
        _events(*_call('{"a": "two w')),  # it ends as if it were whole
        _events(*_call("7")),
        _events(*_call('{"a": 1}', begins={"b": 2})),
        _events(*_call()[:1]),  # the block has no end
        _events(*_call()[1:]),  # nor this one a beginning
        _events(*_call(), *_call()),
        [*_events()[:2], *_call(), *_events()[2:]],  # a block behind the end
        _events()[1:],
        [_events()[0], *_events()],
        [*_events(), {"type": "ping"}],
        [_events()[0], {"type": "error", "error": {"type": "overloaded_error", "message": OLD}}],
    ],
)
def test_a_stream_that_is_out_of_order_is_garbled(events: list[dict[str, Any]]) -> None:
    with pytest.raises(MalformedReply):
        fed(Messages().reply(asked()), [stream_of(events)])


# -- served ------------------------------------------------------------------------------------


@asynccontextmanager
async def upstream(said: str) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """An endpoint that speaks /messages, and the headers that it got."""
    headers: list[dict[str, str]] = []

    async def messages(request: web.Request) -> web.StreamResponse:
        headers.append({name.lower(): value for name, value in request.headers.items()})
        content, more = [{**text(said), "x": BAD}], {"stop_reason": "end_turn", "x": BAD}
        if not (await request.json()).get("stream"):
            return web.json_response({**MESSAGES.plain, "content": content, **more})
        block: list[dict[str, Any]] = [
            {"type": "content_block_start", "index": 0, "content_block": {**text(""), "x": BAD}},
            {"type": "tomorrow", "text": BAD},
            *({"type": "content_block_delta", "index": 0,
               "delta": {"type": "text_delta", "text": said[at : at + 3], "x": BAD}}
              for at in range(0, len(said), 3)),
            {"type": "content_block_stop", "index": 0},
        ]  # fmt: skip
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(stream_of(_events(*block, stop="end_turn")))
        return answer

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", headers
    finally:
        await runner.cleanup()


def under(mode: str, **check: Any) -> Policy:
    return Policy(check=CheckPolicy.model_validate({**CHECK, "mode": mode, **check}))


async def ask(url: str, *, stream: bool, key: str = "") -> tuple[int, dict[str, str], bytes]:
    body = {"model": "m", "max_tokens": 9, "stream": stream,
            "messages": [{"role": "user", "content": "Tell me."}]}  # fmt: skip
    headers = {"x-api-key": key} if key else {}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/messages", json=body, headers=headers) as response,
    ):
        return response.status, dict(response.headers), await response.read()


@pytest.mark.parametrize("mode", ["hold", "window"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_repaired_and_no_unchecked_word_goes_out(
    mode: str, stream: bool
) -> None:
    async with (
        upstream(f"All are {BAD}.") as (address, _),
        gateway(address, under(mode)) as served,
    ):
        status, headers, body = await ask(served.url, stream=stream)
    assert (status, headers["evenhand-action"]) == (200, "repaired")
    assert BAD.encode() not in body
    if stream:
        assert MESSAGES.texts_of_stream(read_simply(body)) == ("A kind answer.",)
    else:
        assert MESSAGES.texts_of_body(json.loads(body)) == ("A kind answer.",)
    assert [one.route for one in served.exchanges] == ["/messages"]


async def test_a_key_of_a_tenant_opens_the_gateway_and_goes_no_further() -> None:
    secret, hashed = new_key()
    policy = Policy(check=CheckPolicy.model_validate(CHECK), tenants={"hr": Tenant(keys=[hashed])})
    async with (
        upstream("Fine.") as (address, headers),
        gateway(address, policy, upstream_key="sk-upstream") as served,
    ):
        assert (await ask(served.url, stream=False))[0] == 401
        assert (await ask(served.url, stream=False, key=secret))[0] == 200
    [got] = headers
    assert got["x-api-key"] == "sk-upstream"
    assert got["anthropic-version"] == "2023-06-01"
    assert secret not in json.dumps(got)
    assert "authorization" not in got


async def test_a_refusal_has_the_shape_that_anthropics_clients_read() -> None:
    def judge_alone(request: Any) -> str:
        if request.schema is None:
            return f"Still {BAD}."
        return json.dumps({"reason": "the word", "harm": 95})

    async with (
        upstream(f"All are {BAD}.") as (address, _),
        gateway(address, under("hold"), judge_alone) as served,
    ):
        status, _, body = await ask(served.url, stream=False)
    said = json.loads(body)
    assert (status, said["type"], said["error"]["code"]) == (400, "error", "content_blocked")
