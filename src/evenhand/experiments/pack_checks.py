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
    if not opened.says.certificates:
        given = [name for name in found if name.startswith(f"{CERTIFICATES}/")]
        seen += [f"no certificates were given: {name}" for name in given]
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
    try:
        plain = signing.public_key(files[1]) == own
    except UserError:
        plain = False
    if not plain or trusted not in (None, own):
        says = f"{PUBLIC_KEY} is " + ("another key than the one given" if plain else "no plain key")
        return Looked(name="signature", state="differs", says=says)
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
        data = evidence_in(previous, Path(place))
        intact = listed(Path(place)) == Evidence.from_bytes(data).files
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != before.sha256:
        return Looked(name="chain", state="differs", says=f"it names {named}; given is {sha256}")
    if not intact:
        says = f"it names {named}; the pack given has that {EVIDENCE}, and not the files it lists"
        return Looked(name="chain", state="differs", says=says)
    return Looked(name="chain", state="holds", says=f"it follows {named}")


# -- runs and figures ------------------------------------------------------------------------------


def _runs_and_figures(opened: _Opened, *, intact: bool) -> Iterator[Looked]:
    """Look at runs and figures, where they are there and the files are those of the list."""
    says = opened.says
    if says.light:
        why = "the run folders are not in the pack, only their hashes: replay.sh says what to do"
        hashes = {f"{one.run}.sha256" for one in says.runs}
        there = {name for name in opened.found if name.startswith("runs/")}
        seen = [f"of no run: {name}" for name in sorted(there - hashes)]
        seen += [f"missing: {name}" for name in sorted(hashes - there)]
        if seen:
            yield _looked("runs", seen, "", "a light pack has the hashes of its runs alone")
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
    says = opened.says
    seen: list[str] = []
    held: set[str] = set()
    for said in says.runs:
        try:
            run = RunReader(said.run)
            run.verify()
            held |= {f"{said.run}/{name}" for name in held_of(run)}
            if packed_run(run, said.left_out) != said:
                seen.append(f"{said.run} is another run than {EVIDENCE} says")
        except _BROKEN as error:
            seen.append(f"{said.run}: {error}")
    if says.unfinished != [one.run for one in says.runs if one.not_run]:
        seen.append(f"{EVIDENCE} names other runs as not finished than those that are not")
    if not seen:
        there = [name for name in opened.found if name.startswith("runs/")]
        seen += [f"{name}: it belongs to no run" for name in there if name not in held]
    unfinished = f"; not finished: {', '.join(says.unfinished)}" if says.unfinished else ""
    return _looked("runs", seen, f"{len(says.runs)}, every answer intact{unfinished}", "damaged")


def _figures(opened: _Opened) -> Looked:
    """Make every file that follows from the runs again, and hold it against the packed one."""
    says, here = opened.says, version("evenhand")
    if says.evenhand != here:
        why = f"not repeated: that needs evenhand {says.evenhand}, and here is {here}"
        return Looked(name="figures", state="open", says=why)
    try:
        about, again = _repeated(says)
    except _BROKEN as error:
        why = f"they cannot be repeated: {type(error).__name__}: {error}"
        return Looked(name="figures", state="differs", says=why)
    redrawn = drawn_by() == says.charts
    compared = {name: data for name, data in again.items() if redrawn or name != PAGE}
    stated = figures.differences(says.model_dump(), about.model_dump())
    seen = [f"{EVIDENCE}: {line}" for line in stated]
    seen += [line for name, data in compared.items() for line in _differs(name, data)]
    made = [name for name in opened.found if not name.startswith(("runs/", f"{CERTIFICATES}/"))]
    seen += [f"{name}: it follows from no run" for name in made if name not in again]
    if not redrawn and _reworded(_held(PAGE), again[PAGE]):
        seen.append(f"{PAGE} is not what its runs give, also without its pictures")
    if not seen and not redrawn:
        drawn = says.charts or "nothing"
        why = f"{PAGE} was drawn by {drawn}, and here is {drawn_by() or 'nothing'}: not compared"
        return Looked(name="figures", state="open", says=why)
    repeated = f"{says.figures:,} figures in {FIGURES}, and {len(compared):,} files made of them"
    return _looked("figures", seen, f"{repeated}, repeated from the runs", "not those of the runs")


def _repeated(says: Evidence) -> tuple[Evidence, dict[str, bytes]]:
    """Make what the pack says of itself and its files again, from the runs and from what only its
    maker knew: the title, the prices, and whether it was signed."""
    prices = None if says.prices is None else says.prices.prices()
    found = read([one.run for one in says.runs], says.title, prices, given=says.certificates)
    wishes = Wishes(
        title=says.title,
        frameworks=tuple(says.frameworks),
        prices=prices,
        certificates=Path(CERTIFICATES) if says.certificates else None,
    )
    about = about_of(found, {one.run: one.left_out for one in says.runs}, wishes, says.previous)
    known = {"files": says.files, "signed": says.signed, "charts": says.charts}
    about = about.model_copy(update=known)
    return about, files_of(found, about)


def _reworded(held: bytes, again: bytes) -> bool:
    """Say whether a page that was drawn by other versions differs in more than its pictures. One
    that has more or fewer of them cannot be told from one that has them in another size."""
    (words, drawn), (others, redrawn) = (_PICTURE.subn(b"", page) for page in (held, again))
    return drawn == redrawn and words != others


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
