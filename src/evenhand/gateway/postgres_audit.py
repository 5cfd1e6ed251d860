"""Audit rows in PostgreSQL: a batch is a transaction, and an id is kept once."""

from collections.abc import Sequence
from dataclasses import astuple, fields

from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from evenhand.gateway.audit import AuditRow

TABLE = "evenhand_audit"
_COLUMNS = """
    id text PRIMARY KEY,
    at timestamptz NOT NULL,
    tenant text NOT NULL,
    route text NOT NULL,
    model text NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    calls bigint NOT NULL,
    prompt_tokens bigint,
    completion_tokens bigint,
    seconds_upstream double precision,
    seconds_screen double precision,
    seconds_agents double precision,
    seconds_all double precision,
    policy text NOT NULL,
    evidence text NOT NULL,
    content text
"""
_LOCK = 0x65_76_65_6E  # our choice: "even"; of two that create the table at once one waits


class PostgresAudit:
    """A table of one database. The connection is made when there is something to write, and made
    anew after an error."""

    def __init__(self, conninfo: str, *, table: str = TABLE, connect_seconds: int = 5) -> None:
        self._conninfo = conninfo
        self._connect_seconds = connect_seconds
        self._connection: AsyncConnection | None = None
        names = [Identifier(field.name) for field in fields(AuditRow)]
        self._create = SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
            Identifier(table), SQL(_COLUMNS)
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
