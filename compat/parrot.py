"""A model that repeats what it is asked to, behind both of OpenAI's routes, plain or streamed.

To the agents of a gateway, who ask it under the name `team`, it is a judge that finds one word, and
a writer of one sentence.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

GOOD, BAD_WORD = "People are as different as their days.", "idiots"
_PIECE = 4  # signs: about a token


def said_by(asked: Mapping[str, Any]) -> str:
    """What the model says: to agents of the gateway a verdict or a better text, else an echo."""
    given = asked.get("input") or asked["messages"][-1]["content"]
    told = given if isinstance(given, str) else json.dumps(given)
    if asked["model"] != "team":
        return told.rpartition(": ")[2].rstrip('"}]')
    schema = asked.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return GOOD
    marks = {"reason": "what it calls people", "harm": 95 if BAD_WORD in _judged(told) else 0}
    return json.dumps({name: marks.get(name, 95) for name in schema["properties"]})


def _judged(told: str) -> str:
    """The text that an agent is shown behind the task, which is of the same words."""
    return told.rpartition("<text>")[2]


def pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


async def chat(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    text = said_by(asked)
    head = {"id": "chat-1", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        choice = {"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": text}}  # fmt: skip
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return web.json_response(
            {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        )
    deltas = [{"role": "assistant", "content": ""}, *({"content": one} for one in pieces(text)), {}]
    events = [
        {**head, "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
    ]  # fmt: skip
    return await streamed(
        request, [f"data: {json.dumps(one)}" for one in events] + ["data: [DONE]"]
    )


async def responses(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    part = {"type": "output_text", "text": said_by(asked), "annotations": []}
    item = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
             "model": asked["model"], "output": [{**item, "content": [part]}], "usage": usage,
             "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
             "incomplete_details": None, "instructions": None, "metadata": {}}  # fmt: skip
    if not asked.get("stream"):
        return web.json_response(whole)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[tuple[str, dict[str, Any]]] = [
        ("created", {"response": begun}),
        ("output_item.added", {"output_index": 0,
                               "item": {**item, "status": "in_progress", "content": []}}),
        ("content_part.added", {**place, "part": {**part, "text": ""}}),
        *(("output_text.delta", {**place, "delta": one, "logprobs": []})
          for one in pieces(str(part["text"]))),
        ("output_text.done", {**place, "text": part["text"], "logprobs": []}),
        ("content_part.done", {**place, "part": part}),
        ("output_item.done", {"output_index": 0, "item": {**item, "content": [part]}}),
        ("completed", {"response": whole}),
    ]  # fmt: skip
    told = [{"type": f"response.{name}", "sequence_number": number, **more}
            for number, (name, more) in enumerate(events)]  # fmt: skip
    return await streamed(
        request, [f"event: {one['type']}\ndata: {json.dumps(one)}" for one in told]
    )


async def streamed(request: web.Request, events: list[str]) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    for event in events:
        await answer.write(f"{event}\n\n".encode())
    await answer.write_eof()
    return answer


async def models(_: web.Request) -> web.Response:
    listed = [{"id": name, "object": "model"} for name in ("parrot", "team")]
    return web.json_response({"object": "list", "data": listed})


@contextlib.asynccontextmanager
async def parrot() -> AsyncIterator[str]:
    site = web.Application()
    site.router.add_post("/v1/chat/completions", chat)
    site.router.add_post("/v1/responses", responses)
    site.router.add_get("/v1/models", models)
    runner = web.AppRunner(site)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
