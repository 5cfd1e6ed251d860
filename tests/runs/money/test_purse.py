"""The cap holds before the call: what is not allowed is not sent."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from evenhand.agents import Cast
from evenhand.core import Message, Usage
from evenhand.core.errors import ModelBusy, ModelError, ModelRefused, UserError
from evenhand.models import ChatModel, ModelReply, ModelRequest
from evenhand.models.base import Sample
from evenhand.runs.runners import Progress
from evenhand.runs.runners.progress import local_gauges
from evenhand.runs.runners.purse import SpendingCap
from evenhand.scorers import ScorerModel, WordList
from tests.errors import raises_naming
from tests.runs.money.test_prices import PRICES

MOST = (1280 + 6) * 2.5e-6 + 100 * 10e-6  # of the request below, by hand: 0.004215


def request(max_tokens: int | None = 100, n: int = 1) -> ModelRequest:
    return ModelRequest(messages=(Message("user", "sixsix"),), max_tokens=max_tokens, n=n)


class Endpointlike:
    """A model that waits until it is told to end, and keeps the bill that the user will get."""

    name = "m"

    def __init__(self, reply: Callable[[], Usage | ModelError | None] | None = None) -> None:
        self._reply = reply or (lambda: Usage(100, 10))
        self.go = asyncio.Event()
        self.sent = 0
        self.billed = 0.0

    def describe(self) -> dict[str, str]:
        return {"kind": "endpoint", "model": "m"}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.sent += 1
        await self.go.wait()
        await asyncio.sleep(0)
        said = self._reply()
        if isinstance(said, ModelError):
            raise said
        if said is not None:
            self.billed += PRICES.cost("m", said.prompt_tokens, said.completion_tokens)
        return ModelReply(samples=(Sample("yes"),), usage=said)


async def settle_down() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def end(tasks: list[asyncio.Task[ModelReply]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_of_many_calls_at_once_exactly_as_many_as_allowed_are_sent() -> None:
    told: list[int] = []
    purse = SpendingCap(max_calls=100, spent_calls=37, on_exhausted=lambda: told.append(1))
    model = Endpointlike()
    guarded = purse.guard(model)
    tasks = [asyncio.create_task(guarded.complete(request())) for _ in range(500)]
    await settle_down()
    assert (model.sent, told) == (63, [])  # those in flight may yet not count
    model.go.set()
    await settle_down()
    assert (model.sent, purse.calls, told) == (63, 100, [1])
    assert purse.exhausted == "--max-calls"
    assert sum(task.done() for task in tasks) == 63  # the others are parked, not failed
    tasks.append(asyncio.create_task(guarded.complete(request())))
    await settle_down()
    assert (model.sent, told) == (63, [1])
    await end(tasks)
    assert told == [1]


async def test_a_run_that_just_fits_is_not_exhausted() -> None:
    model = Endpointlike()
    model.go.set()
    purse = SpendingCap(max_calls=3)
    guarded = purse.guard(model)
    for _ in range(3):
        await guarded.complete(request())
    assert purse.exhausted is None


async def test_a_call_is_sent_only_if_the_most_it_can_cost_fits() -> None:
    purse = SpendingCap(max_cost=MOST * 0.999, prices=PRICES)
    model = Endpointlike()
    task = asyncio.create_task(purse.guard(model).complete(request()))
    await settle_down()
    assert (model.sent, purse.exhausted) == (0, "--max-cost")
    await end([task])
    purse = SpendingCap(max_cost=MOST * 2.001, spent_cost=MOST, prices=PRICES)
    model.go.set()
    await purse.guard(model).complete(request())
    assert model.sent == 1
    assert purse.cost == pytest.approx(MOST + 100 * 2.5e-6 + 10 * 10e-6)


async def test_a_call_that_does_not_fit_now_goes_when_another_has_cost_less_than_reserved() -> None:
    purse = SpendingCap(max_cost=MOST * 1.9, prices=PRICES)
    model = Endpointlike()
    guarded = purse.guard(model)
    tasks = [asyncio.create_task(guarded.complete(request())) for _ in range(2)]
    await settle_down()
    assert (model.sent, purse.exhausted) == (1, None)
    model.go.set()
    await asyncio.gather(*tasks)
    assert (model.sent, purse.exhausted) == (2, None)


async def test_several_samples_are_reserved_for() -> None:
    purse = SpendingCap(max_cost=MOST * 1.5, prices=PRICES)
    model = Endpointlike()
    task = asyncio.create_task(purse.guard(model).complete(request(n=4)))
    await settle_down()
    assert model.sent == 0
    await end([task])


@pytest.mark.parametrize(
    ("said", "cost", "calls"),
    [
        (None, MOST, 1),
        (ModelBusy("cut off", attempts=8), MOST, 1),
        (ModelRefused("no", attempts=1), 0.0, 1),
        (ModelBusy("never got a place", attempts=0), 0.0, 0),
    ],
    ids=["not counted", "may be billed", "refused", "not sent"],
)
async def test_what_the_endpoint_does_not_count_stays_reserved_unless_it_was_surely_not_billed(
    said: ModelError | None, cost: float, calls: int
) -> None:
    purse, model = SpendingCap(max_cost=1.0, prices=PRICES), Endpointlike(lambda: said)
    model.go.set()
    await asyncio.gather(purse.guard(model).complete(request()), return_exceptions=True)
    assert purse.cost == pytest.approx(cost)
    assert purse.calls == calls


async def test_a_call_cancelled_on_the_wire_counts_and_one_cancelled_while_waiting_does_not() -> (
    None
):
    purse = SpendingCap(max_calls=2, max_cost=1.0, prices=PRICES)
    model = Endpointlike()
    guarded = purse.guard(model)
    tasks = [asyncio.create_task(guarded.complete(request())) for _ in range(3)]
    await settle_down()
    await end(tasks[2:])
    assert purse.calls == 2
    await end(tasks)
    assert purse.calls == 2
    assert purse.cost == pytest.approx(2 * MOST)
    seen = Progress()
    local_gauges(Cast(model), purse)(seen)
    assert seen.cost == 0.0  # nobody was shown a bill for it


async def test_a_place_that_comes_free_as_its_taker_leaves_goes_to_the_next() -> None:
    purse = SpendingCap(max_calls=1)
    await purse.take(0.0)
    second, third = (asyncio.create_task(purse.take(0.0)) for _ in range(2))
    await settle_down()
    purse.settle(0.0, 0.0, sent=False)
    second.cancel()  # the place is its own now, but it has not noticed yet
    await settle_down()
    assert third.done()
    assert (purse.calls, purse.exhausted) == (1, None)


async def test_when_a_call_has_waited_long_nothing_more_is_sent_and_those_in_flight_may_end() -> (
    None
):
    purse, model = SpendingCap(max_cost=MOST * 1.9, prices=PRICES), Endpointlike()
    purse.patience = 0.05
    guarded = purse.guard(model)
    tasks = [asyncio.create_task(guarded.complete(request())) for _ in range(3)]
    await asyncio.sleep(0.1)
    model.go.set()
    await settle_down()
    # The second goes when the first ends; by then the third has waited for long.
    assert (model.sent, purse.exhausted) == (2, "--max-cost")
    assert [task.done() for task in tasks] == [True, True, False]
    await end(tasks)


async def test_a_scorer_on_this_machine_needs_no_price_and_counts_as_a_call() -> None:
    purse = SpendingCap(max_calls=5, max_cost=0.0, prices=PRICES)
    await purse.guard(ScorerModel(WordList())).complete(request())
    assert (purse.calls, purse.cost) == (1, 0.0)


def test_a_cap_in_money_needs_prices_and_a_price_for_each_model() -> None:
    with raises_naming(UserError, "--prices FILE"):
        SpendingCap(max_cost=1.0)
    other = Endpointlike()
    other.name = "other"
    with raises_naming(UserError, "'other'"):
        SpendingCap(max_cost=1.0, prices=PRICES).guard(other)


async def test_a_call_without_a_longest_reply_is_refused_where_money_is_capped() -> None:
    with raises_naming(UserError, "max_tokens"):
        await SpendingCap(max_cost=1.0, prices=PRICES).guard(Endpointlike()).complete(request(None))


def _any_reply(rng: random.Random) -> Usage | ModelError:
    fate = rng.random()
    if fate < 0.1:
        return ModelRefused("no", attempts=1)
    if fate < 0.3:
        return Usage(1280 + 6, 100)  # the dearest there can be
    return Usage(rng.randint(1, 1030), rng.randint(1, 100))


async def _item(model: ChatModel, rng: random.Random) -> None:
    with contextlib.suppress(ModelError):
        for _ in range(5):
            await asyncio.sleep(rng.random() * 0.002)
            await model.complete(request())


@pytest.mark.parametrize("seed", range(40))
async def test_the_bill_never_passes_the_cap_whatever_comes_back_and_whoever_leaves(
    seed: int,
) -> None:
    rng = random.Random(seed)
    max_calls, cap = rng.randint(1, 80), rng.uniform(0, 60) * MOST
    model, told = Endpointlike(lambda: _any_reply(rng)), asyncio.Event()
    model.go.set()
    purse = SpendingCap(max_calls=max_calls, max_cost=cap, prices=PRICES, on_exhausted=told.set)
    guarded = purse.guard(model)
    tasks = [asyncio.create_task(_item(guarded, rng)) for _ in range(30)]
    for task in rng.sample(tasks, 6):
        await asyncio.sleep(rng.random() * 0.002)
        task.cancel()
    whole = asyncio.gather(*tasks, return_exceptions=True)
    until_told = asyncio.create_task(told.wait())
    either: set[asyncio.Future[Any]] = {whole, until_told}
    await asyncio.wait(either, timeout=300, return_when=asyncio.FIRST_COMPLETED)
    assert model.billed <= cap
    assert model.sent <= max_calls
    assert model.billed <= purse.cost + 1e-12
    assert whole.done() != (purse.exhausted is not None)  # at the end, or parked
    sent = model.sent
    await asyncio.sleep(0.01)
    assert model.sent == sent
    until_told.cancel()
    for task in tasks:
        task.cancel()
    await whole
