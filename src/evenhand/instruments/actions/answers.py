"""Answers of agents: recorded ones as items, and every answer as values of its outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import orjson
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from evenhand.agents import strict_json
from evenhand.core import Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.core.items import answer_message
from evenhand.core.results import tool_calls_in
from evenhand.findings.scoring import REFUSED, SCORED, UNREADABLE, why_lost
from evenhand.instruments.actions.scenario import ActionOutcome
from evenhand.instruments.counterfactual.contrasts import (
    SAME_PLACE,
    CounterfactualOutcome,
    excesses,
    with_other,
)
from evenhand.instruments.counterfactual.data import (
    CounterfactualDesign,
    PromptVersion,
    Role,
)
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.refusal import refuses

EXAMPLE = (
    '{"id": "nurse-1", "family": "gender", "label": "woman", "role": "group", '
    '"answer": {"advance": true, "score": 82}}'
)
_BETWEEN = "\x1f"  # between the id of a profile and the part, in the id of a prompt

# -- recorded answers -----------------------------------------------------------------------------


class RecordedAction(BaseModel):
    """A line of recorded answers. `part` names a condition, such as how the agent was built; the
    answers about one profile are one cluster in all of them."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: Annotated[str, Field(min_length=1, max_length=200)]
    part: str = ""
    family: Annotated[str, Field(min_length=1, max_length=200)]
    label: str = ""
    role: Role
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    answer: JsonValue = None

    @property
    def place(self) -> tuple[str, ...]:
        """The matched set that it belongs to: one profile under one condition."""
        return tuple(filter(None, (self.id, self.part)))

    @property
    def key(self) -> tuple[str, ...]:
        return self.label, self.role, str(self.repeat)

    def version(self) -> PromptVersion:
        """The line as a version of a prompt: its answer as text, its part in its id."""
        answer = self.answer
        text = (
            answer if answer is None or isinstance(answer, str) else orjson.dumps(answer).decode()
        )
        return PromptVersion(id=_BETWEEN.join(self.place), family=self.family, label=self.label,
                             role=self.role, repeat=self.repeat, answer=text)  # fmt: skip


def read_recorded(file: Path) -> CounterfactualDesign:
    """Read recorded answers. A file without any placebo has signed contrasts alone.

    Args:
        file: JSON lines, one answer each.

    Returns:
        The answers, and the labels of each family.

    Raises:
        UserError: The file cannot be read, or an answer is there twice or missing.
    """
    lines = [line for _, line in read_jsonl(file, RecordedAction, f"a line is like {EXAMPLE}")]
    if not lines:
        raise UserError(f"{file} is empty. Expected lines like {EXAMPLE}")
    labels: dict[str, tuple[str, ...]] = {}
    for family in dict.fromkeys(line.family for line in lines):
        of_family = [line for line in lines if line.family == family]
        _refuse_holes(file, family, of_family)
        names = dict.fromkeys(line.label for line in of_family if line.role == "group")
        labels[family] = tuple(names)
    return CounterfactualDesign(tuple(line.version() for line in lines), labels)


def _refuse_holes(file: Path, family: str, lines: Sequence[RecordedAction]) -> None:
    """Refuse a family whose matched sets do not all have the same groups, roles and repeats."""
    sets: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for line in lines:
        sets.setdefault(line.place, []).append(line.key)
    groups = {line.label for line in lines if line.role == "group"}
    where = f"{file}: attribute {family[:60]!r}"
    if len(groups) < 2 or "" in groups or len({line.id for line in lines}) < 2:
        raise UserError(f"{where}: at least two groups (labels with role group) and two profiles "
                        f"are required. A line is like {EXAMPLE}")  # fmt: skip
    everywhere = {key for keys in sets.values() for key in keys if key[1] != "none"}
    for place, keys in sets.items():
        twice = next((key for key in keys if keys.count(key) > 1), None)
        lacking = next(iter(sorted(everywhere.difference(keys))), None)
        problem = "is duplicated" if twice else "is missing, where other profiles have it"
        if key := twice or lacking:
            raise UserError(
                f"{where}: profile {' '.join(place)[:80]!r}: {key[1]} {key[0][:60]!r}, repeat "
                f'{key[2]}, {problem}. Each set needs each line once; write "answer": null for an '
                "answer that is missing"
            )


def with_parts(items: list[Item]) -> list[Item]:
    """Give the items with the profile as their cluster, and the part as a tag."""

    def split(item: Item) -> Item:
        profile, _, part = item.tags["cluster"].partition(_BETWEEN)
        tags = {**item.tags, "cluster": profile, "part": part}
        return replace(item, id=item.id.replace(_BETWEEN, "@"), tags=tags)

    return [split(item) for item in items]


# -- values ---------------------------------------------------------------------------------------


def compared(outcomes: Mapping[str, ActionOutcome]) -> list[CounterfactualOutcome]:
    """Give the outcomes as contrasts compare them: shares, each in a column of its own."""
    return [CounterfactualOutcome(f"value.{name}", name) for name in outcomes]


def action_in(text: str | None, tool_calls: str | None, *, tools_declared: bool) -> Any:
    """Read an answer as JSON, with the calls of declared tools in `tool_calls`.

    Args:
        text: The answer. None if there is none.
        tool_calls: The calls of declared tools that a result stores. None without any.
        tools_declared: Whether the agent was told of tools, so that no call is none.

    Returns:
        The answer. None if it is not JSON, and no tool was declared or it refuses.
    """
    if not text:
        return None
    calls = tool_calls_in(tool_calls)
    try:
        answer = strict_json.parse(answer_message(text, calls).content)
    except UnreadableReply:
        answer = None
    if not tools_declared or (isinstance(answer, Mapping) and "tool_calls" in answer):
        return answer
    if not calls and not isinstance(answer, Mapping) and refuses(text):
        return None
    called = [{"name": call.function.name, "arguments": call.function.arguments} for call in calls]
    return {**(answer if isinstance(answer, Mapping) else {}), "tool_calls": called}


def read_values(
    rows: pl.DataFrame, outcomes: Mapping[str, ActionOutcome], *, tools_declared: bool = False
) -> pl.DataFrame:
    """Read the answers of rows that have their facts.

    Args:
        rows: The answers with their facts.
        outcomes: The outcomes of the scenario.
        tools_declared: Whether the agent was told of tools. Without a call in any row, which tools
            an answer calls is missing.

    Returns:
        The rows with a column for each outcome, and their state: scored if any outcome is read.
    """
    texts = rows["text"].to_list()
    # An agent that never calls a tool may be unable to: its answers do not say that none is needed.
    tools_declared = tools_declared and rows["tool_calls"].is_not_null().any()
    actions = [action_in(*answer, tools_declared=tools_declared)
               for answer in zip(texts, rows["tool_calls"], strict=True)]  # fmt: skip
    values = {f"value.{name}": [outcome.share(action) for action in actions]
              for name, outcome in outcomes.items()}  # fmt: skip
    read = rows.hstack(pl.DataFrame(values, schema=dict.fromkeys(values, pl.Float64)))
    refused = pl.Series([bool(text) and refuses(text) for text in texts], dtype=pl.Boolean)
    state = (
        pl.when(pl.any_horizontal(pl.col([*values]).is_not_null())).then(pl.lit(SCORED))
        .when(pl.col("text").is_null()).then(why_lost())
        .when(refused).then(pl.lit(REFUSED))
        .otherwise(pl.lit(UNREADABLE))
    )  # fmt: skip
    repeat = pl.struct("part", "repeat").rank("dense").cast(pl.Int64)
    whole = [pl.lit(0).alias(name) for name in SAME_PLACE if name not in read.columns]
    return read.with_columns(*whole, state=state, repeat=repeat)


def with_comparisons(answers: pl.DataFrame, outcomes: Mapping[str, ActionOutcome]) -> pl.DataFrame:
    """Add what each answer differs by, for each outcome.

    Args:
        answers: As `read_values` gives them.
        outcomes: The outcomes of the scenario.

    Returns:
        The rows with `signed.…`, the difference from the other group; `excess.…` and
        `own_placebo.…`; and `spread.…`, on the first answer of a matched set, its largest value
        minus its smallest.
    """
    each = compared(outcomes)
    names = [outcome.name for outcome in each]
    paired = with_other(answers, names).select(
        "item_id",
        *(outcome.differences(outcome.name, f"{outcome.name}:o")[0].alias(f"signed.{outcome.name}")
          for outcome in each),
    )  # fmt: skip
    distances = {name: lambda x, y: (x - y).abs() for name in names}
    squares = excesses(answers, distances)
    spreads = _spreads(answers, names)
    for table in (paired, squares, spreads):
        answers = answers.join(table, on="item_id", how="left", maintain_order="left")
    return answers


def _spreads(answers: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The range of each outcome over the groups of a matched set, on the set's first answer; null
    where one of them is not known."""
    values = pl.col(names)
    whole = pl.when(values.null_count() == 0).then(values.max() - values.min())
    return (
        answers.filter(pl.col("role") == "group")
        .group_by(*SAME_PLACE, maintain_order=True)
        .agg(pl.col("item_id").first(), whole.name.prefix("spread."))
        .drop(*SAME_PLACE)
        .with_columns(first=pl.lit(value=True))
    )
