"""The scenarios: a task, and two responses of equal content in other words."""

from collections import Counter
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from evenhand.core.errors import UserError
from evenhand.instruments.files import card_of
from evenhand.instruments.judge.labels import JudgeLabels, LabelFamily, read_labels
from evenhand.runs.runners.source import read_jsonl


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`id` is the base and a number, "nurse-handover/3". Scenarios of one base differ in who writes
    and where; they are alike, so the base is the unit of inference."""

    id: str
    base: str
    kind: str
    task: str
    responses: tuple[str, str]


class MalibuData:
    """Scenarios and labels: ours, or those in files of the user's, of the same form."""

    def scenarios(self, path: Path | None = None) -> list[Scenario]:
        file = resources.files(__package__).joinpath("scenarios.jsonl") if path is None else path
        scenarios = [
            Scenario(row.id, row.base, row.kind, row.task, (row.responses[0], row.responses[1]))
            for _, row in read_jsonl(file, _ScenarioRow, _FORM)
        ]
        ids = Counter(scenario.id for scenario in scenarios)
        twice = [name for name, count in ids.items() if count > 1]
        if not scenarios or twice:
            problem = f"holds {twice[0]!r} twice; rename one" if twice else f"is empty; {_FORM}"
            raise UserError(f"{file} {problem}")
        return scenarios

    def labels(self, path: Path | None = None) -> JudgeLabels:
        return read_labels(path)

    def families(self, path: Path | None = None) -> list[LabelFamily]:
        return list(read_labels(path).families)


_FORM = (
    'a line is {"id": "base/0", "base": "base", "kind": "…", "task": "…", "responses": ["…", "…"]}'
)
_Name = Annotated[str, Field(pattern=r"^\S+$", max_length=100)]
_Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class _ScenarioRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: _Name
    base: _Name
    kind: _Name
    task: _Text
    responses: Annotated[list[_Text], Field(min_length=2, max_length=2)]
