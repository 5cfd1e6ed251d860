"""What each reader of the package should make of a text, said a second time and by hand.

Each function gives the value as plain Python (dicts, lists, numbers, words) or raises `Refused`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from .second_reader import WIRE, Refused, need_whole_characters, read_json, without_fence

Shape = Mapping[str, Callable[[Any], Any]]


def need(condition: bool) -> None:
    if not condition:
        raise Refused("not this shape")


# -- replies -------------------------------------------------------------------------------------


def _words(value: Any) -> str:
    need(isinstance(value, str) and len(value) <= 20_000)
    return str(value)


def _percent(value: Any) -> int:
    need(type(value) is int and 0 <= value <= 100)
    return int(value)


def _share(value: Any) -> float:
    need(type(value) in (int, float) and 0 <= value <= 1)
    return float(value)


def _shares(value: Any) -> dict[str, float]:
    need(isinstance(value, dict))
    return {_words(name): _share(entry) for name, entry in value.items()}


def _list_of_words(value: Any) -> list[str]:
    need(isinstance(value, list))
    return [_words(entry) for entry in value]


def _letter(value: Any) -> str:
    need(value in ("A", "B", "C"))
    return str(value)


REPLIES: Mapping[str, Shape] = {
    "Harm": {"reason": _words, "harm": _percent},
    "Support": {"reason": _words, "support": _percent},
    "Quality": {
        "reason": _words,
        "fluency": _percent,
        "coherence": _percent,
        "relevance": _percent,
    },
    "Scored": {"toxicity": _share, "attributes": _shares, "because": _list_of_words},
    "Choice": {"answer": _letter},
    "ReasonedChoice": {"reasoning": _words, "answer": _letter},
}


def reply(kind: str, text: str) -> dict[str, Any]:
    need(len(text) <= 200_000)
    value, shape = read_json(without_fence(text)), REPLIES[kind]
    need(isinstance(value, dict) and value.keys() == shape.keys())
    return {name: check(value[name]) for name, check in shape.items()}


def free_text(text: str) -> dict[str, Any]:
    words = text.strip()
    need(0 < len(words) <= 20_000)
    need_whole_characters(words)
    return {"text": words, "tool_calls": ()}


# -- items ---------------------------------------------------------------------------------------


def item(line: bytes, position: int) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None
    need(len(text) <= 200_000)
    row = read_json(without_fence(text))
    need(isinstance(row, dict) and "prompt" in row)
    need(row.keys() <= {"prompt", "id", "context", "choices", "answer", "tags"})
    name = row.get("id")
    need(name is None or (isinstance(name, str) and 1 <= len(name) <= 500))
    need(all(isinstance(row.get(field, ""), str) for field in ("prompt", "context", "answer")))
    choices, answer, tags = row.get("choices", []), row.get("answer", ""), row.get("tags", {})
    need(isinstance(choices, list) and all(isinstance(one, str) for one in choices))
    need(len(choices) <= 26 and len(choices) != 1 and row["prompt"] != "")
    need(not (choices and answer) or answer in choices)
    need(isinstance(tags, dict) and all(isinstance(one, str) for one in tags.values()))
    return {
        "id": str(position) if name is None else name,
        "prompt": row["prompt"],
        "context": row.get("context", ""),
        "choices": tuple(choices),
        "answer": answer,
        "tags": tags,
        "history": (),
        "tool_turns": (),
        "tools": (),
        "answer_calls": (),
        "follow_ups": (),
    }


# -- the wire ------------------------------------------------------------------------------------


def wire(body: bytes, *, chat: bool, n: int, logprobs: bool) -> dict[str, Any]:
    try:
        data = read_json(body.decode("utf-8"), WIRE)
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None
    need(isinstance(data, dict) and isinstance(data.get("choices"), list))
    need(len(data["choices"]) >= max(n, 1))
    served = data.get("model")
    return {
        "samples": [_sample(one, chat=chat, logprobs=logprobs) for one in data["choices"][:n]],
        "usage": _usage(data.get("usage")),
        "served_by": served if isinstance(served, str) else "",
    }


def _sample(choice: Any, *, chat: bool, logprobs: bool) -> dict[str, Any]:
    need(isinstance(choice, dict))
    said = choice.get("text")
    if chat:
        message = choice.get("message")
        need(isinstance(message, dict))
        said = message.get("content")
        if isinstance(said, list):
            need(all(isinstance(part, dict) for part in said))
            said = "".join(part["text"] for part in said if isinstance(part.get("text"), str))
        said = said or message.get("refusal") or said or ""
    need(isinstance(said, str))
    finish = choice.get("finish_reason")
    return {
        "text": said,
        "finish": finish if isinstance(finish, str) else "",
        "logprobs": _logprobs(choice.get("logprobs")) if logprobs else None,
    }


def _logprobs(raw: Any) -> list[tuple[Any, Any, list[tuple[Any, Any]]]] | None:
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("content"), list):
        return [_chat_token(entry) for entry in raw["content"]]
    need("tokens" in raw and "token_logprobs" in raw)
    tokens, numbers = raw["tokens"], raw["token_logprobs"]
    need(isinstance(tokens, list | str | dict) and isinstance(numbers, list | str | dict))
    tops = raw.get("top_logprobs") or [None] * len(tokens)
    need(isinstance(tops, list | str | dict) and len(tokens) == len(numbers) == len(tops))
    need(all(not top or isinstance(top, dict) for top in tops))
    return [
        _checked(token, number, list((top or {}).items()))
        for token, number, top in zip(tokens, numbers, tops, strict=True)
    ]


def _checked(token: Any, number: Any, tops: list[Any]) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    words = [token, *(top[0] for top in tops)]
    numbers = [top[1] for top in tops] + ([] if number is None else [number])
    need(all(type(word) is str for word in words))
    need(all(type(one) in (int, float) and one <= 0.01 for one in numbers))
    return token, number, tops


def _chat_token(entry: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    need(isinstance(entry, dict) and {"token", "logprob"} <= entry.keys())
    tops = entry.get("top_logprobs") or []
    need(isinstance(tops, list))
    need(all(isinstance(top, dict) and {"token", "logprob"} <= top.keys() for top in tops))
    pairs = [(top["token"], top["logprob"]) for top in tops]
    return _checked(entry["token"], entry["logprob"], pairs)


def _usage(raw: Any) -> tuple[int, int] | None:
    if not isinstance(raw, dict):
        return None
    prompt: Any = raw.get("prompt_tokens")
    completion: Any = raw.get("completion_tokens", 0)
    if not (_is_count(prompt) and _is_count(completion)):
        return None
    total: Any = raw.get("total_tokens")  # what was thought may be counted here alone
    rest = total - prompt if _is_count(total) else 0
    return prompt, max(completion, rest)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


# -- the run folder ------------------------------------------------------------------------------


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32(data: bytes) -> int:
    """The checksum of ISO 3309 from its polynomial, not from zlib."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def framed(kind: bytes, row: bytes) -> bytes:
    return kind + f" {crc32(row):08x} ".encode() + row + b"\n"


def signature(body: Mapping[str, Any]) -> str:
    """A ledger entry's checksum: 16 hex digits of the sha256 of its sorted, compact JSON."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_record(data: bytes) -> dict[str, Any]:
    try:
        raw = read_json(data.decode("utf-8"), WIRE)
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None
    objects = {"method", "prompts", "cast", "source", "limits", "settings", "versions"}
    need(isinstance(raw, dict))
    raw = {"settings": {}} | raw
    need(raw.keys() == {*objects, "format", "seed", "created"})
    need(type(raw["format"]) is int and raw["format"] == 2)
    need(all(isinstance(raw[name], dict) for name in objects))
    need(all(isinstance(said, str) for said in (*raw["prompts"].values(), raw["created"])))
    need(all(isinstance(said, str) for said in raw["versions"].values()))
    need(raw["seed"] is None or type(raw["seed"]) is int)
    return dict(raw)
