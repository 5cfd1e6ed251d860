"""A server that cannot be held to a schema is asked in a weaker form, and that is remembered."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evenhand.core import Item, Message
from evenhand.core.errors import ModelRefused
from evenhand.methods.stardtox import Harm
from evenhand.models.base import ModelRequest
from evenhand.models.wire import JsonForm
from tests.errors import raises_naming
from tests.loopback import replies
from tests.loopback.http import Call, Line
from tests.loopback.kernel import run_items

from .conftest import Connect, Serve


def form_of(body: dict[str, Any]) -> str:
    """In which form a request asks for JSON: by response_format, in words, or not at all."""
    if "response_format" in body:
        form: str = body["response_format"]["type"]
        return form
    return "plain" if replies.schema_name(body) is None else "words"


@dataclass
class Picky:
    """Answers 400 to each form it does not know, in words like those of real servers."""

    unknown: frozenset[str]
    status: int = 400
    latency: float = 0.0  # so that many are asked before the first is refused
    asked: Counter[str] = field(default_factory=Counter)

    async def __call__(self, call: Call, line: Line) -> str:
        form = form_of(call.body)
        self.asked[form] += 1
        await asyncio.sleep(self.latency)
        if form in self.unknown:
            error = {"error": {"message": f"response_format type {form} is not supported"}}
            await line.send_json(error, status=self.status)
            return "refused"
        await line.send_json(replies.proper(call.body))
        return "good"


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    ("unknown", "settled_on"),
    [
        pytest.param({"json_schema"}, JsonForm.OBJECT, id="json-object-is-known"),
        pytest.param({"json_schema", "json_object"}, JsonForm.WORDS, id="words-only"),
    ],
)
async def test_typed_replies_come_in_the_strongest_form_the_server_knows_and_it_is_remembered(
    unknown: set[str],
    settled_on: JsonForm,
    status: int,
    serve: Serve,
    connect: Connect,
    tmp_path: Path,
) -> None:
    picky = Picky(frozenset(unknown), status)
    server = await serve(picky)
    model = connect(server.url)
    # One item at a time, and choices, whose calls come one after the other.
    ran = await run_items(model, _questions(6), tmp_path / "run", concurrency=1)
    assert ran.answered == 6
    assert model.dialect.form is settled_on
    assert picky.asked["plain"] == 0
    # A schema is tried twice: with its lengths and ranges, and without.
    tried = {"json_schema": 2, "json_object": 1}
    assert {form: picky.asked[form] for form in unknown} == {form: tried[form] for form in unknown}
    # The question was put badly, not answered badly: that is no attempt.
    assert ran.turns["attempts"].to_list() == [1] * len(ran.turns)


@pytest.mark.parametrize(
    ("unknown", "settled_on"),
    [
        pytest.param({"json_schema"}, JsonForm.OBJECT, id="json-object-is-known"),
        pytest.param({"json_schema", "json_object"}, JsonForm.WORDS, id="words-only"),
    ],
)
async def test_calls_refused_side_by_side_step_down_once_and_not_once_each(
    unknown: set[str], settled_on: JsonForm, serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    picky = Picky(frozenset(unknown), latency=0.05)
    server = await serve(picky)
    model = connect(server.url)
    ran = await run_items(model, _questions(16), tmp_path / "run", concurrency=16)
    assert picky.asked["json_schema"] == 2  # of all calls one, once with bounds and once without
    assert ran.reasons == []
    assert ran.answered == 16
    assert model.dialect.form is settled_on


async def test_a_server_that_knows_no_bounds_is_still_held_to_the_schema(
    serve: Serve, connect: Connect
) -> None:
    async def no_bounds(call: Call, line: Line) -> str:
        if "maxLength" in str(call.body["response_format"]):
            error = {"error": {"message": "Invalid schema: 'maxLength' is not permitted"}}
            await line.send_json(error, status=400)
            return "refused"
        await line.send_json(replies.proper(call.body))
        return "good"

    server = await serve(no_bounds)
    model = connect(server.url)
    request = ModelRequest(messages=(Message("user", "Rate this."),), schema=Harm.wire_schema())
    Harm.read((await model.complete(request)).samples[0].text)
    assert model.dialect.form is JsonForm.UNBOUNDED


async def test_a_refusal_that_is_not_about_the_form_is_final(
    serve: Serve, connect: Connect
) -> None:
    async def refuse(call: Call, line: Line) -> str:
        await line.send_json({"error": {"message": "the prompt is too long"}}, status=400)
        return "refused"

    server = await serve(refuse)
    model = connect(server.url)
    request = ModelRequest(messages=(), schema=Harm.wire_schema())
    with raises_naming(ModelRefused, 400, "too long"):
        await model.complete(request)
    assert server.counts.requests == 1
    assert model.dialect.form is JsonForm.SCHEMA


async def test_a_server_that_refuses_every_form_ends_the_item_as_refused(
    serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve(Picky(frozenset({"json_schema", "json_object", "words"})))
    ran = await run_items(connect(server.url), _questions(2), tmp_path / "run", concurrency=1)
    assert ran.reasons == ["model_refused"] * 2


def _questions(count: int) -> list[Item]:
    return [
        Item(
            id=f"question-{n}",
            prompt=f"Who was late on day {n}?",
            context="The nurse and the pilot met.",
            choices=("The nurse", "The pilot", "It is not said"),
        )
        for n in range(count)
    ]
