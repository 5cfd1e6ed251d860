"""The OpenAI wire format: our request becomes its JSON, its JSON becomes our reply. This module
does no I/O.

What differs between servers that speak it is listed in design/wire.md.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from evenhand.core import Message, Usage
from evenhand.core.errors import ModelRefused
from evenhand.core.items import CalledFunction, ToolCall
from evenhand.models import thinking
from evenhand.models.base import ModelRequest, ReplySchema, Sample, TokenLogprob

_FORM_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
_FORM_WORDS = re.compile(r"response_format|json_schema|json_object|schema|grammar|structured", re.I)
_SYSTEM_WORDS = re.compile(
    r"messages\[\d+\]\.role|\bsystem\W{0,2} (?:role|message|prompt|instruction)"
    r"|role\W+system\b|\bdeveloper\W{0,2} (?:role|message|prompt|instruction)|roles must alternate"
    r"|does not support\W+(?:system|developer)",
    re.I,
)
_STREAM_WORDS = re.compile(r"only supports? (?:the )?stream|stream\w* (?:mode )?is required", re.I)
_TOGETHER_WORDS = re.compile(r"\bboth\b|\btogether\b|\bonly one of\b", re.I)
# A value that is too large says nothing of the field.
_LENGTH_WORDS = re.compile(
    r"context (?:length|window)|too (?:large|long|many tokens)|maximum", re.I
)
_FIELD_WORDS = r"\b(?:param(?:eter)?|field|argument|propert(?:y|ie)|option)s?\b"
# In this order: of two that may not come together, the first is left out.
_NAMED = {
    "top_p": re.compile(r"\btop_p\b", re.I),
    "logprobs": re.compile(r"\b(?:top_)?logprobs\b", re.I),
    "seed": re.compile(r"\bseed\b", re.I),
    "n": re.compile(
        r"['\"`]n['\"`]|\bn\b ?(?:=|>|must|should|is not)|multiple (?:choices|completions|outputs)"
        r"|only one (?:choice|completion)|num_choices",
    ),
    "stop": re.compile(r"['\"`]stop['\"`]|\bstop[ _]sequences?\b", re.I),
    "temperature": re.compile(r"\btemperature\b", re.I),
}


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


class SystemForm(StrEnum):
    """The role under which an endpoint takes a system prompt, best first."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"  # the user's first message begins with it


@dataclass(frozen=True, slots=True)
class Dialect:
    """Dialect: which optional API features this endpoint accepts. It starts with the best and most
    common ones, and is learned once for all calls."""

    form: JsonForm = JsonForm.SCHEMA
    told: bool = False  # the schema is not enforced, so the model is told it too
    length_field: str = "max_tokens"  # some newer models want another; "" for none
    system: SystemForm = SystemForm.SYSTEM
    dropped: frozenset[str] = frozenset()  # fields that are not accepted
    streams: bool = False  # it answers streamed requests only

    def instead(
        self,
        status: int,
        message: str,
        request: ModelRequest,
        *,
        field: str = "",
        fixed: Collection[str] = (),
    ) -> "Dialect | None":
        """Choose another dialect for an endpoint that objects to this one.

        Args:
            status: The status of the answer.
            message: The server's own words.
            request: What was asked.
            field: The field that the server names, if it names one.
            fixed: The fields that the user set, which are never changed.

        Returns:
            The other dialect; None if the objection is about something else.
        """
        if status == 403 and "logprobs" not in fixed and _NAMED["logprobs"].search(message):
            return self._without("logprobs", request)
        words = f"{field} {message}"
        of_user = field in fixed and not _TOGETHER_WORDS.search(words)
        if status not in _FORM_STATUSES or of_user:
            return None
        other = None
        if status in (400, 422):
            other = self._with_length(words, field, request)
            other = other or self._without_named(words, field, request, fixed)
        return other or self._with_system(words, request) or self._with_form(words, request)

    def _with_length(self, words: str, field: str, request: ModelRequest) -> "Dialect | None":
        if not self.streams and _STREAM_WORDS.search(words):
            return replace(self, streams=True)
        sent = request.max_tokens is not None and request.prompt is None
        swap = "max_completion_tokens" in words or field == "max_tokens"
        if sent and swap and self.length_field == "max_tokens":
            return replace(self, length_field="max_completion_tokens")
        return None

    def _without_named(
        self, words: str, field: str, request: ModelRequest, fixed: Collection[str]
    ) -> "Dialect | None":
        """Leave out the field that the server names, or else the first that its words name."""
        if field in _NAMED and field not in fixed:
            return self._without(field, request)
        if is_about_length(words):
            return None
        places = {name: place.start() for name, found in _NAMED.items()
                  if (place := found.search(words))}  # fmt: skip
        if not places:
            return None
        if min(places, key=places.__getitem__) in fixed and not _TOGETHER_WORDS.search(words):
            return None
        others = (self._without(name, request) for name in places if name not in fixed)
        return next((other for other in others if other is not None), None)

    def _with_form(self, words: str, request: ModelRequest) -> "Dialect | None":
        typed = request.schema is not None and request.prompt is None
        weaker = self.form.weaker() if typed and _FORM_WORDS.search(words) else None
        return replace(self, form=weaker) if weaker is not None else None

    def _without(self, name: str, request: ModelRequest) -> "Dialect | None":
        """Leave out a field that the request has."""
        value = getattr(request, name)
        sent = value not in (None, ()) and not (name == "n" and value == 1)
        if not sent or name in self.dropped:
            return None
        return replace(self, dropped=self.dropped | {name})

    def _with_system(self, words: str, request: ModelRequest) -> "Dialect | None":
        known = self.system is not SystemForm.USER and request.prompt is None
        if not known or not _SYSTEM_WORDS.search(words):
            return None
        if "alternate" in words:
            return replace(self, system=SystemForm.USER)
        if request.messages[0].role != "system":
            return None
        developer = self.system is SystemForm.SYSTEM
        return replace(self, system=SystemForm.DEVELOPER if developer else SystemForm.USER)

    def learned(self) -> tuple[str, ...]:
        """Give what was learned, as words that `knowing` reads."""
        words = sorted(self.dropped)
        if self.length_field != "max_tokens":
            words.append(f"max_tokens>{self.length_field}")
        if self.form is not JsonForm.SCHEMA:
            words.append(f"response_format>{self.form.name.lower()}")
        if self.told:
            words.append("response_format>told")
        if self.system is not SystemForm.SYSTEM:
            words.append(f"system>{self.system}")
        if self.streams:
            words.append("stream")
        return tuple(words)

    @classmethod
    def knowing(cls, learned: Iterable[str]) -> "Dialect":
        """Give the dialect in which this was learned."""
        dialect = cls()
        for word in learned:
            name, _, other = word.partition(">")
            if name in _NAMED:
                dialect = replace(dialect, dropped=dialect.dropped | {name})
            elif word == "response_format>told":
                dialect = replace(dialect, told=True)
            elif name == "response_format" and other.upper() in JsonForm.__members__:
                dialect = replace(dialect, form=JsonForm[other.upper()])
            elif name == "max_tokens" and other == "max_completion_tokens":
                dialect = replace(dialect, length_field=other)
            elif name == "system" and other.upper() in SystemForm.__members__:
                dialect = replace(dialect, system=SystemForm[other.upper()])
            elif word == "stream":
                dialect = replace(dialect, streams=True)
        return dialect

    def adapted(self, request: ModelRequest) -> str:
        """Give what of this was put to use in a request, with blanks between."""
        return " ".join(word for word in self.learned() if _concerns(word, request))


USUAL = Dialect()  # of an endpoint that accepts everything, or of which nothing is known yet


def _concerns(word: str, request: ModelRequest) -> bool:
    name = word.partition(">")[0]
    match name:
        case "response_format":
            return request.schema is not None and request.prompt is None
        case "system":
            return any(message.role == "system" for message in request.messages)
        case "max_tokens":
            return request.max_tokens is not None and request.prompt is None
        case "n":
            return request.n != 1
        case "stream":
            return True
        case _:
            return getattr(request, name) not in (None, ())


class BadBody(Exception):
    """A 200 answer had a body that is not what the wire format promises."""


class TooFewSamples(BadBody):
    """A 200 answer had fewer samples than were asked for."""


class ErrorBody(Exception):
    """A 200 answer had an error in its body."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def encode(
    request: ModelRequest, model: str, dialect: Dialect, params: Mapping[str, Any] | None = None
) -> bytes:
    """Write a request as the JSON of its wire.

    Args:
        request: What is asked.
        model: The model.
        dialect: What the endpoint accepts.
        params: Further fields of the body, which stand above those of the request; None as a
            value leaves the field out.

    Returns:
        The body.
    """
    if request.prompt is None:
        body: dict[str, Any] = {"model": model, "messages": messages_of(request, dialect)}
        length_field = dialect.length_field
        if request.tools or request.schema is not None:
            body |= _held_to(request, dialect.form)
    else:
        body = {"model": model, **_completion(request, request.prompt)}
        length_field = "max_tokens"
    if request.max_tokens is not None:
        body[length_field] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if (request.top_p, request.stop, request.n, request.logprobs) != _RARE:
        body |= _rare(request)
    if dialect.dropped or dialect.streams or params:
        body = _changed(body, dialect, params or {})
    return orjson.dumps(body)


def _held_to(request: ModelRequest, form: JsonForm) -> dict[str, Any]:
    """The fields that say of what kind the reply may be."""
    fields: dict[str, Any] = {"tools": request.tools} if request.tools else {}
    if request.schema is not None and form is not JsonForm.WORDS:
        fields["response_format"] = _response_format(request.schema, form)
    return fields


_RARE = (None, (), 1, None)


def _rare(request: ModelRequest) -> dict[str, Any]:
    """The fields that hardly a request has."""
    values: dict[str, Any] = {"top_p": request.top_p, "stop": request.stop, "n": request.n}
    fields = {name: value for name, value in values.items() if value not in (None, ())}
    if request.n == 1:
        del fields["n"]
    if request.logprobs is not None and request.prompt is None:
        fields |= {"logprobs": True, "top_logprobs": request.logprobs}
    return fields


def _changed(body: dict[str, Any], dialect: Dialect, params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is not accepted, and put in what the user wants."""
    dropped = dialect.dropped | ({"top_logprobs"} if "logprobs" in dialect.dropped else set())
    if dialect.streams:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    kept = {name: value for name, value in body.items() if name not in dropped} | dict(params)
    return {name: value for name, value in kept.items() if value is not None}


def _completion(request: ModelRequest, prompt: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"prompt": prompt}
    if request.logprobs is not None:
        fields["logprobs"] = request.logprobs
    if request.echo:
        fields["echo"] = True
    return fields


def messages_of(request: ModelRequest, dialect: Dialect) -> Sequence[Any]:
    """Give the messages of a chat, in the roles that the endpoint takes, with the schema in words
    where it is not held to it."""
    if dialect is USUAL:  # the schema goes into a field of its own
        return request.messages
    messages: list[Any] = list(request.messages)
    told = dialect.told or dialect.form in (JsonForm.OBJECT, JsonForm.WORDS)
    if request.schema is not None and told:
        # The server cannot be held to the schema, so the model is told it.
        schema = orjson.dumps(request.schema.body).decode()
        note = f"Reply with one JSON object and nothing else. It must follow this schema: {schema}"
        messages.append(Message("user", note))
    if dialect.system is SystemForm.DEVELOPER:
        return [
            {"role": "developer", "content": message.content}
            if message.role == "system"
            else message
            for message in messages
        ]
    return messages if dialect.system is SystemForm.SYSTEM else _alternating(messages)


def arguments_of(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read the arguments of a tool call for an API that takes them as an object.

    Args:
        call: The call as the chat API has it.
        where: Whose API it is.

    Returns:
        The arguments.

    Raises:
        ModelRefused: If they are not a JSON object.
    """
    try:
        arguments = orjson.loads(call["function"]["arguments"])
    except orjson.JSONDecodeError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ModelRefused(
            f"{where} takes tool calls whose arguments are a JSON object: use an endpoint with "
            "/chat/completions"
        )
    return arguments


def _alternating(messages: Iterable[Message]) -> list[Message]:
    """Put what the system says before what the user says; no two in a row are of one role. Calls of
    tools and their results stay as they are."""
    turns: list[Message] = []
    for message in messages:
        role = "user" if message.role == "system" else message.role
        if type(message) is not Message:
            turns.append(message)
        elif turns and type(turns[-1]) is Message and turns[-1].role == role:
            turns[-1] = Message(role, f"{turns[-1].content}\n\n{message.content}")
        else:
            turns.append(Message(role, message.content))
    return turns


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
    help, and `ErrorBody` where the server says what went wrong."""
    try:
        data: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not body.startswith((b"data:", b"event:", b":")):
            raise BadBody(f"body is not JSON ({error})") from None
        data = _assembled(body)
    if not isinstance(data, dict):
        raise BadBody("body is not a JSON object")
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        if data.get("error"):
            raise ErrorBody(_status_of(data["error"]))
        raise BadBody("body has no choices")
    if len(choices) < request.n:
        raise TooFewSamples(f"{request.n} samples were asked for, {len(choices)} came")
    # The usual case for itself: a generator costs as much as what it gives.
    samples: tuple[Sample, ...] = (_sample(choices[0], request),)
    if request.n > 1:
        samples += tuple(_sample(choice, request) for choice in choices[1 : request.n])
    served_by = data.get("model")
    return samples, _usage(data.get("usage")), served_by if isinstance(served_by, str) else ""


def _status_of(error: Any) -> int:
    """Give the status that an error in a 200 body stands for; that of a bad gateway where it does
    not say."""
    code = error.get("code") or error.get("status") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        return code
    words = str(error)
    if re.search(r"rate.?limit|overloaded|capacity", words, re.I):
        return 429
    return 400 if re.search(r"invalid_request|unsupported", words) else 502


def _assembled(body: bytes) -> dict[str, Any]:
    """Put the chunks of a streamed answer together as the answer that was not streamed."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for line in body.splitlines():
        if not line.startswith(b"data:") or line[5:].strip() in (b"", b"[DONE]"):
            continue
        try:
            chunk = orjson.loads(line[5:])
            whole |= {name: value for name, value in chunk.items() if value and name != "choices"}
            for piece in chunk.get("choices") or ():
                index = piece.get("index") or 0
                if not isinstance(index, int):
                    raise TypeError(f"{index!r} is not an index")
                _add(choices.setdefault(index, {"message": {}}), piece)
        except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError) as error:
            raise BadBody(f"a chunk of the stream cannot be read ({error})") from None
    if any(choice.get("finish_reason") is None for choice in choices.values()):
        raise BadBody("the stream ended before the answer did")
    return whole | {"choices": [choices[index] for index in sorted(choices)]}


def _add(choice: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a chunk to its choice."""
    _add_to_message(choice["message"], piece.get("delta") or piece.get("message") or {})
    if isinstance(piece.get("text"), str):
        choice["text"] = choice.get("text", "") + piece["text"]
    if piece.get("finish_reason") is not None:
        choice["finish_reason"] = piece["finish_reason"]
    tokens = piece.get("logprobs")
    if isinstance(tokens, dict) and isinstance(tokens.get("content"), list):
        choice.setdefault("logprobs", {"content": []})["content"] += tokens["content"]


def _add_to_message(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            for call in value or ():
                _add_call(message.setdefault("tool_calls", []), call)
        elif isinstance(value, list) and (name == "content" or name in _THOUGHT_FIELDS):
            for part in value:
                _add_part(message, name, part)
        elif isinstance(value, str) and name != "role":
            message[name] = message.get(name, "") + value


def _add_part(message: dict[str, Any], field: str, part: Mapping[str, Any]) -> None:
    """Add a part of a content or of a thought. Both may be cut within a word, and some servers
    stream a thought in parts and then the answer as text."""
    is_thought = field != "content" or _is_thought(part)
    text = _text_in(part) if is_thought else part.get("text")
    if isinstance(text, str):
        name = "thinking" if is_thought else "content"
        message[name] = message.get(name, "") + text


def _add_call(calls: list[Any], call: Mapping[str, Any]) -> None:
    function = call.get("function") or {}
    index = call.get("index") or 0
    if not 0 <= index < len(calls):
        calls.append({"function": {"arguments": ""}})
        index = -1
    whole = calls[index]
    whole |= {name: call[name] for name in ("id", "type") if call.get(name)}
    if function.get("name"):
        whole["function"]["name"] = function["name"]
    whole["function"]["arguments"] += function.get("arguments") or ""


def _sample(choice: Any, request: ModelRequest) -> Sample:
    if not isinstance(choice, dict):
        raise BadBody("a choice is not an object")
    if request.prompt is None:
        message = choice.get("message")
        thought, text = _read_message(message, request) if isinstance(message, dict) else ("", None)
    else:
        thought, text = "", choice.get("text")
    if not isinstance(text, str):
        raise BadBody("a choice has no text")
    calls = _tool_calls(choice["message"]) if request.tools else ()
    finish = choice.get("finish_reason")
    logprobs = _logprobs(choice.get("logprobs")) if request.logprobs is not None else None
    sample = Sample(text, finish if isinstance(finish, str) else "", logprobs, thought, calls)
    if request.echo:  # it has our own words
        return sample
    if thinking.may_be_in(text):
        sample = thinking.apart(sample)
    if thought:
        sample = thinking.without_blanks(sample)
    return sample if logprobs is None else thinking.with_own_tokens(sample)


def _read_message(message: Mapping[str, Any], request: ModelRequest) -> tuple[str, Any]:
    """Read what was thought and what is said."""
    text = message.get("content")
    thought = "" if _THOUGHT_FIELDS.isdisjoint(message) else _thought(message)
    if isinstance(text, list):
        inside, text = _of_parts(text)
        thought = thinking.joined((thought, inside))
    if not text:  # a refusal is an answer in words, and so are the arguments of a call
        text = message.get("refusal") or _arguments(message, request) or text or ""
    return thought, text


_THOUGHT_TEXTS = ("reasoning_content", "reasoning", "thinking")
_THOUGHT_PARTS = ("thinking_blocks", "reasoning_details")
_THOUGHT_FIELDS = frozenset({*_THOUGHT_TEXTS, *_THOUGHT_PARTS})


def _thought(message: Mapping[str, Any]) -> str:
    """Read the fields in which servers say what was thought. Some fill several with the same."""
    for name in _THOUGHT_TEXTS:
        value = message.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    for name in _THOUGHT_PARTS:
        value = message.get(name)
        if isinstance(value, list) and (thought := _of_parts(value)[0]):
            return thought
    return ""


def _of_parts(parts: list[Any]) -> tuple[str, str]:
    """Read content in parts: what was thought, and what is said."""
    thoughts: list[str] = []
    words: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            raise BadBody("a part of the content is not an object")
        if _is_thought(part):
            thoughts.append(_text_in(part))
        elif isinstance(part.get("text"), str):
            words.append(part["text"])
    return thinking.joined(thoughts), "".join(words)


def _is_thought(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and ("thinking" in kind or "reasoning" in kind)


def _text_in(part: Mapping[str, Any]) -> str:
    """Read the words of a part that was thought; what is encrypted has none."""
    for name in ("thinking", "text", "summary", "content"):
        value = part.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "".join(_text_in(inner) for inner in value if isinstance(inner, dict))
    return ""


def _arguments(message: Mapping[str, Any], request: ModelRequest) -> str:
    """Read the arguments of the one call in which some gateways give a typed reply."""
    calls = message.get("tool_calls")
    if request.schema is None or not isinstance(calls, list) or len(calls) != 1:
        return ""
    function = calls[0].get("function") if isinstance(calls[0], dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else ""


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Read the calls of declared tools. Some servers give the arguments as an object."""
    calls = message.get("tool_calls") or ()
    try:
        return tuple(_tool_call(number, call) for number, call in enumerate(calls))
    except (KeyError, TypeError, AttributeError) as error:
        raise BadBody(f"a tool call in an unknown shape ({error})") from None


def _tool_call(number: int, call: Any) -> ToolCall:
    name, arguments = call["function"]["name"], call["function"].get("arguments")
    if not isinstance(name, str):
        raise TypeError("its name is not a text")
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments or {}).decode()
    identity = call.get("id")
    own = identity if isinstance(identity, str) and identity else f"call_{number}"
    return ToolCall(own, CalledFunction(name, arguments or "{}"))


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
    if prompt is None or completion is None:
        return None
    details, total = raw.get("completion_tokens_details"), raw.get("total_tokens")
    if details is None and total == prompt + completion:
        return Usage(prompt, completion)
    thought = _count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    total = _count(total)
    if total is not None and total > prompt + completion:
        # Some count reasoning apart from the completion, and bill it all the same.
        hidden = total - prompt - completion
        return Usage(prompt, completion + hidden, max(hidden, thought or 0))
    return Usage(prompt, completion, thought)


def _count(value: Any) -> int | None:
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return value if counts else None


def is_about_length(message: str) -> bool:
    """Say whether an error is about how long something is."""
    return _LENGTH_WORDS.search(message) is not None


def names_field(message: str, name: str) -> bool:
    """Say whether an error names a field of the request. Many names are words of English too: "user
    message" does not name `user`, nor does a quoted message of that role.

    Args:
        message: The server's own words.
        name: The name of the field.

    Returns:
        Whether it is named.
    """
    if name in _NAMED:
        return _NAMED[name].search(message) is not None
    word = rf"\b{re.escape(name)}\b"
    ways = [
        rf"(?<!role['\"`]:)(?<!role['\"`]: )['\"`]{word}['\"`]",
        rf"{word}\W{{1,3}}{_FIELD_WORDS}|{_FIELD_WORDS}\W{{1,3}}{word}",
        rf"(?:^|: ){word}(?::|\.?$)",
    ]
    if "_" in name:
        ways.append(word)
    return re.search("|".join(ways), message, re.I) is not None


def model_names(body: bytes) -> tuple[str, ...] | None:
    """Read the ids in a `/models` body; None if it is of another shape."""
    try:
        return tuple(str(entry["id"]) for entry in orjson.loads(body)["data"])
    except (orjson.JSONDecodeError, KeyError, TypeError, RecursionError):
        return None


def error_field(body: bytes) -> str:
    """Give the name of the field that an error is about; "" where the server does not name it."""
    try:
        error = orjson.loads(body)["error"]
        field = error.get("param")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return ""
    if not isinstance(field, str):
        return ""
    return {"top_logprobs": "logprobs"}.get(field, field)


def error_text(body: bytes) -> str:
    """Give the server's own words about an error, all of them: half a key at a cut would not be
    recognized as one (`Redactor.beginning` cuts)."""
    try:
        data: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
    while isinstance(data, Mapping) and ("error" in data or "message" in data or "detail" in data):
        data = data.get("error") or data.get("message") or data.get("detail")
    return data if isinstance(data, str) else body.decode("utf-8", "replace")
