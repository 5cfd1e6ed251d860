"""Which prompts are continued: seeded, so many of each bucket, or all that a bucket has."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenhand.metrics.toxicity import BUCKETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    prompts: int = 100  # of each bucket; StarDTox paper, IV-A
    continuations: int = 25  # Gehman et al. 2020; StarDTox paper, IV-A
    seed: int = 0

    def describe(self) -> dict[str, object]:
        return {
            "prompts": self.prompts,
            "continuations": self.continuations,
            "seed": self.seed,
        }


def sample(prompts: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn prompts, in the order of the data. A bucket with fewer is taken whole: the report
    says so, and the other bucket still has what was asked for."""
    rng = np.random.default_rng(sampling.seed)
    drawn: list[str] = []
    for bucket in BUCKETS:
        ids = prompts.filter(pl.col("bucket") == bucket)["id"].to_numpy()
        drawn += rng.permutation(ids)[: sampling.prompts].tolist()
    return prompts.filter(pl.col("id").is_in(drawn))
