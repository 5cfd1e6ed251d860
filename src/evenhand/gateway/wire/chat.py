"""The wire of /chat/completions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from evenhand.core import Message
from evenhand.core.items import CalledFunction, Role, ToolCall, ToolCalls, ToolResult
from evenhand.gateway.wire import ClientRequest, MalformedReply, ToolArguments, ToolName, strict
from evenhand.gateway.wire.choices import ChoicesReply, StreamedChoice, Tokens, Tool, token_entry

_MOST_CALLS = 128  # our choice, as OpenAI's own bound of `tools`
_MOST_CITATIONS = 256  # our choice
_MESSAGE = ("role", "content", "refusal", "tool_calls", "function_call", "annotations")
_CHOICE = ("index", "finish_reason", "logprobs", "message", "delta")


class Chat:
    """`/chat/completions`.

    A client's body goes on as it is. Refused is what makes text that we cannot check (audio), and
    `store: true`, for the upstream would keep the answer as it was before its repair.
    """

    path = "/chat/completions"

    def asked(self, body: bytes) -> ClientRequest:
        raw = strict.request(body)
        if strict.field(raw, "store", bool, False):
            raise strict.refused(
                "`store: true` would have the upstream keep the answer as it was before its "
                "check. Leave `store` out."
            )
        modalities = strict.field(raw, "modalities", list, [])
        if raw.get("audio") is not None or any(kind != "text" for kind in modalities):
            raise strict.refused("Only text can be checked: leave `audio` and `modalities` out.")
        choices = strict.field(raw, "n", int, 1)
        if not 1 <= choices <= strict.MOST_TEXTS:
            raise strict.refused(f"`n` must be 1 to {strict.MOST_TEXTS}.", "bad_request")
        messages = strict.field(raw, "messages", list, [])
        prompt, context = conversation(messages)
        return ClientRequest(
            model=strict.field(raw, "model", str, ""),
            stream=strict.field(raw, "stream", bool, False),
            sent=raw,
            prompt=prompt,
            context=context,
            messages=turns_of(messages),
            schema=json_schema(strict.field(raw, "response_format", dict, {})),
        )

    def reply(self, request: ClientRequest) -> "ChatReply":
        return ChatReply(request, request.sent.get("n") or 1)


def conversation(messages: list[Any]) -> tuple[str, str]:
    """The last text of the user, and all the rest in its order, each with its role."""
    turns = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise strict.refused("A message is not an object with a `role`.", "bad_request")
        turns.append((message["role"], spoken(message.get("content"))))
    users = [index for index, (role, text) in enumerate(turns) if role == "user" and text]
    prompt = turns.pop(users[-1])[1] if users else ""
    return prompt, "\n\n".join(f"{role}: {text}" for role, text in turns if text)


_ROLES: Mapping[str, Role] = {
    **{role: role for role in get_args(Role)},
    "developer": "system",
    "function": "tool",
    "function_call_output": "tool",
}


def turns_of(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The turns of a conversation that say something, for records. What has no role of its own is
    the model's."""
    turns = map(_turn, messages)
    return tuple(turn for turn in turns if turn.text or isinstance(turn, ToolResult))


def _turn(message: Mapping[str, Any]) -> Message:
    role, content = _ROLES.get(message["role"], "assistant"), spoken(message.get("content"))
    if calls := message.get("tool_calls"):
        called = calls if isinstance(calls, list) else [calls]
        return ToolCalls(role, content, tuple(map(_tool_call, called)))
    if role == "tool":
        return ToolResult(role, content, str(message.get("tool_call_id") or ""))
    return Message(role, content)


def _tool_call(call: Any) -> ToolCall:
    """A call of a tool in a request. It is the client's, so it may have any shape."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return ToolCall("", CalledFunction("", str(call)))
    name, arguments = (str(function.get(field) or "") for field in ("name", "arguments"))
    return ToolCall(str(call.get("id") or ""), CalledFunction(name, arguments))


def spoken(content: Any) -> str:
    """The text of a message's content. A part that is not text is named in its place."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise strict.refused("The content of a message is neither text nor parts.", "bad_request")
    return "\n".join(map(_part, content))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise strict.refused("A part of a message has no `type`.", "bad_request")
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) else f"[{part['type']}]"


def json_schema(response_format: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that is asked for. `json_object` asks for any JSON."""
    if response_format.get("type") not in ("json_schema", "json_object"):
        return None
    inner = response_format.get(
        "json_schema", response_format
    )  # some servers take the schema without the envelope
    schema = inner.get("schema") if isinstance(inner, dict) else None
    return schema if isinstance(schema, dict) else {}


class ChatReply(ChoicesReply):
    """An answer of `/chat/completions`: a text for each choice, and calls of tools."""

    plain_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    @property
    def observed(self) -> tuple[str, ...]:
        texts: list[str] = []
        for choice in self._ordered():
            texts.append(choice.refused)
            for call in _calls(choice):
                texts.append(ToolName(call.name))
                texts.append(ToolArguments(strict.readable("".join(call.arguments))))
            if not self._cites_old_text(choice, choice.said):
                texts += [cited[key] for cited in choice.citations for key in ("title", "url")]
        return tuple(text for text in texts if text)

    def _take(self, choice: StreamedChoice, raw: Mapping[str, Any], *, streamed: bool) -> None:
        where = "choices.delta." if streamed else "choices.message."
        message = strict.a(dict, raw.get("delta" if streamed else "message"), "a message")
        strict.only(raw, _CHOICE, self.left_out, "choices.")
        strict.only(message, _MESSAGE, self.left_out, where)
        if message.get("content") is not None:
            choice.add(self._text(message["content"], where))
        if message.get("refusal") is not None:
            choice.refuse(strict.a(str, message["refusal"], "a refusal"))
        calls = message.get("tool_calls")
        for index, call in enumerate(strict.a(list, calls, "`tool_calls`") if calls else ()):
            self._take_call(choice, strict.a(dict, call, "a call"), None if streamed else index)
        if message.get("function_call") is not None:
            choice.function = choice.function or Tool()
            function = strict.a(dict, message["function_call"], "a call")
            self._take_function(choice, choice.function, function, "arguments")
        self._take_citations(choice, message.get("annotations"), where)
        self._take_tokens(choice, raw.get("logprobs"))

    def _text(self, content: Any, where: str) -> str:
        if isinstance(content, str):
            return content
        texts = []
        for part in strict.a(list, content, "`content`"):
            if strict.a(dict, part, "a part of `content`").get("type") == "text":
                texts.append(strict.a(str, part.get("text"), "a text"))
                strict.only(part, ("type", "text"), self.left_out, where + "content.")
            else:
                strict.leave(self.left_out, f"{where}content.{part.get('type')}")
        return "".join(texts)

    def _take_call(
        self, choice: StreamedChoice, raw: Mapping[str, Any], default_index: int | None
    ) -> None:
        index = strict.a(int, raw.get("index", default_index), "the index of a call")
        if not 0 <= index < _MOST_CALLS:
            raise MalformedReply("there are too many calls")
        call = choice.tools.setdefault(index, Tool())
        strict.only(
            raw, ("index", "id", "type", "function", "custom"), self.left_out, "choices.tool_calls."
        )
        kind = raw.get("type") or ("custom" if raw.get("custom") is not None else call.kind)
        consistent = kind in ("function", "custom") and (kind == call.kind or not call.name)
        identity = strict.token(raw.get("id")) if raw.get("id") else call.id
        if not consistent or identity is None or call.id not in ("", identity):
            raise MalformedReply("a call is of a kind that we do not know, or changes its name")
        call.kind, call.id = kind, identity
        if raw.get(kind) is not None:
            function = strict.a(dict, raw[kind], "a call")
            self._take_function(choice, call, function, _INPUT[kind])

    def _take_function(
        self, choice: StreamedChoice, call: Tool, raw: Mapping[str, Any], argument: str
    ) -> None:
        strict.only(raw, ("name", argument), self.left_out, "choices.tool_calls.")
        if raw.get("name") is not None:
            call.name += strict.a(str, raw["name"], "the name of a call")
            choice.heard += bool(raw["name"])
        if raw.get(argument) is not None:
            _extend(choice, call.arguments, raw[argument])

    def _take_citations(self, choice: StreamedChoice, raw: Any, where: str) -> None:
        for annotation in strict.a(list, raw, "`annotations`") if raw else ():
            cited = _citation(annotation)
            if cited is None or len(choice.citations) >= _MOST_CITATIONS:
                strict.leave(self.left_out, where + "annotations")
            else:
                choice.citations.append(cited)

    def _take_tokens(self, choice: StreamedChoice, raw: Any) -> None:
        if raw is None:
            return
        strict.only(
            strict.a(dict, raw, "`logprobs`"), ("content",), self.left_out, "choices.logprobs."
        )
        for raw_token in strict.a(list, raw.get("content") or [], "`logprobs`"):
            token = strict.a(dict, raw_token, "`logprobs`")
            tops = token.get("top_logprobs") or []
            entry = token_entry(token.get("token"), token.get("logprob"), tops)
            if entry is not None:
                choice.tokens.append(entry)

    def _written(self, choice: StreamedChoice, final: Mapping[int, str]) -> dict[str, Any]:
        content = final.get(choice.index, None if choice.text is None else "")
        message: dict[str, Any] = {"role": "assistant", "content": content}
        message["refusal"] = None if choice.refusal is None else choice.refused
        if choice.tools:
            message["tool_calls"] = [_call(choice.tools[i]) for i in sorted(choice.tools)]
        if choice.function is not None:
            message["function_call"] = _call(choice.function)["function"]
        message |= self._cited(choice, final)
        tokens = self._tokens_of(choice, final)
        return {
            "index": choice.index,
            "message": message,
            "logprobs": None if tokens is None else {"content": tokens, "refusal": None},
            "finish_reason": choice.finish,
        }

    def _cited(self, choice: StreamedChoice, final: Mapping[int, str]) -> dict[str, Any]:
        """Citations point into the text by numbers: they go out only with the text they knew."""
        if not choice.citations:
            return {}
        if self._cites_old_text(choice, final.get(choice.index, "")):
            strict.leave(self.left_out, "choices.message.annotations")
            return {}
        return {
            "annotations": [{"type": "url_citation", "url_citation": c} for c in choice.citations]
        }

    def _cites_old_text(self, choice: StreamedChoice, text: str) -> bool:
        ends = max((cited["end_index"] for cited in choice.citations), default=0)
        return text != choice.sent or ends > len(text)

    def _opening(self, choice: StreamedChoice) -> Iterator[dict[str, Any]]:
        first: dict[str, Any] = {"role": "assistant"}
        yield _delta(choice, first if choice.text is None else {**first, "content": ""})

    def _word(self, choice: StreamedChoice, text: str, tokens: Tokens) -> dict[str, Any]:
        return _delta(choice, {"content": text}, tokens)

    def _beside(self, choice: StreamedChoice, final: Mapping[int, str]) -> Iterator[dict[str, Any]]:
        if choice.refusal is not None:
            yield _delta(choice, {"refusal": choice.refused})
        for position, index in enumerate(sorted(choice.tools)):
            call = {"index": position, **_call(choice.tools[index])}
            yield _delta(choice, {"tool_calls": [call]})
        if choice.function is not None:
            yield _delta(choice, {"function_call": _call(choice.function)["function"]})
        cited = self._cited(choice, final)
        if cited:
            yield _delta(choice, cited)

    def _end(self, choice: StreamedChoice) -> dict[str, Any]:
        return _delta(choice, {}) | {"finish_reason": choice.finish}


def _delta(choice: StreamedChoice, delta: dict[str, Any], tokens: Tokens = None) -> dict[str, Any]:
    logprobs = None if tokens is None else {"content": tokens, "refusal": None}
    return {"index": choice.index, "delta": delta, "logprobs": logprobs, "finish_reason": None}


_INPUT = {"function": "arguments", "custom": "input"}


def _extend(choice: StreamedChoice, pieces: list[str], text: Any) -> None:
    pieces.append(strict.a(str, text, "a text"))
    choice.heard += bool(text)


def _calls(choice: StreamedChoice) -> list[Tool]:
    calls = [choice.tools[index] for index in sorted(choice.tools)]
    return calls if choice.function is None else [*calls, choice.function]


def _call(call: Tool) -> dict[str, Any]:
    function = {"name": call.name, _INPUT[call.kind]: "".join(call.arguments)}
    return {"id": call.id, "type": call.kind, call.kind: function}


def _citation(raw: Any) -> dict[str, Any] | None:
    """A citation of a page, in the fields that we know; None if it is another kind."""
    right = isinstance(raw, dict) and raw.get("type") == "url_citation"
    return strict.citation(raw.get("url_citation")) if right else None
