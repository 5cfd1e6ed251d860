"""Equal requests of a run asked once: who shares what with whom, and who pays."""

import asyncio
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.agents import Cast, Limits
from evenhand.core import Item, Usage
from evenhand.core.errors import DeadlinePassed, ModelBusy, ModelError
from evenhand.core.prices import Price, Prices
from evenhand.findings import cost as spending
from evenhand.methods import DefaultPrompt
from evenhand.methods.baselines.single_prompt import SelfConsistency
from evenhand.models import ChatModel, Endpoint, ModelReply, ModelRequest, Sample, ScriptedModel
from evenhand.models.ask_once import AskOnce
from evenhand.models.replay import ReplayModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import Spent, spent_on
from evenhand.scorers import ScorerModel, WordList
from tests.cli.conftest import Run, endpoint, evenhand
from tests.stage import QUESTION, words_of

__all__ = ["endpoint", "evenhand"]  # the fixtures

PRICES = Prices(
    {"m": Price(per_million_prompt_tokens=1e6, per_million_completion_tokens=0)}
)  # 1 a prompt token


class Gated:
    """A model that answers when the gate is open, and counts who asked."""

    name = "m"

    def __init__(self, script: Callable[[int], ModelReply | ModelError] | None = None) -> None:
        self.gate = asyncio.Event()
        self.asked = 0
        self._script = script or (lambda number: reply(f"reply {number}"))

    def describe(self) -> dict[str, Any]:
        return {"kind": "scripted", "model": "m"}

    async def close(self) -> None: ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        number = self.asked
        await self.gate.wait()
        said = self._script(number)
        if isinstance(said, ModelError):
            raise said
        return said


def reply(text: str) -> ModelReply:
    return ModelReply(samples=(Sample(text),), usage=Usage(7, 3), attempts=2, seconds=1.5)


def asked(sha256: str = "a", **settings: Any) -> ModelRequest:
    return ModelRequest(sha256=sha256, **settings)


def text(said: ModelReply) -> str:
    return said.samples[0].text


async def started(*asks: Any) -> list[asyncio.Task[ModelReply]]:
    tasks = [asyncio.create_task(one) for one in asks]
    await asyncio.sleep(0.01)
    return tasks


# -- what is shared ------------------------------------------------------------------------------


async def test_an_equal_request_gets_the_first_ones_reply_with_its_tokens_and_no_attempt() -> None:
    once = AskOnce(ScriptedModel(lambda _: reply("one")))
    first, second = await once.complete(asked(seed=1)), await once.complete(asked(seed=2))
    assert (first.attempts, first.seconds) == (2, 1.5)
    assert (second.attempts, second.seconds) == (0, 0.0)
    assert second.started_us > 0
    assert (second.samples, second.usage) == (first.samples, first.usage)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(asked("b"), id="other words"),
        pytest.param(asked(occurrence=1), id="a second sample of the same prompt"),
        pytest.param(asked(max_tokens=16), id="less room in the item's budget"),
    ],
)
async def test_another_request_is_asked_itself(other: ModelRequest) -> None:
    model = ScriptedModel(lambda _: "fine")
    once = AskOnce(model)
    await once.complete(asked())
    await once.complete(other)
    assert model.requests == 2


async def test_a_request_without_a_hash_is_passed_on() -> None:
    model = ScriptedModel(lambda _: "fine")
    once = AskOnce(model)
    for _ in range(2):
        assert (await once.complete(asked(""))).attempts == 1
    assert model.requests == 2


async def test_samples_of_one_prompt_are_shared_with_other_items_but_not_with_each_other(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda _: '{"reasoning": "it", "answer": "A"}', name="m")
    items = [replace(QUESTION, id=str(number)) for number in range(4)]
    await ran(tmp_path, AskOnce(model), items, method=SelfConsistency(calls=3))
    assert model.requests == 3  # not 1, and not 12


async def test_replies_beyond_the_bound_are_forgotten_the_least_used_first() -> None:
    model = ScriptedModel(lambda _: "fine")
    once = AskOnce(model, kept=2)
    for sha in ("a", "b", "a", "c", "a"):  # c pushes b out: a was used after it
        await once.complete(asked(sha))
    assert model.requests == 3
    await once.complete(asked("b"))
    assert model.requests == 4


# -- at the same time ----------------------------------------------------------------------------


async def test_equal_requests_wait_for_the_one_on_the_wire() -> None:
    model = Gated()
    once = AskOnce(model)
    tasks = await started(*(once.complete(asked()) for _ in range(50)))
    assert model.asked == 1
    model.gate.set()
    replies = await asyncio.gather(*tasks)
    assert {text(one) for one in replies} == {"reply 1"}
    assert sorted(one.attempts for one in replies) == [0] * 49 + [2]


async def test_a_failure_is_nobody_elses_each_asks_itself_at_once() -> None:
    model = Gated(lambda number: ModelBusy("full", attempts=8) if number < 3 else reply("late"))
    once = AskOnce(model)
    tasks = await started(*(once.complete(asked()) for _ in range(4)))
    model.gate.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert model.asked == 4
    assert [isinstance(end, ModelBusy) for end in ends] == [True, True, False, False]
    assert (await once.complete(asked())).attempts == 0  # what was heard in the end is kept
    assert model.asked == 4


async def test_when_the_first_asker_is_cancelled_one_of_the_others_takes_its_place() -> None:
    model = Gated()
    once = AskOnce(model)
    first, *others = await started(*(once.complete(asked()) for _ in range(5)))
    first.cancel()
    await asyncio.sleep(0.01)
    assert first.cancelled()
    assert model.asked == 2
    model.gate.set()
    assert {text(one) for one in await asyncio.gather(*others)} == {"reply 2"}
    assert model.asked == 2


async def test_one_who_waits_can_be_cancelled_without_the_others() -> None:
    model = Gated()
    once = AskOnce(model)
    first, second, third = await started(*(once.complete(asked()) for _ in range(3)))
    second.cancel()
    await asyncio.sleep(0.01)
    model.gate.set()
    assert [text(one) for one in await asyncio.gather(first, third)] == ["reply 1"] * 2
    assert second.cancelled()


async def test_one_who_waits_is_late_at_its_own_deadline() -> None:
    model = Gated()
    once = AskOnce(model)
    soon = asyncio.get_running_loop().time() + 0.03
    first, second = await started(once.complete(asked()), once.complete(asked(deadline=soon)))
    with pytest.raises(DeadlinePassed) as late:
        await second
    assert late.value.attempts == 0
    model.gate.set()
    assert text(await first) == "reply 1"


# -- in a cast -----------------------------------------------------------------------------------


def test_a_purse_goes_inside_and_a_tape_around_it() -> None:
    model = ScriptedModel(lambda _: "fine", name="m")
    cast = Cast(model, {"a": model}).through(AskOnce)
    paid = cast.through(SpendingCap().guard)
    assert isinstance(paid.default, AskOnce)
    assert not isinstance(paid.default.model, AskOnce)
    assert paid.model_for("a") is paid.default
    taped = paid.through(lambda one: ReplayModel.before(one, NoTape()))
    assert isinstance(taped.default, ReplayModel)


def test_a_cast_shows_the_models_themselves_so_that_their_limits_can_be_seen_and_set() -> None:
    endpoint = Endpoint("http://127.0.0.1:1/v1", model="m")
    cast = Cast(endpoint, {"scorer": ScorerModel(WordList())}).through(AskOnce)
    assert cast.models()[0] is endpoint
    assert cast.default.describe() == {**endpoint.describe(), "asked_once": True}


def test_it_travels_to_another_process() -> None:
    cast = Cast(Endpoint("http://127.0.0.1:1/v1", model="m")).through(AskOnce)
    assert pickle.loads(pickle.dumps(cast)).default.describe() == cast.default.describe()


class NoTape:
    def take(self, position: int, request: str, occurrence: int) -> None:
        return None


# -- in a run ------------------------------------------------------------------------------------

TEN = [Item(id=str(number), prompt=f"Describe neighbour {number % 7}.") for number in range(10)]


def counting() -> ScriptedModel:
    return ScriptedModel(lambda request: f"Kind, as {words_of(request)}", name="m")


async def ran(
    folder: Path,
    model: ChatModel | Cast,
    items: list[Item] = TEN,
    *,
    method: Any = None,
    **settings: Any,
) -> RunReader:
    plan = RunPlan(
        method=method or DefaultPrompt(),
        cast=model if isinstance(model, Cast) else Cast(model),
        source=ItemList(items),
        limits=Limits(max_tokens=16),
        seed=1,
        concurrency=4,
    )
    await run(plan, folder, progress=Progress(), stop=StopSignal(), **settings)
    return RunReader(folder)


async def test_the_rows_of_a_run_are_those_of_a_run_that_asks_each_time(tmp_path: Path) -> None:
    apart, once = counting(), counting()
    one = await ran(tmp_path / "apart", apart)
    two = await ran(tmp_path / "once", AskOnce(once))
    assert (apart.requests, once.requests) == (10, 7)
    assert one.results().collect().equals(two.results().collect())
    assert two.turns().collect()["attempts"].sort().to_list() == [0] * 3 + [1] * 7


async def test_the_record_says_so_and_a_run_without_it_is_another(tmp_path: Path) -> None:
    one, two = await ran(tmp_path / "1", counting()), await ran(tmp_path / "2", AskOnce(counting()))
    assert two.record.cast["default"]["asked_once"] is True
    assert two.record.differences(one.record) == ["cast"]


async def test_a_replay_has_the_same_files_to_the_byte(tmp_path: Path) -> None:
    first = await ran(tmp_path / "run", AskOnce(counting()))
    second = await ran(tmp_path / "again", replay_of(tmp_path / "run"))
    assert second.record.differences(first.record) == []
    assert (
        second.turns().sort("position").collect().equals(first.turns().sort("position").collect())
    )
    (one,), (two,) = ((tmp_path / name / "results").glob("*.parquet") for name in ("run", "again"))
    assert one.read_bytes() == two.read_bytes()


async def test_what_is_shared_is_neither_billed_nor_counted_towards_a_cap(tmp_path: Path) -> None:
    model = counting()
    purse = SpendingCap(prices=PRICES, max_calls=7)
    finished = await ran(tmp_path, AskOnce(model), purse=purse)
    assert purse.exhausted is None
    assert (purse.calls, purse.cost) == (7, 21.0)  # three words a prompt
    assert spent_on(tmp_path, PRICES) == Spent(7, 21.0)
    assert spent_on(tmp_path, None) == Spent(7, 0.0)
    assert spending.money(finished, PRICES).cost == 21.0
    assert finished.totals().calls == 10


async def test_a_run_that_is_stopped_at_a_cap_goes_on_and_pays_for_nothing_twice(
    tmp_path: Path,
) -> None:
    model = counting()
    capped = SpendingCap(prices=PRICES, max_calls=5)
    await ran(tmp_path, AskOnce(model), purse=capped)
    assert capped.exhausted == "--max-calls"
    spent = spent_on(tmp_path, PRICES)
    assert spent == Spent(5, 15.0)
    rest = SpendingCap(prices=PRICES, spent_calls=spent.calls, spent_cost=spent.cost)
    finished = await ran(tmp_path, AskOnce(model), purse=rest)
    assert finished.results().filter(pl.col("status") == "answered").collect().height == 10
    assert rest.calls == model.requests <= 10
    assert spent_on(tmp_path, PRICES) == Spent(rest.calls, rest.cost)


async def test_an_item_whose_call_was_not_sent_is_no_shared_reply(tmp_path: Path) -> None:
    refusing = ScriptedModel(lambda _: ModelBusy("no place", attempts=0), name="m")
    await ran(tmp_path, AskOnce(refusing))
    assert refusing.requests == 10
    assert spent_on(tmp_path, PRICES).cost == 0


def test_the_command_shares_when_it_is_told_to(evenhand: Run, tmp_path: Path) -> None:
    lines = [json.dumps({"id": item.id, "prompt": item.prompt}) for item in TEN]
    (tmp_path / "prompts.jsonl").write_text("\n".join(lines))
    common = ("mitigate", "prompts.jsonl", "--method", "default", "--concurrency", "3")
    for name, option in (("apart", ()), ("once", ("--dedupe",))):
        ended = evenhand(*common, "--out", name, *option)
        assert ended.returncode == 0, ended.stderr
    apart, once = RunReader(tmp_path / "apart"), RunReader(tmp_path / "once")
    assert apart.turns().collect()["attempts"].to_list() == [1] * 10
    assert once.turns().collect()["attempts"].sort().to_list() == [0] * 3 + [1] * 7
    assert once.results().collect().equals(apart.results().collect())
    mixed = evenhand(*common, "--out", "once")
    assert mixed.returncode == 1
    assert "asked_once of generator" in " ".join(mixed.stderr.split())
