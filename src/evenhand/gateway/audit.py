"""One row per exchange for those who audit: what was done, why, how long it took, never what was
said.

Rows go in batches to a store: a table of PostgreSQL or Parquet files. While it is down they wait in
memory: the run folder has the exchange on disk already, and a second file there would fill up and
fail together with it. When too many wait, the oldest go, counted by their action.
"""

import asyncio
import contextlib
import hashlib
import hmac
import io
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, get_args, get_type_hints

import polars as pl
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from evenhand.core.errors import EvenhandError
from evenhand.gateway.recorded import plain_name, tokens
from evenhand.gateway.traffic import check_folder
from evenhand.gateway.verdicts import Action, Exchange
from evenhand.runs.store.folder import open_folder

WAITING = 100_000  # our choice, in rows: some 100 MB, and 17 minutes at a hundred a second
_BATCH = 500  # our choice, in rows: one transaction, or one file
_WAIT_SECONDS = 1.0  # our choice: rows are gathered for so long
_TRY_SECONDS = 30.0  # our choice: a store that says nothing for so long is down
_LONGEST_WAIT = 30.0  # our choice, in seconds: between two attempts
_LONGEST_TEXT = 500  # our choice, in characters: a client chooses the name of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """What is kept of an exchange in a table. Its fields are the columns."""

    id: str
    at: datetime
    tenant: str
    route: str
    model: str
    action: str
    reason: str
    calls: int
    prompt_tokens: int | None  # None: an endpoint did not say
    completion_tokens: int | None
    seconds_upstream: float | None  # None: this part did not happen
    seconds_screen: float | None
    seconds_agents: float | None
    seconds_all: float | None
    policy: str
    evidence: str
    content: str | None  # None: the gateway has no key

    @classmethod
    def of(cls, exchange: Exchange, *, policy: str, evidence: str, key: bytes) -> "AuditRow":
        turns = [turn for verdict in exchange.verdicts for turn in verdict.turns]
        prompt_tokens, completion_tokens = tokens(turns)
        seconds = exchange.seconds
        return cls(
            id=_plain(exchange.id),
            at=datetime.fromtimestamp(exchange.at, UTC),
            tenant=_plain(exchange.tenant),
            route=_plain(exchange.route),
            model=plain_name(exchange.model),
            action=str(exchange.action),
            reason=_plain(exchange.reason),
            calls=len(turns),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            seconds_upstream=seconds.get("upstream"),
            seconds_screen=seconds.get("screen"),
            seconds_agents=seconds.get("agents"),
            seconds_all=seconds.get("all"),
            policy=policy,
            evidence=_plain(evidence),
            content=content_hash(exchange, key) if key else None,
        )


def _plain(text: str) -> str:
    """A text that every store takes: no NUL, no half of a surrogate pair, no end of megabytes."""
    return text[:_LONGEST_TEXT].replace("\0", "�").encode("utf-8", "replace").decode()


def content_hash(exchange: Exchange, key: bytes) -> str:
    """The HMAC-SHA256 over prompt, context and texts before and after: who has all of them and the
    key can show that the row is theirs."""
    texts = [text for verdict in exchange.verdicts for text in (verdict.before, verdict.text)]
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for text in (exchange.prompt, exchange.context, *texts):
        data = text.encode("utf-8", "surrogatepass")
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.hexdigest()


class AuditStore(Protocol):
    """Where rows are kept."""

    async def write(self, rows: Sequence[AuditRow]) -> None:
        """Keep all of these rows or none. The same rows may come again after an error, and then
        they are kept once. It raises whatever it likes."""
        ...

    async def check(self) -> None:
        """Find out whether rows can be kept. It raises whatever it likes."""
        ...

    async def close(self) -> None: ...


class AuditWriter:
    """The writer of audit rows. `record` never waits and never raises."""

    def __init__(
        self, store: AuditStore, *, waiting: int = WAITING, retry_seconds: float = 0.5
    ) -> None:
        self._store, self._most, self._retry_seconds = store, waiting, retry_seconds
        self._waiting: deque[AuditRow] = deque()
        self._batch: list[AuditRow] = []  # stays the same until it is kept
        self._woken, self._closing, self._settled = (asyncio.Event() for _ in range(3))
        self._settled.set()
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self.lost: dict[Action, int] = dict.fromkeys(Action, 0)
        self.healthy = True
        self.problem = ""  # why it is not healthy, or was not last

    async def start(self) -> None:
        self._task = asyncio.create_task(self._write_on())

    def record(self, row: AuditRow) -> None:
        """Take a row to be kept. If too many wait, the oldest one goes."""
        if self._closing.is_set():
            self._lose(row)
            return
        if self.waiting >= self._most:
            self.healthy, self.problem = False, f"{self._most:,} rows wait to be written"
            self._lose(self._waiting.popleft() if self._waiting else row)
            if self.waiting >= self._most:  # all of them are of the batch that is being written
                return
        self._waiting.append(row)
        if not self._failures:
            self._settled.clear()
        self._woken.set()

    @property
    def waiting(self) -> int:
        return len(self._waiting) + len(self._batch)

    async def flush(self) -> None:
        """Wait until all that came so far is kept, or cannot be just now."""
        await self._settled.wait()

    async def close(self) -> None:
        """Write what waits, with one attempt, and count as lost what could not be."""
        self._closing.set()
        self._woken.set()
        if self._task is not None:
            await self._task
        for row in (*self._batch, *self._waiting):
            self._lose(row)
        self._batch = []
        self._waiting.clear()
        self._settled.set()
        with contextlib.suppress(Exception):
            await self._store.close()

    def _lose(self, row: AuditRow) -> None:
        self.lost[Action(row.action)] += 1

    async def _write_on(self) -> None:
        while True:
            stopping = self._closing.is_set()
            self._woken.clear()
            while len(self._batch) < _BATCH and self._waiting and not self._failures:
                self._batch.append(self._waiting.popleft())
            if self._batch:
                await self._write()
            if not self.waiting or self._failures:
                self._settled.set()
                if stopping:
                    return
                await self._rest()

    async def _write(self) -> None:
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                await self._store.write(self._batch)
        except Exception as error:  # whatever a driver makes of a store that is down
            self._failures += 1
            self.healthy = False
            self.problem = str(error) if isinstance(error, EvenhandError) else type(error).__name__
        else:
            self._batch = []
            self._failures = 0
            self.healthy = True

    async def _rest(self) -> None:
        """Wait for more rows and gather them for a moment; after a failure wait, longer each
        time."""
        if self._failures:
            seconds = min(_LONGEST_WAIT, self._retry_seconds * 2 ** min(self._failures - 1, 10))
        else:
            await self._woken.wait()
            seconds = _WAIT_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)


# Each type of a field as a type of polars and of PostgreSQL.
_TYPES: dict[type, tuple[pl.DataType, str]] = {
    str: (pl.String(), "text"),
    int: (pl.Int64(), "bigint"),
    float: (pl.Float64(), "double precision"),
    datetime: (pl.Datetime("us", "UTC"), "timestamptz"),
}


def _columns() -> Iterator[tuple[str, pl.DataType, str]]:
    """Name, type of polars and definition in SQL of each column."""
    for name, hint in get_type_hints(AuditRow).items():
        kinds = get_args(hint) or (hint,)  # the type, and that of None where it may be missing
        plain, definition = _TYPES[kinds[0]]
        key = " PRIMARY KEY" if name == "id" else "" if len(kinds) > 1 else " NOT NULL"
        yield name, plain, f"{name} {definition}{key}"


SCHEMA = pl.Schema({name: plain for name, plain, _ in _columns()})


class ParquetAudit:
    """A folder of audit files, one sub-folder a UTC day. Several replicas may write into one."""

    def __init__(self, location: str | Path) -> None:
        self._folder = open_folder(location)

    async def write(self, rows: Sequence[AuditRow]) -> None:
        await asyncio.to_thread(self._write, rows)

    async def check(self) -> None:
        await asyncio.to_thread(check_folder, self._folder)

    async def close(self) -> None:
        """Nothing is held."""

    def _write(self, rows: Sequence[AuditRow]) -> None:
        sink = io.BytesIO()
        pl.DataFrame([asdict(row) for row in rows], schema=SCHEMA).write_parquet(sink)
        ids = "\n".join(row.id for row in rows).encode()
        day = f"{rows[0].at:%Y-%m-%d}"
        name = f"{day}/{rows[0].at:%H%M%S}-{hashlib.sha256(ids).hexdigest()[:24]}.parquet"
        with contextlib.suppress(FileExistsError):  # kept before, and only the answer was lost
            self._folder.create(name, sink.getvalue())


TABLE = "evenhand_audit"
_LOCK = 0x65_76_65_6E  # our choice: "even"; of two that create the table at once one waits


class PostgresAudit:
    """A table of one database. The connection is made when there is something to write, and made
    again after an error."""

    def __init__(self, conninfo: str, *, table: str = TABLE, connect_seconds: int = 5) -> None:
        self._conninfo = conninfo
        self._connect_seconds = connect_seconds
        self._connection: AsyncConnection | None = None
        names = [Identifier(name) for name in SCHEMA]
        self._create = SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
            Identifier(table), SQL(", ".join(definition for _, _, definition in _columns()))
        )
        self._insert = SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (id) DO NOTHING").format(
            Identifier(table), SQL(", ").join(names), SQL(", ").join([SQL("%s")] * len(names))
        )

    async def write(self, rows: Sequence[AuditRow]) -> None:
        try:
            connection = self._connection or await self._connected()
            async with connection.transaction(), connection.cursor() as cursor:
                await cursor.executemany(self._insert, [astuple(row) for row in rows])
        except BaseException:
            await self.close()
            raise

    async def check(self) -> None:
        try:
            await self._connected()
        finally:
            await self.close()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> AsyncConnection:
        connection = await AsyncConnection.connect(
            self._conninfo, autocommit=True, connect_timeout=self._connect_seconds
        )
        self._connection = connection
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            await connection.execute(self._create)
        return connection
