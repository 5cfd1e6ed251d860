"""The wire of /completions, the older one: a prompt is continued."""

from collections.abc import Mapping
from typing import Any

from evenhand.gateway.wire import ClientRequest, strict
from evenhand.gateway.wire.choices import ChoicesReply, StreamedChoice, Tokens, token_entry

_CHOICE = ("index", "text", "logprobs", "finish_reason")
_LOGPROBS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


class Completions:
    """`/completions`.

    A prompt of token numbers cannot be shown to a judge: prompt and context are then empty. Refused
    is `echo`, which would put the prompt into the text, to be repaired with it.
    """

    path = "/completions"

    def asked(self, body: bytes) -> ClientRequest:
        raw = strict.request(body)
        if strict.field(raw, "echo", bool, False):
            raise strict.refused("`echo` mixes the prompt with the answer. Leave `echo` out.")
        if _choices(raw) > strict.MOST_TEXTS:
            raise strict.refused(
                f"`n` times the number of prompts must be 1 to {strict.MOST_TEXTS}.", "bad_request"
            )
        suffix = strict.field(raw, "suffix", str, "")
        return ClientRequest(
            model=strict.field(raw, "model", str, ""),
            stream=strict.field(raw, "stream", bool, False),
            sent=raw,
            prompt="\n\n".join(prompt for prompt in _prompts(raw) if isinstance(prompt, str)),
            context=f"suffix: {suffix}" if suffix else "",
        )

    def reply(self, request: ClientRequest) -> "CompletionsReply":
        return CompletionsReply(request, _choices(request.sent))


def _prompts(raw: Mapping[str, Any]) -> list[Any]:
    """One entry for each prompt: text, or a list of token numbers."""
    prompt = raw.get("prompt", "")
    if isinstance(prompt, str) or _numbers(prompt):
        return [prompt]
    several = prompt if isinstance(prompt, list) else []
    if several and (all(isinstance(item, str) for item in several) or all(map(_numbers, several))):
        return several
    raise strict.refused("`prompt` is neither text, nor texts, nor token numbers.", "bad_request")


def _numbers(prompt: Any) -> bool:
    return isinstance(prompt, list) and bool(prompt) and all(type(token) is int for token in prompt)


def _choices(raw: Mapping[str, Any]) -> int:
    each = strict.field(raw, "n", int, 1)
    if each < 1:
        raise strict.refused("`n` must be at least 1.", "bad_request")
    return int(each) * len(_prompts(raw))


class CompletionsReply(ChoicesReply):
    """An answer of `/completions`: a text for each choice, and nothing else."""

    plain_object = "text_completion"
    chunk_object = "text_completion"

    def _take(self, choice: StreamedChoice, raw: Mapping[str, Any], *, streamed: bool) -> None:  # noqa: ARG002
        strict.only(raw, _CHOICE, self.left_out, "choices.")
        choice.add(strict.a(str, raw.get("text"), "a text"))
        if raw.get("logprobs") is not None:
            self._take_tokens(choice, strict.a(dict, raw["logprobs"], "`logprobs`"))

    def _take_tokens(self, choice: StreamedChoice, raw: Mapping[str, Any]) -> None:
        strict.only(raw, _LOGPROBS, self.left_out, "choices.logprobs.")
        columns = [raw.get(name) for name in _LOGPROBS]
        tokens, *others = [column if isinstance(column, list) else [] for column in columns]
        for index, token in enumerate(tokens):
            chance, _, offset = (
                column[index] if index < len(column) else None for column in others
            )
            entry = token_entry(token, chance, [])
            if entry is not None:
                at = offset if type(offset) is int else 0
                choice.tokens.append(entry | {"at": at})

    def _written(self, choice: StreamedChoice, final: Mapping[int, str]) -> dict[str, Any]:
        text = final.get(choice.index, "")
        return _choice(choice, text, self._tokens_of(choice, final), choice.finish)

    def _word(self, choice: StreamedChoice, text: str, tokens: Tokens) -> dict[str, Any]:
        return _choice(choice, text, tokens, None)

    def _end(self, choice: StreamedChoice) -> dict[str, Any]:
        return _choice(choice, "", None, choice.finish)


def _choice(
    choice: StreamedChoice, text: str, tokens: Tokens, finish: str | None
) -> dict[str, Any]:
    logprobs = None if tokens is None else _columns(tokens)
    return {"index": choice.index, "text": text, "logprobs": logprobs, "finish_reason": finish}


def _columns(tokens: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {
        "tokens": [entry["token"] for entry in tokens],
        "token_logprobs": [entry["logprob"] for entry in tokens],
        "top_logprobs": [{} for _ in tokens],
        "text_offset": [entry["at"] for entry in tokens],
    }
