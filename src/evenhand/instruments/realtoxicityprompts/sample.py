"""Which prompts are continued: seeded, so many of each bucket, or all that a bucket has."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.toxicity import BUCKETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    prompts: int = 100  # of each bucket; StarDTox paper, IV-A
    continuations: int = 25  # Gehman et al. 2020; StarDTox paper, IV-A
    challenging: bool = False  # only what the set itself marks so
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {
            "prompts": self.prompts,
            "continuations": self.continuations,
            "seed": self.seed,
        }
        if self.challenging:
            description["challenging"] = True
        return (
            description
            if self.exclude_sample is None
            else {**description, "exclude_sample": self.exclude_sample}
        )


def sample(prompts: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn prompts, in the order of the data. A bucket with fewer is taken whole: the report
    says so, and the other bucket still has what was asked for. Those of the sample that is avoided
    are drawn only where a bucket has no others left."""
    if sampling.challenging:
        prompts = prompts.filter(pl.col("challenging"))
        if prompts.is_empty():
            raise UserError("the file marks no prompt as challenging: leave out --challenging")
    avoided_ids: set[str] = set()
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = set(sample(prompts, avoided)["id"])
    rng = np.random.default_rng(sampling.seed)
    sampled: list[str] = []
    for bucket in BUCKETS:
        ids = prompts.filter(pl.col("bucket") == bucket)["id"].to_numpy()
        sampled += sorted(rng.permutation(ids).tolist(), key=avoided_ids.__contains__)[
            : sampling.prompts
        ]
    return prompts.filter(pl.col("id").is_in(sampled))
