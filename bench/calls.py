"""What do our MABRF and StarDTox cost beside the papers' loops, for the same answers?

    EVENHAND_DATA=… python bench/calls.py   # 300 items of BBQ

Both return the last draft (`keep="last"`), as the papers do.
Both are asked about the same items by the same scripted model (`calls_script.py` says how it
behaves). Each call takes one tick of a clock that nobody waits for, so the ticks of an item are the
calls on its longest chain: those that must wait for each other. Tokens are words. "Prefix" is the
share of the characters sent that an earlier request of the run to the same model began with: what
an endpoint's prefix cache could spare at best.
"""

import argparse
import asyncio
import selectors
import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # not this folder, whose ray.py would hide Ray

from bench.calls_script import MIX, Script, path_of
from bench.literal_loops import LiteralMabrf, LiteralStarDTox
from evenhand.agents import Conversation
from evenhand.core import Item, Turn
from evenhand.core.errors import EvenhandError
from evenhand.experiments.config import data_folder
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.bbq.sample import BbqSampling, BbqSource, sample
from evenhand.methods import Mabrf, Method, StarDTox

CATEGORIES = 11
CRITICAL, ALL = 0.75, 0.9  # the bars
PAIRS: dict[str, tuple[Method, Method]] = {
    "mabrf": (Mabrf(keep="last"), LiteralMabrf(search=False)),
    "mabrf with search": (Mabrf(search=True, keep="last"), LiteralMabrf(search=True)),
    "stardtox": (StarDTox(keep="last"), LiteralStarDTox()),
}


class Ticking(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: Ticking) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.jump(timeout)
        return super().select(0)


@dataclass(frozen=True)
class Ran:
    """One item through one method."""

    path: str
    end: object  # the option, or why there is none
    critical: int
    turns: list[Turn]


@dataclass(frozen=True)
class Cost:
    calls: int
    critical: int
    prompt: int
    completion: int
    prefix: float

    @classmethod
    def of(cls, ran: Sequence[Ran]) -> "Cost":
        turns = [turn for one in ran for turn in one.turns]
        return cls(
            calls=len(turns),
            critical=sum(one.critical for one in ran),
            prompt=sum(turn.prompt_tokens or 0 for turn in turns if turn.role != "search"),
            completion=sum(turn.completion_tokens or 0 for turn in turns if turn.role != "search"),
            prefix=shared_prefix(_words(turn) for turn in turns if turn.role != "search"),
        )


@dataclass(frozen=True)
class Outcome:
    ours: dict[str, list[Ran]]
    literal: dict[str, list[Ran]]

    @cached_property
    def critical(self) -> float:
        """Of the literal calls on the critical path, over all methods together."""
        return self._ratio(lambda ran: ran.critical)

    @cached_property
    def all(self) -> float:
        return self._ratio(lambda ran: len(ran.turns))

    def _ratio(self, of: Callable[[Ran], int]) -> float:
        ours, literal = (
            sum(of(ran) for runs in side.values() for ran in runs)
            for side in (self.ours, self.literal)
        )
        return ours / literal

    def equal(self) -> list[bool]:
        """For each item: every method ends as its literal rendering does."""
        ends = [
            [one.end == other.end for one, other in zip(self.ours[n], self.literal[n], strict=True)]
            for n in PAIRS
        ]
        return [all(of_item) for of_item in zip(*ends, strict=True)]


def measure(items: Sequence[Item], *, fresh: bool = False) -> Outcome:
    with asyncio.Runner(loop_factory=Ticking) as runner:
        ours, literal = (
            {
                name: [runner.run(_ran(pair[side], item, fresh)) for item in items]
                for name, pair in PAIRS.items()
            }
            for side in (0, 1)
        )
    return Outcome(ours, literal)


async def _ran(method: Method, item: Item, fresh: bool) -> Ran:
    turns: list[Turn] = []
    clock = asyncio.get_running_loop().time
    started = clock()
    ask = Conversation(Script(item, fresh=fresh).cast(seconds=1.0), turns.append)
    end: object
    try:
        end = (await method.answer(item, ask)).choice
    except EvenhandError as error:
        end = error.reason
    loop = "stardtox" if "stardtox" in method.name else "mabrf"
    return Ran(path_of(item, loop), end, round(clock() - started), turns)


def shared_prefix(requests: Iterable[str]) -> float:
    """Of two neighbours in the order of the alphabet one shares the longest beginning."""
    earlier: list[str] = []
    reused = sent = 0
    for request in requests:
        place = bisect_left(earlier, request)
        beside = earlier[max(place - 1, 0) : place + 1]
        reused += max((_alike(request, other) for other in beside), default=0)
        sent += len(request)
        insort(earlier, request)
    return reused / sent


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    differ = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _words(turn: Turn) -> str:
    return "\n".join(f"{message.role}: {message.content}" for message in turn.messages)


def items_of_bbq(count: int) -> list[Item]:
    """Spread evenly over the categories."""
    sampling = BbqSampling(per_category=-(-count // CATEGORIES))
    data = BbqData(local=data_folder().local, cache=data_folder().cache)
    drawn = sample(data.records(), sampling)
    items = list(BbqSource(drawn, sampling).read(0, len(drawn)))
    return [items[n * len(items) // count] for n in range(count)]


def show(outcome: Outcome) -> None:
    columns = ("calls", "critical", "prompt", "completion", "prefix")
    print(f"{'':20} {'':8} " + " ".join(f"{column:>10}" for column in columns))
    for name in PAIRS:
        ours, literal = Cost.of(outcome.ours[name]), Cost.of(outcome.literal[name])
        for who, cost in (("ours", ours), ("literal", literal)):
            figures = (cost.calls, cost.critical, cost.prompt, cost.completion)
            told = " ".join(f"{figure:10,}" for figure in figures)
            print(f"{name if who == 'ours' else '':20} {who:8} {told} {cost.prefix:10.0%}")
        ratios = (
            getattr(ours, column) / getattr(literal, column)
            for column in columns
            if column != "prefix"
        )
        print(f"{'':20} {'ratio':8} " + " ".join(f"{ratio:10.3f}" for ratio in ratios))


def show_paths(outcome: Outcome) -> None:
    """Calls an item, all of them and those on the critical path, for items that pass so."""
    print(f"\n{'ours/literal, passes':20} " + " ".join(f"{path:>26}" for path in MIX))
    for name in PAIRS:
        told = []
        for path in MIX:
            sides = [
                [one for one in side[name] if one.path == path]
                for side in (outcome.ours, outcome.literal)
            ]
            calls, chain = (
                "/".join(f"{sum(map(of, side)) / len(side):.1f}" for side in sides if side)
                for of in (lambda one: len(one.turns), lambda one: one.critical)
            )
            told.append(f"{calls}, chain {chain}")
        print(f"{name:20} " + " ".join(f"{text:>26}" for text in told))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--items", type=int, default=300)
    items = items_of_bbq(parser.parse_args().items)
    outcome, fresh = measure(items), measure(items, fresh=True)
    show(outcome)
    show_paths(outcome)
    print(f"if every attempt were new and taken: {told(fresh)}")
    print(f"RESULT {told(outcome)}")
    return 0 if outcome.critical <= CRITICAL and outcome.all <= ALL and all(outcome.equal()) else 1


def told(outcome: Outcome) -> str:
    equal = outcome.equal()
    shares = f"critical={outcome.critical:.3f} all={outcome.all:.3f}"
    return f"{shares} equal_answers={sum(equal)}/{len(equal)}"


if __name__ == "__main__":
    raise SystemExit(main())
