"""A spending cap ("purse") is held before each call, not looked at after it."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import ModelError, ModelRefused, UserError
from evenhand.core.prices import Prices, billed_as
from evenhand.models.base import AsksOtherModels, ChatModel, ModelReply, ModelRequest
from evenhand.models.batch import BatchedModel

MAX_CALLS, MAX_COST = "--max-calls", "--max-cost"


def _nothing() -> None:
    """Do nothing, where nobody wants to be told."""


@dataclass(slots=True, eq=False)
class _Waiter:
    most: float
    turn: asyncio.Future[None]
    since: float


class SpendingCap:
    """A spending cap on the calls and the money of a whole run; `spent_…` is what earlier processes
    of it spent.

    A call is one request of a conversation; attempts at it are the endpoint's own affair. It is
    sent only if the most it can cost fits in the cap with all that is spent or reserved, first come
    first served; its actual cost replaces the reservation. A call that does not fit waits for those
    in flight. If none are, the cap is exhausted: `on_exhausted` is called once, and waiting calls
    stay parked until the runner cancels them. This is not a failure of the item: with a higher cap
    the run resumes where it was. So that waiting does not use up an item's time, nothing more is
    sent once a call has waited for long.
    """

    patience = 10.0  # our choice, in seconds: far below the time that an item has

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        prices: Prices | None = None,
        spent_calls: int = 0,
        spent_cost: float = 0.0,
        on_exhausted: Callable[[], None] = _nothing,
    ) -> None:
        if max_cost is not None and prices is None:
            raise UserError(
                "--max-cost needs prices. Add --prices FILE, or [prices] in the config."
            )
        self.calls = spent_calls  # sent, and being sent
        self.cost = spent_cost  # settled
        self.cancelled_cost = 0.0  # the part of it for cancelled calls, most of which were not sent
        self.prices = prices
        self.on_exhausted = on_exhausted
        self.exhausted: str | None = None  # the option that was reached
        self.max_calls = max_calls
        self.max_cost = max_cost
        self._closed = False  # nothing more is sent; those in flight may end
        self._reserved = 0.0
        self._in_flight = 0
        self._waiting: deque[_Waiter] = deque()

    def guard(self, model: ChatModel) -> ChatModel:
        """Wrap a model so that it is asked only within the cap."""
        billed = billed_as(model.name, model.describe())
        if self.prices is not None and billed is not None:
            self.prices.require([billed])
        return _CappedModel(self, model)

    def most(self, model: str, request: ModelRequest, *, batched: bool = False) -> float:
        """Compute the highest possible cost of a request.

        Args:
            model: Model id in the price table.
            request: Must have `max_tokens`, unless the cap has no prices.
            batched: Whether batch prices apply.

        Returns:
            The cost in the currency of the price table. 0 without prices.

        Raises:
            UserError: The request has no `max_tokens`.
        """
        if self.prices is None:
            return 0.0
        if request.max_tokens is None:
            raise UserError("a request without max_tokens has no highest price: set max_tokens")
        reply_tokens = request.max_tokens * request.n
        return self.prices.most(model, request.prompt_bytes, reply_tokens, batched=batched)

    async def take(self, most: float) -> None:
        """Reserve one call of at most this cost; waits while it does not fit."""
        if not self._waiting and self._fits(most):
            self._reserve(most)
            return
        loop = asyncio.get_running_loop()
        ticket = _Waiter(most, loop.create_future(), loop.time())
        self._waiting.append(ticket)
        self._serve_waiting()
        try:
            await ticket.turn  # the call that wakes us has reserved for us already
        except asyncio.CancelledError:
            if ticket.turn.done() and not ticket.turn.cancelled():  # reserved just as we left
                self.settle(most, 0.0, sent=False)
            else:
                with contextlib.suppress(ValueError):
                    self._waiting.remove(ticket)
                self._serve_waiting()  # the one behind may be smaller
            raise

    def settle(self, most: float, cost: float, *, sent: bool = True) -> None:
        """Replace a reservation with the actual cost of the call.

        Args:
            most: Cost that was reserved.
            cost: Cost of the call.
            sent: Whether the call was made. Otherwise it is not counted.
        """
        self._in_flight -= 1
        self.calls -= not sent
        self.cost += cost
        # With none in flight the sum is 0 by definition, whatever rounding has left of it.
        self._reserved = self._reserved - most if self._in_flight else 0.0
        self._serve_waiting()

    def _reserve(self, most: float) -> None:
        self._in_flight += 1
        self.calls += 1
        self._reserved += most

    def _fits(self, most: float) -> bool:
        return not self._closed and self._obstacle(most) is None

    def _obstacle(self, most: float) -> str | None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            return MAX_CALLS
        if self.max_cost is not None and self.cost + self._reserved + most > self.max_cost:
            return MAX_COST
        return None

    def _serve_waiting(self) -> None:
        while self._waiting and self._fits(self._waiting[0].most):
            ticket = self._waiting.popleft()
            if not ticket.turn.done():
                self._reserve(ticket.most)
                ticket.turn.set_result(None)
        if not self._waiting or self.exhausted is not None:
            return
        first = self._waiting[0]
        if asyncio.get_running_loop().time() - first.since > self.patience:
            self._closed = True
        if not self._in_flight:
            self._run_dry(self._obstacle(first.most) or MAX_COST)  # closed: money came free since

    def _run_dry(self, obstacle: str) -> None:
        self._closed = True
        self.exhausted = obstacle
        self.on_exhausted()


class _CappedModel:
    """A model that is asked only within a spending cap."""

    def __init__(self, purse: SpendingCap, model: ChatModel) -> None:
        self._purse = purse
        self._model = model
        # None: its calls are counted, but cost nothing.
        self._billed = None if purse.prices is None else billed_as(model.name, model.describe())
        self._batched = isinstance(model, BatchedModel) and model.at_batch_price

    @property
    def name(self) -> str:
        return self._model.name

    def describe(self) -> dict[str, Any]:
        return self._model.describe()

    async def close(self) -> None:
        await self._model.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        most = self._most(request)
        await self._purse.take(most)
        try:
            reply = await self._model.complete(request)
        except ModelError as error:
            # Refused is not billed. Out of time or cut off may be: unknown is never free.
            billed = error.attempts > 0 and not isinstance(error, ModelRefused)
            cost = self._cost(error.tokens, most) if billed else 0.0
            self._purse.settle(most, cost, sent=error.attempts > 0)
            raise
        except BaseException:  # cancelled: it may have reached the endpoint
            self._purse.cancelled_cost += most
            self._purse.settle(most, most)
            raise
        usage = reply.usage
        counted = None if usage is None else (usage.prompt_tokens, usage.completion_tokens)
        self._purse.settle(most, self._cost(counted, most))
        return reply

    def _most(self, request: ModelRequest) -> float:
        """Compute the most that a request can cost; of a scorer, what it asks a language model."""
        if self._billed is None:
            return 0.0
        model = self._model
        inner = model.inner_requests(request) if isinstance(model, AsksOtherModels) else ()
        return sum(
            self._purse.most(self._billed, sent, batched=self._batched)
            for sent in inner or (request,)
        )

    def _cost(self, counted: tuple[int, int] | None, most: float) -> float:
        prices = self._purse.prices
        if prices is None or self._billed is None or counted is None:
            return most
        return prices.cost(self._billed, *counted, batched=self._batched)
