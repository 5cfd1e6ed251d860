"""A sweep of debates says what each setting brought: statements, how biased they are, and pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Estimate
from evenhand.statistics.clusters import clustered_mean
from evenhand.training.debates.findings import HIGH_ABOVE
from evenhand.training.debates.read import Statement
from evenhand.training.debates.sweep import DebateArm


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateArmResult:
    """An arm of a sweep: its setting, and what became of it."""

    name: str
    setting: DebateArm
    statements: int
    high: Estimate  # the share of statements above `HIGH_ABOVE`, over topics
    train_pairs: int
    test_pairs: int
    folder: str | None  # of its pairs; None where none could be made
    why: str | None  # why none could be made

    def row(self) -> dict[str, Any]:
        """Give the arm as one row of a table."""
        numbers = {"high": self.high.value, "low": self.high.low, "up_to": self.high.high}
        return {
            "arm": self.name,
            **self.setting.model_dump(),
            "statements": self.statements,
            **numbers,
            "train_pairs": self.train_pairs,
            "test_pairs": self.test_pairs,
            "folder": self.folder,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateSweep(Displayable):
    """A sweep of debates, an arm a row. The first one is the usual setting."""

    arms: tuple[DebateArmResult, ...]

    def frame(self) -> pl.DataFrame:
        """Give one row per arm."""
        numbers = dict.fromkeys(("high", "low", "up_to"), pl.Float64)
        words = {"folder": pl.String, "why": pl.String}
        return pl.DataFrame(
            [arm.row() for arm in self.arms],
            schema_overrides={**numbers, **words},
            infer_schema_length=None,
        )

    def to_dict(self) -> dict[str, Any]:
        return {"high_above": HIGH_ABOVE, "arms": [arm.row() for arm in self.arms]}


def share_high(statements: Sequence[Statement]) -> Estimate:
    """The share of high statements. Those about one topic answer each other, so the interval is
    over topics."""
    high = [float(statement.score > HIGH_ABOVE) for statement in statements]
    topics = [f"{statement.bias_type}: {statement.topic}" for statement in statements]
    return Estimate.of("high", lambda: clustered_mean(high, topics), within=(0, 1))
