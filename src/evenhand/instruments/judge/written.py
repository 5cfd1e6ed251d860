"""Scenarios whose two responses a model writes: the tasks as items, and a run of them as the file
that an audit takes in place of ours."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import orjson
import polars as pl

from evenhand.core import Item
from evenhand.instruments.judge.data import Scenario
from evenhand.instruments.judge.design import JudgeDesign, drawn
from evenhand.runs.runners.source import ItemList

FILE = "scenarios.jsonl"
# As our own: the longer of the two has at most so many times the words of the shorter.
_LONGER = 1.1


def tasks(scenarios: Sequence[Scenario], design: JudgeDesign) -> ItemList:
    """The task of each scenario that a design draws."""
    chosen = [scenario for part in drawn(scenarios, design).values() for scenario in part]
    return ItemList(
        [
            Item(
                id=scenario.id,
                prompt=scenario.task,
                tags={"base": scenario.base, "kind": scenario.kind},
            )
            for scenario in chosen
        ]
    )


@dataclass(frozen=True, slots=True)
class GeneratedScenarios:
    """What a model wrote. Whether the two responses of a scenario say the same was not looked at,
    nor whether they hint at who wrote them."""

    scenarios: tuple[Scenario, ...]
    asked: int

    @property
    def unequal_length(self) -> int:
        """How many scenarios have a response that is more than a tenth longer than the other."""
        lengths = [
            sorted(len(text.split()) for text in scenario.responses) for scenario in self.scenarios
        ]
        return sum(longer > _LONGER * shorter for shorter, longer in lengths)

    @property
    def same_words(self) -> int:
        return sum(len(set(scenario.responses)) == 1 for scenario in self.scenarios)

    def to_bytes(self) -> bytes:
        """One scenario a line, as `MalibuData` reads it."""
        return b"".join(orjson.dumps(asdict(scenario)) + b"\n" for scenario in self.scenarios)


def written(results: pl.DataFrame) -> GeneratedScenarios:
    """Read what a run of `tasks` gave; a scenario without two responses is left out."""
    scenarios = []
    for row in results.sort("position").iter_rows(named=True):
        if row["status"] == "answered":
            tags = {tag["name"]: tag["value"] for tag in row["tags"]}
            first, second = (draft["text"] for draft in row["drafts"])
            scenarios.append(Scenario(row["item_id"], tags["base"], tags["kind"], row["prompt"],
                                  (first, second)))  # fmt: skip
    return GeneratedScenarios(tuple(scenarios), len(results))
