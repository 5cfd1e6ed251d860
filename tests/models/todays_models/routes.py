"""The route of OpenAI's Responses API, in terms of its chat route."""

from collections.abc import Mapping
from typing import Any


def chat_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked, as the chat route has it."""
    given = asked["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [{"role": item["role"], "content": _text(item["content"])} for item in items]
    if asked.get("instructions"):
        messages.insert(0, {"role": "system", "content": asked["instructions"]})
    same = ("model", "temperature", "top_p", "top_logprobs")
    body = {name: asked[name] for name in same if asked.get(name) is not None}
    body["messages"] = messages
    if "message.output_text.logprobs" in (asked.get("include") or ()):
        body["logprobs"] = True
    if asked.get("max_output_tokens"):
        body["max_completion_tokens"] = asked["max_output_tokens"]
    form = (asked.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def response_of(chat: Mapping[str, Any]) -> dict[str, Any]:
    """A chat answer as a response: what was thought is an item of its own."""
    (choice,) = chat["choices"]
    message, cut = choice["message"], choice["finish_reason"] == "length"
    tokens = (choice.get("logprobs") or {}).get("content") or []
    output: list[dict[str, Any]] = []
    if thought := message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": thought}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if message["content"]:
        part = {"type": "output_text", "text": message["content"], "annotations": [],
                "logprobs": tokens}  # fmt: skip
        output.append({"type": "message", "id": "msg_1", "role": "assistant",
                       "status": "completed", "content": [part]})  # fmt: skip
    counted = chat["usage"]
    details = counted.get("completion_tokens_details") or {"reasoning_tokens": 0}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": chat["model"],
        "status": "incomplete" if cut else "completed", "output": output, "tools": [],
        "parallel_tool_calls": False, "tool_choice": "auto", "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {"input_tokens": counted["prompt_tokens"],
                  "output_tokens": counted["completion_tokens"],
                  "total_tokens": counted["total_tokens"],
                  "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                  "output_tokens_details": details},
    }  # fmt: skip
