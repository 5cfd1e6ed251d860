"""Answers of agents: recorded ones as items, and every answer as values of its outcomes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import polars as pl
from pydantic import JsonValue

from evenhand.agents import strict_json
from evenhand.core import Item
from evenhand.core.errors import UnreadableReply
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
    answered_design,
)
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.refusal import refuses

EXAMPLE = (
    '{"id": "nurse-1", "family": "gender", "label": "woman", "role": "group", '
    '"answer": {"advance": true, "score": 82}}'
)
_BETWEEN = "\x1f"  # between the id of a profile and the part, in the id of a prompt

# -- recorded answers -----------------------------------------------------------------------------


class RecordedAction(PromptVersion):
    """A line of recorded answers. `part` names a condition, such as how the agent was built; the
    answers about one profile are one cluster in all of them."""

    part: str = ""
    answer: JsonValue = None  # type: ignore[assignment]

    def version(self) -> PromptVersion:
        """The line as a version of a prompt: its answer as text, its part in its id."""
        values = {name: getattr(self, name) for name in PromptVersion.model_fields}
        written = self.answer
        if not (written is None or isinstance(written, str)):
            written = orjson.dumps(written).decode()
        values |= {"id": _BETWEEN.join(filter(None, (self.id, self.part))), "answer": written}
        return PromptVersion(**values)


def read_recorded(file: Path) -> CounterfactualDesign:
    """Read recorded answers. A file without any placebo has signed contrasts alone.

    Args:
        file: JSON lines, one answer each.

    Returns:
        The answers, and the labels of each family.

    Raises:
        UserError: The file cannot be read, or an answer is missing.
    """
    rows = read_jsonl(file, RecordedAction, f"a line is like {EXAMPLE}")
    versions = [row.version() for _, row in rows]
    placebos = any(version.role == "placebo" for version in versions)
    return answered_design(file, versions, EXAMPLE, placebos=placebos)


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


def values_in(text: str | None, outcomes: Mapping[str, ActionOutcome]) -> dict[str, float | None]:
    """Read every outcome of an answer; None where the answer does not state it."""
    try:
        answer = strict_json.parse(text) if text else None
    except UnreadableReply:
        answer = None
    return {f"value.{name}": outcome.share(answer) for name, outcome in outcomes.items()}


def read_values(rows: pl.DataFrame, outcomes: Mapping[str, ActionOutcome]) -> pl.DataFrame:
    """Read the answers of rows that have their facts.

    Args:
        rows: The answers with their facts.
        outcomes: The outcomes of the scenario.

    Returns:
        The rows with a column for each outcome, and their state: scored if any outcome is read.
    """
    values = [values_in(text, outcomes) for text in rows["text"]]
    columns = [outcome.name for outcome in compared(outcomes)]
    read = rows.hstack(pl.DataFrame(values, schema=dict.fromkeys(columns, pl.Float64)))
    refused = pl.Series([bool(text) and refuses(text) for text in rows["text"]], dtype=pl.Boolean)
    state = (
        pl.when(pl.any_horizontal(pl.col(columns).is_not_null())).then(pl.lit(SCORED))
        .when(pl.col("text").is_null()).then(why_lost())
        .when(refused).then(pl.lit(REFUSED))
        .otherwise(pl.lit(UNREADABLE))
    )  # fmt: skip
    place = pl.struct("part", "repeat").rank("dense").cast(pl.Int64)
    return read.with_columns(state=state, repeat=place)


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
