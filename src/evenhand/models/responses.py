"""OpenAI's Responses API in terms of its chat API: a request of one becomes a request of the other,
and an answer too. This module does no I/O.

What differs between servers, what is learned of them and how an answer is read is thus the same for
both, and stands in `wire` alone.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from evenhand.models.wire import BadBody

# What the Responses API has no field for. Each is said in the words in which a server says it, so
# that it is learned, and kept in the record, like any other refusal.
_UNKNOWN = ("seed", "stop", "n")
_NOT_SENT = ("stream", "stream_options")
_LENGTHS = ("max_tokens", "max_completion_tokens")
_RENAMED = {"reasoning_effort": ("reasoning", "effort"), "verbosity": ("text", "verbosity")}
_CUT = {"max_output_tokens": "length"}
# What a chat answer has the same name for.
_SAME = ("model", "error")


def refusal(body: Mapping[str, Any]) -> bytes | None:
    """Give the error body of a server for the first field that `/responses` does not have."""
    for name in _UNKNOWN:
        if name in body:
            words = f"Unsupported parameter: '{name}' is not supported with the Responses API."
            return orjson.dumps({"error": {"message": words, "param": name}})
    return None


def request_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Make the body of a chat request that of a request of `/responses`."""
    fields = {
        name: value for name, value in body.items() if value is not None and name not in _NOT_SENT
    }
    turns = [part for message in fields.pop("messages") for part in _parts_of(message)]
    asked: dict[str, Any] = {"input": turns, "store": False}
    for name in _LENGTHS:
        if name in fields:
            asked["max_output_tokens"] = fields.pop(name)
    if "tools" in fields:
        fields["tools"] = [_tool(tool) for tool in fields["tools"]]
    if fields.pop("logprobs", False):
        asked["include"] = ["message.output_text.logprobs"]
    if form := fields.pop("response_format", None):
        asked["text"] = {"format": {"type": form["type"], **form.get("json_schema", {})}}
    for name, (section, key) in _RENAMED.items():
        if name in fields:
            asked[section] = {**asked.get(section, {}), key: fields.pop(name)}
    return {**asked, **fields}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Write a declared tool. `/responses` is strict where the chat API is not, unless told."""
    return {"type": tool["type"], "strict": False, **tool["function"]}


def _parts_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Write calls of tools and their results as the items that `/responses` has for them."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"],
                 "output": message["content"]}]  # fmt: skip
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in message.get("tool_calls", ())
    ]
    if not calls:
        return [message]
    words = [{"role": message["role"], "content": message["content"]}] if message["content"] else []
    return [*words, *calls]


def chat_of(body: bytes) -> bytes:
    """Make the answer of `/responses` one of the chat API; a failure becomes an error."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"body is not JSON ({error})") from None
    if not isinstance(answer, dict):
        raise BadBody("body is not a JSON object")
    chat = {name: answer[name] for name in _SAME if answer.get(name)}
    if answer.get("status") != "failed" and not answer.get("error"):
        chat |= {"choices": [_choice(answer)], "usage": _usage(answer.get("usage"))}
    return orjson.dumps(chat)


def _choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Put the parts of all items together, in their order."""
    parts: list[Any] = []
    calls: list[Any] = []
    for item in _items(answer.get("output")):
        if item.get("type") == "message":
            parts += _items(item.get("content"))
        elif item.get("type") == "function_call":
            function = {name: item.get(name) for name in ("name", "arguments")}
            calls.append({"id": item.get("call_id"), "function": function})
        elif item.get("type") == "reasoning":
            parts.append({**item, "summary": item.get("content") or item.get("summary")})
    refused = [str(part["refusal"]) for part in parts if part.get("refusal")]
    logprobs = [token for part in parts for token in part.get("logprobs") or ()]
    message = {"content": parts, "refusal": "".join(refused) or None, "tool_calls": calls}
    return {
        "message": message,
        "finish_reason": _finish(answer, "tool_calls" if calls else "stop"),
        "logprobs": {"content": logprobs} if logprobs else None,
    }


def _items(raw: Any) -> list[Mapping[str, Any]]:
    if not isinstance(raw, list) or not all(isinstance(item, Mapping) for item in raw):
        raise BadBody("the answer has no list of items where one belongs")
    return raw


def _finish(answer: Mapping[str, Any], complete: str) -> str:
    if answer.get("status") == "incomplete":
        details = answer.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return _CUT.get(str(reason), str(reason))
    return complete


def _usage(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, Mapping):
        return None
    return {
        "prompt_tokens": raw.get("input_tokens"),
        "completion_tokens": raw.get("output_tokens"),
        "completion_tokens_details": raw.get("output_tokens_details"),
    }
