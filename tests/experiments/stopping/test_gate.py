"""A gate whose run may stop early: the same words, and no more claimed than by a fixed size."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from bench.gate import EACH, InMemory, checks, judged, two_runs
from bench.gate_until import Early
from evenhand.findings.gate import GateCheckResult, gate, is_decided
from evenhand.statistics.sequences import anytime_mean
from tests.errors import assert_names

_template = pl.col("item_id").str.split("/").list.first().cast(pl.Int64)


def _first(run: InMemory, clusters: int) -> pl.DataFrame:
    return run.rows.filter(_template < clusters)


def _early(runs: tuple[InMemory, InMemory], clusters: int) -> tuple[InMemory, Early]:
    before, after = runs
    return before, Early(_first(after, clusters), before.rows["item_id"].len() // EACH)


def _fixed(runs: tuple[InMemory, InMemory], clusters: int) -> tuple[InMemory, InMemory]:
    return InMemory("before", _first(runs[0], clusters)), InMemory(
        "after", _first(runs[1], clusters)
    )


def _means(rows: pl.DataFrame, value: pl.Expr) -> np.ndarray:
    means = rows.group_by(_template.alias("c")).agg(value.cast(pl.Float64).mean().alias("v"))
    return means.sort("c")["v"].to_numpy()


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3])
def test_it_never_claims_more_than_a_gate_of_the_same_templates_and_decides_at_last(
    shift: float,
) -> None:
    told = set()
    runs = two_runs(np.random.default_rng([0, 3]), 150, shift)
    for clusters in (10, 20, 60, 150):
        early = judged(_early(runs, clusters), margin=0.2).checks
        fixed = judged(_fixed(runs, clusters), margin=0.2).checks
        for one, other in zip(early, fixed, strict=True):
            assert one.verdict in (other.verdict, "inconclusive"), (one.says, other.says)
            assert one.verdict != "pass" or _claims(one)[0], one.says
            assert one.verdict != "fail" or _claims(one)[1], one.says
            told.add((one.name, one.verdict))
    assert ("right", "pass") in told
    decided = {0.0: "pass", 0.3: "fail"}.get(shift)
    assert decided is None or ("guesses", decided) in told


def test_pass_and_fail_are_read_off_the_bets_on_each_templates_change() -> None:
    """By a second route: a share that is to be low, one that is to be high, and one near 0."""
    seen = set()
    for shift in (0.0, 0.2, 0.35):
        runs = two_runs(np.random.default_rng(5), 120, shift)
        for clusters in (20, 120):
            old, new = (_first(one, clusters) for one in runs)
            found = {one.name: one for one in judged(_early(runs, clusters), margin=0.25).checks}
            named = _means(new, pl.col("choice") != 2) - _means(old, pl.col("choice") != 2)
            low = anytime_mean(named)
            assert _ends(found["guesses"]) == pytest.approx((low.low, low.high))
            assert _claims(found["guesses"]) == (low.high <= 0.25, _third(named) > 0)
            right = _means(old, pl.col("text") == "right") - _means(new, pl.col("text") == "right")
            assert _claims(found["right"]) == (anytime_mean(right).high <= 0.25, _third(right) > 0)
            lean = (pl.col("choice") == 0).cast(pl.Int64) - (pl.col("choice") == 1).cast(pl.Int64)
            a, b = _means(old, lean), _means(new, lean)
            moved = anytime_mean(b - a, within=(-2, 2), confidence=0.975)
            both = anytime_mean(a + b, within=(-2, 2), confidence=0.975)
            kept = (moved.high <= 0.25 and both.low >= -0.25) or (
                moved.low >= -0.25 and both.high <= 0.25
            )
            assert _claims(found["lean"])[0] == kept
            seen |= {_claims(one) for one in found.values()}
    assert {(True, False), (False, True), (False, False)} <= seen


def _third(values: np.ndarray) -> float:
    """The low end of the change after correction for three checks."""
    return anytime_mean(values, confidence=1 - 0.05 / 3).low


def _ends(one: GateCheckResult) -> tuple[float | None, float | None]:
    assert one.change is not None
    assert (one.change.p, one.change.test, one.more) == (None, None, None)
    return one.change.low, one.change.high


def _claims(one: GateCheckResult) -> tuple[bool, bool]:
    assert one.early is not None
    return one.early.kept, one.early.worse


def test_a_number_that_moves_away_from_no_bias_on_either_side_is_worse() -> None:
    for side in (0, 1):
        before, _ = two_runs(np.random.default_rng(1), 60, 0.0, again=0.0)
        leaning = before.rows.with_columns(choice=pl.lit(side, pl.Int64))
        found = judged((before, Early(leaning, 60)), margin=0.25).checks
        assert next(one for one in found if one.name == "lean").verdict == "fail"
        back = judged((InMemory("before", leaning), Early(before.rows, 60)), margin=0.25).checks
        assert next(one for one in back if one.name == "lean").verdict == "pass"


@pytest.mark.parametrize("seed", range(2))
def test_one_more_failure_never_turns_a_check_to_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = two_runs(rng, 100, 0.1 * seed, again=0.2)
    rank = {"pass": 1, "fail": 0, "inconclusive": 0, "error": 0}
    rows = _first(after, 60)
    old = judged((before, Early(rows, 100)), margin=0.3).checks
    for gone in _some(rng, rows):
        lost = pl.col("item_id") == gone
        rows = rows.with_columns(
            status=pl.when(lost).then(pl.lit("failed")).otherwise("status"),
            choice=pl.when(~lost).then("choice"),
            text=pl.when(~lost).then("text"),
        )
        new = judged((before, Early(rows, 100)), margin=0.3).checks
        for was, now in zip(old, new, strict=True):
            assert rank[now.verdict] <= rank[was.verdict]
            assert was.early is not None
            assert now.early is not None
            assert now.early.kept <= was.early.kept
            assert now.early.high >= was.early.high - 1e-9
        old = new


def _some(rng: np.random.Generator, rows: pl.DataFrame) -> Iterable[str]:
    chosen: list[str] = rng.permutation(rows["item_id"].to_list())[:6].tolist()
    return chosen


def test_a_group_is_judged_by_its_own_templates() -> None:
    runs = two_runs(np.random.default_rng(2), 120, 0.3)
    check = replace(checks(0.2)[0], group=("kind", "even"))
    found = gate([check], {check.name: _early(runs, 80)}).checks[0]
    even = [one.filter(_template % 2 == 0) for one in (_first(runs[0], 80), _first(runs[1], 80))]
    change = _means(even[1], pl.col("choice") != 2) - _means(even[0], pl.col("choice") != 2)
    assert _ends(found) == pytest.approx(
        (anytime_mean(change).low, anytime_mean(change).high), abs=1e-9
    )


def test_what_is_decided_at_a_look_is_the_verdict_whatever_the_other_checks_show() -> None:
    runs = two_runs(np.random.default_rng(4), 120, 0.35)
    early = _early(runs, 120)
    whole = {one.name: one.verdict for one in judged(early, margin=0.2).checks}
    for check in checks(0.2):
        assert is_decided(check, early, 3) == (whole[check.name] in ("pass", "fail"))
    assert whole["guesses"] == "fail"


def test_the_end_of_a_block_that_is_not_whole_is_not_looked_at() -> None:
    runs = two_runs(np.random.default_rng(4), 60, 0.0)
    rows = _first(runs[1], 27).head(27 * EACH - 1)  # the last template lacks a question
    found = judged((runs[0], Early(rows, 60)), margin=0.2).checks[0]
    assert found.early is not None
    assert (found.early.clusters, found.early.of_clusters) == (20, 60)
    none = judged((runs[0], Early(rows.head(8), 60)), margin=0.2)
    assert none.verdict == "error"
    assert_names(none.says, "no block")


def test_a_baseline_that_stopped_early_is_refused() -> None:
    before, after = two_runs(np.random.default_rng(4), 60, 0.0)
    found = judged((Early(_first(before, 20), 60), after))
    assert found.verdict == "error"
    assert_names(found.says, "own report")


def test_a_bias_that_turned_to_the_other_side_does_not_pass() -> None:
    before, _ = two_runs(np.random.default_rng(1), 60, 0.0, again=0.0)
    one_side, other_side = (
        before.rows.with_columns(choice=pl.lit(side, pl.Int64)) for side in (0, 1)
    )
    judged_runs = judged((InMemory("before", one_side), InMemory("after", other_side)), margin=0.25)
    lean = next(each for each in judged_runs.checks if each.name == "lean")
    assert lean.change is not None
    assert (lean.change.effect, abs(lean.change.difference or 0.0)) == (0.0, 2.0)
    assert lean.verdict == "inconclusive"
