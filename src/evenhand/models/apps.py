"""Apps and agents under test, asked as models are: over HTTP, as a command, as a Python function.

    evenhand measure actions --model http://127.0.0.1:9000/decide
    evenhand measure actions --model "command:./agent.sh --quiet"
    evenhand measure actions --model python:my_agent:decide

An app gets the conversation as JSON, `{"messages": [...]}`, with the params of its model beside it,
and replies with JSON. Its answer is the whole reply, or what stands at `answer_at` in it.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import shlex
import signal
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import orjson

from evenhand.core.errors import UserError
from evenhand.models import wire
from evenhand.models.base import ModelRequest
from evenhand.models.endpoint import RemoteModel
from evenhand.models.http_client import OwnSession, plain_url, read_capped
from evenhand.models.keys import Redactor, sendable
from evenhand.models.limiter import ResizableSemaphore

KINDS = ("http", "https", "command", "python")
STARTS_PROGRAMS = ("command", "python")  # what a file that is only found may not name
_ANSWER_AT = "answer_at"
_MOST = 1_300_000  # our choice, in bytes: as of a reply of an endpoint
_TOO_LARGE = f"its reply is larger than {_MOST} bytes"
_MOST_SAID = 300  # characters of an app's error
_Answered = tuple[int, Mapping[str, str], bytes]


class AppModel(RemoteModel):
    """An app under test. It answers the whole conversation; what an agent sets of decoding, such as
    a temperature, is the app's own business and is not sent."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        attempt_timeout: float = 120.0,
        max_wait: float = 60.0,
        limit: ResizableSemaphore | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what a model takes.

        Args:
            name: Kind and place, such as `python:my_agent:decide`.
            base_url: Not used: the name has the place.
            api_key: Key of an HTTP app, sent as a bearer token.
            attempt_timeout: Bounds one attempt, in seconds.
            max_wait: Longest wait that is asked for and sat out, in seconds.
            limit: Bounds the calls at once.
            params: Further fields of every request; `answer_at` names where the answer stands in
                the reply, as keys with dots between.

        Raises:
            UserError: If the name or the params are not valid.
        """
        del base_url
        fields = dict(params or {})
        self._answer_at = fields.pop(_ANSWER_AT, "")
        if not isinstance(self._answer_at, str):
            raise UserError(f"{name}: {_ANSWER_AT} is the path of the answer, such as reply.text")
        self._kind, _, self._target = name.partition(":")
        super().__init__(
            name,
            where=name,
            redact=Redactor(sendable(api_key)),
            attempt_timeout=attempt_timeout,
            max_wait=max_wait,
            limit=limit,
            params=fields,
        )

    def describe(self) -> dict[str, Any]:
        described = {"kind": self._kind, "model": self.name, "params": self._params,
                     _ANSWER_AT: self._answer_at}  # fmt: skip
        return {name: value for name, value in described.items() if value}

    async def close(self) -> None:
        """Nothing stays open."""

    async def _post(self, request: ModelRequest, dialect: wire.Dialect) -> _Answered:
        if request.prompt is not None:
            return _refused("an app takes messages, and cannot continue a text")
        chat = orjson.loads(wire.encode(request, self.name, dialect))
        asked = {name: chat[name] for name in ("messages", "tools") if name in chat}
        status, headers, body = await self._ask(orjson.dumps({**self._params, **asked}))
        return (status, headers, body) if status != 200 else self._chat_answer(body)

    @abstractmethod
    async def _ask(self, asked: bytes) -> _Answered:
        """Give the app a conversation.

        Args:
            asked: The JSON that it reads.

        Returns:
            Status, headers and reply, as of an HTTP server.
        """
        ...

    def _chat_answer(self, body: bytes) -> _Answered:
        """Give the reply in the form of a chat answer: words as they are, all else as JSON."""
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            if self._answer_at:
                return _refused("its reply is not JSON")
            answer = body.decode("utf-8", "replace").strip()
        for key in filter(None, self._answer_at.split(".")):
            if not isinstance(answer, Mapping) or key not in answer:
                return _refused(f"its reply has no {self._answer_at!r}")
            answer = answer[key]
        if answer is None:
            return _refused("its reply is null, and holds no answer")
        text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
        message = {"role": "assistant", "content": text}
        return 200, {}, orjson.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})

    def _advice(self, status: int, message: str = "") -> str:
        del status, message
        return f"Ask it by hand with the same JSON; {_ANSWER_AT} says where its answer stands."


def _refused(why: str) -> _Answered:
    return 400, {}, orjson.dumps({"error": {"message": why}})


class HttpApp(OwnSession, AppModel):
    """An app that takes the conversation by POST."""

    def __init__(self, name: str, *, api_key: str | None = None, **settings: Any) -> None:
        problem = "write the app's address as http://127.0.0.1:9000/decide, without a password"
        self._url_of_app = plain_url(name, no_address=problem, tells_too_much=problem)
        super().__init__(name, api_key=api_key, **settings)
        self._headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"

    async def _ask(self, asked: bytes) -> _Answered:
        call = self._open().post(self._url_of_app, data=asked, allow_redirects=False)
        async with call as response:
            body = await read_capped(response, _MOST)
            if body is None:
                return _refused(_TOO_LARGE)
            return response.status, response.headers, body


class CommandApp(AppModel):
    """A program that reads the conversation from stdin and writes its reply to stdout. It is
    started for each call, without a shell, and ended with all it started when its time is over."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        try:
            self._words = shlex.split(self._target)
        except ValueError as error:
            raise UserError(f"{name}: {error}. Write the command as in a shell") from None
        if not self._words:
            raise UserError(f"{name!r} names no program. Write command:./agent --option")

    async def _ask(self, asked: bytes) -> _Answered:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            return _refused(f"{self._words[0]} cannot be started: {error.strerror}")
        try:
            out, err = await process.communicate(asked)
        finally:
            with contextlib.suppress(ProcessLookupError):  # what it started may go on without it
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode:
            last = err.decode("utf-8", "replace").strip()[-_MOST_SAID:]
            return _refused(f"{self._words[0]} ended with code {process.returncode}: {last}")
        return (200, {}, out) if len(out) <= _MOST else _refused(_TOO_LARGE)


class PythonApp(AppModel):
    """A Python function that takes the request as a dictionary, `{"messages": [...]}`, and returns
    a text or what can be written as JSON. A plain function runs in a thread."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._function: Callable[[dict[str, Any]], Any] | None = None
        self._loaded()  # at once: a wrong name is known before anything is asked

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_function": None}

    def _loaded(self) -> Callable[[dict[str, Any]], Any]:
        if self._function is None:
            module, _, function = self._target.partition(":")
            if os.getcwd() not in sys.path:  # as `python -m` has it
                sys.path.insert(0, os.getcwd())
            try:
                with contextlib.redirect_stdout(sys.stderr):  # it may greet; stdout may be JSON
                    found = getattr(importlib.import_module(module), function)
            except (ImportError, AttributeError, ValueError) as error:
                raise UserError(f"{self.name}: {error}. Write python:MODULE:FUNCTION") from None
            if not callable(found):
                raise UserError(f"{self.name} is not a function")
            self._function = found
        return self._function

    async def _ask(self, asked: bytes) -> _Answered:
        function, request = self._loaded(), json.loads(asked)
        try:
            if inspect.iscoroutinefunction(function):
                reply = await function(request)
            else:
                reply = await asyncio.to_thread(function, request)
            return 200, {}, orjson.dumps(reply)
        except (aiohttp.ClientError, OSError):  # may pass: asked again
            raise
        except Exception as error:  # whatever the user's function raises
            return _refused(f"{type(error).__name__}: {str(error)[:_MOST_SAID]}")
