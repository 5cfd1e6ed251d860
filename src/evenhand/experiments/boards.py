"""Evidence bundles become a board: a static site of verified results."""

import contextlib
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.experiments.pack_checks import verify
from evenhand.experiments.packs import evidence_in, listed, read
from evenhand.findings.board import Board, BoardPack, board
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import PackManifest
from evenhand.views import catalog, save

_INDEX = "index.html"


def make_board(packs: Sequence[Path], out: Path, *, title: str) -> Board:
    """Verify bundles and write the site.

    Args:
        packs: The zip files.
        out: The folder of the site: a new or an empty one.
        title: The title of the index.

    Returns:
        The board.

    Raises:
        UserError: If a bundle does not hold what it claims, or the folder is not empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is not an empty folder. Choose another --out.")
    verified = [(pack, _verified(pack)) for pack in packs]
    dossiers = [_read(pack, sha256) for pack, sha256 in verified]
    reports = [
        (about, report)
        for about, dossier in dossiers
        for report in dossier.reports
        if report.instrument.primary()
    ]
    result = board(title, reports)
    out.mkdir(parents=True, exist_ok=True)
    for about, dossier in dossiers:
        save(dossier, str(out / about.page))
    save(result, str(out / _INDEX), str(out / "board.json"))
    return result


def _verified(pack: Path) -> str:
    """Return the SHA-256 of the evidence of a bundle that holds; refuse any other."""
    check = verify(pack)
    if check.state == "holds":
        return check.sha256
    failed = [finding for finding in check.looked if finding.state == check.state]
    why = "; ".join(f"{finding.name}: {catalog.text(finding.says)}" for finding in failed)
    what = "is not what was packed" if check.state == "differs" else "cannot be verified"
    raise UserError(f"{pack} {what} ({why}). Look at it: evenhand runs pack verify {pack}")


def _read(pack: Path, sha256: str) -> tuple[BoardPack, CombinedReport]:
    """Read the runs of a bundle; one that changed since its verification is refused."""
    with tempfile.TemporaryDirectory(prefix="evenhand-board-") as folder:
        data = evidence_in(pack, Path(folder))
        manifest = PackManifest.from_bytes(data)
        intact = listed(Path(folder)) == manifest.files
        if hashlib.sha256(data).hexdigest() != sha256 or not intact:
            raise UserError(f"{pack} changed while it was read")
        with contextlib.chdir(folder):
            dossier = read(
                [run.run for run in manifest.runs],
                manifest.title,
                None if manifest.prices is None else manifest.prices.prices(),
                given=manifest.certificates,
            )
    return BoardPack(title=manifest.title, sha256=sha256, page=f"{sha256[:12]}.html"), dossier
