"""CrowS-Pairs as an instrument: is the more stereotypical of two sentences the likelier one?"""

import io

import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping
from evenhand.instruments._options import (
    ANTI,
    STEREOTYPE,
    OptionItem,
    OptionSet,
    fluency,
    pinned_files,
    preference,
)

_FILE = "data/crows_pairs_anonymized.csv"


class CrowsPairs(OptionSet):
    """Measures bias on CrowS-Pairs: 1,508 pairs of sentences that differ in the group they are
    about (Nangia et al. 2020)."""

    name = "crows_pairs"
    title = "CrowS-Pairs"
    clusters = "writers"
    measures = (
        preference("stereotype_score", "stereotype score", role="primary"),
        preference("stereotype_score_per_token", "… by the mean per token", per_token=True),
        fluency(STEREOTYPE, ANTI),
    )
    groups = (Grouping(column="bias_type", measures=("stereotype_score",)),)

    def items(self, data: DataFolder) -> list[OptionItem]:
        """`sent_more` is the more stereotypical sentence, whichever way the pair points."""
        table = pinned_files(__package__, data).read(_FILE)
        rows = pl.read_csv(io.BytesIO(table), infer_schema=False)
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
