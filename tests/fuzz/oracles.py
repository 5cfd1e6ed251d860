"""One check per reader: only the declared errors, and the same value as the second reader's.

A check gives True where the input was read and False where it was refused, so that a test can
show that it saw both.
"""

import html
import json
import unicodedata
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from evenhand.agents import FreeText, ReasonedChoice, Reply, choice_of, strict_json
from evenhand.agents.prompts import marked, parse
from evenhand.core.errors import CorruptRun, UnknownFormat, UnreadableReply, UserError
from evenhand.methods.evaluators import Scored
from evenhand.methods.stardtox import Harm, Quality, Support
from evenhand.models import wire
from evenhand.models.base import ModelRequest
from evenhand.models.http_client import retry_after
from evenhand.runs.runners.source import read_item
from evenhand.runs.store.run_record import RunRecord

from . import shapes
from .second_reader import Refused, read_json, same, without_fence

REPLY_TYPES: dict[str, type[Reply]] = {
    "Harm": Harm,
    "Support": Support,
    "Quality": Quality,
    "Scored": Scored,
    "Choice": choice_of(3),
    "ReasonedChoice": choice_of(3, ReasonedChoice),
}
NAMES = {
    "duplicate_key",
    "empty",
    "huge_number",
    "not_finite",
    "not_json",
    "not_text",
    "too_deep",
    "too_large",
    "wrong_shape",
}
CHAT = ModelRequest()
REQUESTS = {
    "chat": CHAT,
    "chat with log-probabilities": ModelRequest(logprobs=2),
    "two samples": ModelRequest(n=2, logprobs=1),
    "text": ModelRequest(prompt="p"),
    "text with log-probabilities": ModelRequest(prompt="p", logprobs=2, echo=True),
}


def _both(
    second: Callable[[], Any], package: Callable[[], Any], *declared: type[Exception]
) -> bool:
    """Run the reader under test and the second one; they must read or refuse alike."""
    read, refused = _outcome(package, *declared)
    if isinstance(refused, UnreadableReply):
        assert refused.kind in NAMES
    str(refused).encode()  # a message that no log can hold is a crash later
    expected, reason = _outcome(second, Refused)
    if reason is not None:
        assert refused is not None, f"read as {read!r}, but: {reason}"
        return False
    assert refused is None, f"refused ({refused}), but it is {expected!r}"
    assert same(read, expected), f"read as {read!r}, but it is {expected!r}"
    return True


def _outcome(
    read: Callable[[], Any], *declared: type[Exception]
) -> tuple[Any, None] | tuple[None, Exception]:
    try:
        return read(), None
    except declared as error:
        return None, error


def strict(text: str) -> bool:
    def second() -> Any:
        shapes.need(len(text) <= 200_000)
        return read_json(without_fence(text))

    return _both(second, lambda: strict_json.parse(text), UnreadableReply)


def reply(kind: str, text: str) -> bool:
    read = REPLY_TYPES[kind].read
    return _both(lambda: shapes.reply(kind, text), lambda: read(text).model_dump(), UnreadableReply)


def free_text(text: str) -> bool:
    return _both(
        lambda: shapes.free_text(text), lambda: FreeText.read(text).model_dump(), UnreadableReply
    )


def item(line: bytes, position: int = 7) -> bool:
    return _both(
        lambda: shapes.item(line, position),
        lambda: asdict(read_item(line, position, "line 1")),
        UserError,
    )


def wire_body(body: bytes, request: ModelRequest = CHAT) -> bool:
    def package() -> Any:
        samples, usage, served_by = wire.decode(body, request)
        return {
            "samples": [
                {
                    "text": sample.text,
                    "finish": sample.finish,
                    "logprobs": None
                    if sample.logprobs is None
                    else [(one.token, one.logprob, list(one.top)) for one in sample.logprobs],
                }
                for sample in samples
            ],
            "usage": (usage.prompt_tokens, usage.completion_tokens) if usage else None,
            "served_by": served_by,
        }

    def second() -> Any:
        return shapes.wire(
            body,
            chat=request.prompt is None,
            n=request.n,
            logprobs=request.logprobs is not None,
        )

    return _both(second, package, wire.BadBody, wire.ErrorBody)


def error_body(body: bytes) -> bool:
    said = wire.error_text(body)
    said.encode()
    assert len(said) <= len(body)
    names = wire.model_names(body)
    if names is not None:
        said_names = [entry["id"] for entry in json.loads(body)["data"]]
        assert all(
            one == two for one, two in zip(said_names, names, strict=True) if type(one) is str
        )
    return bool(said)


def wait(raw: str, header: str = "retry-after") -> bool:
    seconds = retry_after({header: raw})
    if seconds is None:
        return False
    assert isinstance(seconds, float)
    assert seconds >= 0  # which a NaN is not
    return True


def prompt_file(text: str) -> bool:
    try:
        prompt = parse(text)
    except UserError:
        return False
    lines = text.split("\n")
    assert [line for line in lines if line == "---"] == ["---"] * 3
    assert f"id: {prompt.id}" in lines or not isinstance(prompt.id, str) or '"' in text
    return True


def run_record(data: bytes) -> bool:
    where = "runs/x"
    return _both(
        lambda: shapes.run_record(data),
        lambda: RunRecord.from_bytes(data, where).model_dump(),
        CorruptRun,
        UnknownFormat,
    )


def fence(text: str, tag: str) -> bool:
    """Scan by hand what a lenient reader sees in the fence: no `<`, blanks, at most one `/`,
    blanks, tag."""
    shown = marked(text, tag)
    opening, closing = f"<{tag}>\n", f"\n</{tag}>"
    assert shown.startswith(opening)
    assert shown.endswith(closing)
    inner = shown[len(opening) : len(shown) - len(closing)]
    seen = inner
    for _ in range(12):
        seen = "".join(c for c in seen if c in "\n\t" or unicodedata.category(c)[0] != "C")
        seen = html.unescape(unicodedata.normalize("NFKC", seen))
    for at, character in enumerate(seen):
        if character == "<":
            after = seen[at + 1 :].lstrip().removeprefix("/").lstrip()
            assert after[: len(tag)].casefold() != tag, seen[at:]
    if not set(text) & set("&＆﹠\\%"):  # else it may be shown as what it spells
        assert len(inner) == len(text)
        assert all(one in (was, "‹") for one, was in zip(inner, text, strict=True))
    return inner != text
