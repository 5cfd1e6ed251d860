"""How the screen reads a text: whole, each sentence alone, and decoded; the highest score counts.

A scorer takes something like the mean of what it reads at once, so that harmless sentences around
a hateful one would hide it. Tool calls are read too: names as words, and of arguments what is text.
Tenants share the screen alike, by characters.
"""

import asyncio
import hashlib
import json
import os
import re
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import EvenhandError
from evenhand.gateway.policy import CheckPolicy
from evenhand.gateway.wire.strict import readable
from evenhand.scorers.base import TOXICITY, Scorer, Scores, Unscored, is_fixed, unscorable
from evenhand.scorers.passages import (
    SHORTEST,
    ending,
    is_another_language,
    is_english,
    passages,
    readings,
)

# Where a word ends within a name: get_weather, getWeather, HTTPServer.
_JOINT = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def name_text(name: str) -> str:
    """
    >>> name_text("getStock_price")
    'get Stock price'
    """
    return " ".join(filter(None, _JOINT.split(name))) or name


def declared_names(sent: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that a client offers in its request, on any route."""
    lists = (sent.get(key) for key in ("tools", "functions"))
    tools = (tool for items in lists if isinstance(items, list) for tool in items)
    places = (
        definition
        for tool in tools
        if isinstance(tool, dict)
        for definition in (tool, tool.get("function"), tool.get("custom"))
    )
    names = (definition.get("name") for definition in places if isinstance(definition, dict))
    return frozenset(name for name in names if isinstance(name, str))


def argument_text(arguments: str) -> str:
    """The strings among arguments that are text, one a line. What is no JSON is text as a whole.

    A string of fewer than `SHORTEST` words is a label as a rule: a name, a code, a key word.

    >>> argument_text('{"id": 42, "to": ["Ann"], "say": {"subject": "See you at noon?"}}')
    'See you at noon?'
    """
    try:
        # Of two equal keys both count.
        read = json.loads(arguments, object_pairs_hook=lambda pairs: [value for _, value in pairs])
    except (ValueError, RecursionError):
        return arguments
    return "\n".join(string for string in _strings(read) if len(string.split()) >= SHORTEST)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


_MOST = 8_000  # our choice, in characters: about a quarter of a second of the offline screen


class FairQueue:
    """A fair queue. Of those who wait, the tenant whose work so far is least goes first; a tenant
    that comes back begins where the others are, so that nobody saves up turns.

    >>> async with shares.turn("team-hr", cost=1_200):
    ...     await scorer.score(texts)
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._under_way = 0
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        self._worked: dict[str, int] = {}  # of tenants that wait, or are ahead of the others
        self._now = 0  # the work of the tenant whose turn was last

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, tenant: str, cost: int) -> AsyncIterator[None]:
        """Wait for a turn, and hold it.

        Args:
            tenant: Whose work it is.
            cost: How much it is, in characters. One that is larger than the bound waits until
                nothing else is under way.
        """
        await self._wait(tenant, cost)
        try:
            yield
        finally:
            self._end(cost)

    async def _wait(self, tenant: str, cost: int) -> None:
        queue = self._waiting.setdefault(tenant, deque())
        if not queue:
            self._worked[tenant] = max(self._now, self._worked.get(tenant, 0))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append((cost, turn))
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(cost)  # granted in the same moment
            else:
                self._forget(tenant, turn)
            raise

    def _forget(self, tenant: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting[tenant]
        remaining = deque(entry for entry in queue if entry[1] is not turn)
        if remaining:
            self._waiting[tenant] = remaining
        else:
            del self._waiting[tenant]
        self._grant()

    def _end(self, cost: int) -> None:
        self._under_way -= cost
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            tenant = min(self._waiting, key=self._worked.__getitem__)
            cost, turn = self._waiting[tenant][0]
            if self._under_way and self._under_way + cost > self._most:
                return
            self._waiting[tenant].popleft()
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            self._now = self._worked[tenant]
            self._worked[tenant] += cost
            if not turn.done():
                self._under_way += cost
                turn.set_result(None)
        self._worked = {name: work for name, work in self._worked.items() if work > self._now}


SCREEN_FAILED = "screen_failed"
_BATCH = 4_000  # our choice, in characters: so long one tenant has the screen at a time
_CONTEXT = 1_000  # our choice, in characters: so much of what was sent is read with new words
_NO_WORDS = "no_words"  # what a scorer says of a text in which it knows no word

Known = dict[str, "Scores | Unscored"]  # what was scored of an answer, by the passage


_REMEMBERED = 50_000  # our choice, in passages: about 10 MB


class ScoreCache:
    """What the screen said of passages lately, by their hashes; the oldest go first.

    The key holds the tenant, so that nobody learns by timing what answers others had, and a random
    number of this process, so that no hash says which text it is of.
    """

    def __init__(self, screen: str, most: int = _REMEMBERED) -> None:
        """
        Args:
            screen: The scorer's name, which holds the checksum of its weights.
            most: How many passages it holds.
        """
        self._most = most
        self._secret = hashlib.blake2b(screen.encode() + os.urandom(32)).digest()
        self._scores = OrderedDict[bytes, float]()

    def __len__(self) -> int:
        return len(self._scores)

    def get(self, tenant: str, text: str) -> "Scores | Unscored | None":
        """What was said of the very same text; None where it is not known."""
        key = self._key(tenant, text)
        score = self._scores.get(key)
        if score is None:
            return None
        self._scores.move_to_end(key)
        return Unscored(_NO_WORDS, "no words to score") if score < 0 else Scores({TOXICITY: score})

    def put(self, tenant: str, text: str, outcome: "Scores | Unscored") -> None:
        """Remember a score. A failure may not happen again, and is not remembered."""
        if isinstance(outcome, Scores):
            self._scores[self._key(tenant, text)] = outcome.toxicity
        elif outcome.reason == _NO_WORDS:
            self._scores[self._key(tenant, text)] = -1.0
        if len(self._scores) > self._most:
            self._scores.popitem(last=False)

    def _key(self, tenant: str, text: str) -> bytes:
        named = f"{tenant}\0{text}".encode()
        return hashlib.blake2b(named, digest_size=16, key=self._secret).digest()


class NoScore(EvenhandError):
    """The screen could not read a text."""

    reason = SCREEN_FAILED


@dataclass(frozen=True, slots=True)
class ScreenScore:
    """What the screen says of a text."""

    score: float  # the highest of its readings and passages
    english: bool  # False: the score says little, and must not let a text pass


class Screening:
    """The screen of one check."""

    def __init__(self, check: CheckPolicy, scorer: Scorer, shares: FairQueue) -> None:
        self._check = check
        self._scorer = scorer
        self._shares = shares
        self._name = scorer.name
        self._lately = ScoreCache(self._name) if is_fixed(scorer) else None

    @property
    def name(self) -> str:
        """Name and version of the scorer."""
        return self._name

    async def score(
        self, tenant: str, text: str, sent: str = "", cache: Known | None = None
    ) -> ScreenScore:
        """Score a text as a person would read it: JSON may spell a letter as an escape.

        Args:
            tenant: Whose share of the screen it takes.
            text: What has no verdict yet.
            sent: What went out before it, of the same answer.
            cache: What was scored of this answer already; new scores are added.

        Returns:
            The highest score over the whole text with the end of what was sent, its decoded form,
            and each new passage alone.

        Raises:
            NoScore: It is too long, or the scorer failed.
        """
        if len(sent) + len(text) > self._check.longest:
            raise NoScore(f"a text of more than {self._check.longest:,} characters")
        cache = {} if cache is None else cache
        before = ending(readable(sent), _CONTEXT)
        text = readable(text)
        if (problem := unscorable(text)) is not None:
            raise NoScore(problem.reason)
        variants = readings(before + text)
        parts = self._passages(before, text) if self._check.sentences else []
        await self._score(tenant, (*variants, *parts), cache)
        scores = [_score(cache[part]) for part in (*variants, *parts)]
        english = (
            scores[0] is not None
            and is_english(before + text) is not False
            and not any(map(is_another_language, parts))
        )
        return ScreenScore(
            max((score for score in scores if score is not None), default=0.0), english
        )

    def _passages(self, before: str, text: str) -> list[str]:
        """The passages that are not wholly in what was sent."""
        remaining = dict.fromkeys(
            passage for read in readings(before + text) for passage in passages(read)
        )
        if before:
            for passage in passages(before):
                remaining.pop(passage, None)
        return list(remaining)

    async def _score(self, tenant: str, texts: Sequence[str], cache: Known) -> None:
        new = [text for text in dict.fromkeys(texts) if not self._known(tenant, text, cache)]
        for batch in _batches(new):
            async with self._shares.turn(tenant, sum(map(len, batch))):
                outcomes = await self._scorer.score(batch)
            for text, outcome in zip(batch, outcomes, strict=True):
                cache[text] = outcome
                if self._lately is not None:
                    self._lately.put(tenant, text, outcome)

    def _known(self, tenant: str, text: str, cache: Known) -> bool:
        if text not in cache and self._lately is not None:
            outcome = self._lately.get(tenant, text)
            if outcome is not None:
                cache[text] = outcome
        return text in cache


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """As many texts as fit, at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _score(outcome: Scores | Unscored) -> float | None:
    """The score; None where a scorer knows no word of it. Raises `NoScore` for any failure."""
    if isinstance(outcome, Unscored):
        if outcome.reason == _NO_WORDS:
            return None
        raise NoScore(outcome.reason)
    if not 0 <= outcome.toxicity <= 1:  # what is not a number is not between them either
        raise NoScore("garbage")
    return outcome.toxicity
