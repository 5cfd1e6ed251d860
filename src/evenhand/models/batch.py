"""Requests go to a model in batches, and each caller waits for its own reply.

A provider answers a batch within hours, at half the price. `BatchQueue` gathers what the items of
a run ask. When every item waits for a reply, what was gathered becomes one batch, so a method of
several rounds takes one batch a round.

Three files say how far a batch is, each written whole before the next step:

- `batches/STEM.jsonl`: the requests, before anything is sent.
- `batches/STEM.sent.json`: the provider's id, before anything is fetched.
- `batches/STEM.results.jsonl`: the results, before any item gets one.

STEM ends in a random key that the provider keeps with the batch. A process that was killed between
two steps left one file less, and the next one looks for the key at the provider.
"""

import asyncio
import hashlib
import random
import re
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import orjson

from evenhand.core import Usage
from evenhand.core.errors import BatchFailed, CorruptRun, ModelBusy, ModelRefused, UserError
from evenhand.models.base import ChatModel, ModelReply, ModelRequest, together
from evenhand.models.http_client import pause_before
from evenhand.models.wire import Dialect

MOST_TIMES = 3  # our choice: so often a request goes into a batch before its item fails
_MOST_FORMS = 8  # our choice: as many forms as an endpoint may refuse, one batch each
_MOST_REFUSALS = 60  # our choice: an hour of "too much is waiting", at one try a minute
_FOLDER = "batches"
_STEM = re.compile(r"batches/([0-9]{6})-([0-9]{10,})-([0-9a-f]{8})-([0-9a-f]{12})\.jsonl")
_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9_.:=+~/-]{1,1000}")  # gateways have long ones, with slashes
_PASSES = 12  # our choice: turns of the loop in which side-by-side questions are all asked

_T = TypeVar("_T")
BatchForm = Literal["openai", "anthropic", "vllm"]


class BatchFolder(Protocol):
    """The folder of a run, as far as batches need it."""

    @property
    def root(self) -> str: ...

    def read(self, name: str) -> bytes: ...

    def exists(self, name: str) -> bool: ...

    def names(self, folder: str) -> list[str]: ...

    def create(self, name: str, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTiming:
    """How long a queue waits for what, in seconds."""

    settle: float = 2.0  # without a new request, where nobody can say that every item waits
    first_look: float = 1.0  # then half as long again each time, up to
    longest_look: float = 60.0
    listed: float = 30.0  # until a batch that was created must be in the provider's list
    patience: float = 3 * 3600.0  # with a provider that does not answer


@dataclass(slots=True, kw_only=True)
class BatchState:
    """How far a batch is, by the provider's own counts."""

    id: str
    status: str
    total: int
    completed: int = 0
    failed: int = 0
    ended: bool = False
    why: str = ""  # a batch that was refused whole
    too_much: bool = False  # refused whole because too much was waiting at the provider
    files: tuple[str, ...] = ()  # that hold the results
    note: str = ""  # what a person has to do


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBatch:
    """A batch whose results are not in the folder yet."""

    stem: str
    key: str  # by which the provider's list is searched
    created: float  # seconds since 1970
    route: str  # where its requests go
    requests: int
    known: Callable[[], frozenset[str]]  # ids of batches that this run has on record


@dataclass(frozen=True, slots=True)
class AskAgain:
    """A request that was not answered: in another form, or as it is."""

    why: str
    in_another_form: bool = False
    spent: Usage | None = None  # on an answer that was of no use
    uncounted: bool = False  # such an answer came, and its tokens are not known


class NotSure(Exception):
    """The provider may have taken a batch, and the answer did not come."""


class NotNow(Exception):
    """The provider did not take a request, and may take it later."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


class BatchApi(Protocol):
    """How a provider takes batches. The forms are in `batch_apis.py`."""

    form: BatchForm
    at_batch_price: bool
    most_requests: int
    most_bytes: int

    def route(self, request: ModelRequest) -> str:
        """Name where a request goes; those of a batch go to one place."""
        ...

    def line(self, name: str, request: ModelRequest) -> bytes:
        """Write a request as the line of a batch; `ModelRefused` where it cannot be asked so."""
        ...

    async def find(self, batch: OpenBatch) -> str | None:
        """Look for a batch that was perhaps created; its id, or None."""
        ...

    async def submit(self, batch: OpenBatch, lines: Sequence[bytes]) -> str:
        """Create a batch and give its id."""
        ...

    async def look(self, id: str, total: int) -> BatchState: ...

    async def results(self, state: BatchState) -> bytes:
        """Fetch the lines of an ended batch, as many as there are."""
        ...

    def spoken(self) -> Dialect:
        """The dialect in which a line is written now."""
        ...

    def read(self, line: Any, request: ModelRequest, dialect: Dialect) -> ModelReply | AskAgain:
        """Read one line of the results; `ModelRefused` if a retry cannot help.

        Args:
            line: The line.
            request: What was asked.
            dialect: How it was asked.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class AsksInBatches(Protocol):
    """A model that can be asked in batches."""

    def batch_api(self, folder: BatchFolder) -> BatchApi: ...


class VllmFiles:
    """A model that no server has: vLLM reads the requests of a batch from a file."""

    def __init__(self, model: str, params: Mapping[str, Any] | None = None) -> None:
        """Name the model.

        Args:
            model: The name, as vLLM is told it.
            params: Further fields of every request.
        """
        from evenhand.models.endpoint import sendable_params  # noqa: PLC0415 - it needs this module

        self._model = model
        self._params = sendable_params(params or {})

    @property
    def name(self) -> str:
        return self._model

    def describe(self) -> dict[str, Any]:
        described = {"kind": "vllm_files", "model": self._model}
        return {**described, "params": self._params} if self._params else described

    def batch_api(self, folder: BatchFolder) -> BatchApi:
        from evenhand.models.batch_apis import VllmBatches  # noqa: PLC0415 - it needs this module

        return VllmBatches(self._model, folder, self._params)

    async def complete(self, request: ModelRequest) -> ModelReply:
        del request
        raise UserError(f"{self._model} is asked by files of `vllm run-batch` alone: add --batch")

    async def close(self) -> None:
        return None


@dataclass(slots=True, eq=False)
class _Waiting:
    request: ModelRequest
    reply: asyncio.Future[ModelReply]
    times: int = 0  # that it was in a batch
    forms: int = 0  # that another form was tried
    dialect: Dialect | None = None  # in which it was asked; None: by an earlier process
    spent: Usage | None = None  # on answers that were of no use
    uncounted: bool = False  # one of these did not say


@dataclass(slots=True, eq=False)
class _Batch:
    """One batch on its way."""

    stem: str
    names: list[str]
    state: BatchState
    route: str = ""
    taken_up: bool = False  # of an earlier process

    @property
    def key(self) -> str:
        return self.stem.rpartition("-")[2]

    @property
    def created(self) -> float:
        return float(self.stem.split("-")[1])

    def at(self, end: str) -> str:
        return f"{_FOLDER}/{self.stem}{end}"


@dataclass(slots=True, eq=False)
class _Line:
    """The result of one request, with the batch that it came in."""

    line: Any
    batch: str
    created: float
    ended: float


@dataclass(slots=True, eq=False)
class _Player:
    """A model with what it is asked."""

    api: BatchApi
    mark: str  # eight characters that tell the files of this model from those of another
    queue: deque[str] = field(default_factory=deque)
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    under_way: set[str] = field(default_factory=set)  # names that are in an open batch
    kept: dict[str, _Line] = field(default_factory=dict)  # fetched, and not asked for yet
    times: Counter[str] = field(default_factory=Counter)  # by earlier processes
    most: int = 0  # requests of a batch
    alone: asyncio.Lock | None = None  # one batch after the other
    refusals: int = 0  # of whole batches in a row, because too much was waiting


class BatchQueue:
    """The queue of a run: what its items ask, in batches.

    Args:
        folder: The folder of the run.
        items_at_work: Says how many items have begun and not ended. When as many wait for a
            reply, all of them do.
        is_left: Says whether the item at a position is still to be finished.
        refuse_if_fenced: Raises if another process took the run over. Default: nobody can.
        timing: How long it waits for what.
    """

    def __init__(
        self,
        folder: BatchFolder,
        *,
        items_at_work: Callable[[], int],
        is_left: Callable[[int], bool],
        refuse_if_fenced: Callable[[], None] = lambda: None,
        timing: BatchTiming | None = None,
    ) -> None:
        self._folder = folder
        self._items_at_work = items_at_work
        self._is_left = is_left
        self._refuse_if_fenced = refuse_if_fenced
        self._timing = timing or BatchTiming()
        self._players: dict[str, _Player] = {}
        self._positions: Counter[int] = Counter()  # of the requests that wait
        self._tasks: set[asyncio.Task[None]] = set()
        self._writes: set[asyncio.Future[None]] = set()
        self._open: dict[str, _Batch] = {}
        self._known: set[str] = set()  # ids of all batches of this run
        self._ended = 0
        self._count = 0
        self._moves = 0  # requests and replies so far
        self._moved = asyncio.Event()
        self._failure: BaseException | None = None

    def through(self, model: ChatModel) -> ChatModel:
        """Wrap a model so that it is asked in batches; one that has no batches stays as it is."""
        if not isinstance(model, AsksInBatches):
            return model
        api = model.batch_api(self._folder)
        identity = orjson.dumps([api.form, model.describe()], option=orjson.OPT_SORT_KEYS)
        mark = hashlib.sha256(identity).hexdigest()[:8]
        if mark not in self._players:
            self._players[mark] = _Player(api, mark, most=api.most_requests)
        return BatchedModel(model, self, self._players[mark])

    async def __aenter__(self) -> "BatchQueue":
        for batch, lines in await asyncio.to_thread(self._recovered):
            self._take_up(batch, lines)
        self._start(self._submit_when_all_wait())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._writes, return_exceptions=True)
        for player in self._players.values():
            await player.api.close()

    def states(self) -> tuple[int, list[BatchState]]:
        """Say how many batches have ended, and how far the others are."""
        return self._ended, [batch.state for batch in self._open.values()]

    async def ask(self, player: _Player, request: ModelRequest) -> ModelReply:
        """Wait for the reply to a request, in whichever batch it comes."""
        if self._failure is not None:
            raise self._failure
        name = _name(request)
        entry = _Waiting(request, asyncio.get_running_loop().create_future())
        entry.times = min(player.times[name], MOST_TIMES - 1)  # once more in any case
        player.waiting[name] = entry
        self._positions[request.position] += 1
        self._moves += 1
        self._moved.set()
        try:
            if name in player.kept:
                await asyncio.sleep(0)  # those asked side by side are all asked before one is told
                self._settle(player, name, player.kept.pop(name))
            elif name not in player.under_way:
                player.queue.append(name)
            return await entry.reply
        finally:
            if player.waiting.get(name) is entry:
                del player.waiting[name]
            self._positions[request.position] -= 1
            if not self._positions[request.position]:
                del self._positions[request.position]
            self._moves += 1
            self._moved.set()

    # -- when to submit ------------------------------------------------------------------------

    async def _submit_when_all_wait(self) -> None:
        while True:
            await self._moved.wait()
            self._moved.clear()
            if any(player.queue for player in self._players.values()):
                await self._all_wait()
                for player in self._players.values():
                    self._submit(player)

    async def _all_wait(self) -> None:
        """Return when every item waits for a reply, or when for a while nothing has moved: some
        may wait for each other, for money, or for a scorer."""
        clock = asyncio.get_running_loop().time
        moves, since = -1, clock()
        while True:
            for _ in range(_PASSES):
                await asyncio.sleep(0)
            if moves != self._moves:
                moves, since = self._moves, clock()
                continue
            if len(self._positions) >= self._items_at_work():
                return
            if clock() - since >= self._timing.settle:
                return
            await asyncio.sleep(min(0.02, self._timing.settle / 4))

    def _submit(self, player: _Player) -> None:
        """Make batches of what waits, one for each route."""
        routes: dict[str, deque[str]] = {}
        for name in dict.fromkeys(player.queue):  # who left and came back is in it twice
            if name in player.waiting:  # else the caller has gone
                route = player.api.route(player.waiting[name].request)
                routes.setdefault(route, deque()).append(name)
        player.queue.clear()
        for route, names in routes.items():
            self._submit_to(player, route, names)

    def _submit_to(self, player: _Player, route: str, names: deque[str]) -> None:
        """Make batches of these requests, none larger than the provider takes."""
        batch, lines, size = self._new(player, route), list[bytes](), 0
        while names:
            name = names.popleft()
            entry = player.waiting[name]
            try:
                line = player.api.line(f"{batch.key}_{name}", entry.request)
            except ModelRefused as error:
                _fail(entry, error)
                continue
            if lines and (len(lines) >= player.most or size + len(line) > player.api.most_bytes):
                self._go(player, batch, lines)
                names.appendleft(name)
                batch, lines, size = self._new(player, route), [], 0
                continue
            entry.times += 1
            entry.dialect = player.api.spoken()
            batch.names.append(name)
            lines.append(line)
            size += len(line) + 1
        if lines:
            self._go(player, batch, lines)

    def _new(self, player: _Player, route: str) -> _Batch:
        stem = f"{self._count:06d}-{int(time.time())}-{player.mark}-{secrets.token_hex(6)}"
        return _Batch(stem, [], BatchState(id="", status="preparing", total=0), route)

    def _go(self, player: _Player, batch: _Batch, lines: list[bytes]) -> None:
        self._count += 1
        batch.state.total = len(lines)
        self._begin(player, batch)
        self._start(self._carry(player, batch, lines))

    def _begin(self, player: _Player, batch: _Batch) -> None:
        player.under_way.update(batch.names)
        self._open[batch.stem] = batch

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work whose failure ends the run: everybody who waits is told."""
        try:
            await work
        except Exception as error:
            self._failure = self._failure or error
            for player in self._players.values():
                for entry in list(player.waiting.values()):
                    _fail(entry, error)

    # -- one batch -----------------------------------------------------------------------------

    async def _carry(self, player: _Player, batch: _Batch, lines: list[bytes]) -> None:
        """Take a batch from its first step to its last."""
        await self._write(batch.at(".jsonl"), b"\n".join(lines) + b"\n")
        if player.alone is None:
            await self._finish(player, batch, lines)
            return
        async with player.alone:
            await self._finish(player, batch, lines)

    async def _finish(self, player: _Player, batch: _Batch, lines: Sequence[bytes]) -> None:
        if not batch.state.id:
            batch.state.status = "sending"
            id = await self._created(player.api, batch, lines)
            await self._note(batch, id)
        state = await self._ended_state(player.api, batch)
        results = b""
        if not state.why:
            results = await self._patiently(lambda: player.api.results(state))
        await self._keep(player, batch, state, results)

    async def _take_over(self, player: _Player, batch: _Batch) -> None:
        """Go on with a batch of an earlier process: look for it, unless its id is on record."""
        if not batch.state.id:
            batch.state.status = "looking for it"
            await asyncio.sleep(self._timing.listed)  # the last word of the other may be under way
            id = await self._patiently(lambda: player.api.find(self._of(batch)))
            if id is None:
                state = BatchState(id="", status="not sent", total=len(batch.names), ended=True)
                await self._keep(player, batch, state, b"")
                return
            await self._note(batch, id)
        await self._finish(player, batch, ())

    async def _created(self, api: BatchApi, batch: _Batch, lines: Sequence[bytes]) -> str:
        """Create a batch once: where the answer did not come, it is looked for before it is sent
        again."""

        unsure = False

        async def once() -> str:
            nonlocal unsure
            if unsure:
                await asyncio.sleep(self._timing.listed)
                if (found := await api.find(self._of(batch))) is not None:
                    return found
                unsure = False
            await asyncio.to_thread(self._refuse_if_fenced)
            try:
                return await api.submit(self._of(batch), lines)
            except NotSure as error:
                unsure = True
                raise NotNow(str(error)) from None

        return await self._patiently(once)

    async def _note(self, batch: _Batch, id: str) -> None:
        batch.state.id = id
        self._known.add(id)
        data = orjson.dumps({"id": id, "requests": len(batch.names), "noted": time.time()})
        await self._write(batch.at(".sent.json"), data)

    async def _write(self, name: str, data: bytes) -> None:
        """Write a file whole. Who is cancelled meanwhile leaves no half of the work behind: the
        folder is let go when it is written."""
        write = asyncio.ensure_future(asyncio.to_thread(self._folder.create, name, data))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        try:
            await asyncio.shield(write)
        except FileExistsError:
            raise BatchFailed(
                f"{name} is there before its time: another process wrote it"
            ) from None

    async def _ended_state(self, api: BatchApi, batch: _Batch) -> BatchState:
        pause, total = self._timing.first_look, len(batch.names)
        while True:
            state = await self._patiently(lambda: api.look(batch.state.id, total))
            batch.state = state
            if state.ended:
                return state
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self._timing.longest_look)

    async def _patiently(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Call a provider until it answers; `BatchFailed` if it does not for hours."""
        clock, rng, attempt = asyncio.get_running_loop().time, random.Random(), 0
        ends = clock() + self._timing.patience
        while True:
            try:
                return await call()
            except NotNow as problem:
                attempt += 1
                pause = min(pause_before(min(attempt, 8), None, rng), self._timing.longest_look)
                pause = max(pause, problem.wait or 0.0)
                if clock() + pause > ends:
                    raise BatchFailed(
                        f"{problem}; tried {attempt} times. Nothing is lost: run the same command "
                        "again to go on"
                    ) from None
                await asyncio.sleep(pause)

    def _of(self, batch: _Batch) -> OpenBatch:
        return OpenBatch(
            stem=batch.stem,
            key=batch.key,
            created=batch.created,
            route=batch.route,
            requests=len(batch.names),
            known=lambda: frozenset(self._known),
        )

    # -- results -------------------------------------------------------------------------------

    async def _keep(
        self, player: _Player, batch: _Batch, state: BatchState, results: bytes
    ) -> None:
        """Write the results down, then hand them out."""
        head = {"id": state.id, "status": state.status, "why": state.why, "ended": time.time()}
        lines = await asyncio.to_thread(_best_lines, results, batch.key)
        rows = [head, *({"name": name, "line": line} for name, line in lines.items())]
        data = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        await self._write(batch.at(".results.jsonl"), data)
        if state.why and not state.too_much:
            raise UserError(f"the provider refused batch {state.id} whole: {state.why}")
        if state.too_much:
            await self._make_smaller(player, batch)
        elif state.status != "not sent":
            player.refusals = 0
        self._hand_out(player, batch, state, lines)

    async def _make_smaller(self, player: _Player, batch: _Batch) -> None:
        """Ask for less at once from now on, and after a while."""
        player.most = max(1, len(batch.names) // 2)
        player.alone = player.alone or asyncio.Lock()
        player.refusals += 1
        if player.refusals > _MOST_REFUSALS:
            raise BatchFailed(f"the provider has too much waiting: {batch.state.why}")
        if player.refusals > 1:
            await asyncio.sleep(self._timing.longest_look)

    def _hand_out(
        self, player: _Player, batch: _Batch, state: BatchState, lines: dict[str, Any]
    ) -> None:
        now = time.time()
        self._ended += 1
        del self._open[batch.stem]
        player.under_way.difference_update(batch.names)
        # Of those who wait, the ones of this process were counted when they were submitted.
        counts = (state.status != "not sent" and not state.too_much) - (not batch.taken_up)
        for name in batch.names:
            entry = player.waiting.get(name)
            player.times[name] += counts if batch.taken_up else 0
            if entry is not None:
                entry.times += counts
            if state.too_much or state.status == "not sent":
                self._again(player, name, "the provider did not take it")
                continue
            line = _Line(lines.get(name), state.id, batch.created, now)
            if line.line is None:
                why = f"batch {state.id} ({state.status}) came back without it"
                self._again(player, name, why)
            elif name in player.waiting:
                self._settle(player, name, line)
            else:
                player.kept[name] = line

    def _settle(self, player: _Player, name: str, line: _Line) -> None:
        """Pass a result to the caller that waits for it."""
        entry = player.waiting[name]
        try:
            dialect = entry.dialect or player.api.spoken()
            outcome = player.api.read(line.line, entry.request, dialect)
        except ModelRefused as error:
            error.attempts = max(entry.times, 1)
            _fail(entry, error)
            return
        if isinstance(outcome, AskAgain):
            if outcome.spent is not None:
                entry.spent = together(entry.spent or Usage(0, 0), outcome.spent)
            entry.uncounted = entry.uncounted or outcome.uncounted
            in_form = outcome.in_another_form and entry.forms < _MOST_FORMS
            self._again(player, name, outcome.why, in_another_form=in_form)
            return
        if entry.spent is not None:
            outcome.usage = together(outcome.usage, entry.spent)
        outcome.batch = line.batch
        outcome.attempts = max(entry.times, 1)
        outcome.started_us = int(line.created * 1e6)
        outcome.seconds = max(0.0, line.ended - line.created)
        if not entry.reply.done():
            entry.reply.set_result(outcome)

    def _again(
        self, player: _Player, name: str, why: str, *, in_another_form: bool = False
    ) -> None:
        """Put a request into the next batch, unless it was in too many."""
        entry = player.waiting.get(name)
        if entry is None:  # a later request for it starts again
            return
        if in_another_form:
            entry.times -= 1
            entry.forms += 1
        if entry.times >= MOST_TIMES:
            error = ModelBusy(
                f"not answered in {entry.times} batches; last: {why}", attempts=entry.times
            )
            # Providers bill the requests of a batch that were answered.
            spent = entry.spent or Usage(0, 0)
            counts = spent.prompt_tokens, spent.completion_tokens
            error.tokens = None if entry.uncounted else counts
            _fail(entry, error)
            return
        player.queue.append(name)
        self._moves += 1
        self._moved.set()

    # -- going on ------------------------------------------------------------------------------

    def _recovered(self) -> list[tuple[_Batch, dict[str, Any] | None]]:
        """Read the batches of earlier processes, each with its results if they are there."""
        there = set(self._folder.names(_FOLDER))
        found = []
        for name in sorted(there):
            match = _STEM.fullmatch(name)
            if match is None:
                continue
            self._count = max(self._count, int(match[1]) + 1)
            stem = name.removeprefix(f"{_FOLDER}/").removesuffix(".jsonl")
            state = BatchState(id="", status="taken up", total=0)
            batch = _Batch(stem, [], state, taken_up=True)
            try:
                found.append((batch, self._read(batch, there)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CorruptRun(
                    f"{self._folder.root}/{name} or a file next to it cannot be read ({error})"
                ) from None
        return found

    def _read(self, batch: _Batch, there: Collection[str]) -> dict[str, Any] | None:
        """Read what is on record of a batch; its results, or None."""
        state, lines = batch.state, None
        if batch.at(".sent.json") in there:
            state.id = orjson.loads(self._folder.read(batch.at(".sent.json")))["id"]
            if not _ID.fullmatch(state.id):
                raise ValueError("no batch has such an id")
            self._known.add(state.id)
        results = batch.at(".results.jsonl")
        if results in there:
            head, *rows = map(orjson.loads, self._folder.read(results).splitlines())
            state.status, state.why, state.ended = head["status"], head["why"], True
            lines = {row["name"]: row["line"] for row in rows}
            lines[""] = head["ended"]
        requests = self._folder.read(batch.at(".jsonl")).splitlines()
        batch.names = [_id_of(line).partition("_")[2] for line in requests]
        if not all(name.partition("-")[0].isdecimal() for name in batch.names):
            raise ValueError("a request has no name")
        state.total = len(batch.names)
        return lines

    def _take_up(self, batch: _Batch, lines: dict[str, Any] | None) -> None:
        player = self._players.get(batch.stem.split("-")[2])
        if player is None:  # of a model that this run does not ask
            return
        if lines is None:
            for name in batch.names:  # requested again: the earlier results do not count
                player.kept.pop(name, None)
            self._begin(player, batch)
            self._start(self._take_over(player, batch))
            return
        self._ended += 1
        ended = lines.pop("")
        if batch.state.status == "not sent" or batch.state.why:
            return
        for name in batch.names:
            if not self._is_left(int(name.partition("-")[0])):
                continue
            player.times[name] += 1
            player.kept.pop(name, None)
            if name in lines:
                player.kept[name] = _Line(lines[name], batch.state.id, batch.created, ended)


class BatchedModel:
    """A model that is asked in batches."""

    def __init__(self, model: ChatModel, queue: BatchQueue, player: _Player) -> None:
        self._model = model
        self._queue = queue
        self._player = player

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def at_batch_price(self) -> bool:
        """Whether a provider answers, who bills by the price of batches."""
        return self._player.api.at_batch_price

    def describe(self) -> dict[str, Any]:
        return self._model.describe()

    async def close(self) -> None:
        await self._model.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        if not request.sha256:  # not from a conversation: it has no name that a later run knows
            return await self._model.complete(request)
        return await self._queue.ask(self._player, request)


def _name(request: ModelRequest) -> str:
    """Name a request: the same in every process that asks it for the same item."""
    key = f"{request.sha256}:{request.occurrence}".encode()
    return f"{request.position}-{hashlib.sha256(key).hexdigest()[:24]}"


def _id_of(line: bytes) -> str:
    custom_id = orjson.loads(line).get("custom_id")
    return custom_id if isinstance(custom_id, str) else ""


def _best_lines(data: bytes, key: str) -> dict[str, Any]:
    """Give the line of each request: the first that was answered, or else the first. What is not
    JSON, or belongs to another batch, is left out."""
    lines: dict[str, Any] = {}
    for raw in data.splitlines():
        with suppress(orjson.JSONDecodeError):
            line = orjson.loads(raw)
            custom_id = line.get("custom_id") if isinstance(line, dict) else None
            whose, _, name = str(custom_id).partition("_")
            if whose == key and (name not in lines or answered(line) > answered(lines[name])):
                lines[name] = line
    return lines


def answered(line: Any) -> bool:
    """Say whether a line of results holds an answer, in any of the forms."""
    result, response = line.get("result"), line.get("response")
    if isinstance(result, dict):
        return result.get("type") == "succeeded"
    return isinstance(response, dict) and response.get("status_code", 200) == 200


def _fail(entry: _Waiting, error: BaseException) -> None:
    if not entry.reply.done():
        entry.reply.set_exception(error)


def in_batches(models: Iterable[ChatModel]) -> bool:
    """Say whether one of these models can be asked in batches."""
    return any(isinstance(model, AsksInBatches) for model in models)
