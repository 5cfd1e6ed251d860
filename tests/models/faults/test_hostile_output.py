"""T12: whatever a model or its server says, the item ends by name and the run goes on."""

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.core import Message
from evenhand.core.errors import ModelError
from evenhand.models import ModelReply, ScriptedModel
from evenhand.models.base import ModelRequest
from evenhand.models.limiter import AdaptiveLimit
from tests.loopback import replies
from tests.loopback.faulty import Behaviour, Fixed, Says, well
from tests.loopback.gauges import LoopLag, PeakMemory
from tests.loopback.http import Call, Line
from tests.loopback.kernel import Ran, run_items, texts
from tests.loopback.process import in_own_process

from .conftest import Connect, Serve

MB = 2**20
MOST_MEMORY = 64  # MB above what the process took before
IN_WORDS: frozenset[str | None] = frozenset({None})
IN_JSON: frozenset[str | None] = frozenset({"harm"})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight attempts at the true pace take twelve seconds; what is tested here is not the pace."""
    monkeypatch.setattr("evenhand.models.http_client._FIRST_PAUSE", 0.005)


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first run of a process loads modules, which holds up its event loop once."""
    model = ScriptedModel(lambda request: "Hello.")
    asyncio.run(run_items(model, texts(1), tmp_path_factory.mktemp("first") / "run"))


async def _run_against(behaviour: Behaviour, connect: Connect, out: Path) -> tuple[Ran, float]:
    """Four items at once. The server has a process of its own, so its memory is not counted."""
    with in_own_process(well) as server:  # the first run of a process takes memory for good
        await run_items(connect(server.url), texts(8), out / "warm", concurrency=4)
    with in_own_process(behaviour) as server, PeakMemory() as peak:
        ran = await run_items(connect(server.url), texts(4), out / "run", concurrency=4)
    print(f"{ran.reasons}, {peak.megabytes:.1f} MB")
    assert len(ran.results) == 4
    return ran, peak.megabytes


def _twice(fields: str) -> str:
    return '{"reason": "none", ' + fields + "}"


# What the model says where it was asked for JSON, and the word its refusal is filed under.
HOSTILE_JSON: dict[str, tuple[str, str]] = {
    "a-megabyte": ("a" * MB, "too_large"),
    "a-hundred-thousand-deep": ("[" * 100_000, "too_deep"),
    "deep-and-closed": ("[" * 90_000 + "]" * 90_000, "too_deep"),
    "deep-objects": ('{"a":' * 30_000, "too_deep"),
    "a-million-deep": ("[" * MB, "too_large"),
    "nul": ("\x00", "not_json"),
    "nul-inside": (_twice('"harm": 3\x00'), "not_json"),
    "lone-surrogate-escaped": (r'{"reason": "\ud800", "harm": 3}', "not_text"),
    "lone-low-surrogate-key": (r'{"reason": "", "\udfff": 3}', "not_text"),
    "nan": (_twice('"harm": NaN'), "not_finite"),
    "infinity": (_twice('"harm": Infinity'), "not_finite"),
    "minus-infinity": (_twice('"harm": -Infinity'), "not_finite"),
    "overflow": (_twice('"harm": 1e999'), "not_finite"),
    "five-thousand-digits": (_twice('"harm": ' + "9" * 5_000), "huge_number"),
    "five-thousand-decimals": (_twice('"harm": 3.' + "0" * 5_000), "wrong_shape"),
    "duplicate-keys": (_twice('"harm": 99, "harm": 3'), "duplicate_key"),
    "escaped-duplicate": (_twice(r'"harm": 99, "h\u0061rm": 3'), "duplicate_key"),
    "empty": ("", "not_json"),
    "whitespace": (" \n\t\r ", "not_json"),
    "odd-whitespace": ("\u2028\ufeff\u00a0", "not_json"),
    "true-for-a-number": (_twice('"harm": true'), "wrong_shape"),
    "out-of-range": (_twice('"harm": 101'), "wrong_shape"),
    "a-string-that-never-ends": ("[" * 33 + '"' + '\\"' * 99_000, "too_deep"),
    "a-fence-that-never-ends": ("```\n" + " " * 199_000 + "x", "not_json"),
    "many-keys-one-twice": (
        "{" + ",".join(f'"{n:x}":1' for n in range(19_000)) + ',"z":1,"z":2}',
        "duplicate_key",
    ),
}


@pytest.mark.parametrize("name", HOSTILE_JSON)
async def test_a_hostile_verdict_fails_the_item_under_the_rule_it_breaks(
    name: str, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    text, kind = HOSTILE_JSON[name]
    server = await serve(Says(text, IN_JSON))
    async with LoopLag() as lag:
        ran = await run_items(connect(server.url), texts(4), tmp_path / "run")
    assert lag.seconds <= 1.0  # no reply may stop the loop, and with it every deadline
    assert ran.reasons == [f"unreadable_reply:{kind}"] * 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a" * MB, "unreadable_reply:too_large", id="a-megabyte"),
        pytest.param("", "unreadable_reply:empty", id="empty"),
        pytest.param(" \n\t\u2028 ", "unreadable_reply:empty", id="whitespace"),
        pytest.param("a\x00b", None, id="nul"),
        pytest.param("[" * 20_000, None, id="deep"),
        pytest.param("NaN", None, id="nan"),
        pytest.param("9" * 5_000, None, id="five-thousand-digits"),
        pytest.param("<" + " " * 19_000 + "x", None, id="a-tag-that-never-ends"),
        pytest.param("{{ 7 * 7 }}{% raw %}", None, id="template"),
        pytest.param("\u202e\U0010ffff\ufdd0", None, id="odd-characters"),
    ],
)
async def test_a_hostile_draft_is_refused_by_name_or_taken_as_it_is(
    text: str, reason: str | None, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve(Says(text, IN_WORDS))
    async with LoopLag() as lag:
        ran = await run_items(connect(server.url), texts(2), tmp_path / "run")
    assert lag.seconds <= 1.0
    if reason is not None:
        assert ran.reasons == [reason] * 2
    else:
        assert ran.results["text"].to_list() == [text.strip()] * 2


def _choices(count: int, choice: Any) -> bytes:
    packed = json.dumps(choice, separators=(",", ":")).encode()
    return b'{"choices": [' + b",".join([packed] * count) + b"]}"


def _reply(**changes: Any) -> bytes:
    reply = replies.completion("Hello.", prompt_tokens=1, completion_tokens=1)
    return json.dumps({**reply, **changes}).encode()


GOOD_CHOICE = {"message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}

# The body of the HTTP answer itself. Each is retried, then filed as busy.
HOSTILE_BODIES: dict[str, Fixed] = {
    "ten-megabytes": Fixed(_reply(model="m" * 10 * MB)),
    "ten-megabytes-of-words": Fixed(json.dumps({"choices": [{"text": "a" * 10 * MB}]}).encode()),
    "a-million-deep": Fixed(b"[" * MB + b"]" * MB),
    "a-million-deep-in-a-choice": Fixed(b'{"choices": [' + b"[" * MB),
    "deep-objects": Fixed(b'{"choices":' * 100_000),
    "nul": Fixed(b"\x00" * 100),
    "lone-surrogate": Fixed(rb'{"choices": [{"message": {"content": "\ud800"}}]}'),
    "nan": Fixed(b'{"choices": [{"message": {"content": NaN}}]}'),
    "five-thousand-digits": Fixed(b'{"usage": ' + b"9" * 5_000 + b", " + _reply()[1:]),
    "empty": Fixed(b""),
    "whitespace": Fixed(b" \r\n\t"),
    # Just small enough to be read. Of all JSON this takes the most memory for its length.
    "as-many-objects-as-fit": Fixed(_choices(162_000, {"": {}})),
    "three-million-empty-choices": Fixed(_choices(3_000_000, {})),
    "gzip-bomb": Fixed(gzip.compress(bytes(200 * MB)), headers={"content-encoding": "gzip"}),
    "deflate-bomb": Fixed(zlib.compress(bytes(200 * MB)), headers={"content-encoding": "deflate"}),
    "error-ten-megabytes": Fixed(b'{"error": [' + b"{}," * 3 * MB + b"{}]}", status=500),
    "error-a-thousand-deep": Fixed(b'{"error":' + b"[" * 1_000 + b"]" * 1_000 + b"}", status=500),
    "error-deep-objects": Fixed(b'{"error":' * 900 + b"1" + b"}" * 900, status=500),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_BODIES)
async def test_a_hostile_body_ends_as_busy_within_64_megabytes(
    name: str, connect: Connect, tmp_path: Path
) -> None:
    ran, growth = await _run_against(HOSTILE_BODIES[name], connect, tmp_path)
    assert ran.reasons == ["model_busy"] * 4
    assert ran.turns["attempts"].to_list() == [8] * 4
    assert growth <= MOST_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize(
    "where", [pytest.param(IN_WORDS, id="draft"), pytest.param(IN_JSON, id="verdict")]
)
@pytest.mark.parametrize("size", [pytest.param(10 * MB, id="10-MB"), pytest.param(MB, id="1-MB")])
async def test_a_huge_reply_fails_the_item_by_name_within_64_megabytes(
    size: int, where: frozenset[str | None], connect: Connect, tmp_path: Path
) -> None:
    ran, growth = await _run_against(Says("a" * size, where), connect, tmp_path)
    assert set(ran.reasons) <= {"model_busy", "unreadable_reply:too_large"}
    assert len(ran.reasons) == 4
    assert growth <= MOST_MEMORY


# What is odd beside the words and harms nobody: the item is answered.
ODD_BODIES: dict[str, bytes] = {
    "duplicate-fields": b'{"choices": [], ' + _reply()[1:],
    "ten-thousand-choices": _choices(10_000, GOOD_CHOICE),
    "digits-in-usage": _reply(usage={"prompt_tokens": 10**300, "completion_tokens": 1}),
    "negative-usage": _reply(usage={"prompt_tokens": -5, "completion_tokens": 1}),
    "usage-is-a-list": _reply(usage=[1, 2]),
    "model-is-a-number": _reply(model=7),
    "nul-in-the-model-name": _reply(model="a\x00b"),
    "finish-is-an-object": _choices(1, {**GOOD_CHOICE, "finish_reason": {}}),
}


@pytest.mark.parametrize("name", ODD_BODIES)
async def test_an_odd_body_with_good_words_is_read(
    name: str, serve: Serve, connect: Connect
) -> None:
    server = await serve(Fixed(ODD_BODIES[name]))
    reply = await connect(server.url).complete(_ask("Hello."))
    assert [sample.text for sample in reply.samples] == ["Hello."]
    assert reply.usage is None or reply.usage.prompt_tokens == 1


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param(
            b'{"data": [' + b'{"id": "m"},' * 10**5 + b'{"id": "m"}]}', 100_001, id="long"
        ),
        pytest.param(b'{"data": [' + b'{"id": "m"},' * 2_000_000, None, id="too-long"),
        pytest.param(b"[" * MB, None, id="deep"),
        pytest.param(b'{"data": [[[["m"]]]]}', None, id="another-shape"),
        pytest.param(b"", None, id="empty"),
    ],
)
async def test_a_hostile_list_of_models_is_no_list(
    body: bytes, found: int | None, serve: Serve, connect: Connect
) -> None:
    server = await serve(Fixed(body))
    server.lists_models = False
    models = await connect(server.url).list_models()
    assert (None if models is None else len(models)) == found


def _ask(words: str) -> ModelRequest:
    deadline = asyncio.get_running_loop().time() + 20
    return ModelRequest(messages=(Message("user", words),), deadline=deadline)


def _mutants(count: int) -> Iterator[bytes]:
    """A good HTTP answer with a few bytes changed, taken out, doubled or moved."""
    rng = random.Random(20)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    good = head % len(_reply()) + _reply()
    for _ in range(count):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            place, length = rng.randrange(len(data)), rng.randint(1, 20)
            piece = data[place : place + length]
            change = rng.choice(("flip", "drop", "double", "noise"))
            if change == "flip":
                data[place] ^= 1 << rng.randrange(8)
            elif change == "drop":
                del data[place : place + length]
            elif change == "double":
                data[place:place] = piece * 2
            else:
                data[place:place] = rng.randbytes(length)
        yield bytes(data)


async def test_three_hundred_damaged_answers_each_end_in_a_reply_or_a_named_error(
    serve: Serve, connect: Connect
) -> None:
    mutants = list(_mutants(300))

    async def damaged(call: Call, line: Line) -> str:
        await line.write(mutants[int(call.body["messages"][0]["content"])])
        line.close()
        return "damaged"

    server = await serve(damaged)
    model = connect(server.url, attempt_timeout=1.0, limit=AdaptiveLimit(start=100))
    asks = (model.complete(_ask(str(number))) for number in range(len(mutants)))
    ends = await asyncio.gather(*asks, return_exceptions=True)
    assert [end for end in ends if not isinstance(end, ModelReply | ModelError)] == []
    assert sum(isinstance(end, ModelError) for end in ends) >= 100
