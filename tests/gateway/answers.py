"""Answers as upstreams give them, plain and streamed, with the texts that they hold."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenhand.gateway.wire import UpstreamReply, Wire
from evenhand.gateway.wire.chat import Chat
from evenhand.gateway.wire.completions import Completions
from evenhand.gateway.wire.messages import Messages
from evenhand.gateway.wire.responses import Responses
from tests.gateway.streams import DONE

OLD = "zanzibarold"  # a word that is in each text, and beside it, and nowhere else
FIRST, SECOND = f"Nurses are {OLD} women 👩‍⚕️, é́.", f"A second {OLD}."


@dataclass(frozen=True)
class Sample:
    """One answer in both forms, and how its texts are read back from what we wrote."""

    wire: Wire
    request: dict[str, Any]
    plain: dict[str, Any]
    stream: list[Any]
    texts: tuple[str, ...]
    texts_of_body: Callable[[Any], tuple[str, ...]]
    texts_of_stream: Callable[[list[Any]], tuple[str, ...]]

    def reply(self, **changed: Any) -> UpstreamReply:
        request = {**self.request, **changed}
        return self.wire.reply(self.wire.asked(json.dumps(request).encode()))


def tokens(text: str) -> list[dict[str, Any]]:
    """Log-probabilities of a text, a token for each three characters."""
    cut = [text[at : at + 3] for at in range(0, len(text), 3)]
    one = [{"token": t, "logprob": -0.5, "bytes": list(t.encode())} for t in cut]
    return [{**t, "top_logprobs": [t, {**t, "token": OLD}]} for t in one]


CITED = {
    "type": "url_citation",
    "url_citation": {"url": f"http://a/{OLD}", "title": OLD, "start_index": 0, "end_index": 3},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "mail", "arguments": '{"a": 1}'}}
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m", "system_fingerprint": "fp_1"}
USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "total_tokens": 8,
    "completion_tokens_details": {"reasoning_tokens": 2},
}


def _chat_plain() -> dict[str, Any]:
    first = {
        "role": "assistant",
        "content": FIRST,
        "refusal": None,
        "annotations": [CITED],
        "reasoning_content": OLD,
        "tool_calls": [CALL],
    }
    second = {"role": "assistant", "content": SECOND, "reasoning": OLD}
    return {
        **HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": first,
                "logprobs": {"content": tokens(FIRST), "refusal": None},
                "finish_reason": "tool_calls",
            },
            {"index": 1, "message": second, "finish_reason": "stop"},
        ],
        "usage": USAGE,
    }


def _chat_stream() -> list[Any]:
    def chunk(index: int, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "finish_reason": None, **more}
        return {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}

    events = [chunk(0, {"role": "assistant", "content": ""}), chunk(1, {"role": "assistant"})]
    for at, token in enumerate(tokens(FIRST)):
        events.append(chunk(0, {"content": token["token"]}, logprobs={"content": [token]}))
        events.append(chunk(1, {"content": SECOND[2 * at : 2 * at + 2], "thinking": OLD}))
    name = {**CALL, "index": 0, "function": {"name": "mail", "arguments": ""}}
    events.append(chunk(0, {"tool_calls": [name], "annotations": [CITED]}))
    for piece in ('{"a"', ": 1}"):
        events.append(chunk(0, {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    events += [chunk(1, {}, finish_reason="stop"), chunk(0, {}, finish_reason="tool_calls")]
    return [*events, {**HEAD, "choices": [], "usage": USAGE}, DONE]


def _chat_texts(events: list[Any]) -> tuple[str, ...]:
    found = {0: "", 1: ""}
    for event in events[:-1]:
        for choice in event["choices"]:
            found[choice["index"]] += choice["delta"].get("content") or ""
    return tuple(found.values())


CHAT = Sample(
    wire=Chat(),
    request={
        "model": "m",
        "messages": [{"role": "user", "content": "Describe a nurse."}],
        "n": 2,
        "logprobs": True,
        "stream_options": {"include_usage": True},
    },
    plain=_chat_plain(),
    stream=_chat_stream(),
    texts=(FIRST, SECOND),
    texts_of_body=lambda body: tuple(c["message"]["content"] for c in body["choices"]),
    texts_of_stream=_chat_texts,
)


def _columns(text: str) -> dict[str, Any]:
    found = tokens(text)
    return {
        "tokens": [token["token"] for token in found],
        "token_logprobs": [-0.5 for _ in found],
        "top_logprobs": [{token["token"]: -0.5, OLD: -0.7} for token in found],
        "text_offset": [3 * place for place in range(len(found))],
    }


def _completions_plain() -> dict[str, Any]:
    return {
        **HEAD,
        "object": "text_completion",
        "choices": [
            {"index": 0, "text": FIRST, "logprobs": _columns(FIRST), "finish_reason": "stop"},
            {"index": 1, "text": SECOND, "logprobs": None, "finish_reason": "length", "why": OLD},
        ],
        "usage": USAGE,
    }


def _completions_stream() -> list[Any]:
    def chunk(index: int, text: str, finish: str | None, **more: Any) -> dict[str, Any]:
        choice = {"index": index, "text": text, "finish_reason": finish, **more}
        return {**HEAD, "object": "text_completion", "choices": [choice]}

    columns, events = _columns(FIRST), []
    for at, token in enumerate(columns["tokens"]):
        one = {name: [column[at]] for name, column in columns.items()}
        events.append(chunk(0, token, None, logprobs=one))
        events.append(chunk(1, SECOND[2 * at : 2 * at + 2], None, thinking=OLD))
    events += [chunk(0, "", "stop"), chunk(1, "", "length")]
    return [*events, {**HEAD, "choices": [], "usage": USAGE}, DONE]


def _completions_texts(events: list[Any]) -> tuple[str, ...]:
    found = {0: "", 1: ""}
    for event in events[:-1]:
        for choice in event["choices"]:
            found[choice["index"]] += choice["text"]
    return tuple(found.values())


COMPLETIONS = Sample(
    wire=Completions(),
    request={
        "model": "m",
        "prompt": ["Nurses are", "A second"],
        "logprobs": 2,
        "stream_options": {"include_usage": True},
    },
    plain=_completions_plain(),
    stream=_completions_stream(),
    texts=(FIRST, SECOND),
    texts_of_body=lambda body: tuple(choice["text"] for choice in body["choices"]),
    texts_of_stream=_completions_texts,
)
REASONED = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": OLD}],
    "encrypted_content": OLD,
}
ASKED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "mail",
    "arguments": '{"a": 1}',
    "status": "completed",
}


def _text_part(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **more}


def _message(name: str, *parts: dict[str, Any]) -> dict[str, Any]:
    said = {"type": "message", "id": name, "role": "assistant", "status": "completed"}
    return {**said, "content": list(parts)}


def _responses_plain() -> dict[str, Any]:
    cited = {"type": "url_citation", **CITED["url_citation"]}  # type: ignore[dict-item]
    first = _text_part(FIRST, annotations=[cited], logprobs=tokens(FIRST))
    no = {"type": "refusal", "refusal": "No."}
    messages = _message("msg_1", first, no), _message("msg_2", _text_part(SECOND))
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": OLD,
        "output": [REASONED, messages[0], ASKED, messages[1]],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 3,
        },
    }


def _responses_stream() -> list[Any]:
    end = _responses_plain()
    begun = {**end, "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": OLD},
    ]
    for place, item in enumerate(end["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        bare = {key: value for key, value in item.items() if key != "summary"}
        events.append({"type": "response.output_item.added", **at, "item": bare | {"content": []}})
        for number, part in enumerate(item.get("content", ())):
            spot = {**at, "content_index": number}
            kind, key = part["type"], "refusal" if part["type"] == "refusal" else "text"
            events.append({"type": "response.content_part.added", **spot, "part": part | {key: ""}})
            for start in range(0, len(part[key]), 3):
                piece = part[key][start : start + 3]
                events.append({"type": f"response.{kind}.delta", **spot, "delta": piece})
            events.append({"type": f"response.{kind}.done", **spot, key: part[key]})
            events.append({"type": "response.content_part.done", **spot, "part": part})
        if "arguments" in item:
            name = "response.function_call_arguments"
            for piece in ('{"a"', ": 1}"):
                events.append({"type": f"{name}.delta", **at, "delta": piece})
            events.append({"type": f"{name}.done", **at, "arguments": item["arguments"]})
        events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": end})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _output_texts(response: Any) -> tuple[str, ...]:
    parts = [part for item in response["output"] for part in item.get("content", ())]
    return tuple(part["text"] for part in parts if part["type"] == "output_text")


def _responses_texts(events: list[Any]) -> tuple[str, ...]:
    """The texts, after a look at all five places where they stand."""
    found: dict[tuple[int, int], list[str]] = {}
    places: dict[str, dict[tuple[int, int], str]] = {"text": {}, "part": {}, "item": {}}
    for event in events:
        at = (event.get("output_index", 0), event.get("content_index", 0))
        match event["type"]:
            case "response.output_text.delta":
                found.setdefault(at, []).append(event["delta"])
            case "response.output_text.done":
                places["text"][at] = event["text"]
                found.setdefault(at, [])
            case "response.content_part.done" if event["part"]["type"] == "output_text":
                places["part"][at] = event["part"]["text"]
            case "response.output_item.done":
                for number, part in enumerate(event["item"].get("content", ())):
                    if part["type"] == "output_text":
                        places["item"][at[0], number] = part["text"]
    deltas = {at: "".join(pieces) for at, pieces in found.items()}
    assert deltas == places["text"] == places["part"] == places["item"]
    assert tuple(deltas.values()) == _output_texts(events[-1]["response"])
    return tuple(deltas.values())


RESPONSES = Sample(
    wire=Responses(),
    request={"model": "m", "input": "Describe a nurse."},
    plain=_responses_plain(),
    stream=_responses_stream(),
    texts=(FIRST, SECOND),
    texts_of_body=_output_texts,
    texts_of_stream=_responses_texts,
)


def _messages_plain() -> dict[str, Any]:
    cited = {"type": "char_location", "cited_text": OLD, "document_title": OLD}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": OLD, "signature": OLD},
            {"type": "text", "text": FIRST, "citations": [cited]},
            {"type": "server_tool_use", "id": "s_1", "name": "web_search", "input": {"q": OLD}},
            {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": {"a": 1}},
            {"type": "redacted_thinking", "data": OLD},
            {"type": "text", "text": SECOND},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "cache_read_input_tokens": 4, "output_tokens": 2},
        "container": {"id": OLD},
    }


def _messages_stream() -> list[Any]:
    end = _messages_plain()
    begun = {
        **end,
        "content": [],
        "stop_reason": None,
        "usage": {**end["usage"], "output_tokens": 0},
    }
    events: list[Any] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(end["content"]):
        at = {"index": index}
        deltas: list[dict[str, Any]] = []
        first = block
        match block["type"]:
            case "text":
                first = {"type": "text", "text": ""}
                text = block["text"]
                deltas = [{"type": "text_delta", "text": text[s : s + 3]}
                          for s in range(0, len(text), 3)]  # fmt: skip
                deltas += [{"type": "citations_delta", "citation": c}
                           for c in block.get("citations", ())]  # fmt: skip
            case "tool_use":
                first = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": p} for p in ('{"a"', ": 1}")]
            case "thinking":
                first = {**block, "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": OLD},
                          {"type": "signature_delta", "signature": OLD}]  # fmt: skip
        events.append({"type": "content_block_start", **at, "content_block": first})
        events += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", **at})
    ended = {"stop_reason": end["stop_reason"], "stop_sequence": None, "container": {"id": OLD}}
    events.append({"type": "an_event_of_tomorrow", "text": OLD})
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 2}})
    return [*events, {"type": "message_stop"}]


def _block_texts(blocks: list[Any]) -> tuple[str, ...]:
    return tuple(block["text"] for block in blocks if block["type"] == "text")


def _messages_texts(events: list[Any]) -> tuple[str, ...]:
    """The texts, read as Anthropic's own client does."""
    assert events[0]["type"] == "message_start"
    assert events[-1] == {"type": "message_stop"}
    content: list[Any] = []
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(content)
                content.append(dict(event["content_block"]))
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                content[event["index"]]["text"] += event["delta"]["text"]
    return _block_texts(content)


MESSAGES = Sample(
    wire=Messages(),
    request={
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Describe a nurse."}],
    },
    plain=_messages_plain(),
    stream=_messages_stream(),
    texts=(FIRST, SECOND),
    texts_of_body=lambda body: _block_texts(body["content"]),
    texts_of_stream=_messages_texts,
)
SAMPLES = {
    "chat": CHAT,
    "completions": COMPLETIONS,
    "responses": RESPONSES,
    "messages": MESSAGES,
}
