"""What operators are told of stores that cannot be written or asked: in the log and in `/ready`.

A problem is logged when it begins, once a minute while it lasts, and when it ends. `/ready` is open
to anybody, so it says which store, and never why.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

_LOG = logging.getLogger("evenhand.gateway")
_AGAIN_SECONDS = 60.0  # our choice: a problem that lasts is in every screenful of a log
_LOOK_SECONDS = 1.0  # our choice


class Store(Protocol):
    """Whatever can fail beside the answers. Its problem holds no secret and no text."""

    @property
    def healthy(self) -> bool: ...

    @property
    def problem(self) -> str: ...


@dataclass(slots=True)
class _WatchedStore:
    kind: str
    store: Store
    required: bool
    ask: Callable[[], Awaitable[None]] | None  # finds out whether it is well again
    logged: float | None = None  # when its problem was logged last


class Alarms:
    """The stores of one gateway process, and what is said of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: list[_WatchedStore] = []

    def watch(
        self,
        kind: str,
        store: Store,
        *,
        required: bool,
        ask: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Watch a store.

        Args:
            kind: What it is called: "evidence", "audit", "otel", "quotas".
            store: Says whether it is healthy, and what its problem is.
            required: Whether no request can be answered without it.
            ask: Asks a store that is not healthy again, where nothing else would.
        """
        self._watched.append(_WatchedStore(kind, store, required, ask))

    @property
    def down(self) -> list[str]:
        """The stores that are not healthy just now."""
        return [watched.kind for watched in self._watched if not watched.store.healthy]

    @property
    def required_down(self) -> bool:
        """Whether one of them is a store that no request can be answered without."""
        return any(watched.required and not watched.store.healthy for watched in self._watched)

    def look(self) -> None:
        """Log what has begun, what lasts and what has ended."""
        now = self._clock()
        for watched in self._watched:
            if not watched.store.healthy:
                if watched.logged is None or now - watched.logged >= _AGAIN_SECONDS:
                    _LOG.error("%s is down: %s", watched.kind, watched.store.problem)
                    watched.logged = now
            elif watched.logged is not None:
                _LOG.warning("%s is well again", watched.kind)
                watched.logged = None

    @contextlib.asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look every second meanwhile, and ask again who does not recover by being used."""
        task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            self.look()
            for watched in self._watched:
                if watched.ask is not None and not watched.store.healthy:
                    with contextlib.suppress(Exception):
                        await watched.ask()
            await asyncio.sleep(_LOOK_SECONDS)
