"""Labelled texts become a screen: two cut-offs for a cheap scorer, with what they promise."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from evenhand.core.errors import UserError
from evenhand.core.version import __version__
from evenhand.findings.screen_file import (
    CalibratedPromise,
    CalibrationLabels,
    Reference,
    ScreenedBy,
    ScreenFile,
)
from evenhand.instruments.near_copies import clusters_of
from evenhand.instruments.text_columns import text_columns
from evenhand.runs.store.run_record import now
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.screening import Screen, calibrate, one_of_each

_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
# Our choice: of so many scores on each side the drift check sees a tenth of the texts passing the
# median, and the file stays readable.
_REFERENCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table of labelled texts."""

    text: str = "text"
    label: str = "harm"
    group: str | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class LabelledTexts:
    """Texts of which people have said whether they are harmful: those of a file that count.

    Of each cluster one harmful and one clean text counts, drawn at random before anything is
    scored: the texts of a template or an author are alike. Near-copies and texts that differ in one
    slot are a cluster by themselves (`near_copies`), whatever the column of clusters says.
    """

    file: Path
    columns: Columns
    texts: int
    table: pl.DataFrame  # text, harm, group (null: nobody)

    @classmethod
    def read(cls, file: Path, columns: Columns) -> "LabelledTexts":
        """Read a .csv or .jsonl file; a row without a text or a label is refused by its number."""
        names = (columns.text, columns.label, columns.group, columns.cluster)
        rows = text_columns(file, list(dict.fromkeys(name for name in names if name)))
        if rows.is_empty():
            raise UserError(f'{file} has no rows. Add rows such as {{"text": "…", "harm": true}}.')
        label_text = pl.col(columns.label).str.to_lowercase()
        table = rows.select(
            text=columns.text,
            harm=pl.when(label_text.is_in(_YES)).then(True).when(label_text.is_in(_NO)).then(False),
            group=pl.col(columns.group).replace("", None)
            if columns.group
            else pl.lit(None, pl.String),
            cluster=columns.cluster or pl.lit("-"),
        )
        _refuse_gaps(file, columns, table)
        _refuse_both(file, table)
        once = table.unique("text", keep="first", maintain_order=True)
        declared = once["cluster"].to_list() if columns.cluster else None
        clusters = clusters_of(once["text"].to_list(), declared)
        indices = one_of_each(zip(once["harm"], clusters, strict=True))
        return cls(file, columns, len(rows), once[indices].drop("cluster"))

    @cached_property
    def labels(self) -> CalibrationLabels:
        harmful = int(self.table["harm"].sum())
        return CalibrationLabels(
            file=self.file.name,
            sha256=hashlib.sha256(self.file.read_bytes()).hexdigest(),
            texts=self.texts,
            harmful=harmful,
            clean=len(self.table) - harmful,
            group=self.columns.group,
            cluster=self.columns.cluster,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenTargets:
    """The promises that a screen is to keep."""

    missed: float = 0.05
    false_alarms: float | None = None
    confidence: float = 0.95


def read_traffic(file: Path, text: str) -> list[str]:
    """Read unlabeled texts, as they come, whose scores later ones are compared with."""
    texts = text_columns(file, [text])[text].to_list()
    if not texts:
        raise UserError(
            f"{file} has no rows, and later scores are compared with its texts. Add texts to "
            "it, or name another file."
        )
    return texts


def calibrated(
    labelled: LabelledTexts,
    scores: Sequence[float | None],
    targets: ScreenTargets,
    scorer: ScreenedBy,
    traffic: tuple[str, Sequence[float | None]] | None = None,
) -> ScreenFile:
    """Calibrate the screen of a scorer on labelled texts.

    Args:
        labelled: Texts with their labels.
        scores: Score of each text in the same order. None: the scorer failed.
        targets: Error rates and confidence to guarantee.
        scorer: Identifies the scorer in the file.
        traffic: File name and scores of unlabelled texts that later scores are compared with. None:
            the
        labelled texts.

    Returns:
        The screen file, sealed with its checksum.
    """
    values = np.array(scores, dtype=np.float64)  # None becomes NaN
    harm = labelled.table["harm"].to_numpy()
    screen = calibrate(
        values,
        harm,
        labelled.table["group"].to_list() if labelled.columns.group else None,
        missed=targets.missed,
        false_alarms=targets.false_alarms,
        confidence=targets.confidence,
    )
    file, reference_scores = traffic or (labelled.file.name, scores)
    of_traffic = {"traffic": np.array(reference_scores, dtype=np.float64)} if traffic else {}
    parts = {"harmful": values[harm], "clean": values[~harm], **of_traffic}
    return ScreenFile(
        scorer=scorer,
        low=_finite(screen.low),
        high=_finite(screen.high),
        promises=[CalibratedPromise.of(promise) for promise in screen.promises],
        labels=labelled.labels,
        judged={name: _judged(screen, part) for name, part in parts.items()},
        reference=Reference(
            of="traffic" if traffic else "labelled texts",
            file=file,
            scores=_sample(reference_scores),
        ),
        evenhand=__version__,
        created=now(),
    ).sealed()


def _finite(cut: float) -> float | None:
    return float(cut) if np.isfinite(cut) else None


def _judged(screen: Screen, scores: FloatArray) -> float | None:
    return screen.judged(scores) if scores.size else None


def _sample(scores: Sequence[float | None]) -> list[float | None]:
    """At most so many of the scores, drawn at random, in their order."""
    if len(scores) <= _REFERENCE:
        return list(scores)
    chosen = np.random.default_rng(0).choice(len(scores), _REFERENCE, replace=False)
    return [scores[index] for index in np.sort(chosen)]


def _refuse_gaps(file: Path, columns: Columns, table: pl.DataFrame) -> None:
    rows = table.with_row_index("row", 1)
    empty = rows.filter(pl.col("text") == "")
    if len(empty):
        raise UserError(
            f"{file} row {empty['row'][0]}: the column {columns.text!r} is empty. Add the text, or "
            "remove the row."
        )
    unsaid = rows.filter(pl.col("harm").is_null())
    if len(unsaid):
        raise UserError(
            f"{file} row {unsaid['row'][0]}: the column {columns.label!r} is neither "
            f"{', '.join(_YES)} nor {', '.join(_NO)}. Label the text, or remove the row."
        )
    alone = rows.filter(pl.col("cluster") == "")
    if len(alone):
        raise UserError(
            f"{file} row {alone['row'][0]}: the column {columns.cluster!r} is empty. Fill it in, "
            "or leave out --cluster."
        )


def _refuse_both(file: Path, table: pl.DataFrame) -> None:
    both = table.group_by("text", maintain_order=True).agg(pl.col("harm").n_unique())
    twice = both.filter(pl.col("harm") > 1)
    if len(twice):
        raise UserError(
            f"{file}: {len(twice):,} texts have both labels, such as {twice['text'][0][:60]!r}. "
            "Keep one label for each text."
        )
