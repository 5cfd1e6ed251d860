"""The OpenAI wire format: our request becomes its JSON, its JSON becomes our reply. This module
does no I/O.

What differs between servers that speak it is listed in docs/endpoints.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from evenhand.core import Usage
from evenhand.models.base import ModelRequest, ReplySchema, Sample, TokenLogprob

_FORM_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
_FORM_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar|structured", re.I)


class JsonForm(StrEnum):
    """The ways in which an endpoint can be held to JSON, best first. A refused one is stepped down
    from."""

    SCHEMA = "json_schema"
    UNBOUNDED = "json_schema without bounds"  # for those that know no lengths or ranges
    OBJECT = "json_object"
    WORDS = "words"

    def weaker(self) -> "JsonForm | None":
        forms = list(JsonForm)
        index = forms.index(self) + 1
        return forms[index] if index < len(forms) else None


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect: which optional API features this endpoint accepts. It starts with the best and most
    common ones."""

    form: JsonForm = JsonForm.SCHEMA
    length_field: str = "max_tokens"  # some newer models want another

    def instead(self, status: int, message: str, *, typed: bool) -> "Dialect | None":
        """Choose another dialect for an endpoint that objects to this one; None if the objection is
        about something else."""
        if status in (400, 422) and "max_completion_tokens" in message:
            other = replace(self, length_field="max_completion_tokens")
            return other if other != self else None
        if not typed or status not in _FORM_STATUSES or not _FORM_WORDS.search(message):
            return None
        weaker = self.form.weaker()
        return replace(self, form=weaker) if weaker is not None else None


class BadBody(Exception):
    """A 200 answer had a body that is not what the wire format promises."""


def encode(request: ModelRequest, model: str, dialect: Dialect) -> bytes:
    body: dict[str, Any] = {"model": model}
    if request.prompt is None:
        body.update(_chat(request, dialect.form))
    else:
        body.update(_completion(request, request.prompt))
    if request.max_tokens is not None:
        body[dialect.length_field if request.prompt is None else "max_tokens"] = request.max_tokens
    for name in ("temperature", "top_p", "seed"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.n != 1:
        body["n"] = request.n
    if request.stop:
        body["stop"] = request.stop
    return orjson.dumps(body)


def _chat(request: ModelRequest, form: JsonForm) -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": messages_of(request, form)}
    if request.schema is not None and form is not JsonForm.WORDS:
        fields["response_format"] = _response_format(request.schema, form)
    if request.logprobs is not None:
        fields |= {"logprobs": True, "top_logprobs": request.logprobs}
    return fields


def _completion(request: ModelRequest, prompt: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"prompt": prompt}
    if request.logprobs is not None:
        fields["logprobs"] = request.logprobs
    if request.echo:
        fields["echo"] = True
    return fields


def messages_of(request: ModelRequest, form: JsonForm) -> list[Any]:
    """Give the messages of a chat, with the schema in words where the form does not hold to it."""
    messages: list[Any] = list(request.messages)
    if request.schema is not None and form in (JsonForm.OBJECT, JsonForm.WORDS):
        # The server cannot be held to the schema, so the model is told it.
        schema = orjson.dumps(request.schema.body).decode()
        note = f"Reply with one JSON object and nothing else. It must follow this schema: {schema}"
        messages.append({"role": "user", "content": note})
    return messages


def _response_format(schema: ReplySchema, form: JsonForm) -> dict[str, Any]:
    if form is JsonForm.OBJECT:
        return {"type": "json_object"}
    body = schema.body if form is JsonForm.SCHEMA else schema.unbounded
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema.name,
            "strict": True,
            "schema": body,
        },
    }


def decode(body: bytes, request: ModelRequest) -> tuple[tuple[Sample, ...], Usage | None, str]:
    """Read samples, usage and served model from a 200 body. Raises `BadBody` where a retry may
    help."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"body is not JSON ({error})") from None
    if not isinstance(data, dict):
        raise BadBody("body is not a JSON object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadBody("body has no choices")
    if len(choices) < request.n:
        raise BadBody(f"{request.n} samples were asked for, {len(choices)} came")
    samples = tuple(_sample(choice, request) for choice in choices[: request.n])
    served_by = data.get("model")
    return samples, _usage(data.get("usage")), served_by if isinstance(served_by, str) else ""


def _sample(choice: Any, request: ModelRequest) -> Sample:
    if not isinstance(choice, dict):
        raise BadBody("a choice is not an object")
    if request.prompt is None:
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else None
        if text is None and isinstance(message, dict):
            text = message.get("refusal") or ""  # a refusal is an answer in words
    else:
        text = choice.get("text")
    if not isinstance(text, str):
        raise BadBody("a choice has no text")
    finish = choice.get("finish_reason")
    logprobs = _logprobs(choice.get("logprobs")) if request.logprobs is not None else None
    return Sample(text, finish if isinstance(finish, str) else "", logprobs)


def _logprobs(raw: Any) -> tuple[TokenLogprob, ...] | None:
    """Read both shapes in use: chat's `content` list, and the parallel lists of completions."""
    if not isinstance(raw, dict):
        return None
    try:
        if isinstance(raw.get("content"), list):
            return tuple(
                _token(
                    entry["token"],
                    entry["logprob"],
                    [(top["token"], top["logprob"]) for top in entry.get("top_logprobs") or ()],
                )
                for entry in raw["content"]
            )
        tops = raw.get("top_logprobs") or [None] * len(raw["tokens"])
        return tuple(
            _token(token, logprob, (top or {}).items())
            for token, logprob, top in zip(raw["tokens"], raw["token_logprobs"], tops, strict=True)
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadBody(f"log-probabilities in an unknown shape ({error})") from None


def _token(token: Any, logprob: Any, tops: Iterable[tuple[Any, Any]]) -> TokenLogprob:
    value = None if logprob is None else _logprob(logprob)
    return TokenLogprob(_word(token), value, tuple((_word(t), _logprob(p)) for t, p in tops))


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a token is not a string")
    return value


def _logprob(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 0.01:
        raise TypeError("a log-probability is not a number up to 0")  # some round to above it
    return value


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens", 0))
    return Usage(prompt, completion) if prompt is not None and completion is not None else None


def _count(value: Any) -> int | None:
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if counts else None


def model_names(body: bytes) -> tuple[str, ...] | None:
    """Read the ids in a `/models` body; None if it is of another shape."""
    try:
        return tuple(str(entry["id"]) for entry in orjson.loads(body)["data"])
    except (orjson.JSONDecodeError, KeyError, TypeError, RecursionError):
        return None


def error_text(body: bytes) -> str:
    """Give the server's own words about an error, all of them: half a key at a cut would not be
    recognised as one (`Redactor.beginning` cuts)."""
    try:
        data: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
    while isinstance(data, Mapping) and ("error" in data or "message" in data or "detail" in data):
        data = data.get("error") or data.get("message") or data.get("detail")
    return data if isinstance(data, str) else body.decode("utf-8", "replace")
