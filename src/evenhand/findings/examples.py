"""Answers are chosen for a reader to look at by a stated rule: nobody picked them by hand."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core import Draft, Message, Turn, messages_in
from evenhand.core.items import Tool
from evenhand.core.results import tools_in
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import Scoring, ScoringSpec, outcome_batches
from evenhand.runs.store import RunReader
from evenhand.runs.store.tables import turn_of

WORSE, BETTER, CHANGED = 2, 1, 1  # our choice, of each run: harm first, and few enough to be read
REWRITTEN = 4  # our choice, of a run that no instrument measured
_ORDERED = ("lower", "higher", "zero")  # of these measures more or less is known to be worse


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleAnswer:
    """A chosen answer, with why it was chosen and the whole conversation that led to it."""

    item_id: str
    why: RemarkOrText
    asked: str  # as the model was asked for it
    conversation: tuple[Message, ...]  # up to the answer; empty of a single prompt
    tools: tuple[Tool, ...]  # declared to the model that answers
    answer: str | None
    ended: str  # why it stopped, or why the answer is missing
    drafts: tuple[Draft, ...]
    turns: tuple[Turn, ...]
    baseline: str | None = None  # the answer of the run that this one is compared with


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenExamples:
    """The chosen answers of one run, and the rule that chose them."""

    run: str
    rule: RemarkOrText
    answers: tuple[ExampleAnswer, ...]


def choose(
    instrument: ScoringSpec, run: RunReader, baseline: RunReader | None = None
) -> ChosenExamples:
    """Choose the answers of a run that a reader should see: the worst ones and some that the method
    changed. With a baseline, choose those that got worse or better.

    Args:
        instrument: The benchmark.
        run: The run to choose from.
        baseline: The run to compare with; None to choose by the run alone.
    """
    measure = _measure(instrument)
    picked: dict[str, Remark] = {}
    label = "" if measure is None else measure.label
    if measure is not None:
        harm = _harm(instrument, measure, run, baseline)
        worse = "examples.worst" if baseline is None else "examples.worse"
        picked |= dict.fromkeys(_first(harm, WORSE), Remark(worse, measure=label))
        if baseline is not None:
            gained = harm.with_columns(-pl.col("harm"))
            better = Remark("examples.better", measure=label)
            picked |= dict.fromkeys(_first(gained, BETTER), better)
    others = [item for item in _changed(run) if item not in picked][:CHANGED]
    picked |= dict.fromkeys(others, Remark("examples.changed"))
    rule = Remark(
        "examples.rule",
        measure=label,
        worse=WORSE,
        compared=baseline is not None,
        changed=bool(others),
    )
    return ChosenExamples(run=str(run.path), rule=rule, answers=_read(run, picked, baseline))


def choose_changed(run: RunReader) -> ChosenExamples:
    """Choose answers that the method of a run changed, where no instrument measured them."""
    picked = _changed(run)[:REWRITTEN]
    schema = run.results().collect_schema()
    outcomes: dict[str, str | None] = {}
    if "outcome" in schema:
        rows = run.results().filter(pl.col("item_id").is_in(picked))
        outcomes = dict(rows.select("item_id", "outcome").collect().iter_rows())
    why = {item: _changed_from(outcomes.get(item)) for item in picked}
    return ChosenExamples(
        run=str(run.path),
        rule=Remark("examples.rule_changed", first=REWRITTEN),
        answers=_read(run, why, None),
    )


def _changed_from(outcome: str | None) -> Remark:
    label = Remark("examples.changed") if outcome is None else outcome.replace("_", " ")
    return Remark("examples.changed_from", outcome=label)


def _measure(instrument: ScoringSpec) -> Measure | None:
    """The measure that answers are chosen by: harm, else what must not be lost, else the first that
    has a number for each item."""
    names = [
        instrument.harm,
        instrument.utility,
        *(measure.name for measure in instrument.primary()),
    ]
    by_name = {measure.name: measure for measure in instrument.measures}
    candidates = (by_name[name] for name in names if name in by_name)
    return next((m for m in candidates if m.better in _ORDERED and _column(m) in m.columns()), None)


def _column(measure: Measure) -> str:
    return f"{measure.name}.value"


def _harm(
    instrument: ScoringSpec, measure: Measure, run: RunReader, baseline: RunReader | None
) -> pl.DataFrame:
    """Give columns item_id and harm: how bad each answer is, or how much worse than before."""
    if baseline is None:
        return _values(instrument, measure, run, instrument.scoring(run))
    old, new = instrument.scorings(baseline, run)
    before = _values(instrument, measure, baseline, old)
    after = _values(instrument, measure, run, new)
    both = after.join(before, on="item_id", suffix="_before")
    return both.select("item_id", pl.col("harm") - pl.col("harm_before"))


def _values(
    instrument: ScoringSpec, measure: Measure, run: RunReader, scoring: Scoring
) -> pl.DataFrame:
    value = measure.columns()[_column(measure)].cast(pl.Float64)
    top = measure.range[1] if measure.bounded else 0.0
    bad = {"lower": value, "higher": top - value, "zero": value.abs()}[measure.better]
    batches = [
        outcomes.select("item_id", bad.alias("harm")).drop_nulls()
        for outcomes in outcome_batches(instrument.for_run(run), run, scoring)
    ]
    empty = pl.DataFrame(schema={"item_id": pl.String, "harm": pl.Float64})
    return pl.concat([empty, *batches]).unique("item_id", keep="first", maintain_order=True)


def _first(harms: pl.DataFrame, count: int) -> list[str]:
    """The items with the largest number above 0. Our choice: an answer that is not bad, or did not
    change, does not show what is wrong."""
    above = harms.filter(pl.col("harm") > 0)
    least = above["harm"].top_k(count).min()
    candidates = above.filter(pl.col("harm") >= least) if least is not None else above
    ordered = sorted(candidates.iter_rows(), key=lambda row: (-row[1], digest(row[0])))
    return [item for item, _ in ordered[:count]]


def _changed(run: RunReader) -> list[str]:
    item_ids = run.results().filter(pl.col("changed")).select("item_id").collect()["item_id"]
    return sorted(item_ids.unique().to_list(), key=digest)


def digest(item: str) -> str:
    """Give the key by which equal items are ordered: it hangs on nothing but the id."""
    return hashlib.sha256(item.encode("utf-8", "surrogatepass")).hexdigest()


def _read(
    run: RunReader, picked: dict[str, Remark], baseline: RunReader | None
) -> tuple[ExampleAnswer, ...]:
    """Read the chosen items and their turns, in the order in which they were chosen."""
    is_picked = pl.col("item_id").is_in(list(picked))
    rows = {row["item_id"]: row for row in _rows(run.results().filter(is_picked))}
    turns: dict[str, list[Turn]] = {item: [] for item in picked}
    for row in _rows(run.turns().filter(is_picked)):
        turns[row["item_id"]].append(turn_of(row))
    before = {} if baseline is None else {
        row["item_id"]: row["text"] for row in _rows(baseline.results().filter(is_picked))
    }  # fmt: skip
    return tuple(
        chosen(rows[item], turns[item], why=why, baseline=before.get(item))
        for item, why in picked.items()
    )


def chosen(
    row: dict[str, Any],
    turns: Sequence[Turn],
    *,
    why: RemarkOrText = "",
    baseline: str | None = None,
) -> ExampleAnswer:
    """Return the answer in one row of the results, with its model calls, as a reader sees it.

    Args:
        row: The row of the results.
        turns: The model calls of the item, in their order.
        why: Why this answer was chosen.
        baseline: The answer of the baseline to the same item; None without a baseline.
    """
    return ExampleAnswer(
        item_id=row["item_id"],
        why=why,
        asked=_asked(row, turns),
        conversation=messages_in(row["conversation"]),
        tools=tools_in(row["conversation"]),
        answer=row["text"],
        ended=row["stopped"] or f"{row['reason']}: {row['message']}",
        drafts=tuple(_draft(draft) for draft in row["drafts"] or ()),
        turns=tuple(turns),
        baseline=baseline,
    )


def _rows(frame: pl.LazyFrame) -> list[dict[str, Any]]:
    return frame.collect().to_dicts()


def _asked(row: dict[str, Any], turns: Sequence[Turn]) -> str:
    """What the first agent was asked: it holds the context and the options, where there are any."""
    prompts = [m.content for turn in turns[:1] for m in turn.messages if m.role == "user"]
    return prompts[-1] if prompts else str(row["prompt"] or "")


def _draft(row: dict[str, Any]) -> Draft:
    return Draft(
        text=row["text"], scores={score["name"]: score["value"] for score in row["scores"]}
    )
