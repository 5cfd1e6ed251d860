"""CrowS-Pairs: 1,508 pairs of sentences that differ in the group they are about (Nangia et al.
2020)."""

import io
from pathlib import Path

import polars as pl

from evenhand.instruments.option_sets import ANTI, STEREOTYPE, OptionItem, pinned_files

_FILE = "data/crows_pairs_anonymized.csv"


def items(local: Path | None, cache: Path) -> list[OptionItem]:
    """`sent_more` is the more stereotypical sentence, whichever way the pair points."""
    data = pinned_files(__package__, local, cache).read(_FILE)
    rows = pl.read_csv(io.BytesIO(data), infer_schema=False)
    return [
        OptionItem(
            id=f"crows_pairs/{row['']}",
            group=row["bias_type"],
            cluster=row["anon_writer"],
            options={STEREOTYPE: row["sent_more"], ANTI: row["sent_less"]},
            tags={"direction": row["stereo_antistereo"]},
        )
        for row in rows.iter_rows(named=True)
    ]
