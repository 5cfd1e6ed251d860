"""What lies in a run folder: checked, or refused whole."""

import json
from typing import Any

from hypothesis import strategies as st

from evenhand.runs.store.journal import Recovered
from evenhand.runs.store.run_record import RunRecord

from . import generators, oracles, shapes, store_oracles
from .decisions import Decisions
from .store_oracles import JOURNAL_FILE, InMemory
from .volume import DECISIONS, fuzz

_NAMES = st.dictionaries(st.text("ab@/", max_size=4), st.text("0fé", max_size=4), max_size=3)
_KINDS = st.sampled_from([b"T", b"R", b"X", b""])


@fuzz(3_000, DECISIONS)
def test_a_spoilt_run_record_is_refused_or_read_as_the_second_reader_reads_it(
    drawn: bytes,
) -> bool:
    return oracles.run_record(generators.run_record(Decisions(drawn)))


@fuzz(1_000, st.tuples(_NAMES, _NAMES, st.none() | st.integers(0, 2**31)), one_sided=True)
def test_a_run_record_comes_back_as_it_was_written(
    drawn: tuple[dict[str, str], dict[str, str], int | None],
) -> bool:
    names, more, seed = drawn
    record = RunRecord(
        method={"name": "m", "settings": dict(names)},
        prompts=names,
        cast=dict(more),
        source={},
        limits={"seconds": 600.0},
        seed=seed,
        created="2026-01-01T00:00:00Z",
        versions=more,
    )
    assert RunRecord.from_bytes(record.to_bytes(), "run") == record
    return oracles.run_record(record.to_bytes())


@fuzz(3_000, DECISIONS)
def test_a_ledger_entry_is_read_only_if_its_checksum_fits_it(drawn: bytes) -> bool:
    return store_oracles.ledger_entry(generators.ledger_entry(Decisions(drawn)))


@fuzz(2_000, DECISIONS, one_sided=True)
def test_one_flipped_bit_anywhere_in_a_ledger_entry_is_noticed(drawn: bytes) -> bool:
    decide = Decisions(drawn)
    body: dict[str, Any] = {"slot": 0, "token": 0, "opened_by": "process 71"}
    whole = json.dumps({**body, "check": shapes.signature(body)}).encode()
    assert store_oracles.ledger_entry(whole)
    at = decide.place(len(whole) - 1)
    flipped = whole[:at] + bytes([whole[at] ^ 1 << decide.below(8)]) + whole[at + 1 :]
    assert not store_oracles.ledger_entry(flipped)
    return False


@fuzz(3_000, DECISIONS)
def test_a_damaged_journal_gives_only_rows_that_were_written(drawn: bytes) -> bool:
    written, data = generators.journal(Decisions(drawn))
    found = store_oracles.journal(data)
    assert {row for kept in found.turns.values() for row in kept.values()} <= written
    return found.damaged == 0


@fuzz(1_500, st.tuples(_KINDS, st.binary(max_size=20)), one_sided=True)
def test_no_row_that_is_not_a_row_surprises_the_journal(drawn: tuple[bytes, bytes]) -> bool:
    kind, row = drawn
    line = shapes.framed(kind, row.replace(b"\n", b""))
    found = Recovered.read(InMemory(JOURNAL_FILE, line), lambda _: True)
    assert found.damaged == 1
    good = shapes.framed(b"T", b'{"position":1,"request":"r","occurrence":0}')
    after = Recovered.read(InMemory(JOURNAL_FILE, line + good), lambda _: True)
    assert after.turns == {1: {("r", 0): good[11:-1]}}
    return False
