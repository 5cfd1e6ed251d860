"""A sweep varies roles, rounds, topics and pairs one at a time (RLDF paper, 4.3), and says what
each setting brought.

Rounds hang on no later one and topics on no other, so debates of the most rounds about the most
topics hold all shorter and smaller ones: each number of roles is debated once, and the rest is a
choice of statements.
"""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Estimate
from evenhand.statistics.clusters import clustered_mean
from evenhand.training.debates.debate import Statement
from evenhand.training.debates.findings import HIGH_ABOVE

_Number = Annotated[int, Field(ge=1)]
_Roles = Annotated[int, Field(ge=2)]


class _SweepPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class DebateArm(_SweepPart):
    """One setting: so many roles, rounds, topics of each bias type, and pairs to train on."""

    roles: _Roles
    rounds: _Number
    topics: _Number
    pairs: _Number


class _Vary(_SweepPart):
    roles: list[_Roles] = []
    rounds: list[_Number] = []
    topics: list[_Number] = []
    pairs: list[_Number] = []


class SweepPlan(_SweepPart):
    """The usual setting, and the values that each of its numbers takes while the others stay."""

    usual: DebateArm
    vary: _Vary

    def arms(self) -> dict[str, DebateArm]:
        """Every setting once, by a name that says what is not usual: "rounds-10"."""
        settings = {"usual": self.usual}
        for name in DebateArm.model_fields:
            for value in getattr(self.vary, name):
                if value != getattr(self.usual, name):
                    settings[f"{name}-{value}"] = self.usual.model_copy(update={name: value})
        return settings

    def debates(self) -> dict[int, tuple[int, int]]:
        """For each number of roles the most rounds and the most topics that an arm needs."""
        needed: dict[int, tuple[int, int]] = {}
        for arm in self.arms().values():
            rounds, topics = needed.get(arm.roles, (0, 0))
            needed[arm.roles] = max(rounds, arm.rounds), max(topics, arm.topics)
        return needed


def read_plan(file: Path | None = None) -> SweepPlan:
    """The plan of a file; without one that of the paper."""
    try:
        shipped = resources.files(__package__).joinpath("sweep.toml")
        text = (shipped if file is None else file).read_text("utf-8")
        return SweepPlan.model_validate(tomllib.loads(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"Could not read {file} ({error}). Check --plan.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{file}: {key}: {first['msg']}. A plan has [usual] with roles, rounds, topics and "
            "pairs, and [vary] with a list for each that is varied"
        ) from None


def first_topics(items: Sequence[Item], count: int) -> list[Item]:
    """The first so many topics of each bias type."""
    counted = Counter(item.tags.get("bias_type", "") for item in items)
    few = {kind: n for kind, n in counted.items() if n < count}
    if few or not counted:
        shortfall = ", ".join(f"{kind} has {n:,}" for kind, n in few.items()) or "the file has none"
        raise UserError(
            f"the plan asks for {count:,} topics of each bias type and {shortfall}: make more with "
            "`evenhand train debate topics --count`, or write a smaller plan (--plan)"
        )
    used: defaultdict[str, int] = defaultdict(int)
    selected = []
    for item in items:
        kind = item.tags["bias_type"]
        used[kind] += 1
        if used[kind] <= count:
            selected.append(item)
    return selected


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
