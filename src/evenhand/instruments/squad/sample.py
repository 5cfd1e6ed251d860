"""Which questions are asked: seeded, spread over the articles, half of them without an answer.

"The first 100", which the MABRF paper asked, are all from one article.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenhand.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    questions: int | None = 300  # ours; None: all 11,873
    first: int | None = None  # of the file, in its order; MABRF paper: 100
    seed: int = 0

    def describe(self) -> dict[str, object]:
        if self.first is not None:
            return {"first": self.first, "seed": self.seed}
        return {"questions": self.questions or "all", "seed": self.seed}


def sample(records: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn questions, in the order of the data."""
    if sampling.first is not None:
        return records.head(sampling.first)
    if sampling.questions is None:
        return records
    rng = np.random.default_rng(sampling.seed)
    positions: list[int] = []
    for answerable in (True, False):
        # Of an odd number the one more has an answer.
        count = (sampling.questions + answerable) // 2
        rows = records.filter(pl.col("answerable") == answerable)
        if len(rows) < count:
            raise UserError(
                f"SQuAD has {len(rows)} questions {'with' if answerable else 'without'} an answer, "
                f"{count} were asked for; lower --questions, or take --all"
            )
        shuffled = rows[rng.permutation(len(rows))]
        rounds = shuffled.with_columns(turn=pl.int_range(pl.len()).over("article"))
        positions += rounds.sort("turn", maintain_order=True)["row"].head(count).to_list()
    return records.filter(pl.col("row").is_in(positions))
