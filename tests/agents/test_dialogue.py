"""The turns of an item are asked in order, and each sees the answers before it."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core import FollowUp, Item, Message, messages_in
from evenhand.core.errors import ModelRefused, UserError
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.request import Request
from evenhand.experiments.settings import RunSettings
from evenhand.methods import DefaultPrompt, Method
from evenhand.models import ModelRequest
from evenhand.runs.runners.source import ItemList
from evenhand.runs.store import RunReader
from evenhand.testing import ScriptedModel
from tests.errors import raises_naming

MEMORY = Message("system", "Memory: the user is Ann.")
ITEM = Item(
    id="talk", prompt="one", history=(MEMORY,), follow_ups=(FollowUp("two"), FollowUp("three"))
)
SIMULATED = Item(id="talk", prompt="one", history=(MEMORY,), follow_ups=(FollowUp(goal="A raise"),))


def _echo(request: ModelRequest) -> str:
    return f"to {request.messages[-1].content}"


def _words(messages: Any) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


async def _run(items: list[Item], model: Any, out: Path, **more: Any) -> RunReader:
    await eh.aio.mitigate(items, model=model, method="default", out=out, **more)
    return RunReader(out)


async def test_each_turn_is_asked_after_the_models_own_answers(tmp_path: Path) -> None:
    asked: list[list[tuple[str, str]]] = []

    def says(request: ModelRequest) -> str:
        asked.append(_words(request.messages))
        return _echo(request)

    run = await _run([ITEM], ScriptedModel(says), tmp_path / "run")
    last = [
        ("system", MEMORY.content), ("user", "one"), ("assistant", "to one"), ("user", "two"),
        ("assistant", "to two"), ("user", "three"),
    ]  # fmt: skip
    assert asked == [last[:2], last[:4], last]
    (row,) = run.results().collect().to_dicts()
    assert (row["prompt"], row["text"], row["calls"]) == ("three", "to three", 3)
    assert _words(messages_in(row["conversation"])) == last


async def test_a_dialogue_is_replayed_without_a_call(tmp_path: Path) -> None:
    first = await _run([ITEM], ScriptedModel(_echo), tmp_path / "run")
    again = await _run([ITEM], None, tmp_path / "again", replay=tmp_path / "run")
    assert first.results().collect().equals(again.results().collect())


async def test_a_dialogue_that_ends_early_keeps_the_answers_before(tmp_path: Path) -> None:
    def says(request: ModelRequest) -> str:
        if request.messages[-1].content == "two":
            raise ModelRefused("no")
        return _echo(request)

    run = await _run([ITEM], ScriptedModel(says), tmp_path / "run")
    (row,) = run.results().collect().to_dicts()
    assert (row["status"], row["text"]) == ("failed", None)
    assert _words(messages_in(row["conversation"]))[1:] == [
        ("user", "one"), ("assistant", "to one"), ("user", "two"),
    ]  # fmt: skip


async def test_a_simulated_user_sees_what_was_said_and_neither_memory_nor_system_prompt(
    tmp_path: Path,
) -> None:
    seen: list[str] = []

    def writes(request: ModelRequest) -> str:
        seen.append("\n".join(message.content for message in request.messages))
        return "And a raise?"

    cast = Cast(ScriptedModel(_echo), {"user": ScriptedModel(writes, name="person")})
    run = await _run([SIMULATED], cast, tmp_path / "run", system="Be brief.")
    (row,) = run.results().collect().to_dicts()
    assert (row["prompt"], row["text"]) == ("And a raise?", "to And a raise?")
    assert "A raise" in seen[0]
    assert "to one" in seen[0]
    assert "Ann" not in seen[0]
    assert "Be brief" not in seen[0]
    record = run.record
    assert record.cast["user"]["model"] == "person"
    assert "shared/simulated_user@1" in record.prompts
    again = await _run([SIMULATED], None, tmp_path / "again", replay=tmp_path / "run",
                       system="Be brief.")  # fmt: skip
    assert again.results().collect()["prompt"].to_list() == ["And a raise?"]


async def test_the_model_under_test_does_not_write_the_turns_of_its_own_user(
    tmp_path: Path,
) -> None:
    with raises_naming(UserError, "'user'", "[roles]"):
        await _run([SIMULATED], ScriptedModel(_echo), tmp_path / "run")


@pytest.mark.parametrize("item", [ITEM, SIMULATED])
def test_an_item_with_further_turns_comes_back_from_its_fields(item: Item) -> None:
    assert Item.of(orjson.loads(orjson.dumps(item.described()))) == item
    assert "follow_ups" not in Item(id="1", prompt="one").described()


@pytest.mark.parametrize("item", [ITEM, SIMULATED])
async def test_a_dry_run_counts_the_calls_of_all_turns(tmp_path: Path, item: Item) -> None:
    request = Request(source=ItemList([item]), method=DefaultPrompt(), open_cast=_nobody,
                      settings=RunSettings(out=str(tmp_path / "run")))  # fmt: skip
    (planned,) = (await dry_run({"run": request})).runs
    assert planned.calls == (3, 3)
    assert planned.roles == (("generator", "user") if item is SIMULATED else ("generator",))


async def _nobody(method: Method) -> Cast:
    raise AssertionError(method)
