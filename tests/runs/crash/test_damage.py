"""R14: damaged bytes are noticed, never half loaded; a damaged journal costs calls, not truth."""

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import CorruptRun, UnknownFormat, UserError
from evenhand.runs.store import RunReader, RunTape

from .checker import check_whole, started, visible
from .conftest import FIGURES, Runner, Unbroken
from .worker import Job, Point

NOTICED = (CorruptRun, UnknownFormat, UserError)
REFUSED = object()
Damage = Callable[[bytes, random.Random], bytes]


# -- ways to spoil a file ------------------------------------------------------------------------


def one_bit(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def one_byte(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def a_hole(data: bytes, rng: random.Random) -> bytes:
    """Zeros, as after a power cut: the length reached the disk, the bytes did not."""
    at = rng.randrange(len(data))
    return data[:at] + bytes(min(512, len(data) - at)) + data[at + 512 :]


def a_lost_stretch(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 900) :]


@contextmanager
def spoilt(path: Path, how: Damage, rng: random.Random) -> Iterator[bool]:
    """The file is damaged within; False if the damage changed nothing."""
    whole = path.read_bytes()
    harmed = how(whole, rng)
    path.write_bytes(harmed)
    try:
        yield harmed != whole
    finally:
        path.write_bytes(whole)


# -- committed files -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed_twice(unbroken: Unbroken, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run by three processes: ten parts and more, three openings."""
    folder = tmp_path_factory.mktemp("damage")
    job = replace(unbroken.job, out=str(folder / "run"), log=str(folder / "calls"))
    for nth in (300, 300):
        points = (Point(op="append", nth=nth),)
        assert Runner(replace(job, points=points)).wait() == -signal.SIGKILL
    Runner(job).finish()
    check_whole(folder / "run", job.items, unbroken.whole)
    return folder / "run"


def files_of(run: Path) -> dict[str, list[Path]]:
    kinds = {kind: visible(run / kind) for kind in ("results", "turns", "ledger")}
    return {"run.json": [run / "run.json"], **kinds}


def reads(run: Path) -> dict[str, Callable[[], object]]:
    """Every way to read a run."""
    return {
        "open": lambda: RunReader(run).record,
        "verify": lambda: RunReader(run).verify(),
        "results": lambda: RunReader(run).results().collect(),
        "turns": lambda: RunReader(run).turns().collect(),
        "totals": lambda: RunReader(run).totals(),
        "tape": lambda: RunTape(RunReader(run)).take(-1, "", 0),
    }


MUST_NOTICE = {
    "run.json": {"open", "verify", "results", "turns", "totals", "tape"},
    "ledger": {"verify", "results", "turns", "totals", "tape"},
    "results": {"verify", "results"},
    "turns": {"verify", "turns", "tape"},
}


@pytest.mark.slow
def test_five_hundred_truncations_and_flips_are_all_noticed_and_no_read_gives_other_rows(
    killed_twice: Path,
) -> None:
    rng, files = random.Random(14), files_of(killed_twice)
    assert len(files["results"]) >= 5
    whole = {name: read() for name, read in reads(killed_twice).items()}
    hits: Counter[str] = Counter()
    for number in range(500):
        kind = ("results", "turns", "ledger", "run.json")[number % 4]
        how = (one_bit, cut)[number // 4 % 2]
        path = rng.choice(files[kind])
        with spoilt(path, how, rng):
            found = {name: tried(read) for name, read in reads(killed_twice).items()}
            noticed = {name for name, rows in found.items() if rows is REFUSED}
            assert noticed >= MUST_NOTICE[kind], f"{number}: {how.__name__} in {path.name}"
            for name in whole.keys() - noticed:
                assert same(found[name], whole[name]), f"{name} of {path.name}"
        hits[f"{how.__name__} in {kind}"] += 1
    assert {name: read() for name, read in reads(killed_twice).items()}["verify"] == whole["verify"]
    assert len(hits) == 8
    FIGURES.update({"damages noticed": hits.total()})


def tried(read: Callable[[], object]) -> object:
    """What is read, or that it is refused."""
    try:
        return read()
    except NOTICED:
        return REFUSED


def refuses(read: Callable[[], object]) -> bool:
    return tried(read) is REFUSED


def same(one: object, other: object) -> bool:
    if isinstance(one, pl.DataFrame) and isinstance(other, pl.DataFrame):
        return one.equals(other)
    return one == other


@pytest.mark.parametrize("kind", ["results", "turns", "ledger", "run.json"])
def test_a_file_that_is_gone_or_swapped_with_its_neighbour_is_noticed(
    kind: str, killed_twice: Path
) -> None:
    path = files_of(killed_twice)[kind][0]
    whole = path.read_bytes()
    path.unlink()
    assert all(refuses(reads(killed_twice)[name]) for name in MUST_NOTICE[kind])
    if kind != "run.json":
        other = files_of(killed_twice)[kind][-1].read_bytes()
        path.write_bytes(other)
        assert all(refuses(reads(killed_twice)[name]) for name in MUST_NOTICE[kind])
    path.write_bytes(whole)
    assert RunReader(killed_twice).verify() > 0


def test_a_run_with_a_damaged_record_or_ledger_is_not_resumed(
    killed_twice: Path, unbroken: Unbroken, tmp_path: Path
) -> None:
    job = replace(unbroken.job, out=str(killed_twice), log=str(tmp_path / "calls"))
    rng = random.Random(5)
    for path in (killed_twice / "run.json", *visible(killed_twice / "ledger")[:2]):
        with spoilt(path, one_bit, rng):
            runner = Runner(job)
            assert runner.wait() == 3
            assert runner.end()["error"] in {error.__name__ for error in NOTICED}
    assert not started(Path(job.log)), "nothing was asked"


# -- journals ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken_off(unbroken: Unbroken, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A run killed twice, with finished and unfinished items in its journal."""
    folder = tmp_path_factory.mktemp("journal")
    job = replace(unbroken.job, out=str(folder / "run"), log=str(folder / "calls"), calls=64)
    for nth in (200, 350):
        points = (Point(op="append", nth=nth),)
        assert Runner(replace(job, points=points)).wait() == -signal.SIGKILL
    return job


@pytest.fixture(scope="module")
def unbroken_long(unbroken: Unbroken, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    """The unbroken run in which no item's budget ends."""
    folder = tmp_path_factory.mktemp("unbroken-long")
    job = replace(unbroken.job, out=str(folder / "run"), log=str(folder / "calls"), calls=64)
    Runner(job).finish()
    return Unbroken(job, check_whole(folder / "run", job.items), started(folder / "calls"))


@pytest.mark.slow
@pytest.mark.parametrize("how", [one_bit, one_byte, cut, a_hole, a_lost_stretch])
def test_a_resume_over_a_damaged_journal_ends_with_the_right_rows_and_no_others(
    how: Damage, broken_off: Job, unbroken_long: Unbroken, tmp_path: Path
) -> None:
    for seed in range(5):
        rng = random.Random(seed)
        out = tmp_path / f"run-{seed}"
        shutil.copytree(broken_off.out, out)
        journal = max(visible(out / "journal"), key=lambda path: path.stat().st_size)
        data = journal.read_bytes()
        for _ in range(rng.randrange(1, 6)):
            data = how(data, rng) or data
        journal.write_bytes(data)
        Runner(replace(broken_off, out=str(out), log=str(tmp_path / f"calls-{seed}"))).finish()
        check_whole(out, broken_off.items, unbroken_long.whole)
        FIGURES.update({"journals damaged": 1})


@pytest.mark.parametrize("before", [b"T", b"R"])
def test_a_line_that_changed_its_kind_is_left_out(
    before: bytes, broken_off: Job, unbroken_long: Unbroken, tmp_path: Path
) -> None:
    """The one byte of a line that its checksum does not cover."""
    out, after = tmp_path / "run", {b"T": b"R", b"R": b"T"}[before]
    shutil.copytree(broken_off.out, out)
    for journal in visible(out / "journal"):
        lines = journal.read_bytes().split(b"\n")
        changed = [after + line[1:] if line[:1] == before else line for line in lines]
        journal.write_bytes(b"\n".join(changed))
    Runner(replace(broken_off, out=str(out), log=str(tmp_path / "calls"))).finish()
    check_whole(out, broken_off.items, unbroken_long.whole)


def test_a_finished_item_that_lost_the_turn_in_which_its_budget_ended_gets_it_again(
    job: Job, unbroken: Unbroken
) -> None:
    """A call that the budget refused is a turn and no call, so the number of calls is too few."""
    assert Runner(replace(job, points=(Point(op="append", nth=500),))).wait() == -signal.SIGKILL
    lost = 0
    for journal in visible(Path(job.out) / "journal"):
        lines = journal.read_bytes().split(b"\n")
        kept = [
            line.replace(b'"error":"budget_spent"', b'"error":"budget_spenu"') for line in lines
        ]
        lost += sum(one != other for one, other in zip(lines, kept, strict=True))
        journal.write_bytes(b"\n".join(kept))
    assert lost > 0
    Runner(job).finish()
    check_whole(Path(job.out), job.items, unbroken.whole)
