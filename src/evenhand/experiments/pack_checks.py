"""A pack is checked: its bytes against its own list, its signature, its chain, its run folders, and
every file that follows from the runs by making it again.

A pack may come from a stranger. Nothing in it is run, and nothing is written outside of a fresh
folder that is gone afterwards.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from evenhand.errors import EvenhandError
from evenhand.experiments import signing
from evenhand.experiments.packs import drawn_by, evidence_in, listed, read
from evenhand.findings.evidence import (
    CERTIFICATES,
    EVIDENCE,
    FIGURES,
    PAGE,
    PUBLIC_KEY,
    SIGNATURE,
    Evidence,
    PackedFile,
)
from evenhand.findings.pack_check import Looked, PackCheck
from evenhand.findings.report import not_run
from evenhand.store import RunReader, archive
from evenhand.views.pack import figures, files_of

_OWN_KEY = (
    "signed by the key in the pack itself, which proves nothing about who: give the public key of "
    "whom you trust with --key"
)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A pack that lies unpacked in a folder."""

    pack: Path
    folder: Path
    data: bytes  # of its evidence.json
    says: Evidence
    found: dict[str, PackedFile]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def verify(pack: Path, *, key: Path | None = None, previous: Path | None = None) -> PackCheck:
    """Check a pack, with the public key of whom it should be from and the pack before it, where
    these are at hand."""
    trusted = None if key is None else signing.public_key(key)
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as place:
        folder = Path(place, "pack")
        folder.mkdir()
        data = evidence_in(pack, folder)
        opened = _Opened(pack, folder, data, Evidence.from_bytes(data), listed(folder))
        files = _files(opened)
        looked = (
            files,
            _signature(opened, trusted),
            _chain(opened, previous),
            *_runs_and_figures(opened, intact=files.state == "holds"),
        )
    return PackCheck(pack=str(pack), title=opened.says.title, sha256=opened.sha256, looked=looked)


def _looked(name: str, seen: list[str], holds: str, differs: str) -> Looked:
    if seen:
        return Looked(name=name, state="differs", says=differs, seen=tuple(seen))
    return Looked(name=name, state="holds", says=holds)


# -- bytes -----------------------------------------------------------------------------------------


def _files(opened: _Opened) -> Looked:
    """Hold every file against the list, and the zip file itself against what it should be."""
    said, found = opened.says.files, opened.found
    seen = [f"missing: {name}" for name in said if name not in found]
    seen += [f"not listed: {name}" for name in found if name not in said]
    seen += [f"changed: {name}" for name, file in found.items() if said.get(name, file) != file]
    if not seen and not archive.is_as_written(opened.pack, opened.folder):
        seen.append("the zip file has bytes that belong to none of its files, or other headers")
    holds = f"{len(said):,} files, each as listed in {EVIDENCE}"
    return _looked("files", seen, holds, "they are not as listed")


def _signature(opened: _Opened, trusted: bytes | None) -> Looked:
    files = [opened.folder / name for name in (SIGNATURE, PUBLIC_KEY)]
    there = [path.is_file() for path in files]
    if opened.says.signed != all(there) or any(there) != all(there):
        says = "it was taken away, or put there later"
        return Looked(name="signature", state="differs", says=says)
    if not all(there):
        if trusted is not None:
            return Looked(name="signature", state="differs", says="there is none")
        says = "there is none: the pack may have been made anew by anybody"
        return Looked(name="signature", state="holds", says=says)
    if not signing.installed():
        return Looked(name="signature", state="open", says=f"not checked: {signing.INSTALL}")
    signature, own = (path.read_bytes() for path in files)
    if not signing.holds(opened.data, signing.Signed(signature, trusted or own)):
        whose = "in the pack" if trusted is None else "given"
        says = f"it is not that of the key {whose} over this {EVIDENCE}"
        return Looked(name="signature", state="differs", says=says)
    says = _OWN_KEY if trusted is None else f"that of the key given, over {EVIDENCE}"
    return Looked(name="signature", state="holds", says=says)


def _chain(opened: _Opened, previous: Path | None) -> Looked:
    before = opened.says.previous
    if before is None:
        if previous is None:
            return Looked(name="chain", state="holds", says="it names no pack before it")
        return Looked(name="chain", state="differs", says="it names no pack before it")
    named = f"“{before.title}”, {before.sha256}"
    if previous is None:
        says = f"it names {named}; --previous PACK checks it"
        return Looked(name="chain", state="holds", says=says)
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as place:
        sha256 = hashlib.sha256(evidence_in(previous, Path(place))).hexdigest()
    if sha256 != before.sha256:
        return Looked(name="chain", state="differs", says=f"it names {named}; given is {sha256}")
    return Looked(name="chain", state="holds", says=f"it follows {named}")


# -- runs and figures ------------------------------------------------------------------------------


def _runs_and_figures(opened: _Opened, *, intact: bool) -> Iterator[Looked]:
    """Look at runs and figures, where they are there and the files are those of the list."""
    says = opened.says
    if says.light:
        why = "the run folders are not in the pack, only their hashes: replay.sh says what to do"
        yield Looked(name="runs", state="open", says=why)
        yield Looked(name="figures", state="open", says="not repeated: there are no runs")
        return
    with contextlib.chdir(opened.folder):
        runs = _runs(says)
        yield runs
        yield (
            _figures(opened)
            if intact and runs.state == "holds"
            else Looked(
                name="figures", state="open", says="not repeated: the files are not as they were"
            )
        )


def _runs(says: Evidence) -> Looked:
    """Hold every run folder against its own checksums, and against what the pack says of it."""
    seen = []
    for said in says.runs:
        try:
            run = RunReader(said.run)
            run.verify()
            if run.digests() != said.sha256 or not_run(run) != said.not_run:
                seen.append(f"{said.run} is another run than {EVIDENCE} says")
        except (EvenhandError, OSError, ValueError) as error:
            seen.append(f"{said.run}: {error}")
    unfinished = f"; not finished: {', '.join(says.unfinished)}" if says.unfinished else ""
    return _looked("runs", seen, f"{len(says.runs)}, every answer intact{unfinished}", "damaged")


def _figures(opened: _Opened) -> Looked:
    """Make every file that follows from the runs again, and hold it against the packed one."""
    says, here = opened.says, version("evenhand")
    if says.evenhand != here:
        why = f"not repeated: that needs evenhand {says.evenhand}, and here is {here}"
        return Looked(name="figures", state="open", says=why)
    prices = None if says.prices is None else says.prices.prices()
    try:
        runs = [one.run for one in says.runs]
        found = read(runs, says.title, prices, given=says.certificates)
        again = files_of(found, says)
    except Exception as error:  # what a stranger's tables can break is not known beforehand
        why = f"they cannot be repeated: {type(error).__name__}: {error}"
        return Looked(name="figures", state="differs", says=why)
    redrawn = drawn_by() == says.charts
    compared = {name: data for name, data in again.items() if redrawn or name != PAGE}
    seen = [line for name, data in compared.items() for line in _differs(name, data)]
    made = [name for name in opened.found if not name.startswith(("runs/", f"{CERTIFICATES}/"))]
    seen += [f"{name}: it follows from no run" for name in made if name not in again]
    if not seen and not redrawn:
        drawn = says.charts or "nothing"
        why = f"{PAGE} was drawn by {drawn}, and here is {drawn_by() or 'nothing'}: not compared"
        return Looked(name="figures", state="open", says=why)
    repeated = f"{says.figures:,} figures in {FIGURES}, and {len(compared):,} files made of them"
    return _looked("figures", seen, f"{repeated}, repeated from the runs", "not those of the runs")


def _differs(name: str, data: bytes) -> Iterator[str]:
    """Say what of a file differs from what the runs give: in JSON each place, else that it does."""
    path = Path(name)
    held = path.read_bytes() if path.is_file() else b""
    if held == data:
        return
    if path.suffix != ".json":
        yield f"{name} is not what its runs give"
        return
    packed: Any = _json(held)
    for line in figures.differences(packed, _json(data)):
        yield f"{name}: {line}"


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
