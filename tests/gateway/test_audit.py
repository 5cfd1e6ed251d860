"""Audit rows, into a real PostgreSQL that is killed and into real files."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

from evenhand.gateway.audit import (
    SCHEMA,
    AuditRow,
    AuditStore,
    AuditWriter,
    ParquetAudit,
    PostgresAudit,
    content_hash,
)
from evenhand.gateway.recorded import NOT_KEPT
from evenhand.gateway.verdicts import Action

from .exchanges import exchange, passed, refused, repaired, turn

KEY = b"a key of the gateway's own"
_BIN = "/usr/lib/postgresql/15/bin"


def row(name: str, action: Action = Action.PASSED) -> AuditRow:
    verdict = passed() if action is Action.PASSED else refused(action, "unrepaired")
    return AuditRow.of(exchange(name, verdict), policy="p", evidence="e", key=KEY)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


# -- a database of its own ---------------------------------------------------------------------


class Postgres:
    """A cluster in a folder of its own, on loopback, for whoever asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._user: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": []} if not os.getuid() else {}
        )
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port: int = sock.getsockname()[1]
        self.conninfo = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        data = str(folder / "data")
        make = [f"{_BIN}/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **self._user)

    def start(self) -> None:
        command = [f"{_BIN}/postgres", "-D", str(self._folder / "data"), "-p", str(self.port)]
        options = ["-h", "127.0.0.1", "-k", str(self._folder), "-c", "fsync=off"]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [*command, *options], stdout=log, stderr=log, cwd=self._folder, **self._user
        )
        log.close()
        for _ in range(600):
            try:
                psycopg.connect(self.conninfo, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise AssertionError((self._folder / "log").read_text())

    def kill(self) -> None:
        """All of its processes see that the first one is gone, and go too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def rows(self, table: str = "evenhand_audit") -> list[tuple[Any, ...]]:
        names = ", ".join(field.name for field in fields(AuditRow))
        with psycopg.connect(self.conninfo) as connection:
            return connection.execute(f"SELECT {names} FROM {table} ORDER BY at, id").fetchall()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="evenhand-postgres-"))
    if not os.getuid():
        shutil.chown(folder, "postgres", "postgres")
    made = Postgres(folder)
    yield made
    made.kill()
    shutil.rmtree(folder)


@pytest.fixture
def postgres(cluster: Postgres) -> Postgres:
    """The database, up and without a table."""
    cluster.kill()
    cluster.start()
    with psycopg.connect(cluster.conninfo) as connection:
        connection.execute("DROP TABLE IF EXISTS evenhand_audit")
    return cluster


# -- a row -------------------------------------------------------------------------------------


def test_a_row_says_what_was_done_and_never_what_was_said() -> None:
    verdicts = repaired("a numbat", "a bilby"), passed("a dugong")
    asked = exchange("x", *verdicts, prompt="a quokka", context="a wombat")
    told = replace(asked, model="gpt\0x\ud83d")
    made = AuditRow.of(told, policy="ab", evidence="runs/2026-11-16/team-hr", key=KEY)
    assert (made.id, made.action, made.reason) == ("x", "repaired", "accepted")
    assert made.at.isoformat() == "2026-11-16T12:00:00+00:00"
    assert (made.calls, made.prompt_tokens, made.completion_tokens) == (2, 20, 6)
    assert (made.seconds_upstream, made.seconds_all) == (0.5, 2.1)
    assert made.model == NOT_KEPT
    held = repr(asdict(made))
    for animal in ("quokka", "wombat", "numbat", "bilby", "dugong"):
        assert animal not in held


def test_the_hash_of_the_content_tells_where_one_text_ends_and_the_next_begins() -> None:
    one = exchange("x", passed("bc"), prompt="a")
    other = exchange("x", passed("c"), prompt="ab")
    assert content_hash(one, KEY) != content_hash(other, KEY)
    assert content_hash(one, KEY) == content_hash(replace(one, id="y"), KEY)
    assert content_hash(one, KEY) != content_hash(one, b"another")
    assert AuditRow.of(one, policy="p", evidence="e", key=b"").content is None


def test_tokens_that_one_endpoint_did_not_count_are_unknown_and_not_fewer() -> None:
    verdict = replace(repaired(), turns=(turn("a", "b"), turn("c", "d", prompt_tokens=None)))
    made = AuditRow.of(exchange("x", verdict), policy="p", evidence="e", key=KEY)
    assert (made.prompt_tokens, made.completion_tokens) == (None, 6)


# -- the stores --------------------------------------------------------------------------------


async def test_both_stores_keep_every_column_of_a_row_once(
    tmp_path: Path, postgres: Postgres
) -> None:
    full = AuditRow.of(exchange("x", repaired()), policy="p", evidence="e", key=KEY)
    bare = replace(full, id="y", prompt_tokens=None, seconds_agents=None, content=None)
    stores: Sequence[AuditStore] = (PostgresAudit(postgres.conninfo), ParquetAudit(tmp_path))
    for store in stores:
        await store.write([full, bare])
        await store.write([full, bare])  # the answer to the first was lost
        await store.close()
    wanted = [tuple(asdict(one).values()) for one in (full, bare)]
    assert postgres.rows() == wanted
    table = pl.read_parquet(tmp_path / "*" / "*.parquet")
    assert table.rows() == wanted
    assert SCHEMA.names() == [field.name for field in fields(AuditRow)]


async def test_a_batch_that_comes_again_with_rows_of_another_is_kept_once(
    postgres: Postgres,
) -> None:
    store = PostgresAudit(postgres.conninfo)
    await store.write([row("a"), row("b")])
    await store.write([row("b"), row("c")])
    await store.close()
    assert [one[0] for one in postgres.rows()] == ["a", "b", "c"]


async def test_two_gateways_may_create_the_table_at_once(postgres: Postgres) -> None:
    stores = [PostgresAudit(postgres.conninfo) for _ in range(4)]
    await asyncio.gather(*(store.write([row(str(n))]) for n, store in enumerate(stores)))
    await asyncio.gather(*(store.close() for store in stores))
    assert [one[0] for one in postgres.rows()] == ["0", "1", "2", "3"]


# -- faults ------------------------------------------------------------------------------------


async def test_a_database_that_is_killed_in_the_middle_loses_no_row_and_doubles_none(
    postgres: Postgres,
) -> None:
    audit = AuditWriter(PostgresAudit(postgres.conninfo, connect_seconds=2), retry_seconds=0.05)
    await audit.start()
    names = [f"x{number:04d}" for number in range(1500)]
    for number, name in enumerate(names):
        audit.record(row(name))
        if number == 700:
            await until(lambda: audit.waiting < 600)  # some are kept, some are on their way
            await asyncio.to_thread(postgres.kill)
        await asyncio.sleep(0)
    await until(lambda: not audit.healthy)
    assert not any(audit.lost.values())
    await asyncio.to_thread(postgres.start)
    await until(lambda: audit.healthy and not audit.waiting)
    await audit.close()
    assert [one[0] for one in postgres.rows()] == names
    assert not any(audit.lost.values())


async def test_rows_that_do_not_fit_the_memory_go_oldest_first_and_are_counted(
    tmp_path: Path,
) -> None:
    place = tmp_path / "audit"
    place.write_text("in the way")
    audit = AuditWriter(ParquetAudit(place), waiting=4, retry_seconds=0.01)
    audit.record(row("old", Action.BLOCKED))
    audit.record(row("older", Action.NOT_RUN))
    for number in range(4):
        audit.record(row(f"new{number}"))
    assert (audit.lost[Action.BLOCKED], audit.lost[Action.NOT_RUN]) == (1, 1)
    assert not audit.healthy
    await audit.start()
    await until(lambda: "is not a folder" in audit.problem)
    place.unlink()
    await until(lambda: audit.healthy)
    await audit.close()
    table = pl.read_parquet(place / "*" / "*.parquet")
    assert sorted(table["id"]) == [f"new{number}" for number in range(4)]
    assert sum(audit.lost.values()) == 2


async def test_what_a_dead_store_never_took_is_lost_with_a_number(tmp_path: Path) -> None:
    with socket.socket() as sock:  # bound, and nobody listens
        sock.bind(("127.0.0.1", 0))
        nobody = f"host=127.0.0.1 port={sock.getsockname()[1]} user=postgres password=hush-hush"
        audit = AuditWriter(PostgresAudit(nobody), retry_seconds=0.01)
        await audit.start()
        audit.record(row("a", Action.BLOCKED))
        audit.record(row("b"))
        await until(lambda: not audit.healthy)
        await audit.close()
    assert (audit.lost[Action.BLOCKED], audit.lost[Action.PASSED]) == (1, 1)
    assert "hush" not in audit.problem
    audit.record(row("c"))  # too late
    assert audit.lost[Action.PASSED] == 2
