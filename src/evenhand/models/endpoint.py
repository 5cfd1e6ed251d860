"""A model that is asked over a network; an endpoint is any OpenAI-compatible server, over aiohttp.

One call is up to eight attempts inside one total deadline. An attempt counts as good only when its
body has been read and makes sense: a 200 with a cut or garbled body is retried like a 500.
"""

import asyncio
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, Self, get_args
from urllib.parse import SplitResult, urlsplit, urlunsplit

import aiohttp
import orjson

from evenhand.core import Usage
from evenhand.core.errors import DeadlinePassed, ModelBusy, ModelRefused, UserError
from evenhand.core.items import CalledFunction, ToolCall
from evenhand.models import responses, wire
from evenhand.models.base import ModelReply, ModelRequest, Sample, together
from evenhand.models.batch import AskAgain, BatchApi, BatchFolder
from evenhand.models.batch_apis import AnthropicBatches, OpenAIBatches
from evenhand.models.http_client import (
    MAX_ATTEMPTS,
    OVERLOAD_STATUSES,
    RETRY_STATUSES,
    NoAnswer,
    OwnSession,
    answer_of,
    pause_before,
    read_capped,
    retry_after,
)
from evenhand.models.keys import Redactor, sendable
from evenhand.models.limiter import AdaptiveLimit, ResizableSemaphore

_MAX_BODY = 1_300_000  # our choice: the longest reply that is read, with each character escaped
_MAX_LIST = 16 * 1024 * 1024  # our choice: a gateway's list of models passes a megabyte
# Our choice: times as much, for twenty alternatives to each of a thousand tokens.
_WITH_LOGPROBS = 8
_TRANSFER_SECONDS = 900.0  # our choice: for files of some hundred megabytes
Api = Literal["chat", "responses"]
_START = (
    "Start a local model with `evenhand serve-local`, or give --base-url the address of yours "
    "(it usually ends in /v1)"
)


@dataclass(frozen=True, slots=True)
class _FailedAttempt:
    """A failed attempt: what happened, how long the server wants us to wait, and whether it is
    full."""

    what: str
    wait: float | None = None
    overloaded: bool | None = None


_NOTHING = Usage(0, 0)
_MOST_READ = 4_000  # our choice, in characters of an error: a quoted prompt may follow
_AT_ONCE = re.compile(
    r"(?:concurren\w*|parallel)[^.]{0,60}?\b(\d{1,4})\b|\b(\d{1,4}) (?:concurrent|parallel)", re.I
)
_NOT_TRIED = _FailedAttempt("not tried")
# What a user set is never left out without a word.
_REMOVE = (
    "You set {0}, and it is refused: leave out --param {0}, or take it out of params in the config "
    "or in Python."
)


class _AskOtherwise(Exception):
    """The endpoint does not take this form of request; the next attempt uses another. `spent` are
    the tokens of an answer that was of no use."""

    def __init__(self, spent: Usage | None = None) -> None:
        super().__init__()
        self.spent = spent


class _OneByOne(Exception):
    """The endpoint gives one sample a call."""


# Our choice: a refusal of a field comes at once, an answer takes longer; so others wait no longer
# for the first request of its kind.
_FIRST_ALONE = 1.0
# Fields of a body that define the request: users cannot set them separately.
_OURS = frozenset({"model", "messages", "prompt", "n", "stream", "response_format", "echo"})
_Decoded = tuple[tuple[Sample, ...], Usage | None, str, str]


class RemoteModel(ABC):
    """A model that is asked over a network: attempts, waits, a limit of calls at once, and what was
    learned of it. How one request is sent is its subclass's.

    What the model does not accept is learned from its errors (`dialect`), once for all calls.
    """

    def __init__(
        self,
        name: str,
        *,
        where: str,
        redact: Redactor,
        attempt_timeout: float = 120.0,
        max_wait: float = 60.0,
        limit: ResizableSemaphore | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what all have in common.

        Args:
            name: The name of the model.
            where: Where it is, as errors say it.
            redact: Removes keys from what comes back.
            attempt_timeout: Bounds one attempt, in seconds.
            max_wait: The longest wait that is asked for and sat out, in seconds.
            limit: Bounds the calls at once; a cluster puts one in that all share.
            params: Further fields of every request, which stand above what an agent asks for; None
                as a value leaves a field out.
        """
        self._url = where
        self._model = name
        self._redact = redact
        self._attempt_timeout = attempt_timeout
        self._max_wait = max_wait
        self.limit: ResizableSemaphore = limit or AdaptiveLimit()
        self.dialect = wire.USUAL
        self._params = sendable_params(params or {})
        self._kinds: dict[int, asyncio.Future[None] | None] = {}
        self.max_attempts = MAX_ATTEMPTS
        self._rng = random.Random()  # jitter only: nothing that is recorded depends on it

    @property
    def name(self) -> str:
        return self._model

    @property
    def where(self) -> str:
        """The address, or the provider and the library that asks it."""
        return self._url

    @property
    def place(self) -> str:
        """The key of a concurrency limit: each model of a gateway has a capacity of its own."""
        return f"{self._url} {self._model}"

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe the model for `run.json`, without a key or a password."""
        ...

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def complete(self, request: ModelRequest) -> Coroutine[Any, Any, ModelReply]:
        """Ask, and again where that can help, until the deadline."""
        if request.n > 1:
            return self._samples(request)
        kind = _kind_of(request)
        if self._kinds.get(kind, self) is None:  # one of this kind was answered: the usual case
            return self._complete(request)
        return self._among_the_first(kind, request)

    async def _samples(self, request: ModelRequest) -> ModelReply:
        """Ask for several samples at once, or in as many calls where that is not accepted."""
        try:
            return await self._among_the_first(_kind_of(request), request)
        except _OneByOne:
            return await self._one_by_one(request)

    async def _among_the_first(self, kind: int, request: ModelRequest) -> ModelReply:
        """Send the first request of a kind alone, for a moment: what it shows that the endpoint
        refuses, the others need not be refused for."""
        first = self._kinds.get(kind)
        if first is not None:
            now = asyncio.get_running_loop().time()
            left = _FIRST_ALONE if request.deadline is None else request.deadline - now
            await asyncio.wait([first], timeout=min(_FIRST_ALONE, max(0.0, left)))
            return await self._complete(request)
        first = self._kinds[kind] = asyncio.get_running_loop().create_future()
        try:
            return await self._complete(request)
        finally:
            first.set_result(None)
            self._kinds[kind] = None

    async def _complete(self, request: ModelRequest) -> ModelReply:
        loop = asyncio.get_running_loop()
        started, clock = time.time_ns() // 1000, loop.time()
        deadline = request.deadline if request.deadline is not None else clock + 600.0
        attempt, failure, spent = 0, _NOT_TRIED, _NOTHING
        while attempt < self.max_attempts:
            try:
                ticket = self.limit.acquire_now()
                if ticket is None:
                    ticket = await self._place(deadline)
                attempt += 1
                outcome = await self._attempt(request, deadline, ticket)
            except TimeoutError:
                raise DeadlinePassed(
                    f"{self._url}: out of time after {attempt} attempts; last: {failure.what}",
                    attempts=attempt,
                ) from None
            except _AskOtherwise as otherwise:
                attempt -= 1  # the question was put badly, not answered badly
                spent = otherwise.spent or spent
                continue
            except ModelRefused as error:
                error.attempts = attempt
                raise
            if not isinstance(outcome, _FailedAttempt):
                samples, usage, served_by, adapted = outcome
                return ModelReply(
                    samples=samples,
                    usage=usage if spent is _NOTHING else together(usage, spent),
                    served_by=served_by,
                    adapted=adapted,
                    attempts=attempt,
                    started_us=started,
                    seconds=loop.time() - clock,
                )
            failure = outcome
            if attempt < self.max_attempts:
                await self._pause(attempt, failure, deadline)
        raise ModelBusy(
            f"{self._url}: {attempt} attempts failed; last: {failure.what}", attempts=attempt
        )

    async def _one_by_one(self, request: ModelRequest) -> ModelReply:
        """Ask for each sample in a call of its own, each with another seed."""
        seeds = [None if request.seed is None else request.seed + i for i in range(request.n)]
        replies = [await self._complete(replace(request, n=1, seed=seed)) for seed in seeds]
        first = replies[0]
        return replace(
            first,
            samples=tuple(sample for reply in replies for sample in reply.samples),
            usage=reduce(together, (reply.usage for reply in replies)),
            attempts=sum(reply.attempts for reply in replies),
            seconds=sum(reply.seconds for reply in replies),
            adapted=f"{first.adapted} n".strip(),
        )

    async def _place(self, deadline: float) -> int:
        async with asyncio.timeout_at(deadline):
            return await self.limit.acquire()

    async def _pause(self, attempt: int, failure: _FailedAttempt, deadline: float) -> None:
        pause = pause_before(attempt, failure.wait, self._rng)
        left = deadline - asyncio.get_running_loop().time()
        if failure.wait is not None and failure.wait > min(self._max_wait, left):
            raise ModelBusy(
                f"{self._url}: {failure.what}; it asks to wait {failure.wait:.0f} s, "
                f"{min(self._max_wait, max(left, 0.0)):.0f} s are allowed",
                attempts=attempt,
            )
        if pause >= left:
            raise DeadlinePassed(
                f"{self._url}: no time for another attempt; last: {failure.what}", attempts=attempt
            )
        await asyncio.sleep(pause)

    async def _attempt(
        self, request: ModelRequest, deadline: float, ticket: int
    ) -> _Decoded | _FailedAttempt:
        """Make one request and read its whole body. The place in the limit is given back whatever
        happens."""
        overloaded: bool | None = None
        dialect = self.dialect
        ends = min(deadline, asyncio.get_running_loop().time() + self._attempt_timeout)
        try:
            async with asyncio.timeout_at(ends):
                status, headers, body = await self._asked(request, dialect)
            if status == 200:
                decoded = self._decoded(body, request, dialect)
                if not isinstance(decoded, int):
                    overloaded = False
                    return decoded
                status = decoded
            failure = self._judge(status, headers, body, request, dialect)
            overloaded = failure.overloaded
            return failure
        except wire.BadBody as error:
            return _FailedAttempt(self._redact(str(error)))
        except aiohttp.ClientError as error:  # before TimeoutError: a connect time-out is both
            return _FailedAttempt(self._redact(f"{type(error).__name__}: {error}")[:300])
        except TimeoutError:
            if ends >= deadline:
                raise
            overloaded = True
            return _FailedAttempt(f"no whole answer within {self._attempt_timeout:g} s")
        except OSError as error:
            return _FailedAttempt(self._redact(f"{type(error).__name__}: {error}")[:300])
        finally:
            self.limit.release(ticket, overloaded=overloaded)

    def _decoded(self, body: bytes, request: ModelRequest, dialect: wire.Dialect) -> _Decoded | int:
        """Read a 200 answer; the status that it should have had, if it is an error."""
        try:
            decoded = wire.decode(body, request)
        except wire.TooFewSamples:
            self._learn(dialect, replace(dialect, dropped=dialect.dropped | {"n"}))
            raise _AskOtherwise from None
        except wire.ErrorBody as error:
            return error.status
        if request.schema is not None:
            self._look_at_form(*decoded[:2], request, dialect)
        adapted = "" if dialect is wire.USUAL else dialect.adapted(request)
        if self._redact:
            decoded = self._without_key(*decoded)
        return *decoded, adapted

    async def _asked(
        self, request: ModelRequest, dialect: wire.Dialect
    ) -> tuple[int, Mapping[str, str], bytes]:
        if request.n > 1 and "n" in dialect.dropped:
            raise _OneByOne
        return await self._post(request, dialect)

    @abstractmethod
    async def _post(
        self, request: ModelRequest, dialect: wire.Dialect
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send one request, and give the status, the headers and the body of its answer, in the
        form of OpenAI's chat API."""
        ...

    async def list_models(self, timeout: float = 5.0) -> tuple[str, ...] | None:
        """List the models there; None where no list is kept."""
        del timeout
        return None

    def _judge(
        self, status: int, headers: Any, body: bytes, request: ModelRequest, dialect: wire.Dialect
    ) -> _FailedAttempt:
        """Judge a non-200 answer: worth another attempt, worth another form, or final."""
        words = wire.error_text(body)
        message = self._redact.beginning(words, 300)
        # Of the whole: a gateway quotes the provider's words at the end of its own.
        quoted, field = words[:_MOST_READ], wire.error_field(body)
        other = dialect.instead(status, quoted, request, field=field, fixed=self._params)
        if other is not None:
            self._learn(dialect, other)
            raise _AskOtherwise
        if status == 429:
            self._take_named_limit(message)
        if status in RETRY_STATUSES:
            return _FailedAttempt(
                f"HTTP {status}: {message}",
                wait=retry_after(headers),
                overloaded=True if status in OVERLOAD_STATUSES else None,
            )
        raise self.refusal(status, message, param=self._refused_param(status, field, quoted))

    def _refused_param(self, status: int, field: str, words: str) -> str:
        """Give the name of the user's param that an error is about; "" if it is about none."""
        if status not in (400, 403, 422):
            return ""
        sent = [name for name, value in self._params.items() if value is not None]
        if field in sent:
            return field
        if wire.is_about_length(words):
            return ""
        return next((name for name in sent if wire.names_field(words, name)), "")

    def refusal(self, status: int, message: str, *, param: str = "") -> ModelRefused:
        """Say that it refuses a request, and what can be done.

        Args:
            status: The status of the answer.
            message: The server's own words.
            param: The param of the user that it is about; "" if it is about none.

        Returns:
            The error.
        """
        advice = _REMOVE.format(param) if param else self._advice(status, message)
        return ModelRefused(f"{self._url} answered HTTP {status}: {message}. {advice}")

    def know(self, adapted: Iterable[str]) -> None:
        """Begin with what an earlier process of the same run learned of this endpoint."""
        if self.dialect == wire.USUAL and (learned := wire.Dialect.knowing(adapted)) != wire.USUAL:
            self.dialect = learned

    def _learn(self, dialect: wire.Dialect, other: wire.Dialect) -> None:
        if self.dialect == dialect:  # else another call has changed it meanwhile
            self.dialect = other

    def _look_at_form(
        self,
        samples: tuple[Sample, ...],
        usage: Usage | None,
        request: ModelRequest,
        dialect: wire.Dialect,
    ) -> None:
        """Notice an endpoint that takes a schema and does not keep to it: it ends a reply that has
        no object in it. Then the model is told the schema as well, and asked again."""
        ignored = any(sample.finish == "stop" and "{" not in sample.text for sample in samples)
        held = dialect.form in (wire.JsonForm.SCHEMA, wire.JsonForm.UNBOUNDED)
        if ignored and held and not dialect.told and request.prompt is None:
            self._learn(dialect, replace(dialect, told=True))
            raise _AskOtherwise(usage)

    def _take_named_limit(self, message: str) -> None:
        """Keep to the number of calls at once that an error names."""
        named = _AT_ONCE.search(message)
        if named is not None and isinstance(self.limit, AdaptiveLimit):
            self.limit.keep_below(int(named[1] or named[2]))

    def _without_key(
        self, samples: tuple[Sample, ...], usage: Usage | None, served_by: str
    ) -> tuple[tuple[Sample, ...], Usage | None, str]:
        """Remove the key from what will be recorded, now that its escapes are read."""
        return tuple(map(self._bare, samples)), usage, self._redact(served_by)

    def _bare(self, sample: Sample) -> Sample:
        text, finish, tokens = self._redact(sample.text), self._redact(sample.finish), None
        thinking = self._redact(sample.thinking) if sample.thinking else ""
        if sample.logprobs is not None:
            spelt = "".join(token.token for token in sample.logprobs)
            others = "".join(word for token in sample.logprobs for word, _ in token.top)
            if self._redact(spelt) == spelt and self._redact(others) == others:
                tokens = sample.logprobs  # else left out: they would spell the key
        return Sample(
            text, finish, tokens, thinking, tuple(map(self._bare_call, sample.tool_calls))
        )

    def _bare_call(self, call: ToolCall) -> ToolCall:
        name, arguments = self._redact(call.function.name), self._redact(call.function.arguments)
        return ToolCall(self._redact(call.id), CalledFunction(name, arguments))

    def _advice(self, status: int, message: str = "") -> str:
        match status:
            case 400 | 422 if wire.is_about_length(message):
                return "Ask for less: a shorter input, or a smaller --max-tokens."
            case 400 | 422:
                return (
                    "If it names a field of the request, leave that field out or set it: "
                    "--param NAME=null, or params in the config. `evenhand doctor` shows what this "
                    "endpoint accepts."
                )
            case _:
                return "`evenhand doctor` shows what this endpoint supports."


class Endpoint(RemoteModel):
    """A model behind an OpenAI-compatible URL.

    >>> model = Endpoint("http://127.0.0.1:8080/v1", model="smollm2")

    `attempt_timeout` bounds one attempt, so that a hanging connection leaves time for the next.
    `max_wait` is the longest `Retry-After` we sit out; a longer one ends the call as busy.
    `params` are further fields of every request, such as `{"reasoning_effort": "low"}`; they stand
    above what an agent asks for, and None leaves a field out.
    `api="responses"` asks by OpenAI's Responses API, for models that have no other.
    `batch` is the form of its batches; without it the address tells.
    """

    def __init__(  # noqa: PLR0913 - it has as many settings as it has
        self,
        base_url: str,
        *,
        model: str,
        api_key: str | None = None,
        attempt_timeout: float = 120.0,
        max_wait: float = 60.0,
        limit: ResizableSemaphore | None = None,
        params: Mapping[str, Any] | None = None,
        api: Api = "chat",
        batch: Literal["openai", "anthropic"] | None = None,
    ) -> None:
        super().__init__(
            model,
            where=checked_url(base_url),
            redact=Redactor(sendable(api_key)),
            attempt_timeout=attempt_timeout,
            max_wait=max_wait,
            limit=limit,
            params=params,
        )
        if api not in get_args(Api):
            raise UserError(f"api is {api!r}: it is one of {', '.join(get_args(Api))}")
        self._api = api
        self._batch_form = batch
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",  # a megabyte can unpack to a gigabyte
        }
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._session: aiohttp.ClientSession | None = None

    def describe(self) -> dict[str, Any]:
        described = {"kind": "endpoint", "url": self._url, "model": self._model}
        if self._api != "chat":
            described["api"] = self._api
        return {**described, "params": self._params} if self._params else described

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(
        self, request: ModelRequest, dialect: wire.Dialect
    ) -> tuple[int, Mapping[str, str], bytes]:
        data = wire.encode(request, self._model, dialect, self._params)
        path = self.route(request)
        if path == "/responses":
            return await self._post_to_responses(data)
        most = _MAX_BODY * request.n * (1 if request.logprobs is None else _WITH_LOGPROBS)
        return await self._sent(path, data, most)

    async def _post_to_responses(self, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Ask by the Responses API; what it has no field for is refused here, in its words."""
        asked = orjson.loads(data)
        if (refused := responses.refusal(asked)) is not None:
            return 400, {}, refused
        sent = orjson.dumps(responses.request_of(asked))
        status, headers, body = await self._sent("/responses", sent, _MAX_BODY * _WITH_LOGPROBS)
        return status, headers, responses.chat_of(body) if status == 200 else body

    async def _sent(
        self, path: str, data: bytes, most: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._open().post(
            self._url + path, data=data, allow_redirects=False
        ) as response:
            return response.status, response.headers, await _read(response, most)

    @property
    def url(self) -> str:
        return self._url

    @property
    def redact(self) -> Redactor:
        """Takes the key out of what comes back."""
        return self._redact

    @property
    def params(self) -> Mapping[str, Any]:
        """Further fields of every request."""
        return self._params

    def route(self, request: ModelRequest) -> str:
        """Name where a request goes, below the address."""
        if request.prompt is not None:
            return "/completions"
        return "/responses" if self._api == "responses" else "/chat/completions"

    def body_in_batch(self, request: ModelRequest) -> bytes:
        """Write the body of a request that goes out in a batch, which is never streamed."""
        dialect = replace(self.dialect, streams=False) if self.dialect.streams else self.dialect
        data = wire.encode(request, self._model, dialect, self._params)
        if self.route(request) != "/responses":
            return data
        asked = orjson.loads(data)
        if (refused := responses.refusal(asked)) is None:
            return orjson.dumps(responses.request_of(asked))
        try:
            failure = self._judge(400, {}, refused, request, self.dialect)
        except _AskOtherwise:
            return self.body_in_batch(request)
        raise ModelRefused(failure.what)

    def read_in_batch(
        self, status: int, body: bytes, request: ModelRequest, dialect: wire.Dialect
    ) -> ModelReply | AskAgain:
        """Read an answer that came in a batch as one that came by itself.

        Args:
            status: Its status.
            body: Its body.
            request: What was asked.
            dialect: How it was asked.

        Returns:
            The reply, or why it is asked again.

        Raises:
            ModelRefused: If a retry cannot help.
        """
        try:
            if status == 200 and self.route(request) == "/responses":
                body = responses.chat_of(body)
            read = self._decoded(body, request, dialect) if status == 200 else status
            if isinstance(read, int):
                return AskAgain(self._judge(read, {}, body, request, dialect).what)
        except _AskOtherwise as otherwise:
            why = "the endpoint does not take the form in which it was asked"
            return AskAgain(why, in_another_form=True, spent=otherwise.spent)
        except wire.BadBody as error:
            return AskAgain(self._redact(str(error)), uncounted=True)
        samples, usage, served_by, adapted = read
        return ModelReply(samples=samples, usage=usage, served_by=served_by, adapted=adapted)

    def batch_api(self, folder: BatchFolder) -> BatchApi:
        """Say how this endpoint takes batches."""
        del folder  # a provider needs none of our files
        return AnthropicBatches(self) if self.has_message_batches else OpenAIBatches(self)

    @property
    def has_message_batches(self) -> bool:
        """Whether its batches are Anthropic's: so it was said, or the address tells."""
        host = urlsplit(self._url).hostname or ""
        theirs = host == "anthropic.com" or host.endswith(".anthropic.com")
        return (
            self._api == "chat"
            and (self._batch_form or ("anthropic" if theirs else "openai")) == "anthropic"
        )

    def service(self, headers: Mapping[str, str], *, key_header: str | None = None) -> "Service":
        """Open the neighbours of the chat route, such as files and batches, with the same key.

        Args:
            headers: Headers of every request.
            key_header: The header that takes the key alone. Default: as for the chat route.

        Returns:
            The service, which the caller must close.
        """
        bearer = self._headers.get("authorization", "")
        name = key_header or "authorization"
        key = bearer.removeprefix("Bearer ") if key_header else bearer
        return Service(self._url, {**headers, **({name: key} if key else {})}, self._redact)

    async def list_models(self, timeout: float = 5.0) -> tuple[str, ...] | None:
        """List the models the endpoint says it has; None where it keeps no list. One try, so that a
        wrong address is known at once: `ModelBusy` if nothing answers, `ModelRefused` if it does
        not speak this API or wants another key."""
        problem = ""
        try:
            async with asyncio.timeout(timeout):
                async with self._open().get(
                    f"{self._url}/models", allow_redirects=False
                ) as response:
                    status, body = response.status, await _read(response, _MAX_LIST)
        except wire.BadBody:
            return None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            problem = self._redact(str(error))[:300] or f"no answer within {timeout:g} s"
        if problem:  # raised out here: the client's own error holds the key among its headers
            raise ModelBusy(f"nothing answers at {self._url} ({problem}). {_START}")
        if status == 200:
            names = wire.model_names(body)
            return None if names is None else tuple(map(self._redact, names))
        if status == 503:
            raise ModelBusy(f"{self._url} is still loading its model. Try again in a moment")
        if status in (401, 403):
            raise ModelRefused(f"{self._url} answered HTTP {status}. {self._advice(status)}")
        if status == 404:
            raise ModelRefused(f"{self._url} answers, but not with this API (HTTP 404). {_START}")
        return None

    def _advice(self, status: int, message: str = "") -> str:
        match status:
            case 401 | 403 if "authorization" not in self._headers:
                return (
                    "No key was sent: EVENHAND_API_KEY, where it is set, goes to the default "
                    "model's host alone. Name another host's variable as api_key_env in the config."
                )
            case 401 | 403:
                return (
                    "The key was not accepted: set EVENHAND_API_KEY, or api_key_env in the config."
                )
            case 404:
                return (
                    "Is the model name right, and does the URL end in /v1? `evenhand doctor` looks."
                )
            case _:
                return super()._advice(status, message)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,  # merged once here, and not at every call
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class Service(OwnSession):
    """Routes of a server other than its chat route."""

    def __init__(self, url: str, headers: Mapping[str, str], redact: Redactor) -> None:
        self.url = url
        self.redact = redact  # takes the key out of what comes back
        self._headers = headers

    async def send(
        self,
        method: Literal["GET", "POST"],
        path: str,
        data: bytes | None = None,
        *,
        content_type: str = "application/json",
        most: int = _MAX_LIST,
    ) -> tuple[int, Mapping[str, str], bytes] | NoAnswer:
        """Make one request.

        Args:
            method: The method.
            path: What follows the server's URL.
            data: The body.
            content_type: What the body is.
            most: The largest answer that is read, in bytes.

        Returns:
            Status, headers and body, or why the call failed.
        """
        call = self._open().request(
            method,
            self.url + path,
            data=data,
            headers={"content-type": content_type} if data is not None else None,
            allow_redirects=False,
        )
        ends = asyncio.get_running_loop().time() + _TRANSFER_SECONDS
        answer = await answer_of(call, ends, most)
        if isinstance(answer, NoAnswer):
            return NoAnswer(answer.reason, self.redact(answer.what)[:300])
        response, body = answer
        if body is None:
            return NoAnswer("too_large", f"the body is larger than {most} bytes")
        return response.status, response.headers, body


def _kind_of(request: ModelRequest) -> int:
    """Tell requests apart by the fields that they have: an endpoint may refuse each of these."""
    messages = request.messages
    return (
        (request.schema is not None)
        | (request.temperature is not None) << 1
        | (request.logprobs is not None) << 2
        | (request.seed is not None) << 3
        | (not messages) << 4
        | (bool(messages) and messages[0].role == "system") << 5
        | (request.n > 1) << 6
    )


def sendable_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Give the further fields of a request as they are sent, those in `extra_body` among them;
    refuse what says what is asked."""
    flat = {name: value for name, value in params.items() if name != "extra_body"}
    inner = params.get("extra_body") or {}
    if not isinstance(inner, Mapping):
        raise UserError("params: extra_body is a table of further fields")
    flat |= inner
    for name in flat:
        if name in _OURS:
            raise UserError(f"params: {name} is set by evenhand itself; leave it out")
        if name in ("max_tokens", "max_completion_tokens") and flat[name] is not None:
            raise UserError(f"params: say the longest reply with --max-tokens, not with {name}")
    return flat


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    length = response.content_length
    packed = "content-encoding" in response.headers  # a megabyte can unpack to a gigabyte
    if length is not None and length <= most and not packed:
        return await response.read()
    body = await read_capped(response, most)
    if body is None:
        raise wire.BadBody(f"body is larger than {most} bytes")
    return body


def _split(url: str) -> SplitResult | None:
    """Split the URL apart from its caller, whose error would otherwise hang on to one that quotes
    the URL."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")  # as the resolver does: "a..b" is invalid
        return parts if parts.port != 0 else None  # reading the port is what checks it
    except ValueError:
        return None


def checked_url(base_url: str) -> str:
    """Give the URL without query and trailing slash. A password in it would end up in logs, so it
    is refused."""
    example = "it should look like http://127.0.0.1:8080/v1"
    parts = _split(base_url)
    if parts is None:
        raise UserError(f"the endpoint's URL cannot be read; {example}")
    host, port = parts.hostname, parts.port
    if parts.username is not None or parts.password is not None:
        raise UserError("the endpoint's URL holds a user or password; use EVENHAND_API_KEY instead")
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"the endpoint's URL is not one for HTTP; {example}")
    authority = f"[{host}]" if ":" in host else host
    netloc = f"{authority}:{port}" if port else authority
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
