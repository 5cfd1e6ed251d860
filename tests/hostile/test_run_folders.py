"""T15: a run folder from a stranger. Nothing outside it is read, written or removed."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.core.errors import CorruptRun, EvenhandError, StoreError
from evenhand.experiments.exchange import export
from evenhand.experiments.run_folders import list_runs
from evenhand.instruments import DataFolder
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import LocalFolder
from evenhand.runs.store.spending import spent_on
from tests.errors import assert_names, raises_naming

from .small_runs import MARK, Canary, plan, ran

NOWHERE = DataFolder(local=None, cache=Path("/nowhere"))

JOURNAL = "journal/00000000-000009.log"  # older than any that a resumed run writes
PLACES = (
    "run.json", "lock", "status.json", "journal", "ledger", "results", "turns",
    "ledger/00000000.json", "ledger/00000001.json", "ledger/00000002.json", "ledger/00000003.json",
    JOURNAL, "journal/00000002-000000.log", "journal/00000002-000001.log",
    "results/part-00000000-000000.parquet", "turns/part-00000000-000000.parquet",
    "results/part-00000002-000000.parquet", "turns/part-00000002-000000.parquet",
    ".",
)  # fmt: skip
Plant = Callable[[Path, Path], None]  # the place, the canary's root


def _socket(place: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(place))  # a socket's name must be short


KINDS: dict[str, Plant] = {
    "a link to a file": lambda place, canary: place.symlink_to(canary / "keys"),
    "a link to a folder": lambda place, canary: place.symlink_to(canary / "docs"),
    "a link to nothing": lambda place, canary: place.symlink_to(canary / "new"),
    "a link to a pipe": lambda place, canary: place.symlink_to(canary / "pipe"),
    "a link to /dev/zero": lambda place, _: place.symlink_to("/dev/zero"),
    "a relative link": lambda place, canary: place.symlink_to(
        os.path.relpath(canary / "docs", place.parent)
    ),
    "a second name of a file": lambda place, canary: place.hardlink_to(canary / "keys"),
    "a pipe": lambda place, _: os.mkfifo(place),
    "a socket": _socket,
    "a device": lambda place, _: os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "a folder": lambda place, _: place.mkdir(),
}
NAMES = (
    "../canary/keys", "../../canary/keys", "/etc/passwd", "/dev/zero", "/dev/stdin", "", ".", "..",
    "results/..", "results/../../canary/keys", "results/part-/../../canary/keys", "~/keys",
    "results/part-a.parquet/../../../canary/keys", "results//etc/passwd", "results/part-..parquet",
    "results\\part-a.parquet", "results/part-a.parquet\n", "results/part-a.parquet\0", "run.json",
    "results/part-*.parquet", "results/part-[0-9].parquet", "results/part-?.parquet", "lock",
    "results/part-a.parquet ", " results/part-a.parquet", "RESULTS/part-a.parquet", "results/part-",
    "results/part-é.parquet", "results/part-\u202e.parquet", "results/.part-a.parquet.tmp",
    "ledger/00000000.json", "journal/00000000-000000.log", "file:///etc/passwd", "s3://bucket/key",
    "results/part-" + "a" * 5000 + "/", "results/part-a.parquet/", "./results/part-a.parquet",
    "results/./part-a.parquet", "results/part-%2e%2e.parquet", "con", "results/part-$(id).parquet",
)  # fmt: skip
STRANGERS = (
    "00-notes.txt", "0000-taxes.pdf", "#draft", "00000000-000000.log.bak", "00000000-000000.LOG",
    "00000000-00000.log", "0000000-000000.log", "00000000.log", ".hidden", "a b.log", "-rf",
    "00000000-s000000000000-000000000009-xyzxyzxy-000000.log", "00000000-000000.log.000000",
    "٠٠٠٠٠٠٠٠-000000.log", "00000000-000000.log~", "0", "00000000-000000.log\n", "Ω",
)  # fmt: skip


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one committed part and half of its items to go; the journal has one of them."""
    out = tmp_path_factory.mktemp("begun") / "run"
    ran(out, only={0, 1})
    entry = out / "ledger" / "00000001.json"
    assert entry.exists()
    assert RunReader(out).totals().items == 2
    return out


def use(out: Path) -> None:
    """Do all that is done with a run folder; only words of evenhand's own may come of it."""
    found: list[str] = []
    for act in (
        lambda: RunReader(out).verify(),
        lambda: found.extend(str(rows) for rows in RunReader(out).result_batches(["text"])),
        lambda: spent_on(out, None),
        lambda: ran(out),
        lambda: LocalFolder(out).lock(steal_lock=True).release(),
        lambda: found.append(LocalFolder(out).read("status.json").decode()),
    ):
        with contextlib.suppress(EvenhandError, FileNotFoundError):
            act()
    assert MARK not in "".join(found)


def test_whatever_lies_in_a_run_folder_leads_to_nothing_outside_it(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    canary, tried = Canary(tmp_path / "canary"), 0
    for kind, plant in KINDS.items():
        for number, place in enumerate(PLACES):
            out = tmp_path / f"{kind} {number}" / "run"
            shutil.copytree(begun, out)
            planted = out / place
            if planted.is_dir():
                shutil.rmtree(planted)
            planted.unlink(missing_ok=True)
            try:
                plant(planted, canary.root)
            except PermissionError:
                continue  # devices are root's
            with canary.watching():
                use(out)
            canary.check()
            tried += 1
    assert tried >= 190


def signed(body: dict[str, object]) -> bytes:
    """A ledger entry with the checksum that a stranger can compute as well as we."""
    check = hashlib.sha256(
        json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()[:16]
    return json.dumps({**body, "check": check}).encode()


def entry_of(out: Path) -> dict[str, object]:
    body: dict[str, object] = json.loads((out / "ledger/00000001.json").read_bytes())
    assert json.loads(signed({k: v for k, v in body.items() if k != "check"})) == body
    del body["check"]
    return body


@pytest.mark.parametrize("file", ["results", "turns"])
def test_a_ledger_names_no_file_but_its_own_parts(file: str, begun: Path, tmp_path: Path) -> None:
    canary = Canary(tmp_path / "canary")
    out = tmp_path / "run"
    shutil.copytree(begun, out)
    for name in NAMES:
        body = entry_of(begun)
        body["part"][file]["name"] = name  # type: ignore[index]
        (out / "ledger/00000001.json").write_bytes(signed(body))
        with canary.watching():
            for act in (lambda: RunReader(out).verify(), lambda: ran(out)):
                with raises_naming(CorruptRun, "00000001.json"):
                    act()
        canary.check()


@pytest.mark.parametrize("span", [[0, 2**45], [-5, 2], [3, 1], [4, 5]])
def test_positions_that_the_plan_does_not_have_are_refused(
    span: list[int], begun: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    shutil.copytree(begun, out)
    body = entry_of(out)
    body["part"]["positions"] = [span]  # type: ignore[index]
    (out / "ledger/00000001.json").write_bytes(signed(body))
    with raises_naming(CorruptRun, "4 items"):
        ran(out)
    spent_on(out, None)  # counts without a bit for each position


def test_only_journals_of_our_own_form_are_read_and_removed(begun: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(begun, out)
    (out / "journal").mkdir(exist_ok=True)
    (out / JOURNAL).write_bytes(b"T 00000000 {}\n")
    for name in STRANGERS:
        (out / "journal" / name).write_text("precious")
    ran(out)
    assert RunReader(out).totals().items == 4
    assert not (out / JOURNAL).exists()
    for name in STRANGERS:
        assert (out / "journal" / name).read_text() == "precious"


def test_a_journal_of_nonsense_with_right_checksums_spoils_nothing(
    begun: Path, tmp_path: Path
) -> None:
    rows = (
        '{"position": 1000000000000000, "calls": 0}', '{"position": "x", "calls": 0}', "[]", "7",
        '{"position": -1, "calls": 0}', '{"position": 2, "calls": "x"}', '{"position": true}',
        '{"position": 3, "request": [], "occurrence": {}}', '{"position": 2.5, "calls": 0}',
    )  # fmt: skip
    for kind in "TR":
        out = tmp_path / kind
        shutil.copytree(begun, out)
        lines = [f"{kind} {zlib.crc32(row.encode()):08x} {row}\n" for row in rows]
        (out / JOURNAL).parent.mkdir(exist_ok=True)
        (out / JOURNAL).write_text("".join(lines))
        ran(out)
        assert RunReader(out).totals().items == 4


def test_another_run_is_refused_before_anything_of_it_is_opened_for_writing(
    begun: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    shutil.copytree(begun, out)
    (out / "lock").write_text("process 1\n")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with raises_naming(EvenhandError, out, "items 4", "items 5"):
        ran(out, plan(5))
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_run_whose_name_is_a_pattern_shows_its_own_rows(tmp_path: Path) -> None:
    """`a[1]` matches a1, `c*` matches both, `x?` and `[z]` match nothing there."""
    names = ("a1", "a[1]", "cc", "c*", "x?", "[z]")
    for name in names:
        ran(tmp_path / name, plan(word=name))
    for name in names:
        reader = RunReader(tmp_path / name)
        assert set(reader.results().collect()["text"]) == {f"A nurse is {name}."}
        assert len(reader.turns().collect()) == 4
        export(str(tmp_path / name), tmp_path / f"{name}.parquet", NOWHERE)
        exported = pl.read_parquet(io.BytesIO((tmp_path / f"{name}.parquet").read_bytes()))
        assert set(exported["text"]) == {f"A nurse is {name}."}


def test_a_run_is_for_its_owner_alone_and_an_export_as_any_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        ran(tmp_path / "runs" / "first")
        export(str(tmp_path / "runs" / "first"), tmp_path / "answers.jsonl", NOWHERE)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "runs").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "answers.jsonl").stat().st_mode) == 0o644


def test_a_file_system_without_hard_links_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as Linux says it on exFAT

    monkeypatch.setattr(os, "link", refused)
    with raises_naming(StoreError, tmp_path, "hard links", "exFAT"):
        LocalFolder(tmp_path / "run").create("run.json", b"{}")
    assert not any((tmp_path / "run").iterdir())


def test_windows_is_told_at_the_first_run_folder_and_in_words() -> None:
    """As there: no fcntl. Importing goes well, so that help and version are shown."""
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "from evenhand.core.errors import UserError\n"
        "from evenhand.runs.store.folder import open_folder\n"
        "try: open_folder('runs/first')\n"
        "except UserError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert_names(done.stdout, "Windows", "WSL 2")


def test_a_run_folder_that_nobody_touched_is_resumed_by_the_same_steps(
    begun: Path, tmp_path: Path
) -> None:
    """So what the planted things were refused by is not these steps themselves."""
    shutil.copytree(begun, tmp_path / "run")
    use(tmp_path / "run")
    assert RunReader(tmp_path / "run").totals().items == 4


def test_a_record_that_lacks_what_every_reader_asks_for_hides_no_other_run(tmp_path: Path) -> None:
    """Without a ledger nothing vouches for run.json; one such folder ended `runs list`."""
    ran(tmp_path / "good")
    good = json.loads((tmp_path / "good/run.json").read_bytes())
    spoilt: dict[str, dict[str, Any]] = {
        "method": {"method": {}}, "settings": {"method": {"name": "default"}},
        "name": {"method": {**good["method"], "name": ["default"]}},
        "cast": {"cast": {}}, "model": {"cast": {"default": "m"}},
        "source": {"source": {}}, "items": {"source": {**good["source"], "items": -1}},
    }  # fmt: skip
    for name, change in spoilt.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({**good, **change}))
        with raises_naming(CorruptRun, f"{name}/run.json"):
            RunReader(tmp_path / name)
    lines = {Path(line.run).name: line for line in list_runs(tmp_path)}
    assert lines["good"].done == 4
    assert all("names no" in str(lines[name].problem) for name in spoilt)
