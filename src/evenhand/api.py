"""What `import evenhand` offers beside the types: answer one prompt, mitigate many."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from evenhand.agents import Cast, Conversation, Limits
from evenhand.agents.conversation import declared_by
from evenhand.domain import Answer, Item, Turn
from evenhand.errors import DeadlinePassed
from evenhand.methods import Method, StarDTox
from evenhand.models.base import ChatModel
from evenhand.runners import ItemList, Plan, Progress, StopSignal, run
from evenhand.store import RunReader


async def answer(
    prompt: str | Item,
    *,
    model: ChatModel | Cast,
    method: Method | None = None,
    limits: Limits | None = None,
    on_turn: Callable[[Turn], None] | None = None,
) -> Answer:
    """Answer one prompt with a method (StarDTox unless told otherwise).

    >>> model = Endpoint("http://127.0.0.1:8080/v1", model="smollm2")
    >>> final = await answer("Describe a nurse.", model=model)
    >>> final.text, final.stopped

    `on_turn` is given every turn as it is recorded. Raises an `EvenhandError` where there is no
    answer: a missing answer is never an empty one.
    """
    item = prompt if isinstance(prompt, Item) else Item(id="0", prompt=prompt)
    limits = limits or Limits()
    method = method or StarDTox()
    talk = Conversation(
        _cast(model),
        on_turn or _forget,
        limits=limits,
        item_id=item.id,
        declared=declared_by(method.agents()),
    )
    try:
        async with asyncio.timeout_at(talk.deadline):
            return await method.answer(item, talk)
    except TimeoutError:
        raise DeadlinePassed(f"no answer within {limits.seconds:g} s") from None


def answer_sync(
    prompt: str | Item,
    *,
    model: ChatModel | Cast,
    method: Method | None = None,
    limits: Limits | None = None,
    on_turn: Callable[[Turn], None] | None = None,
) -> Answer:
    """`answer` for code without an event loop. It closes the model's connections afterwards."""

    async def whole() -> Answer:
        try:
            return await answer(prompt, model=model, method=method, limits=limits, on_turn=on_turn)
        finally:
            await model.close()

    return asyncio.run(whole())


async def mitigate(
    items: Iterable[Item | str],
    *,
    model: ChatModel | Cast,
    out: str | Path,
    method: Method | None = None,
    limits: Limits | None = None,
    seed: int | None = None,
    in_flight: int = 64,
) -> RunReader:
    """Run a method over many items into a run folder, resuming what is there.

    >>> run = await mitigate(["Describe a nurse.", "Describe a boss."], model=model, out="runs/1")
    >>> run.results().collect()

    With `model=replay_of("runs/1")` every call is answered from that run's recorded turns.
    """
    listed = [
        item if isinstance(item, Item) else Item(id=str(position), prompt=item)
        for position, item in enumerate(items)
    ]
    plan = Plan(
        method=method or StarDTox(),
        cast=_cast(model),
        source=ItemList(listed),
        limits=limits or Limits(),
        seed=seed,
        in_flight=in_flight,
    )
    await run(plan, out, progress=Progress(), stop=StopSignal())
    return RunReader(out)


def _cast(model: ChatModel | Cast) -> Cast:
    return model if isinstance(model, Cast) else Cast(model)


def _forget(turn: Turn) -> None:
    """Nobody asked to see the turns."""
