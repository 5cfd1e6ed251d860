"""How long does it take to resume a run of 10⁸ rows, before and after its ledger is compacted, and
what do kills in the middle of the compaction cost?

    python -m bench.ledger [--entries 98000] [--places disk,s3] [--kills 12] [--killed 4196]

The ledger of such a run is made up, entry by entry as the kernel writes them, on a disk and in
moto's S3 server on loopback. Then the run is opened as a resumed command opens it. A smaller one is
compacted by processes that are killed (SIGKILL), at counted changes and at random moments, and read
after each kill.
"""

import argparse
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.findings_rows import record_of
from evenhand.runs.store import ledger
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.runs.store.ledger import LedgerEntry, LedgerWriter
from evenhand.runs.store.writer import OpenedRun

ROWS = 1_024  # of a part, as a share on Ray has them
OPENINGS = 5  # processes that wrote the run, one after the other
AT_ONCE = 200  # files that are removed between two points at which a process can die


# -- a made-up run -------------------------------------------------------------------------------


def files_of(entries: int) -> Iterator[tuple[str, bytes]]:
    """The record and the ledger of a run that five processes wrote."""
    parts = entries - OPENINGS
    record = record_of(parts * ROWS).to_bytes()
    yield "run.json", record
    run_sha256 = hashlib.sha256(record).hexdigest()
    token = number = 0
    for slot in range(entries):
        if slot % -(-entries // OPENINGS) == 0:
            token = slot
            made = LedgerEntry(slot=slot, token=slot, opened_by="bench", run_sha256=run_sha256)
        else:
            made = LedgerEntry(slot=slot, token=token, part=_part(token, number))
            number += 1
        yield ledger.entry_name(slot), ledger._encode(made)


def _part(token: int, number: int) -> ledger.CommittedPart:
    stem = f"part-{token:08d}-s{number * ROWS:012d}-{(number + 1) * ROWS:012d}-{number:08x}"
    files = [
        ledger.PartFile(
            name=f"{kind}/{stem}.parquet",
            sha256=hashlib.sha256(f"{kind} {number}".encode()).hexdigest(),
            bytes=268_000,
            rows=rows,
        )
        for kind, rows in (("results", ROWS), ("turns", 3_840))
    ]
    return ledger.CommittedPart(
        results=files[0],
        turns=files[1],
        positions=((number * ROWS, (number + 1) * ROWS),),
        answered=ROWS - 3,
        failed={"model_busy": 2, "unreadable": 1},
        changed=311,
        calls=3_840,
        prompt_tokens=1_536_000,
        completion_tokens=307_200,
        tokens_unknown=0,
    )


# -- places --------------------------------------------------------------------------------------


def put_on_disk(place: Path, entries: int) -> str:
    (place / "ledger").mkdir(parents=True)
    for name, data in files_of(entries):
        (place / name).write_bytes(data)
    return str(place)


def serve(port: int, entries: int, killed: int) -> None:
    """moto's server in this process, with both ledgers put straight into its memory."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends
    from moto.server import ThreadedMotoServer

    store = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    store.create_bucket("runs", "us-east-1")
    for run, count in (("long", entries), ("killed", killed)):
        for name, data in files_of(count):
            store.put_object("runs", f"{run}/{name}", data)
    ThreadedMotoServer("127.0.0.1", port, verbose=False).start()
    signal.pause()


def start_server(entries: int, killed: int) -> "subprocess.Popen[bytes]":
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_ACCESS_KEY_ID="bench",
        AWS_SECRET_ACCESS_KEY="bench",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
    )
    sizes = ["--entries", str(entries), "--killed", str(killed)]
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.ledger", "--serve", str(port), *sizes],
        stderr=subprocess.DEVNULL,
    )
    while server.poll() is None:
        try:
            urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"], timeout=60).close()
        except OSError:
            time.sleep(0.5)
        else:
            return server
    raise SystemExit("the server did not start")


# -- how long ------------------------------------------------------------------------------------


def timed(name: str, act: Callable[[], object]) -> float:
    began, used = time.monotonic(), time.process_time()
    act()
    took = time.monotonic() - began
    print(f"  {name}: {took:.1f} s, {time.process_time() - used:.1f} s of CPU", flush=True)
    return took


def done_in(folder: Folder) -> ledger.Positions:
    """What a resumed run has to know, as `OpenedRun` counts it."""
    done = ledger.Positions()
    for entry in ledger.entries(folder):
        for start, stop in entry.part.positions if entry.part else ():
            done.add_range(start, stop)
    return done


def one_by_one(folder: Folder) -> None:
    """As it was before there was compaction: each small file after the other."""
    done = ledger.Positions()
    for name in folder.names("ledger"):
        entry = ledger._decode(folder.read(name), name)
        for start, stop in entry.part.positions if entry.part else ():
            done.add_range(start, stop)


def resume_times(name: str, place: str, entries: int) -> dict[str, float]:
    folder = open_folder(place)
    rows = (entries - OPENINGS) * ROWS
    print(f"{name}: {entries:,} entries of {rows:,} rows, {len(ledger.names(folder)):,} files")
    found = {}
    if name == "disk":
        timed("one file after the other", lambda: one_by_one(folder))
    found["before"] = timed("before", lambda: done_in(folder))
    timed("compaction", lambda: LedgerWriter(folder, entries, "bench"))
    print(f"  {len(ledger.names(folder)):,} files to read, {len(folder.names('ledger')):,} in all")
    opened: list[OpenedRun] = []
    found["after"] = timed("after", lambda: opened.append(OpenedRun.open(place, record_of(rows))))
    if opened[0].committed != rows or any(opened[0].done.missing(0, rows)):
        raise SystemExit(f"{opened[0].committed:,} rows are known to be done, not {rows:,}")
    opened[0].release()
    return {f"{name}_{when}_s": seconds for when, seconds in found.items()}


# -- kills ---------------------------------------------------------------------------------------


def compact_and_die(place: str, changes: int) -> None:
    """Compact, and die before the change after so many: a file that is made or some that go."""
    folder = open_folder(place)
    left = [changes]

    def live() -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    class Mortal(type(folder)):  # type: ignore[misc]
        def create(self, name: str, data: bytes) -> None:
            live()
            super().create(name, data)
            live()

        def remove(self, *names: str) -> None:
            for start in range(0, len(names), AT_ONCE):
                super().remove(*names[start : start + AT_ONCE])
                live()

    mortal: Any = Mortal(Path(place) if "://" not in place else place)
    ledger.compact(mortal, ledger.listing(mortal))


def said_by(folder: Folder) -> tuple[list[int], str]:
    """The numbers of all entries, and one digest of their bytes. All are checked on the way."""
    found = [(ledger._decode(line, name), line) for _, name, line in ledger.lines(folder)]
    digest = hashlib.sha256(b"\n".join(line for _, line in found))
    return [entry.slot for entry, _ in found], digest.hexdigest()


def kills(name: str, place: str, entries: int, count: int, rng: random.Random) -> dict[str, int]:
    """Kill so many compactions and read the ledger after each; then let one finish."""
    folder = open_folder(place)
    _, whole = said_by(folder)
    seen = {"kills": 0, "lost": 0, "doubled": 0, "changed": 0}
    while True:
        counted = seen["kills"] % 2 == 0
        goes_on = seen["kills"] < count
        changes = rng.randrange(8) if counted and goes_on else -1
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.ledger", "--compact", place, "--changes", str(changes)],
            stdout=subprocess.PIPE,
        )
        if goes_on and not counted:
            assert child.stdout is not None
            child.stdout.readline()  # it has begun
            time.sleep(rng.uniform(0.0, 0.2 if name == "disk" else 2.0))
            child.kill()
        code = child.wait()
        slots, digest = said_by(folder)
        seen["lost"] += len(set(range(entries)) - set(slots))
        seen["doubled"] += len(slots) - len(set(slots))
        seen["changed"] += digest != whole
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise SystemExit(f"a compaction ended with code {code}")
        seen["kills"] += 1
    wanted = sum(divmod(entries, ledger.COMPACTED))
    if len(ledger.names(folder)) != wanted:
        raise SystemExit(f"{len(ledger.names(folder))} files are left to read, not {wanted}")
    print(f"  {name}: " + ", ".join(f"{one} {number}" for one, number in seen.items()), flush=True)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=98_000)
    parser.add_argument("--places", default="disk,s3")
    parser.add_argument("--kills", type=int, default=12, help="at each place")
    parser.add_argument("--killed", type=int, default=4_196, help="entries that kills meet")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--compact", help=argparse.SUPPRESS)
    parser.add_argument("--changes", type=int, default=-1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        return serve(asked.serve, asked.entries, asked.killed)
    if asked.compact:
        print("begun", flush=True)
        return compact_and_die(asked.compact, asked.changes)

    found: dict[str, float] = {}
    seen = {"kills": 0, "lost": 0, "doubled": 0, "changed": 0}
    rng = random.Random(22)
    with tempfile.TemporaryDirectory() as place:
        for name in asked.places.split(","):
            server = start_server(asked.entries, asked.killed) if name == "s3" else None
            try:
                long, killed = "s3://runs/long", "s3://runs/killed"
                if server is None:
                    long = put_on_disk(Path(place, "long"), asked.entries)
                    killed = put_on_disk(Path(place, "killed"), asked.killed)
                found |= resume_times(name, long, asked.entries)
                for one, number in kills(name, killed, asked.killed, asked.kills, rng).items():
                    seen[one] += number
            finally:
                if server is not None:
                    server.kill()
    figures = [f"{name}={seconds:.1f}" for name, seconds in found.items()]
    print("RESULT", *figures, *(f"{name}={number}" for name, number in seen.items()))
    return None


if __name__ == "__main__":
    main()
