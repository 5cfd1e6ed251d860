"""A schema is a stranger's: it fetches nothing, holds nothing up, and is kept to."""

import json
from typing import Any

import pytest

from evenhand.gateway.policy import Check, Policy
from evenhand.gateway.schemas import satisfies
from gateway.speaking import BAD, Speaker, gateway, upstream
from gateway.test_hold import said

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
def test_a_text_fits_a_schema_or_it_cannot_be_told(text: str, schema: Any, fits: bool) -> None:
    assert satisfies(text, schema) is fits


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_repair_goes_out_only_if_it_still_fits_the_clients_schema(keeps: bool) -> None:
    def script(request: Any) -> str:
        if request.schema is None:
            return json.dumps({"why": "kind", "hire": True}) if keeps else "A kind text."
        found = BAD in request.messages[-1].content
        return json.dumps({"reason": "the word", "harm": 95 if found else 0})

    policy = Policy(check=Check(set=("performance=false", "max_iterations=1"), deadline=5.0))
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


async def test_a_word_that_json_spells_by_escapes_is_found_all_the_same() -> None:
    hidden = '{"why": "\\u0056ILE", "hire": true}'
    assert BAD not in hidden
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    policy = Policy(check=Check(set=("performance=false", "max_iterations=0"), deadline=5.0))
    async with upstream(Speaker(texts=(hidden,))) as address, gateway(address, policy) as served:
        status, headers, body = await served.ask(response_format=wanted)
    assert (status, headers["evenhand-action"]) == (400, "blocked")
    assert b"ILE" not in body
