"""The same answers through all doors: our wire, the Responses API, and a provider's package.

    EVENHAND_DATA=data python -m compat.check_providers litellm
    EVENHAND_DATA=data python -m compat.check_providers inspect

`make check-providers` runs it by the Python of two environments that have the packages from the
registry: LiteLLM wants another openai than Inspect does. The model is a stand-in of ours on
loopback, so what is seen is that the doors agree, and not what a provider does. A line for each
thing that was seen; it ends with code 1 at the first that does not hold.
"""

import asyncio
import contextlib
import importlib.metadata
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evenhand as eh
from compat.standin import THOUGHT, Standin, standing_in
from evenhand.core import Message
from evenhand.core.errors import ModelError
from evenhand.models import open_by_name
from evenhand.models.base import ChatModel, ModelReply, ModelRequest, ReplySchema
from tests.models.todays_models.server import TOXIC, Stub, listed, serving

ASKED = ModelRequest(messages=(Message("system", "Be brief."), Message("user", "How are people?")))
FORM = ReplySchema(
    "mark",
    {
        "type": "object",
        "properties": {"mark": {"type": "integer", "enum": [1, 2, 3, 4, 5, 6, 7]}},
        "required": ["mark"],
        "additionalProperties": False,
    },
)
SETTINGS: Mapping[str, Any] = {"temperature": 0.0, "seed": 3, "max_tokens": 200}
ITEMS = {"per_category": 4}


@dataclass(frozen=True)
class Door:
    """How a model of the stand-in is reached."""

    name: str
    opened: Callable[[str, str], ChatModel]  # by the address and the name of the model
    seeded: bool = True  # whether the route has a place for a seed


def _through(prefix: str, path: str) -> Callable[[str, str], ChatModel]:
    def opened(url: str, model: str) -> ChatModel:
        base = url.removesuffix("/v1") + path
        return open_by_name(f"{prefix}/{model}", base_url=base, max_wait=5)

    return opened


OURS = (
    Door("chat", lambda url, model: eh.Endpoint(url, model=model)),
    Door("responses", lambda url, model: eh.Endpoint(url, model=model, api="responses")),
)
DOORS = {
    "litellm": (
        Door("litellm:openai", _through("litellm:openai", "/v1")),
        Door("litellm:anthropic", _through("litellm:anthropic", "")),
    ),
    "inspect": (
        Door("inspect:openai-api", _through("inspect:openai-api/standin", "/v1")),
        Door("inspect:openai", _through("inspect:openai", "/v1")),
        Door("inspect:anthropic", _through("inspect:anthropic", "")),
    ),
}


def main(library: str) -> None:
    os.environ.setdefault("STANDIN_API_KEY", "none-is-needed")
    packages = ("litellm",) if library == "litellm" else ("inspect_ai",)
    for package in (*packages, "openai", "anthropic"):
        said(f"{package} {importlib.metadata.version(package)}")
    with standing_in() as standin, tempfile.TemporaryDirectory() as folder:
        asyncio.run(sdks_agree(standin))
        doors = (*OURS, *DOORS[library])
        asyncio.run(replies_agree(standin, doors))
        asyncio.run(retries_are_ours(standin, doors))
        asyncio.run(behaviors_agree((OURS[0], DOORS[library][0])))
        runs_agree(standin, doors, Path(folder))


async def sdks_agree(standin: Standin) -> None:
    """The stand-in says to the providers' own packages what it says to us."""
    import anthropic
    import openai

    told: list[Any] = [{"role": m.role, "content": m.content} for m in ASKED.messages]
    ours = (await _asked(OURS[0], standin.url)).samples[0].text
    async with openai.AsyncOpenAI(base_url=standin.url, api_key="none") as client:
        chat = await client.chat.completions.create(model="plain", messages=told)
        told_so = await client.responses.create(model="plain", input=told)
    base = standin.url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base, api_key="none") as other:
        asks: Any = {"system": told[0]["content"], "messages": told[1:], "max_tokens": 100}
        message = await other.messages.create(model="plain", **asks)
        thinking = await other.messages.create(model="thinks", **asks)
    holds(thinking.content[0].thinking == THOUGHT, "Anthropic's package reads the thought")
    texts = {chat.choices[0].message.content, told_so.output_text, message.content[0].text}
    holds(texts == {ours}, f"the packages of OpenAI and Anthropic read what we read: {ours!r}")


async def replies_agree(standin: Standin, doors: tuple[Door, ...]) -> None:
    first = OURS[0]
    for what, changes in (("plain", {}), ("with settings", SETTINGS), ("typed", {"schema": FORM})):
        ours = await _asked(first, standin.url, **changes)
        for door in doors[1:]:
            theirs = await _asked(door, standin.url, **changes)
            same = theirs.samples[0].text == ours.samples[0].text and theirs.usage is not None
            counted = (theirs.usage.prompt_tokens, theirs.usage.completion_tokens)  # type: ignore[union-attr]
            holds(same and counted == (100, 10), f"{door.name}: {what}: the same reply and tokens")
    for door in doors:
        reply = await _asked(door, standin.url, "thinks")
        sample = reply.samples[0]
        apart = sample.thinking == THOUGHT and THOUGHT not in sample.text
        holds(apart, f"{door.name}: the thought is apart from the answer")
        reply = await _asked(door, standin.url, "strict", **SETTINGS)
        holds(bool(reply.samples[0].text), f"{door.name}: learned: {reply.adapted or 'nothing'}")


async def behaviors_agree(doors: tuple[Door, ...]) -> None:
    """The models of today say the same words by every door of the chat route, and no thought is
    among them. What a package cannot read at all, and of whom it shows no thought, is said. A
    server that streams what was not asked as a stream is for our own wire alone; a call of a tool
    is asked again by a conversation, and not by a door."""
    stub = Stub()
    stub.thought = TOXIC
    with serving(stub) as url:
        plain = (await _asked(doors[0], url)).samples[0].text
        for door in doors:
            unread, unseen = [], []
            for name, behavior in listed().items():
                if behavior.get("calls") or ("stream" in behavior and door is not OURS[0]):
                    continue
                try:
                    (sample,) = (await _asked(door, url, name, temperature=0.0, seed=3)).samples
                except ModelError:
                    unread.append(name)
                    continue
                if sample.text != plain:
                    holds(False, f"{door.name}: {name}: {sample.text!r} and not {plain!r}")
                if behavior.get("thinks", "hidden") != "hidden" and sample.thinking != TOXIC:
                    unseen.append(name)
            holds(door is not OURS[0] or not unread + unseen, f"{door.name}: the same words; "
                  f"not read: {_listed(unread)}; no thought seen: {_listed(unseen)}")  # fmt: skip


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


async def retries_are_ours(standin: Standin, doors: tuple[Door, ...]) -> None:
    """Each request is refused once with 429: two are made, and both are counted. What a package
    asks before its first call, to know the model, is not."""
    for door in doors:
        opened = door.opened(standin.url, "busy")
        await opened.complete(ModelRequest(messages=ASKED.messages))
        standin.asked.clear()
        reply = await opened.complete(ModelRequest(messages=ASKED.messages[1:]))
        await opened.close()
        made, ours = len(standin.asked), reply.attempts
        holds((made, ours) == (2, 2), f"{door.name}: 429: {made} requests, {ours} by us")


def runs_agree(standin: Standin, doors: tuple[Door, ...], folder: Path) -> None:
    """A run of BBQ by each door: equal row by row, and equal in every measure."""
    found = {}
    for door in doors:
        out = folder / door.name.replace(":", "-")
        report = eh.measure(
            "bbq", model=door.opened(standin.url, "plain"), out=str(out), options=ITEMS
        )
        rows = eh.open_run(str(out)).results().sort("item_id").select("item_id", "text", "choice")
        found[door.name] = rows, [(e.name, e.value) for e in report.estimates]
    ours, measures = found[OURS[0].name]
    for name, (rows, theirs) in found.items():
        holds(rows.equals(ours) and theirs == measures, f"{name}: BBQ: {len(rows)} rows, all equal")


async def _asked(door: Door, url: str, model: str = "plain", **changes: Any) -> ModelReply:
    opened = door.opened(url, model)
    try:
        return await opened.complete(ModelRequest(messages=ASKED.messages, **changes))
    finally:
        await opened.close()


def said(words: str) -> None:
    print(words, flush=True)


def holds(true: bool, words: str) -> None:
    said(("ok  " if true else "NO  ") + words)
    if not true:
        sys.exit(1)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1])
