"""A pack is checked: its bytes against its own list, its signature, its chain, its run folders, and
every file that follows from the runs by making it again.

A pack may come from a stranger. Nothing in it is run, and nothing is written outside of a fresh
folder that is gone afterwards.
"""

import contextlib
import hashlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.experiments import signing
from evenhand.experiments.packs import (
    Wishes,
    about_of,
    drawn_by,
    evidence_in,
    held_of,
    listed,
    packed_run,
    read,
)
from evenhand.findings.pack_check import Looked, PackCheck
from evenhand.findings.pack_manifest import (
    CERTIFICATES,
    EVIDENCE,
    FIGURES,
    PAGE,
    PUBLIC_KEY,
    SIGNATURE,
    Evidence,
    PackedFile,
)
from evenhand.store import RunReader, archive
from evenhand.views.pack import figures, files_of

_OWN_KEY = (
    "signed by the key in the pack itself, which proves nothing about who: give the public key of "
    "whom you trust with --key"
)
# What a stranger's tables can break is not known beforehand; a panic of polars is no Exception.
_BROKEN = (Exception, pl.exceptions.PanicException)
_PICTURE = re.compile(rb'src="data:image/svg[^"]*"')


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
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as workdir:
        folder = Path(workdir, "pack")
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


def _looked(name: str, problems: list[str], holds: str, differs: str) -> Looked:
    if problems:
        return Looked(name=name, state="differs", says=differs, seen=tuple(problems))
    return Looked(name=name, state="holds", says=holds)


# -- bytes -----------------------------------------------------------------------------------------


def _files(opened: _Opened) -> Looked:
    """Hold every file against the list, and the zip file itself against what it should be."""
    expected, actual = opened.says.files, opened.found
    problems = [f"missing: {name}" for name in expected if name not in actual]
    problems += [f"not listed: {name}" for name in actual if name not in expected]
    problems += [
        f"changed: {name}" for name, file in actual.items() if expected.get(name, file) != file
    ]
    if not opened.says.certificates:
        extra = [name for name in actual if name.startswith(f"{CERTIFICATES}/")]
        problems += [f"no certificates were given: {name}" for name in extra]
    if not problems and not archive.is_as_written(opened.pack, opened.folder):
        problems.append("the zip file has bytes that belong to none of its files, or other headers")
    holds = f"{len(expected):,} files, each as listed in {EVIDENCE}"
    return _looked("files", problems, holds, "they are not as listed")


def _signature(opened: _Opened, trusted: bytes | None) -> Looked:
    files = [opened.folder / name for name in (SIGNATURE, PUBLIC_KEY)]
    there = [path.is_file() for path in files]
    if opened.says.signed != all(there) or any(there) != all(there):
        statement = "it was taken away, or put there later"
        return Looked(name="signature", state="differs", says=statement)
    if not all(there):
        if trusted is not None:
            return Looked(name="signature", state="differs", says="there is none")
        statement = "there is none: the pack may have been made anew by anybody"
        return Looked(name="signature", state="holds", says=statement)
    if not signing.installed():
        return Looked(name="signature", state="open", says=f"not checked: {signing.INSTALL}")
    signature, packed_key = (path.read_bytes() for path in files)
    try:
        plain = signing.public_key(files[1]) == packed_key
    except UserError:
        plain = False
    if not plain or trusted not in (None, packed_key):
        statement = f"{PUBLIC_KEY} is " + (
            "another key than the one given" if plain else "no plain key"
        )
        return Looked(name="signature", state="differs", says=statement)
    if not signing.holds(opened.data, signing.Signed(signature, trusted or packed_key)):
        whose = "in the pack" if trusted is None else "given"
        statement = f"it is not that of the key {whose} over this {EVIDENCE}"
        return Looked(name="signature", state="differs", says=statement)
    statement = _OWN_KEY if trusted is None else f"that of the key given, over {EVIDENCE}"
    return Looked(name="signature", state="holds", says=statement)


def _chain(opened: _Opened, previous: Path | None) -> Looked:
    before = opened.says.previous
    if before is None:
        if previous is None:
            return Looked(name="chain", state="holds", says="it names no pack before it")
        return Looked(name="chain", state="differs", says="it names no pack before it")
    predecessor = f"“{before.title}”, {before.sha256}"
    if previous is None:
        statement = f"it names {predecessor}; --previous PACK checks it"
        return Looked(name="chain", state="holds", says=statement)
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as workdir:
        data = evidence_in(previous, Path(workdir))
        intact = listed(Path(workdir)) == Evidence.from_bytes(data).files
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != before.sha256:
        return Looked(
            name="chain", state="differs", says=f"it names {predecessor}; given is {sha256}"
        )
    if not intact:
        statement = (
            f"it names {predecessor}; the pack given has that {EVIDENCE}, and not the files it "
            "lists"
        )
        return Looked(name="chain", state="differs", says=statement)
    return Looked(name="chain", state="holds", says=f"it follows {predecessor}")


# -- runs and figures ------------------------------------------------------------------------------


def _runs_and_figures(opened: _Opened, *, intact: bool) -> Iterator[Looked]:
    """Look at runs and figures, where they are there and the files are those of the list."""
    evidence = opened.says
    if evidence.light:
        why = "the run folders are not in the pack, only their hashes: replay.sh says what to do"
        hashes = {f"{run.run}.sha256" for run in evidence.runs}
        there = {name for name in opened.found if name.startswith("runs/")}
        problems = [f"of no run: {name}" for name in sorted(there - hashes)]
        problems += [f"missing: {name}" for name in sorted(hashes - there)]
        if problems:
            yield _looked("runs", problems, "", "a light pack has the hashes of its runs alone")
        else:
            yield Looked(name="runs", state="open", says=why)
        yield Looked(name="figures", state="open", says="not repeated: there are no runs")
        return
    with contextlib.chdir(opened.folder):
        runs = _runs(opened)
        yield runs
        yield (
            _figures(opened)
            if intact and runs.state == "holds"
            else Looked(
                name="figures", state="open", says="not repeated: the files are not as they were"
            )
        )


def _runs(opened: _Opened) -> Looked:
    """Hold every run folder against its own checksums and against what the pack says of it; and
    nothing but the runs lies among them."""
    evidence = opened.says
    problems: list[str] = []
    held: set[str] = set()
    for packed in evidence.runs:
        try:
            run = RunReader(packed.run)
            run.verify()
            held |= {f"{packed.run}/{name}" for name in held_of(run)}
            if packed_run(run, packed.left_out) != packed:
                problems.append(f"{packed.run} is another run than {EVIDENCE} says")
        except _BROKEN as error:
            problems.append(f"{packed.run}: {error}")
    if evidence.unfinished != [packed.run for packed in evidence.runs if packed.not_run]:
        problems.append(f"{EVIDENCE} names other runs as not finished than those that are not")
    if not problems:
        there = [name for name in opened.found if name.startswith("runs/")]
        problems += [f"{name}: it belongs to no run" for name in there if name not in held]
    unfinished = f"; not finished: {', '.join(evidence.unfinished)}" if evidence.unfinished else ""
    return _looked(
        "runs", problems, f"{len(evidence.runs)}, every answer intact{unfinished}", "damaged"
    )


def _figures(opened: _Opened) -> Looked:
    """Make every file that follows from the runs again, and hold it against the packed one."""
    evidence, here = opened.says, version("evenhand")
    if evidence.evenhand != here:
        why = f"not repeated: that needs evenhand {evidence.evenhand}, and here is {here}"
        return Looked(name="figures", state="open", says=why)
    try:
        about, again = _repeated(evidence)
    except _BROKEN as error:
        why = f"they cannot be repeated: {type(error).__name__}: {error}"
        return Looked(name="figures", state="differs", says=why)
    redrawn = drawn_by() == evidence.charts
    compared = {name: data for name, data in again.items() if redrawn or name != PAGE}
    stated = figures.differences(evidence.model_dump(), about.model_dump())
    problems = [f"{EVIDENCE}: {line}" for line in stated]
    problems += [line for name, data in compared.items() for line in _differs(name, data)]
    derived = [name for name in opened.found if not name.startswith(("runs/", f"{CERTIFICATES}/"))]
    problems += [f"{name}: it follows from no run" for name in derived if name not in again]
    if not redrawn and _reworded(_held(PAGE), again[PAGE]):
        problems.append(f"{PAGE} is not what its runs give, also without its pictures")
    if not problems and not redrawn:
        library = evidence.charts or "nothing"
        why = f"{PAGE} was drawn by {library}, and here is {drawn_by() or 'nothing'}: not compared"
        return Looked(name="figures", state="open", says=why)
    repeated = (
        f"{evidence.figures:,} figures in {FIGURES}, and {len(compared):,} files made of them"
    )
    return _looked(
        "figures", problems, f"{repeated}, repeated from the runs", "not those of the runs"
    )


def _repeated(evidence: Evidence) -> tuple[Evidence, dict[str, bytes]]:
    """Make what the pack says of itself and its files again, from the runs and from what only its
    maker knew: the title, the prices, and whether it was signed."""
    prices = None if evidence.prices is None else evidence.prices.prices()
    dossier = read(
        [run.run for run in evidence.runs], evidence.title, prices, given=evidence.certificates
    )
    wishes = Wishes(
        title=evidence.title,
        frameworks=tuple(evidence.frameworks),
        prices=prices,
        certificates=Path(CERTIFICATES) if evidence.certificates else None,
    )
    about = about_of(
        dossier, {run.run: run.left_out for run in evidence.runs}, wishes, evidence.previous
    )
    facts = {"files": evidence.files, "signed": evidence.signed, "charts": evidence.charts}
    about = about.model_copy(update=facts)
    return about, files_of(dossier, about)


def _reworded(held: bytes, again: bytes) -> bool:
    """Say whether a page that was drawn by other versions differs in more than its pictures. One
    that has more or fewer of them cannot be told from one that has them in another size."""
    (words, pictures), (others, redrawn) = (_PICTURE.subn(b"", page) for page in (held, again))
    return pictures == redrawn and words != others


def _differs(name: str, data: bytes) -> Iterator[str]:
    """Say what of a file differs from what the runs give: in JSON each place, else that it does."""
    held = _held(name)
    if held == data:
        return
    if not name.endswith(".json"):
        yield f"{name} is not what its runs give"
        return
    packed: Any = _json(held)
    for line in figures.differences(packed, _json(data)):
        yield f"{name}: {line}"
    if not figures.is_as_printed(held, packed):
        yield f"{name}: it is not written as evenhand writes it"


def _held(name: str) -> bytes:
    return Path(name).read_bytes() if Path(name).is_file() else b""


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
