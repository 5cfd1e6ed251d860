"""What we rest on of LiteLLM: `acompletion`, its errors, and a reply that gives JSON.

The words behind the slash of a model's name choose what it does. The real one is asked by
`make check-providers`.
"""

import hashlib
import json
import os
from typing import Any

suppress_debug_info = False
calls: list[dict[str, Any]] = []


class Refused(Exception):
    """As LiteLLM's errors: a status, and the headers of the provider's answer."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status_code = status
        self.message = message
        self.litellm_response_headers = {n.replace("_", "-"): v for n, v in headers.items()}


class APIConnectionError(Exception):
    """As LiteLLM's, with its status left out."""


class Reply:
    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def model_dump_json(self) -> str:
        return json.dumps(self._body)


async def acompletion(**asked: Any) -> Reply:
    calls.append(asked)
    kind = asked["model"].rpartition("/")[2]
    if kind == "refuses" and "seed" in asked:
        said = "litellm.UnsupportedParamsError: anthropic does not support parameters: ['seed']"
        raise Refused(400, f"{said}, for model=refuses. To drop these, set `litellm.drop_params`")
    if kind == "refuses" and asked.get("temperature") == 0.0:
        said = "refuses doesn't support temperature=0.0. Only temperature=1 is supported."
        raise Refused(400, f"litellm.UnsupportedParamsError: {said}")
    if kind == "busy" and len(calls) == 1:
        raise Refused(429, "litellm.RateLimitError: slow down", retry_after_ms="1")
    if kind == "gone" and len(calls) == 1:
        raise APIConnectionError("litellm.APIConnectionError: connection reset")
    if kind == "keyless":
        raise Refused(401, "litellm.AuthenticationError: no key of PROVIDER_API_KEY")
    if kind == "broken":
        raise TypeError("a mistake within the package")
    return Reply(_answer(asked, kind))


def _answer(asked: dict[str, Any], kind: str) -> dict[str, Any]:
    told = json.dumps([(m["role"], m["content"]) for m in asked["messages"]])
    drawn = hashlib.sha256(told.encode()).digest()[0]
    text = f"People differ, says {drawn}."
    form = asked.get("response_format")
    if form:
        text = json.dumps({name: _value(field, drawn) for name, field in
                           form["json_schema"]["schema"]["properties"].items()})  # fmt: skip
    message = {"role": "assistant", "content": text}
    if kind == "thinks":
        message["reasoning_content"] = "I might say she."
    if kind == "tells":
        message["content"] = f"The key is {os.environ['PROVIDER_API_KEY']}."
    return {
        "model": kind,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _value(field: dict[str, Any], drawn: int) -> Any:
    if "enum" in field:
        return field["enum"][drawn % len(field["enum"])]
    kinds = {"integer": 3, "number": 3, "boolean": False, "array": []}
    return kinds.get(field.get("type", ""), "C")
