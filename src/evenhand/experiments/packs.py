"""Runs become a pack: one zip file with all that somebody needs to check what they showed.

The run folders are first copied as they will lie in the pack, and everything else is made from the
copies by their names there. So a run that goes on meanwhile cannot give figures of one moment and
answers of another, and every name on a page is a name in the pack.
"""

import contextlib
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from evenhand.core.errors import UserError, choices_for
from evenhand.core.prices import Prices
from evenhand.experiments import signing
from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.display import Remark
from evenhand.findings.pack_manifest import (
    CERTIFICATES,
    EVIDENCE,
    PUBLIC_KEY,
    SIGNATURE,
    PackedFile,
    PackedPrices,
    PackedRun,
    PackManifest,
    Previous,
)
from evenhand.findings.report import models_of, not_run
from evenhand.findings.sequential import refuse
from evenhand.instruments import instrument_of
from evenhand.runs.runners.progress import STATUS_FILE
from evenhand.runs.store import RunReader, archive, ledger, plain_files
from evenhand.runs.store.folder import as_file_name, open_folder
from evenhand.views import catalog, charts
from evenhand.views.files import plain
from evenhand.views.pack import figures, files_of, frameworks

FRAMEWORKS = tuple(frameworks.known())
_PASSING = ("lock", STATUS_FILE, "journal")  # of a process, and not of what it found
_BESIDE = {"rtp": ("scores.parquet", "scoring.json")}  # what an instrument reads in addition
_SAYS = ("pack.scope", "pack.hashes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOptions:
    """Options for writing a pack."""

    title: str | None = None
    light: bool = False
    frameworks: tuple[str, ...] = field(default=FRAMEWORKS)
    key: Path | None = None
    previous: Path | None = None
    prices: Prices | None = None
    certificates: Path | None = None


def make(runs: Sequence[RunReader], out: Path, wishes: PackOptions) -> PackManifest:
    """Write an evidence pack.

    Args:
        runs: The runs to pack.
        out: The zip file to write.
        wishes: Title, signature, prices and what else goes into the pack.

    Returns:
        The manifest of the pack.

    Raises:
        UserError: If a framework does not exist, the folder of `out` does not, or its name does
            not end in .zip.
    """
    if out.suffix != ".zip":
        raise UserError(f"{out}: the name must end in .zip")
    unknown = [name for name in wishes.frameworks if name not in FRAMEWORKS]
    if unknown:
        raise UserError(
            f"unknown framework {', '.join(unknown)}. {choices_for(unknown[0], FRAMEWORKS)}"
        )
    if not out.parent.is_dir():
        raise UserError(f"{out.parent} is not a folder. Create it, or choose another --out.")
    for run in runs:
        refuse(run)
    previous = None if wishes.previous is None else _previous(wishes.previous)
    # Beside the pack, where there must be room for it anyway.
    with tempfile.TemporaryDirectory(prefix=".evenhand-pack-", dir=out.parent) as workdir:
        stage = Path(workdir)
        left_out = _copy(runs, stage)
        _copy_certificates(wishes.certificates, stage)
        with contextlib.chdir(stage):
            has_certificates = wishes.certificates is not None
            dossier = read(list(left_out), wishes.title, wishes.prices, given=has_certificates)
            about = about_of(dossier, left_out, wishes, previous)
            contents = files_of(dossier, about)
        for name, data in contents.items():
            _put(stage / name, data)
        if wishes.light:
            _only_hashes(stage, left_out)
        evidence = about.model_copy(update={"files": listed(stage)})
        _put(stage / EVIDENCE, evidence.to_bytes())
        if wishes.key is not None:
            signed = signing.sign(evidence.to_bytes(), wishes.key)
            _put(stage / SIGNATURE, signed.signature)
            _put(stage / PUBLIC_KEY, signed.public)
        archive.write(out, stage)
    return evidence


def read(
    runs: Sequence[str], title: str | None, prices: Prices | None, *, given: bool
) -> CombinedReport:
    """Read the runs of a pack that is unpacked in the current folder.

    Args:
        runs: The runs by their names within the pack.
        title: The title of the report; None for the default one.
        prices: The prices for costs; None to leave costs out.
        given: Whether the pack contains certificates.

    Returns:
        The report of all runs.
    """
    return dossier_of(
        [(RunReader(name), None) for name in runs],
        title=title,
        prices=prices,
        certificates=Path(CERTIFICATES) if given else None,
    )


def listed(folder: Path) -> dict[str, PackedFile]:
    """List the files of a pack, except for the list itself and its signature."""
    apart = (EVIDENCE, SIGNATURE, PUBLIC_KEY)
    names = [name for name in archive.names_in(folder) if name not in apart]
    return {name: packed(folder / name) for name in names}


def packed(path: Path) -> PackedFile:
    """Give the size and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return PackedFile(sha256=digest, bytes=path.stat().st_size)


def held_of(run: RunReader) -> set[str]:
    """Name the files of a run folder that findings rest on, which are those that a pack holds:
    a report next to them, for one, could say anything."""
    folder, made_by = open_folder(run.path), run.record.source.get("benchmark")
    held = {"run.json", *ledger.names(folder)}
    held |= {file.name for part in ledger.parts(folder) for file in (part.results, part.turns)}
    held |= {name for name in _BESIDE.get(made_by or "", ()) if folder.exists(name)}
    if made_by:
        for name in instrument_of(run).further_runs:
            if folder.exists(f"{name}/run.json"):
                inner = held_of(RunReader(f"{run.path}/{name}"))
                held |= {f"{name}/{member}" for member in inner}
    return held


def drawn_by() -> str:
    """Name the versions that draw pictures on this machine; empty where none are drawn."""
    if not charts.installed():
        return ""
    return ", ".join(f"{name} {version(name)}" for name in ("altair", "vl-convert-python"))


def _copy(runs: Sequence[RunReader], stage: Path) -> dict[str, list[str]]:
    """Copy the run folders to where they lie in the pack, each once; give their names there, and of
    each the files that are left out. What a run wrote is checked on its copy."""
    once = {str(run.path): run for run in runs}
    left_out = {}
    for name, run in zip(_names(list(once)), once.values(), strict=True):
        left_out[name] = _copy_folder(Path(run.path), stage / name)
        RunReader(stage / name).verify()
    return left_out


def _names(paths: Sequence[str]) -> list[str]:
    """Give each run the name of its folder, with those above it where two are alike."""
    for path in paths:
        if "://" in path:
            raise UserError(
                f"{path} is not a run folder on this machine, and a bundle needs local folders. "
                "Copy the run here first."
            )
    parts = [Path(path).resolve().parts for path in paths]
    names = [""] * len(parts)
    for steps in range(1, max(map(len, parts), default=0) + 1):
        names = [f"runs/{as_file_name('-'.join(part[-steps:]))}" for part in parts]
        if len({name.lower() for name in names}) == len(names):
            return names
    counted = Counter(names)
    return [f"{name}-{index}" if counted[name] > 1 else name for index, name in enumerate(names)]


def _copy_folder(folder: Path, to: Path) -> list[str]:
    """Copy what findings rest on of a run folder, and give the names of what is left out. Of a run
    that goes on meanwhile, parts that the copied ledger does not name are taken away again."""
    held = held_of(RunReader(folder))
    there = [name for name in archive.names_in(folder) if "/." not in f"/{name}"]
    there = [name for name in there if not {*name.split("/")} & {*_PASSING}]
    if "scores.parquet" in held and "scoring.json" not in held and "report.json" in there:
        raise UserError(
            f"{folder} names its scorer in report.json alone, which no pack holds: repeat "
            "`evenhand measure rtp` with the same options, which writes scoring.json"
        )
    for name in sorted(held):
        try:
            data = plain_files.read_plain(plain_files.within(folder, name))
        except FileNotFoundError:
            if name in held_of(RunReader(folder)):
                raise
            shutil.rmtree(to, ignore_errors=True)  # the ledger was compacted: begin again
            return _copy_folder(folder, to)
        _put(to / name, data)
    for name in held - held_of(RunReader(to)):
        (to / name).unlink()
    return [name.encode("utf-8", "replace").decode() for name in there if name not in held]


def _copy_certificates(folder: Path | None, stage: Path) -> None:
    """Copy a folder of certificates: also those that cannot be read, as they may be a fail."""
    if folder is None:
        return
    (stage / CERTIFICATES).mkdir(parents=True)
    taken: set[str] = set()
    for index, path in enumerate(sorted(folder.glob("*.json"))):
        fits = archive.allowed(path.name) and path.name.lower() not in taken
        name = path.name if fits else f"{index}-{as_file_name(path.name)}"
        taken.add(name.lower())
        _put(stage / CERTIFICATES / name, plain_files.read_plain(path))


def _only_hashes(stage: Path, runs: Iterable[str]) -> None:
    """Put a list of checksums in the place of each run folder."""
    for name in runs:
        files = archive.names_in(stage / name)
        lines = [f"{packed(stage / name / file).sha256}  {file}\n" for file in files]
        _put(stage / f"{name}.sha256", "".join(lines).encode())
        shutil.rmtree(stage / name)


def about_of(
    dossier: CombinedReport,
    left_out: dict[str, list[str]],
    wishes: PackOptions,
    previous: Previous | None,
) -> PackManifest:
    """Write the manifest of a pack, except for its list of files.

    Args:
        dossier: The report of the packed runs.
        left_out: For each packed run, the files of it that the pack leaves out.
        wishes: What the user asked of the pack.
        previous: The pack before it; None if there is none.

    Returns:
        The manifest, with an empty list of files.
    """
    runs = [packed_run(RunReader(name), missing) for name, missing in left_out.items()]
    unfinished = [run.run for run in runs if run.not_run]
    notices = [f"NOT FINISHED: {name}" for name in unfinished]
    return PackManifest(
        title=dossier.title.encode("utf-8", "replace").decode(),
        evenhand=version("evenhand"),
        newest_run=max(run.created for run in runs),
        charts=drawn_by(),
        light=wishes.light,
        signed=wishes.key is not None,
        certificates=wishes.certificates is not None,
        prices=PackedPrices.of(wishes.prices),
        frameworks=list(dict.fromkeys(wishes.frameworks)),
        previous=previous,
        runs=runs,
        unfinished=unfinished,
        figures=figures.count(plain(dossier.to_dict())),
        says=[*notices, *(catalog.text(Remark(code)) for code in _SAYS)],
        files={},
    )


def packed_run(run: RunReader, left_out: list[str]) -> PackedRun:
    """Say of a run what evidence has of it."""
    record = run.record
    if run.open:
        raise UserError(
            f"{run.path} is not finished, so its items may still change. Finish the run, then pack "
            "it."
        )
    return PackedRun(
        run=str(run.path),
        model=models_of(record.cast),
        method=record.method["name"],
        created=record.created,
        planned=run.planned,
        not_run=not_run(run),
        sha256=run.digests(),
        left_out=left_out,
    )


def _previous(path: Path) -> Previous:
    """Name the pack before this one, which must be one and have all its files."""
    with tempfile.TemporaryDirectory(prefix="evenhand-pack-") as workdir:
        data = evidence_in(path, Path(workdir))
        evidence = PackManifest.from_bytes(data)
        if listed(Path(workdir)) != evidence.files:
            raise UserError(
                f"{path} does not match its own list of files. See what differs: evenhand runs "
                f"pack verify {path}"
            )
    return Previous(title=evidence.title, sha256=hashlib.sha256(data).hexdigest())


def evidence_in(path: Path, folder: Path) -> bytes:
    """Unpack a pack and give the bytes of its evidence."""
    if not path.is_file():
        raise UserError(
            f"{path} is not a file. Create a bundle with `evenhand runs pack RUN --out FILE`."
        )
    archive.unpack(path, folder)
    if not (folder / EVIDENCE).is_file():
        raise UserError(
            f"{path} is not an evidence bundle: {EVIDENCE} is missing. Create one with `evenhand "
            "runs pack RUN --out FILE`."
        )
    return (folder / EVIDENCE).read_bytes()


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
