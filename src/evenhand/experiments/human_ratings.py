"""Export blinded rating sheets, import completed sheets, and measure agreement."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.runs.store import RunReader
from evenhand.training.debates.dataset import require_new
from evenhand.training.rating import judges, sheets, texts
from evenhand.training.rating.findings import RatingReport, ratings
from evenhand.training.rating.sheets import ReturnedSheets
from evenhand.training.rating.texts import SheetKey


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRequest:
    """Which runs are rated, by how many people, and where the sheets and their key go."""

    runs: Sequence[str]
    out: Path
    raters: int = 5  # paper 002, 4.1: five labelers
    sample: int = 30  # our choice: twice what an interval needs, and an hour's work with two runs
    overlap: int | None = None  # raters per text; None: all
    key: Path | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetsWritten:
    """The sheets of an export: where they are, and what they hold."""

    folder: Path
    key_file: Path
    key: SheetKey
    naming_a_model: int  # texts that name a model

    @property
    def sheets(self) -> dict[str, int]:
        """Number of texts per rater."""
        return {rater: len(ids) for rater, ids in self.key.sheets.items()}


def export_sheets(
    request: SheetRequest, note: Callable[[str], None] = lambda _: None
) -> SheetsWritten:
    """Write a folder for each rater, and a key that raters never get."""
    require_new(request.out)
    if len(set(request.runs)) < len(request.runs):
        raise UserError("The same run is named twice. Name each run once.")
    key_file = request.key or request.out.with_name(f"{request.out.name}-key.json")
    runs = []
    for run in request.runs:
        note(f"reading {run}")
        runs.append(RunReader(run))
    seed = secrets.randbelow(2**32) if request.seed is None else request.seed
    selection = texts.drawn(runs, request.sample, seed)
    key = sheets.export(
        runs,
        selection,
        request.out,
        key_file,
        raters=request.raters,
        overlap=request.overlap or request.raters,
        seed=seed,
    )
    return SheetsWritten(
        folder=request.out,
        key_file=key_file,
        key=key,
        naming_a_model=texts.naming_a_model(selection.texts, runs),
    )


def import_sheets(files: Sequence[Path], key: Path, out: Path) -> ReturnedSheets:
    """Read completed sheets into a folder of ratings. Nothing is written if a sheet has a fault.

    Args:
        files: The sheets that raters returned.
        key: The key that the export wrote.
        out: The folder to make.

    Returns:
        How many ratings came back, and what is missing.
    """
    require_new(out)
    sheet_key, rows, account = sheets.read(files, key)
    sheets.write(out, sheet_key, rows, account)
    return account


def agreement(
    folder: Path, *, judge: str | None = None, labels: Path | None = None
) -> RatingReport:
    """Measure how far raters agree with each other and with a judge.

    Args:
        folder: The folder of imported ratings.
        judge: A run that scored the same texts, or a CSV file with `id` and marks.
        labels: Also write the raters' marks as labels for a judge audit, into this file.
    """
    key, rows, not_returned = sheets.load(folder)
    marked = judges.judge_marks(judge, key) if judge else None
    result = ratings(key, rows, not_returned, marked)
    if labels is not None:
        labels.write_bytes(judges.labels(key, rows))
    return result
