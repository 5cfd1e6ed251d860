"""The front door for code that does not await: scripts and notebooks.

Every call runs on one event loop in a thread of its own. So a call works whether or not the caller
has a running loop, as every notebook has, and a model may be used by many calls.
"""

import asyncio
import atexit
import contextlib
import functools
import inspect
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, ParamSpec, TypeVar

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.models.base import ChatModel

_P = ParamSpec("_P")
_T = TypeVar("_T")
_STEP = 0.1  # seconds: a thread that waits without an end does not hear Ctrl-C everywhere
_TIME_TO_END = 30.0  # seconds; our choice: enough to write what is recorded


class _Background:
    """An event loop in a daemon thread, begun at the first call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="evenhand", daemon=True)
        self._thread.start()
        self._under_way = 0
        self._used: dict[int, ChatModel | Cast] = {}  # models of the calls under way, by identity

    def result(self, coroutine: Coroutine[Any, Any, _T], models: Sequence[Any]) -> _T:
        """Run a coroutine to its end. Ctrl-C cancels it, and what was recorded is kept."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise UserError("a method is awaited by evenhand itself: call evenhand.aio from it")
        done: Future[_T] = Future()
        task = asyncio.run_coroutine_threadsafe(self._whole(coroutine, models, done), self._loop)
        try:
            while not wait((done,), timeout=_STEP).done:
                pass
            return done.result()
        except KeyboardInterrupt:
            task.cancel()
            with contextlib.suppress(BaseException):
                done.exception(timeout=_TIME_TO_END)
            raise

    async def _whole(
        self, coroutine: Coroutine[Any, Any, _T], models: Sequence[Any], done: "Future[_T]"
    ) -> None:
        self._under_way += 1
        for model in models:
            if isinstance(model, Cast) or (
                hasattr(model, "complete") and not inspect.isclass(model)
            ):
                self._used[id(model)] = model
        try:
            try:
                result = await coroutine
            finally:
                await self._left()
        except BaseException as error:  # whatever it is, the caller is waiting for it
            done.set_exception(error)
        else:
            done.set_result(result)

    async def _left(self) -> None:
        """When the last call has ended, close the models: a connection belongs to one loop, and the
        next call may come from another."""
        self._under_way -= 1
        if not self._under_way:
            models, self._used = self._used, {}
            for model in models.values():
                await model.close()

    def end(self) -> None:
        """Stop the loop, so that it is not torn down in the middle of something."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIME_TO_END)
        self._loop.close()


@functools.cache
def _background() -> _Background:
    begun = _Background()
    atexit.register(begun.end)
    return begun


# A forked process has the memory of its parent but not its threads.
os.register_at_fork(after_in_child=_background.cache_clear)


def _models_in(arguments: Mapping[str, Any]) -> list[Any]:
    """List the models that a function gets: one, or several by name."""
    given = [arguments.get(name) for name in ("model", "trained")]
    several = [value for value in given if isinstance(value, Mapping)]
    return [
        *(value for value in given if not isinstance(value, Mapping)),
        *(model for models in several for model in models.values()),
    ]


def waiting_for(function: Callable[_P, Coroutine[Any, Any, _T]]) -> Callable[_P, _T]:
    """Make the function that waits for a coroutine of `evenhand.aio`.

    `evenhand` itself does it for every function of `aio`, when it is first used.
    """

    @functools.wraps(function)
    def whole(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return _background().result(function(*args, **kwargs), _models_in(kwargs))

    whole.__module__ = "evenhand"
    return whole
