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

from evenhand.core.errors import UserError
from evenhand.experiments import signing
from evenhand.experiments.packs import (
    PackOptions,
    about_of,
    drawn_by,
    evidence_in,
    held_of,
    listed,
    packed_run,
    read,
)
from evenhand.findings.display import Remark
from evenhand.findings.pack_manifest import (
    CERTIFICATES,
    EVIDENCE,
    FIGURES,
    PAGE,
    PUBLIC_KEY,
    SIGNATURE,
    PackCheck,
    PackedFile,
    PackFinding,
    PackManifest,
    State,
)
from evenhand.runs.store import RunReader, archive
from evenhand.views.pack import figures, files_of

# What a stranger's tables can break is not known beforehand; a panic of polars is no Exception.
_BROKEN = (Exception, pl.exceptions.PanicException)
_PICTURE = re.compile(rb'src="data:image/svg[^"]*"')


@dataclass(frozen=True, slots=True)
class _UnpackedPack:
    """A pack that lies unpacked in a folder."""

    pack: Path
    folder: Path
    data: bytes  # of its evidence.json
    says: PackManifest
    found: dict[str, PackedFile]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def verify(pack: Path, *, key: Path | None = None, previous: Path | None = None) -> PackCheck:
    """Verify an evidence pack.

    Args:
        pack: The zip file.
        key: The public key that must have signed it; None to skip that check.
        previous: The pack before it, to check the link between them; None to skip that check.

    Returns:
        The result of every check.
    """
    trusted = None if key is None else signing.public_key(key)
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as workdir:
        folder = Path(workdir, "pack")
        folder.mkdir()
        data = evidence_in(pack, folder)
        opened = _UnpackedPack(pack, folder, data, PackManifest.from_bytes(data), listed(folder))
        files = _files(opened)
        looked = (
            files,
            _signature(opened, trusted),
            _chain(opened, previous),
            *_runs_and_figures(opened, intact=files.state == "holds"),
        )
    return PackCheck(pack=str(pack), title=opened.says.title, sha256=opened.sha256, looked=looked)


def _looked(name: str, problems: list[Remark], holds: Remark, differs: Remark) -> PackFinding:
    if problems:
        return PackFinding(name=name, state="differs", says=differs, seen=tuple(problems))
    return PackFinding(name=name, state="holds", says=holds)


def _said(name: str, state: State, code: str, **values: Any) -> PackFinding:
    return PackFinding(name=name, state=state, says=Remark(code, **values))


# -- bytes -----------------------------------------------------------------------------------------


def _files(opened: _UnpackedPack) -> PackFinding:
    """Hold every file against the list, and the zip file itself against what it should be."""
    expected, actual = opened.says.files, opened.found
    problems = [_of("missing", name) for name in expected if name not in actual]
    problems += [_of("not_listed", name) for name in actual if name not in expected]
    problems += [
        _of("changed", name) for name, file in actual.items() if expected.get(name, file) != file
    ]
    if not opened.says.certificates:
        extra = [name for name in actual if name.startswith(f"{CERTIFICATES}/")]
        problems += [_of("no_certificates", name) for name in extra]
    if not problems and not archive.is_as_written(opened.pack, opened.folder):
        problems.append(Remark("pack.zip_differs"))
    holds = Remark("pack.files", files=len(expected), listed_in=EVIDENCE)
    return _looked("files", problems, holds, Remark("pack.files_differ"))


def _of(what: str, name: str) -> Remark:
    return Remark(f"pack.{what}", name=name)


def _signature(opened: _UnpackedPack, trusted: bytes | None) -> PackFinding:
    files = [opened.folder / name for name in (SIGNATURE, PUBLIC_KEY)]
    there = [path.is_file() for path in files]
    if opened.says.signed != all(there) or any(there) != all(there):
        return _said("signature", "differs", "pack.signature_moved")
    if not all(there):
        if trusted is not None:
            return _said("signature", "differs", "pack.unsigned")
        return _said("signature", "holds", "pack.unsigned_anybody")
    if not signing.installed():
        return _said(
            "signature", "not_checked", "pack.signing_not_installed", reason=signing.INSTALL
        )
    signature, packed_key = (path.read_bytes() for path in files)
    try:
        plain = signing.public_key(files[1]) == packed_key
    except UserError:
        plain = False
    if not plain or trusted not in (None, packed_key):
        code = "pack.another_key" if plain else "pack.no_plain_key"
        return _said("signature", "differs", code, file=PUBLIC_KEY)
    given = trusted is not None
    if not signing.holds(opened.data, signing.PackSignature(signature, trusted or packed_key)):
        return _said("signature", "differs", "pack.not_of_key", given=given, over=EVIDENCE)
    return _said("signature", "holds", "pack.of_key" if given else "pack.own_key", over=EVIDENCE)


def _chain(opened: _UnpackedPack, previous: Path | None) -> PackFinding:
    before = opened.says.previous
    if before is None:
        state: State = "holds" if previous is None else "differs"
        return _said("chain", state, "pack.first")
    named = {"title": before.title, "sha256": before.sha256}
    if previous is None:
        return _said("chain", "holds", "pack.names", **named)
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as workdir:
        data = evidence_in(previous, Path(workdir))
        intact = listed(Path(workdir)) == PackManifest.from_bytes(data).files
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != before.sha256:
        return _said("chain", "differs", "pack.names_another", **named, given=sha256)
    if not intact:
        return _said("chain", "differs", "pack.previous_damaged", **named, listed_in=EVIDENCE)
    return _said("chain", "holds", "pack.follows", **named)


# -- runs and figures ------------------------------------------------------------------------------


def _runs_and_figures(opened: _UnpackedPack, *, intact: bool) -> Iterator[PackFinding]:
    """Look at runs and figures, where they are there and the files are those of the list."""
    evidence = opened.says
    if evidence.light:
        hashes = {f"{run.run}.sha256" for run in evidence.runs}
        there = {name for name in opened.found if name.startswith("runs/")}
        problems = [_of("of_no_run", name) for name in sorted(there - hashes)]
        problems += [_of("missing", name) for name in sorted(hashes - there)]
        if problems:
            only_hashes = Remark("pack.only_hashes")
            yield _looked("runs", problems, only_hashes, only_hashes)
        else:
            yield _said("runs", "not_checked", "pack.light")
        yield _said("figures", "not_checked", "pack.no_runs")
        return
    with contextlib.chdir(opened.folder):
        runs = _runs(opened)
        yield runs
        yield (
            _figures(opened)
            if intact and runs.state == "holds"
            else _said("figures", "not_checked", "pack.not_repeated")
        )


def _runs(opened: _UnpackedPack) -> PackFinding:
    """Hold every run folder against its own checksums and against what the pack says of it; and
    nothing but the runs lies among them."""
    evidence = opened.says
    problems: list[Remark] = []
    held: set[str] = set()
    for packed in evidence.runs:
        try:
            run = RunReader(packed.run)
            run.verify()
            held |= {f"{packed.run}/{name}" for name in held_of(run)}
            if packed_run(run, packed.left_out) != packed:
                problems.append(Remark("pack.another_run", run=packed.run, file=EVIDENCE))
        except _BROKEN as error:
            problems.append(Remark("pack.line", name=packed.run, line=str(error)))
    if evidence.unfinished != [packed.run for packed in evidence.runs if packed.not_run]:
        problems.append(Remark("pack.other_unfinished", file=EVIDENCE))
    if not problems:
        there = [name for name in opened.found if name.startswith("runs/")]
        problems += [_of("belongs_to_no_run", name) for name in there if name not in held]
    runs = Remark("pack.runs", runs=len(evidence.runs), unfinished=tuple(evidence.unfinished))
    return _looked("runs", problems, runs, Remark("pack.damaged"))


def _figures(opened: _UnpackedPack) -> PackFinding:
    """Make every file that follows from the runs again, and hold it against the packed one."""
    evidence, here = opened.says, version("evenhand")
    if evidence.evenhand != here:
        return _said(
            "figures", "not_checked", "pack.other_version", needs=evidence.evenhand, here=here
        )
    try:
        about, again = _repeated(evidence)
    except _BROKEN as error:
        return _said(
            "figures", "differs", "pack.cannot_repeat", kind=type(error).__name__, error=str(error)
        )
    redrawn = drawn_by() == evidence.charts
    compared = {name: data for name, data in again.items() if redrawn or name != PAGE}
    stated = figures.differences(evidence.model_dump(), about.model_dump())
    problems = [Remark("pack.line", name=EVIDENCE, line=line) for line in stated]
    problems += [line for name, data in compared.items() for line in _differs(name, data)]
    derived = [name for name in opened.found if not name.startswith(("runs/", f"{CERTIFICATES}/"))]
    problems += [_of("follows_from_no_run", name) for name in derived if name not in again]
    if not redrawn and _reworded(_held(PAGE), again[PAGE]):
        problems.append(_of("page_differs", PAGE))
    if not problems and not redrawn:
        return _said(
            "figures",
            "not_checked",
            "pack.drawn_by",
            file=PAGE,
            drawn_by=evidence.charts,
            here=drawn_by(),
        )
    repeated = Remark("pack.repeated", figures=evidence.figures, file=FIGURES, files=len(compared))
    return _looked("figures", problems, repeated, Remark("pack.figures_differ"))


def _repeated(evidence: PackManifest) -> tuple[PackManifest, dict[str, bytes]]:
    """Make what the pack says of itself and its files again, from the runs and from what only its
    maker knew: the title, the prices, and whether it was signed."""
    prices = None if evidence.prices is None else evidence.prices.prices()
    dossier = read(
        [run.run for run in evidence.runs], evidence.title, prices, given=evidence.certificates
    )
    wishes = PackOptions(
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


def _differs(name: str, data: bytes) -> Iterator[Remark]:
    """Say what of a file differs from what the runs give: in JSON each place, else that it does."""
    held = _held(name)
    if held == data:
        return
    if not name.endswith(".json"):
        yield _of("not_what_runs_give", name)
        return
    packed: Any = _json(held)
    for line in figures.differences(packed, _json(data)):
        yield Remark("pack.line", name=name, line=line)
    if not figures.is_as_printed(held, packed):
        yield _of("not_as_written", name)


def _held(name: str) -> bytes:
    return Path(name).read_bytes() if Path(name).is_file() else b""


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
