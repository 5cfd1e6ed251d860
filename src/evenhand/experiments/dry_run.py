"""Works out what a run will ask without asking: its items, the calls that its method declares, and
the length of each item's first prompt."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, replace
from itertools import chain
from typing import Any

import orjson

from evenhand.agents import Agent
from evenhand.agents.conversation import in_conversation, instructed, tools_for
from evenhand.core import Item, Message
from evenhand.experiments.request import Request
from evenhand.findings.forecast import CHARACTERS_A_TOKEN, DryRun, PlannedRun
from evenhand.methods import Method
from evenhand.runs.runners.local import pilot_positions
from evenhand.runs.runners.source import agents_of

_DECLARED = re.compile(r"\s*(\d+)(?: to (\d+))?(?: \(([^)]*)\))?")


class _FirstPrompt(Exception):
    """Ends a method when it asks for the first time."""


class _Listener:
    """In the place of a conversation: keeps the length of the first prompt and answers nothing."""

    def __init__(self, request: Request, item: Item) -> None:
        self._request = request
        self._item = item
        self.characters: int | None = None

    async def __call__(self, agent: Agent[Any], /, **variables: Any) -> Any:
        if self.characters is None:
            worded = in_conversation(agent, agent.prompt.render(variables), self._item)
            messages = instructed(worded, self._request.system_for(agent))
            self.characters = sum(len(message.text) for message in messages)
            if tools := tools_for(agent, self._item):
                self.characters += len(orjson.dumps(tools))
        raise _FirstPrompt


async def dry_run(
    requests: Mapping[str, Request],
    *,
    played_back: Sequence[str] = (),
    waiting: Sequence[str] = (),
    cannot_run: Mapping[str, str] | None = None,
) -> DryRun:
    """Work out what these runs will ask. No model is opened, no endpoint is needed.

    Args:
        requests: The runs by name.
        played_back: Runs whose answers come from another one.
        waiting: Runs whose items come from another one, so that they cannot be counted yet.
        cannot_run: Runs that cannot be made here, and why.
    """
    planned = [await _planned(name, request) for name, request in requests.items()]
    first = next(iter(requests.values()), None)
    prices = None if first is None else first.settings.prices
    return DryRun(
        runs=tuple(planned),
        max_tokens=0 if first is None else first.settings.limits.max_tokens,
        currency=prices.currency if prices else None,
        batch=first is not None and first.settings.batch,
        played_back=tuple(played_back),
        waiting=tuple(waiting),
        cannot_run=dict(cannot_run or {}),
    )


async def _planned(name: str, request: Request) -> PlannedRun:
    items, method = len(request.source), request.method
    sample = [
        item
        for position in pilot_positions(items)
        for item in request.source.read(position, position + 1)
    ]
    each = [_calls(method, item) for item in sample]
    declared = [bounds for bounds in each if bounds is not None]
    calls = None
    if sample and len(declared) == len(each):
        calls = tuple(
            round(items * sum(end) / len(declared)) for end in zip(*declared, strict=True)
        )
    tokens = await _first_prompt_tokens(request, sample)
    prompt = None if calls is None or tokens is None else _times(calls, tokens)
    agents = agents_of(method, request.source)
    longest = max((_longest(request, agent) for agent in agents), default=0)
    completion = None if calls is None else _times(calls, longest)
    return PlannedRun(
        name=name,
        method=method.name,
        items=items,
        roles=tuple(dict.fromkeys(agent.role for agent in agents)),
        calls=None if calls is None else (calls[0], calls[-1]),
        declared_for_other_settings=not all(_is_exact(method, item) for item in sample),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=_cost(request, prompt, completion),
    )


def _longest(request: Request, agent: Agent[Any]) -> int:
    return agent.max_tokens or request.settings.limits.most_tokens(agent)


def _times(calls: Sequence[int], tokens: float) -> tuple[int, int]:
    return round(calls[0] * tokens), round(calls[-1] * tokens)


def _calls(method: Method, item: Item) -> tuple[int, int] | None:
    """Give the fewest and the most calls for all turns of an item, the simulated user's too."""
    calls, turns = declared_calls(method, item), len(item.follow_ups) + 1
    simulated = sum(bool(turn.goal) for turn in item.follow_ups)
    return calls and (calls[0] * turns + simulated, calls[1] * turns + simulated)


def declared_calls(method: Method, item: Item) -> tuple[int, int] | None:
    """The fewest and the most calls for an item, as the method declares them: its `calls_an_item`
    says "2", "2 to 6", "2 to 6, text: 3 to 9" or "5 (calls)", where the words in brackets name the
    settings that the number is made of."""
    declaration = getattr(method, "calls_an_item", None)
    if declaration is None:
        return None
    choice, _, text = str(declaration).partition(", text:")
    match = _DECLARED.match(text if text and not item.choices else choice)
    if match is None:
        return None
    low, high, formula = match.groups()
    exact = None if formula is None else _worked_out(formula, method, item)
    if exact is not None:
        return exact, exact
    return int(low), int(high or low)


def _worked_out(formula: str, method: Method, item: Item) -> int | None:
    """ "personas × rounds" or "jurors + 1" with the settings of the method; None if it has none."""
    total = 0
    for term in formula.split("+"):
        product = 1
        for name in term.split("×"):
            value = _value(name.strip(), method, item)
            if value is None:
                return None
            product *= value
        total += product
    return total


def _value(name: str, method: Method, item: Item) -> int | None:
    if name.isdigit():
        return int(name)
    if name == "options":
        return len(item.choices) or None
    value = getattr(method, name, None)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):  # a list, split as a panel's personas are
        return len([part for part in value.split(";") if part.strip()])
    return value if isinstance(value, int) else None


def _is_exact(method: Method, item: Item) -> bool:
    """Whether the declared calls are those of these settings."""
    declaration = str(getattr(method, "calls_an_item", ""))
    formula = re.search(r"\(([^)]*)\)", declaration)
    if formula is not None:
        return _worked_out(formula[1], method, item) is not None
    settings: Any = method
    return " to " not in declaration or all(
        getattr(method, entry.name) == entry.default
        for entry in fields(settings)
        if entry.default is not MISSING
    )


async def _first_prompt_tokens(request: Request, items: Sequence[Item]) -> float | None:
    """Give the mean length of the first prompt of each turn, in tokens; None if no item's method
    asked one. What the model will have answered by then is not in it."""
    lengths = []
    for item in chain.from_iterable(map(_turns, items)):
        listener = _Listener(request, item)
        with suppress(Exception):  # whatever a method makes of no answer: it has asked
            await request.method.answer(item, listener)
        if listener.characters is not None:
            lengths.append(listener.characters)
    return sum(lengths) / len(lengths) / CHARACTERS_A_TOKEN if lengths else None


def _turns(item: Item) -> Iterator[Item]:
    """Yield the turns of an item, each after those of the user before it."""
    yield item
    for turn in item.follow_ups:
        history = (*item.history, Message("user", item.prompt))
        item = replace(item, history=history, prompt=turn.text or turn.goal)
        yield item


def _at_batch_price(request: Request, model: str) -> bool:
    return request.settings.batch and model not in request.files_alone


def _cost(
    request: Request, prompt: tuple[int, int] | None, completion: tuple[int, int] | None
) -> tuple[float, float] | None:
    """By the dearest of the models that are named; None without prices or names."""
    prices, models = request.settings.prices, set(request.named.values())
    if prices is None or prompt is None or completion is None or not models:
        return None
    ends = [max(prices.cost(model, p, c, batched=_at_batch_price(request, model))
                for model in models)
            for p, c in zip(prompt, completion, strict=True)]  # fmt: skip
    return ends[0], ends[1]
