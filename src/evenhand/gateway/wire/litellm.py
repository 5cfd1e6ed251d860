"""The wire of LiteLLM's generic guardrail API: what its proxy asks, and what it is answered."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from evenhand.gateway.errors import Refused
from evenhand.gateway.wire import ToolArguments, ToolName, strict
from evenhand.gateway.wire.chat import conversation

PATH = "/beta/litellm_basic_guardrail_api"
UNCHANGED = orjson.dumps({"action": "NONE"})
# What `evenhand doctor litellm` has a model repeat. It must be all that was said, so that nothing
# can hide from the check beside it.
_CANARY = re.compile(r"""[\s"'`*.]*evenhand-canary-([0-9a-f]{16})[\s"'`*.]*""")
_OF_A_CALL = {"id", "type", "index", "function"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCall:
    """One question of the proxy."""

    id: str  # the hash of the proxy's own, of which the length is not bounded
    answered: bool  # a model has spoken; else it is about to be asked
    model: str
    texts: tuple[str, ...]
    observed: tuple[str, ...]  # names and arguments of tool calls
    prompt: str
    context: str

    @property
    def said(self) -> bytes:
        """What an answer says, as a key: equal for equal words and calls of tools."""
        return hashlib.sha256(orjson.dumps([self.texts, self.observed])).digest()


def read(body: bytes) -> ProxyCall:
    """Read a question. Raises `Refused`."""
    raw = strict.request(body)
    kind = raw.get("input_type")
    if kind not in ("request", "response"):
        raise strict.refused("`input_type` is neither request nor response.", "bad_request")
    texts = strict.field(raw, "texts", list, [])
    if not all(isinstance(text, str) for text in texts):
        raise strict.refused("`texts` holds something that is no text.", "bad_request")
    answered = kind == "response"
    calls = strict.field(raw, "tool_calls", list, []) if answered else []
    if answered and max(len(texts), len(calls)) > strict.MOST_TEXTS:
        raise strict.refused(
            f"`texts` and `tool_calls` may hold {strict.MOST_TEXTS} each.", "bad_request"
        )
    if answered and raw.get("images"):
        raise strict.refused("Only text can be checked, and the answer has images.")
    prompt, context = conversation(strict.field(raw, "structured_messages", list, []))
    name = strict.field(raw, "litellm_call_id", str, "")
    return ProxyCall(
        id=hashlib.sha256(name.encode()).hexdigest() if name else "",
        answered=answered,
        model=strict.field(raw, "model", str, ""),
        texts=tuple(texts),
        observed=tuple(_called(calls)),
        prompt=prompt or ("\n\n".join(texts) if not answered else ""),
        context=context,
    )


def _called(calls: Sequence[Any]) -> Iterator[str]:
    """What tool calls say. One of a shape that we do not know is read whole."""
    for call in calls:
        function: Any = call.get("function") if isinstance(call, dict) else None
        words = list(function.values()) if isinstance(function, dict) else [None]
        plain = isinstance(function, dict) and function.keys() == {"name", "arguments"}
        if plain and call.keys() <= _OF_A_CALL and all(isinstance(word, str) for word in words):
            name, arguments = map(strict.readable, (function["name"], function["arguments"]))
            yield from filter(None, (ToolName(name), ToolArguments(arguments)))
        else:
            yield strict.readable(orjson.dumps(call).decode())


def answer(call: ProxyCall, texts: Sequence[str]) -> bytes:
    """Give the texts back, all of them, if one has changed."""
    if tuple(texts) == call.texts:
        return UNCHANGED
    return orjson.dumps({"action": "GUARDRAIL_INTERVENED", "texts": list(texts)})


def canary(call: ProxyCall) -> bytes | None:
    """The answer to the canary of `evenhand doctor litellm`, if an answer is nothing else."""
    matches = [match for text in call.texts if (match := _CANARY.fullmatch(text))]
    if not matches or len(matches) != len(call.texts) or call.observed:
        return None
    texts = [f"evenhand-repaired-{match[1]}" for match in matches]
    return orjson.dumps({"action": "GUARDRAIL_INTERVENED", "texts": texts})


def blocked(refused: Refused) -> bytes:
    """The answer for what may not leave, whatever the reason."""
    response: Mapping[str, str] = {"action": "BLOCKED", "blocked_reason": refused.message}
    return orjson.dumps(response)
