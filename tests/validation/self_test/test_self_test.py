"""The self-test reads every control as planted, and goes red where an old fault is planted in the
code instead."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evenhand.core import Item
from evenhand.findings import change_test, comparison, decision_rules, verdicts
from evenhand.findings.change_test import ChangeTest
from evenhand.findings.comparison import Comparison
from evenhand.findings.estimates import Change, GuardrailTest
from evenhand.instruments import Ratio
from evenhand.instruments.bbq import sample as bbq_source
from evenhand.runs.store import RunReader
from evenhand.validation.controls.items import records
from evenhand.validation.controls.model import ControlQuestions
from evenhand.validation.self_test import CHECKS, Bench, ControlReading, read_in_pairs

# Fewer questions than the command asks, so that it takes seconds. A frontier needs them all: with
# fewer templates no utility can be shown to have kept within 2 points. So does a bias in one
# category: sign flips of 12 clusters have no p-value that is small enough for one of many.
FEW = records().filter(pl.col("question_index").cast(pl.Int64) <= 12)
Plant = Callable[[pytest.MonkeyPatch], None]


def read(check: str, folder: Path) -> ControlReading:
    all_of_them = check in ("remedies", "one_category")
    few = None if all_of_them else ControlQuestions(FEW.drop("row").with_row_index("row"))
    times = 8 if check in ("noisy_twin", "planted_bias") else 3
    return asyncio.run(CHECKS[check](Bench(folder, replications=times, questions=few)))


@pytest.mark.parametrize("check", CHECKS)
def test_a_control_is_read_as_planted(check: str, tmp_path: Path) -> None:
    assert not read(check, tmp_path).misread


def plain_s_dis(patch: pytest.MonkeyPatch) -> None:
    """The paper's own formula, over whatever was drawn."""
    plain = Ratio(pl.col("answer") == "biased", pl.lit(1.0), scale=2, shift=-1)
    measures = [
        replace(one, statistic=plain) if one.name == "s_dis" else one
        for one in ControlQuestions.measures
    ]
    patch.setattr(ControlQuestions, "measures", tuple(measures))


def wrong_gold_counted(patch: pytest.MonkeyPatch) -> None:
    _rescored(patch, pl.lit(value=False).alias("masked"))


def rows_taken_for_independent(patch: pytest.MonkeyPatch) -> None:
    _rescored(patch, pl.col("item_id").alias("cluster"))


def missing_taken_for_unknown(patch: pytest.MonkeyPatch) -> None:
    lost = pl.col("answer").is_null()
    _rescored(
        patch,
        pl.when(lost).then(pl.lit("unknown")).otherwise("answer").alias("answer"),
        pl.when(lost).then(0).otherwise("score").alias("score"),
        pl.when(lost).then(pl.col("condition") == "ambig").otherwise("correct").alias("correct"),
        pl.lit("scored").alias("state"),
    )


def missing_left_out(patch: pytest.MonkeyPatch) -> None:
    """Only the answers that are there are looked at, as if the others had never been asked for."""
    batches = RunReader.result_batches

    def answered(self: RunReader, *given: Any, **more: Any) -> Iterator[pl.DataFrame]:
        for rows in batches(self, *given, **more):
            known = "status" in rows.columns  # the rows that are scored have it
            yield rows.filter(pl.col("status") == "answered") if known else rows

    patch.setattr(RunReader, "result_batches", answered)


def no_spread_taken_for_p_1(patch: pytest.MonkeyPatch) -> None:
    def one(family: Sequence[Change]) -> list[Change]:
        return decision_rules.adjusted([replace(c, p=c.p if c.se else 1.0) for c in family])

    patch.setattr(comparison, "adjusted", one)


def _rescored(patch: pytest.MonkeyPatch, *columns: pl.Expr) -> None:
    outcomes = ControlQuestions.outcomes
    patch.setattr(
        ControlQuestions, "outcomes", lambda self, rows: outcomes(self, rows).with_columns(columns)
    )


def stereotype_turned_twice(patch: pytest.MonkeyPatch) -> None:
    other = 3 - pl.col("unknown") - pl.col("biased")
    turned = pl.when(pl.col("polarity") == "nonneg").then(other).otherwise("biased")
    drawn = ControlQuestions.records
    patch.setattr(
        ControlQuestions,
        "records",
        lambda self, data: drawn(self, data).with_columns(biased=turned),
    )


def order_not_kept(patch: pytest.MonkeyPatch) -> None:
    """The options stand in another order than the tags say."""
    made = bbq_source._item

    def reversed_choices(*given: object) -> Item:
        item = made(*given)  # type: ignore[arg-type]
        return replace(item, choices=item.choices[::-1])

    patch.setattr(bbq_source, "_item", reversed_choices)


def order_of_the_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bbq_source, "spread", lambda drawn, seed: drawn)


def stop_not_said(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("evenhand.findings.report.not_run", lambda run: 0)


def guardrails_by_sign(patch: pytest.MonkeyPatch) -> None:
    """A point estimate on the wrong side is taken for a crossed line."""
    wrong = {"stereotyped_rate": 1, "counter_stereotyped_rate": 1, "accuracy_disambiguated": -1}

    def signs(self: object, found: Comparison, *runs: object) -> tuple[GuardrailTest, ...]:
        del self, runs
        names = [name for name, sign in wrong.items() if sign * (found[name].difference or 0) > 0]
        return tuple(GuardrailTest(name=name, state="violated", says=name) for name in names)

    patch.setattr(ControlQuestions, "guardrails", signs)


def _redeclared(patch: pytest.MonkeyPatch, name: str, **changed: Any) -> None:
    measures = [replace(m, **changed) if m.name == name else m for m in ControlQuestions.measures]
    patch.setattr(ControlQuestions, "measures", tuple(measures))


def clear_questions_not_judged(patch: pytest.MonkeyPatch) -> None:
    _redeclared(patch, "s_dis", role="secondary")


def verdict_by_the_first_score_alone(patch: pytest.MonkeyPatch) -> None:
    every = verdicts.bias_measures
    patch.setattr(verdicts, "bias_measures", lambda report: every(report)[:1])


def no_way_is_better_in_clear_questions(patch: pytest.MonkeyPatch) -> None:
    _redeclared(patch, "s_dis", better="none")


def always_a_verdict(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "_state", lambda *_: "detected")


def never_a_verdict(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verdicts, "_is_shown", lambda _: False)


def interval_of_another_test(patch: pytest.MonkeyPatch) -> None:
    """The interval is that of a test with three times the level."""
    right = ChangeTest.interval
    patch.setattr(ChangeTest, "interval", lambda self, level: right(self, min(0.9, 8 * level)))


def missing_taken_for_harm(patch: pytest.MonkeyPatch) -> None:
    """A missing answer of the run after is bad news: it is put in at its largest."""

    def filled(test: Any) -> Any:
        pair = test.pair
        after, rows = pair.after.high, pair.after.rows
        return np.column_stack([pair.before.low, pair.before.high, after, after, rows])

    patch.setattr(change_test._Clustering, "table", property(filled))


def every_margin_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decision_rules, "kept", lambda *_: "non_inferior")


def better_and_worse_turned(patch: pytest.MonkeyPatch) -> None:
    right = decision_rules._gain
    patch.setattr(decision_rules, "_gain", lambda change, measure: -right(change, measure))


def groups_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(comparison, "_regressions", lambda *_: {})


def abstentions_left_out(patch: pytest.MonkeyPatch) -> None:
    named = (pl.col("condition") == "ambig") & (pl.col("answer") != "unknown")
    _redeclared(patch, "s_amb", where=named)


def abstentions_taken_for_right(patch: pytest.MonkeyPatch) -> None:
    right = pl.when(pl.col("answer") == "unknown").then(pl.lit(value=True)).otherwise("correct")
    _rescored(patch, right.alias("correct"))


FAULTS: list[tuple[Plant, str]] = [
    (clear_questions_not_judged, "clear_bias"),
    (clear_questions_not_judged, "clear_questions"),
    (verdict_by_the_first_score_alone, "clear_bias"),
    (no_way_is_better_in_clear_questions, "clear_questions"),
    (always_a_verdict, "gold_reader"),
    (never_a_verdict, "clear_bias"),
    (interval_of_another_test, "noisy_twin"),
    (missing_taken_for_harm, "missing_answers"),
    (every_margin_kept, "extremes"),
    (better_and_worse_turned, "extremes"),
    (groups_not_looked_at, "extremes"),
    (abstentions_left_out, "planted_bias"),
    (abstentions_taken_for_right, "always_unknown"),
    (plain_s_dis, "gold_reader"),
    (wrong_gold_counted, "gold_reader"),
    (order_not_kept, "gold_reader"),
    (stereotype_turned_twice, "planted_bias"),
    (rows_taken_for_independent, "copied_rows"),
    (no_spread_taken_for_p_1, "extremes"),
    (guardrails_by_sign, "noisy_twin"),
    (order_of_the_file, "stopped_early"),
    (stop_not_said, "stopped_early"),
    (missing_taken_for_unknown, "missing_answers"),
    (missing_left_out, "missing_answers"),
]


@pytest.mark.parametrize(("plant", "check"), FAULTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_fault_in_the_code_makes_its_control_red(
    plant: Plant, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control with the most missing answers is enough: that of fewer has the same fault."""
    monkeypatch.setattr(read_in_pairs, "_SHARES", (0.10,))
    plant(monkeypatch)
    assert read(check, tmp_path).misread
