"""T8: a key is removed from what comes back however it is written there, and short keys too."""

import asyncio
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from evenhand.agents import Limits
from evenhand.core import Message
from evenhand.core.errors import EvenhandError
from evenhand.models.base import ModelRequest
from evenhand.models.keys import Redactor
from evenhand.scorers.base import Unscored
from evenhand.scorers.services import HttpGuardrail
from tests.errors import assert_names, raises_naming
from tests.loopback import replies
from tests.loopback.http import Call, Line
from tests.loopback.kernel import run_items, texts

from .conftest import Connect, Serve
from .test_secrets import everything_in

KEY = "sk/live+7Qm2ZxV9bT4nLr8Kd1Wc6Yp3"
SHORT = "hunter-2"  # eight signs: the shortest that is taken for a secret


def _escaped(key: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in key)


# How a server may write the key within a JSON string.
WAYS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "php": lambda key: key.replace("/", "\\/"),
    "first-sign": lambda key: f"\\u{ord(key[0]):04X}{key[1:]}",
    "every-sign": _escaped,
    "json-in-json": lambda key: f"\\{_escaped(key)}".replace("\\u", "\\\\u"),
    "thrice": lambda key: _escaped(key).replace("\\", "\\\\\\\\"),
    "php-in-json": lambda key: key.replace("/", "\\\\/"),
    "percent": lambda key: quote(key, safe=""),
    "percent-every-sign": lambda key: "".join(f"%{ord(sign):02X}" for sign in key),
    "percent-twice": lambda key: quote(quote(key, safe=""), safe=""),
    "html": lambda key: "".join(f"&#{ord(sign)};" for sign in key),
    "html-hex": lambda key: "".join(f"&#x{ord(sign):X};" for sign in key),
}


def told(text: str, key: str) -> bool:
    """Whether the key can be read from a text, undoing each way of writing a few times."""
    for _ in range(4):
        if key in text.replace("\\", ""):
            return True
        text = html.unescape(unquote(text))
        for sign in sorted(set(key)):
            text = text.replace(f"\\u{ord(sign):04x}", sign).replace(f"\\u{ord(sign):04X}", sign)
    return False


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.models.http_client._FIRST_PAUSE", 0.005)


@pytest.mark.parametrize("key", [KEY, SHORT])
async def test_however_it_is_written_the_key_is_recorded_and_shown_nowhere(
    key: str, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    """One item for each way in an answer, and one for each in an error."""
    written = [way(key) for way in WAYS.values()]
    assert all(told(one, key) for one in written)
    count = len(written)

    async def behave(call: Call, line: Line) -> str:
        number = int((re.findall(rb"neighbour (\d+)", call.raw) or [b"0"])[0])
        said = "KEY" if b"schema" not in call.raw else '{"reason": "KEY", "harm": 3}'
        reply: dict[str, Any] = replies.completion(said, prompt_tokens=1, completion_tokens=1)
        reply |= {"model": "KEY", "error": {"message": f"No. {said}"}, "data": [{"id": "KEY"}]}
        reply["choices"][0]["finish_reason"] = "KEY"
        body = json.dumps(reply).replace("KEY", written[number % count])
        await line.send(body.encode(), status=200 if number < count else 400)
        return "echoed"

    server = await serve(behave)
    server.lists_models = False
    model = connect(server.url, api_key=key)
    shown = repr(await model.list_models())
    ran = await run_items(model, texts(2 * count), tmp_path / "run", limits=Limits(seconds=30.0))
    assert len(ran.results) == 2 * count
    for _, turns in ran.turns.group_by("position"):
        assert "[redacted]" in str(turns.to_dicts())
    for text in (shown, *everything_in(tmp_path / "run")):
        assert not told(text, key)


@pytest.mark.parametrize("spelt", ["tokens", "others"])
async def test_log_probabilities_that_spell_the_key_are_left_out(
    spelt: str, serve: Serve, connect: Connect
) -> None:
    pieces = [KEY[start : start + 3] for start in range(0, len(KEY), 3)]

    async def behave(call: Call, line: Line) -> str:
        content = [
            {
                "token": piece if spelt == "tokens" else "x",
                "logprob": -1,
                "top_logprobs": [{"token": piece if spelt == "others" else "x", "logprob": -1}],
            }
            for piece in pieces
        ]
        reply: dict[str, Any] = replies.completion("hi", prompt_tokens=1, completion_tokens=1)
        reply["choices"][0]["logprobs"] = {"content": content}
        await line.send(json.dumps(reply).encode())
        return "spelt"

    server = await serve(behave)
    deadline = asyncio.get_running_loop().time() + 5
    request = ModelRequest(messages=(Message("user", "hi"),), logprobs=1, deadline=deadline)
    with_key = await connect(server.url, api_key=KEY).complete(request)
    without = await connect(server.url, api_key="another-key").complete(request)
    assert with_key.samples[0].logprobs is None
    assert without.samples[0].logprobs is not None


async def test_without_a_key_a_refusal_says_what_to_name(serve: Serve, connect: Connect) -> None:
    async def behave(call: Call, line: Line) -> str:
        await line.send_json({"error": "who?"}, status=401)
        return "refused"

    server = await serve(behave)
    server.lists_models = False
    for model, facts in (
        (connect(server.url), (401, "No key", "EVENHAND_API_KEY", "api_key_env")),
        (connect(server.url, api_key=KEY), (401, "not accepted", "EVENHAND_API_KEY")),
    ):
        with raises_naming(EvenhandError, *facts):
            await model.list_models()


@pytest.mark.parametrize("answer", ["score", "list", "object"])
async def test_a_service_that_gives_the_key_for_a_score_has_it_recorded_nowhere(
    answer: str, serve: Serve
) -> None:
    said = {"score": KEY, "list": [KEY], "object": {KEY: KEY}}[answer]

    async def behave(call: Call, line: Line) -> str:
        await line.send_json({"score": said})
        return "scored"

    scorer = HttpGuardrail((await serve(behave)).url, key=KEY)
    [found] = await scorer.score(["A calm walk."])
    await scorer.close()
    assert isinstance(found, Unscored)
    assert KEY not in found.message
    assert_names(found.message, "toxicity", 0, 1)


def test_a_word_that_is_too_short_for_a_key_stays_in_the_text() -> None:
    assert Redactor("EMPTY")("An EMPTY cup.") == "An EMPTY cup."
    assert Redactor(SHORT)("hunter-2!") == "[redacted]!"


def test_what_is_made_to_be_slow_is_looked_through_in_a_few_passes() -> None:
    text = "\\" * 500_000 + "%" * 500_000 + "&#" * 250_000 + "&#" + "0" * 500_000
    assert Redactor(KEY)(text) == text
