"""A schema is a stranger's: it fetches nothing, holds nothing up, and is kept to."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from evenhand.gateway import schemas
from evenhand.gateway.policy import CheckPolicy, Policy
from evenhand.gateway.schema_check import BadSchema, validator_of
from evenhand.gateway.schemas import bounded, satisfies
from tests.gateway.speaking import BAD, Speaker, gateway, upstream
from tests.gateway.test_hold import said

SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "hire": {"type": "boolean"}},
    "required": ["why", "hire"],
    "additionalProperties": False,
}


# Each refers twice to the next: 2 to the power of 30 ways.
BOMB = {
    "$ref": "#/$defs/0",
    "$defs": {
        str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}, {"$ref": f"#/$defs/{n + 1}"}]}
        for n in range(30)
    }
    | {"30": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("text", "schema", "fits"),
    [
        ('{"why": "x", "hire": true}', SCHEMA, True),
        ('{"why": "x"}', SCHEMA, False),
        ("no json", SCHEMA, False),
        ("{}", {}, True),
        ("{}", {"$ref": "http://127.0.0.1:1/schema.json"}, False),
        ("{}", {"$ref": "file:///etc/passwd"}, False),
        ("{}", {"type": 7}, False),
        ("1", BOMB, False),
        ('"' + "a" * 60 + 'b"', {"type": "string", "pattern": "^(a+)+$"}, False),
        ('"' + "a" * 60 + '"', {"type": "string", "pattern": "^(a+)+$"}, True),
    ],
)
async def test_a_text_fits_a_schema_or_it_cannot_be_told(
    text: str, schema: Any, fits: bool
) -> None:
    assert await satisfies(text, schema) is fits


def dynamic(steps: int) -> dict[str, Any]:
    """Each step resolves twice by what was read on the way: 2 to the power of `steps` ways."""
    middle = {
        f"d{n}": {"$dynamicAnchor": f"d{n}", "allOf": [{"$dynamicRef": f"#d{n + 1}"}] * 2}
        for n in range(1, steps)
    }
    last = {f"d{steps}": {"$dynamicAnchor": f"d{steps}", "type": "object"}}
    return {"$dynamicAnchor": "d0", "$defs": middle | last, "allOf": [{"$dynamicRef": "#d1"}] * 2}


@pytest.mark.parametrize(
    "schema",
    [
        BOMB,
        dynamic(36),
        {"$recursiveAnchor": True, "items": {"$recursiveRef": "#"}},
        {"$defs": {"a": {"$anchor": "there"}}, "$ref": "#/$defs/a"},
        {"properties": {"a": {"$id": "http://127.0.0.1:1/"}}},
        {"items": {"$ref": "other.json"}},
        {"enum": ["x" * 300_000]},
        {"enum": ["\ud800"]},
    ],
)
async def test_a_schema_whose_cost_its_looks_do_not_bound_is_refused(schema: Any) -> None:
    assert not bounded(schema)
    assert not await satisfies("{}", schema)


def test_references_to_places_of_its_own_are_bounded() -> None:
    assert bounded({"$id": "https://ours/x", "properties": {"a": {"$ref": "#"}}})
    assert bounded({"$defs": {"a": {}}, "items": [{"$ref": "#/$defs/a"}] * 40})
    assert not bounded({"$defs": {"a": {}}, "items": [{"$ref": "#/$defs/a"}] * 41})


@pytest.fixture
def unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every bomb looked bounded: then the process alone is what stops it."""
    monkeypatch.setattr(schemas, "bounded", lambda _: True)


@pytest.mark.usefixtures("unnoticed")
async def test_a_bomb_that_nobody_knows_ends_with_its_process_and_the_loop_goes_on() -> None:
    ticks = 0
    asking = asyncio.ensure_future(satisfies("{}", dynamic(36)))
    while not asking.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert await asking is False
    assert ticks > 20, "2 to the power of 36 ways, and the loop was free"


async def test_a_process_that_never_ends_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = tmp_path / "asleep.py"
    asleep.write_text("import time\ntime.sleep(3600)")
    monkeypatch.setattr(schemas, "_PROGRAM", asleep)
    monkeypatch.setattr(schemas, "_SECONDS", 0.2)
    assert await satisfies("{}", {}) is False


def test_no_reference_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for schema in ({"$ref": address}, {"$schema": address}):
            with pytest.raises(BadSchema):
                validator_of(schema)
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("pattern", ["^(?=a)a", "(a)\\1", "(?<!b)a"])
def test_a_pattern_that_needs_backtracking_is_refused(pattern: str) -> None:
    with pytest.raises(BadSchema):
        validator_of({"type": "string", "pattern": pattern})


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_repair_goes_out_only_if_it_still_fits_the_clients_schema(keeps: bool) -> None:
    def script(request: Any) -> str:
        if request.schema is None:
            return json.dumps({"why": "kind", "hire": True}) if keeps else "A kind text."
        found = BAD in request.messages[-1].content
        return json.dumps({"reason": "the word", "harm": 95 if found else 0})

    policy = Policy(check=CheckPolicy(set=("performance=false", "max_iterations=1"), deadline=5.0))
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    speaker = Speaker(texts=(json.dumps({"why": BAD, "hire": False}),))
    async with upstream(speaker) as address, gateway(address, policy, script) as served:
        status, headers, body = await served.ask(response_format=wanted)
    if keeps:
        assert (status, headers["evenhand-action"]) == (200, "repaired")
        assert json.loads(said(body, False)[0]) == {"why": "kind", "hire": True}
    else:
        assert (status, headers["evenhand-action"]) == (400, "blocked")
        assert served.exchanges[0].reason == "breaks_schema"


@pytest.mark.usefixtures("unnoticed")
async def test_while_a_clients_schema_is_checked_health_answers() -> None:
    def script(request: Any) -> str:
        if request.schema is None:
            return "{}"
        found = BAD in request.messages[-1].content
        return json.dumps({"reason": "the word", "harm": 95 if found else 0})

    policy = Policy(check=CheckPolicy(set=("performance=false", "max_iterations=1"), deadline=20.0))
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": dynamic(36)}}
    answered = 0
    async with (
        upstream(Speaker(texts=(json.dumps({"a": BAD}),))) as address,
        gateway(address, policy, script) as served,
        aiohttp.ClientSession() as session,
    ):
        asking = asyncio.ensure_future(served.ask(response_format=wanted))
        while not asking.done():
            async with session.get(served.url.removesuffix("/v1") + "/health") as got:
                answered += got.status == 200
            await asyncio.sleep(0.02)
        status, _, _ = await asking
    assert status == 400
    assert served.exchanges[0].reason == "breaks_schema"
    assert answered > 10


async def test_a_word_that_json_spells_by_escapes_is_found_all_the_same() -> None:
    hidden = '{"why": "\\u0056ILE", "hire": true}'
    assert BAD not in hidden
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    policy = Policy(check=CheckPolicy(set=("performance=false", "max_iterations=0"), deadline=5.0))
    async with upstream(Speaker(texts=(hidden,))) as address, gateway(address, policy) as served:
        status, headers, body = await served.ask(response_format=wanted)
    assert (status, headers["evenhand-action"]) == (400, "blocked")
    assert b"ILE" not in body
