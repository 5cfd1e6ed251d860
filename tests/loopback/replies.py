"""What the pretended model says.

Everything is decided by the hash of the words asked, so a run can be repeated and a retried
request gets the reply the first attempt would have had.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

# By the name of the schema; the second column tells the replies apart when a server was not given
# a schema but words that describe one.
_FIELDS = {
    "harm": {"reason", "harm"},
    "quality": {"reason", "fluency", "coherence", "relevance"},
    "support": {"reason", "support"},
    "choice": {"answer"},
    "reasonedchoice": {"reasoning", "answer"},
    "rated": {"reason", "creativity", "accuracy", "efficiency", "reliability"},
    "compared": {"reason", "first", "second", "preferred"},
    "verdict": {"reasons", "ranking", "scores"},
}


def schema_name(body: Mapping[str, Any]) -> str | None:
    """Which typed reply a request wants; None for plain words."""
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        name: str = form["json_schema"]["name"]
        return name
    told = re.search(r"must follow this schema: (\{.*\})", body["messages"][-1]["content"])
    if told is None:
        return None
    wanted = set(json.loads(told[1])["properties"])
    return next(name for name, fields in _FIELDS.items() if fields == wanted)


def said(body: Mapping[str, Any]) -> str:
    """The model's words: about every second draft is objected to, so that revisions happen."""
    chance = _chance(body)
    value: dict[str, Any]
    match schema_name(body):
        case "harm":
            value = {
                "reason": "a slur" if chance < 40 else "none",
                "harm": 60 if chance < 40 else 3,
            }
        case "quality":
            marks = {"fluency": 95, "coherence": 95, "relevance": 50 if chance < 10 else 95}
            value = {"reason": "off the task" if chance < 10 else "none", **marks}
        case "support":
            value = {"reason": "the context", "support": 95 if chance < 60 else 20}
        case "choice":
            value = {"answer": "ABC"[chance % 3]}
        case "reasonedchoice":
            value = {"reasoning": "the context", "answer": "ABC"[chance % 3]}
        case "rated":
            value = {"reason": "clear", **_marks(chance)}
        case "compared" | "verdict" as form:
            value = _compared(chance) if form == "compared" else _verdict(body, chance)
        case _:
            return _in_words(body, chance)
    return json.dumps(value)


def _in_words(body: Mapping[str, Any], chance: int) -> str:
    if "Reply with a numbered list" in body["messages"][0]["content"]:
        return "\n".join(f"{n}. Matter {chance}-{n} of m{chance}x{n}" for n in range(20))
    return f"A draft about the task, number {chance}."


def _compared(chance: int) -> dict[str, Any]:
    better = ("first", "second", "tie")[chance % 3]
    slots = {"first": _marks(chance), "second": _marks(chance // 3)}
    return {"reason": "both are clear", **slots, "preferred": better}


def _marks(chance: int) -> dict[str, int]:
    names = ("creativity", "accuracy", "efficiency", "reliability")
    return {name: 5 + (chance >> place) % 4 for place, name in enumerate(names)}


def _verdict(body: Mapping[str, Any], chance: int) -> dict[str, list[Any]]:
    """A referee's, on as many statements as it was shown."""
    shown = range(1, body["messages"][-1]["content"].count("</statement>") + 1)
    scores = [(chance + 3 * number) % 11 for number in shown]
    ranking = sorted(shown, key=lambda number: scores[number - 1])
    return {"reasons": ["the words"] * len(shown), "ranking": ranking, "scores": scores}


def completion(
    text: str, *, prompt_tokens: int, completion_tokens: int, model: str = "pretended"
) -> dict[str, Any]:
    """A chat completion as the wire format has it."""
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def proper(body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole good answer to a request."""
    text = said(body)
    samples = body.get("n", 1)
    reply = completion(
        text,
        prompt_tokens=prompt_tokens(body),
        completion_tokens=samples * token_count(text),
    )
    reply["choices"] = [{**reply["choices"][0], "index": index} for index in range(samples)]
    return reply


def token_count(text: str, bytes_per_token: int = 3) -> int:
    """Three bytes of UTF-8 a token: cautious for English, one token per character for CJK."""
    return -(-len(text.encode()) // bytes_per_token)


def prompt_tokens(body: Mapping[str, Any], bytes_per_token: int = 3) -> int:
    """The words, and 4 for a chat template around each message."""
    contents = (message["content"] for message in body["messages"])
    return sum(token_count(content, bytes_per_token) + 4 for content in contents)


def _chance(body: Mapping[str, Any]) -> int:
    words = json.dumps(body["messages"], sort_keys=True).encode()
    return int.from_bytes(hashlib.sha256(words).digest()[:4], "big") % 100
