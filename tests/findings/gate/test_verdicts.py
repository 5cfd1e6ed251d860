"""The verdicts of a gate, where the truth is known, and what missing answers may do to them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from bench.gate import DRAWN, InMemory, checks, judged, planned, shares, two_runs
from evenhand.findings.change_test import ChangeTest
from evenhand.findings.decision_rules import kept
from evenhand.findings.gate import Gate, GateCheck, GateCheckResult, Verdict, clusters_to_keep, gate
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.summed_statistics import Mean
from evenhand.findings.worst_case import WorstCasePair, WorstCaseSums
from evenhand.statistics.proportions import zero_event_upper
from tests.errors import assert_names

RANK: dict[Verdict, int] = {"pass": 1, "fail": 0, "inconclusive": 0, "error": 0}


@pytest.fixture(scope="module")
def size() -> int:
    return planned(np.random.default_rng(1))


def test_a_planted_shift_fails_four_times_in_five_at_the_planned_size(size: int) -> None:
    assert size == 245
    assert shares(0.06, 4, seed=65, templates=size).first["fail"] == 1.0
    assert shares(0.03, 10, seed=35, templates=size).first["fail"] >= 0.8


def test_a_twin_does_not_fail_and_mostly_passes_at_the_planned_size(size: int) -> None:
    found = shares(0.0, 8, seed=5, templates=size)
    assert found.gate["fail"] == 0.0
    assert found.first["pass"] >= 0.8


@pytest.mark.parametrize("seed", range(3))
def test_one_more_failure_of_the_new_run_never_turns_a_check_to_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = two_runs(rng, 14, shift=0.1 * (seed % 3), again=0.3)
    old = judged((before, after), margin=0.35)
    failing = after.rows
    for item in rng.permutation(failing["item_id"].to_list())[:5]:
        gone = pl.col("item_id") == item
        failing = failing.with_columns(
            status=pl.when(gone).then(pl.lit("failed")).otherwise("status"),
            choice=pl.when(~gone).then("choice"),
            text=pl.when(~gone).then("text"),
        )
        new = judged((before, InMemory("after", failing)), margin=0.35)
        for was, now in zip(old.checks, new.checks, strict=True):
            assert RANK[now.verdict] <= RANK[was.verdict], (was.says, now.says)
        old = new
    assert old.verdict != "pass"  # 5 of 56 are gone: fewer than 95 % are left


def test_a_number_near_no_bias_may_change_sides_and_not_move_away() -> None:
    near = Measure(name="lean", label="lean", statistic=Mean(pl.col("y")), better="zero",
                   within=(-1, 1), margin=0.1)  # fmt: skip

    def within(before: float, after: float) -> float:
        rows, none = np.ones(120), np.zeros(120)
        old, new = (WorstCaseSums.of(near, rows * mean, rows, none) for mean in (before, after))
        return ChangeTest.of(near, [WorstCasePair(old, new, none, none)]).p_within(0.1)

    assert within(0.3, 0.3) < 0.025
    assert within(0.3, -0.3) < 0.025  # the other side, as far
    assert within(-0.4, 0.0) < 0.025
    assert within(0.3, 0.5) > 0.5
    assert within(0.0, -0.2) > 0.5
    assert within(0.3, 0.39) > 0.025  # so near to the margin that one cluster more may cross it


def test_a_distance_from_no_bias_is_never_called_kept_by_the_error_of_the_change() -> None:
    """Near 0 either run errs by far more than their difference does."""
    ratio = replace(DRAWN.measure("lean"), margin=0.3, statistic=Mean(pl.col("y")))
    before = pl.DataFrame({"item_id": [str(n) for n in range(40)]}).with_columns(
        cluster="item_id", state=pl.lit("scored"), y=pl.Series(np.linspace(-0.6, -0.2, 40))
    )
    after = before.with_columns(y=pl.col("y") + pl.Series(np.linspace(0.3, 0.1, 40)))
    instrument = GateCheck(name="x", instrument=DRAWN, measure=ratio).narrowed()
    found = PairTotals.of(instrument, iter([before]), iter([after])).change(ratio)
    assert kept(found, ratio) == "non_inferior"  # it rose by 0.2, towards 0, and sign flips show it
    assert kept(replace(found, test=None), ratio) == "inconclusive"


def test_the_verdict_of_a_gate_is_the_worst_of_its_checks_and_of_none_it_is_broken() -> None:
    def made(*verdicts: Verdict) -> Gate:
        return Gate(
            checks=tuple(GateCheckResult(name="a", verdict=one, says="") for one in verdicts)
        )

    assert made("pass", "pass").passed
    assert made("pass", "inconclusive").verdict == "inconclusive"
    assert made("inconclusive", "error").verdict == "error"
    assert made("error", "fail", "pass").verdict == "fail"
    assert made().verdict == "error"


def test_holm_is_over_all_checks_those_that_could_not_be_judged_too() -> None:
    runs = two_runs(np.random.default_rng(11), 60, shift=0.06)
    [first, *others] = checks()
    alone = gate([first], {"guesses": runs}).checks[0].change
    beside = gate([first, *others], {"guesses": runs, "right": "gone", "lean": "gone"})
    changed = beside.checks[0].change
    assert alone is not None
    assert changed is not None
    assert alone.p is not None
    assert alone.p_holm == pytest.approx(alone.p)
    assert changed.p_holm == pytest.approx(min(1.0, 3 * alone.p))
    assert [one.verdict for one in beside.checks[1:]] == ["error", "error"]


def test_a_group_is_judged_by_its_own_rows_and_one_that_is_not_there_is_broken() -> None:
    runs = two_runs(np.random.default_rng(2), 30, shift=0.0)
    [first, *_] = checks(0.3)
    for value, verdict, rows in (("odd", "pass", 60), ("blue", "error", 0)):
        [found] = gate([replace(first, group=("kind", value))], {"guesses": runs}).checks
        assert found.verdict == verdict, found.says
        assert (found.change.n if found.change else 0) == rows
    assert_names(found.says, "kind", "'blue'", "even, odd")


def test_without_spread_the_size_is_that_of_which_none_may_hide_the_margin() -> None:
    assert clusters_to_keep(0.0, 0.02, 1.0) == 183
    assert zero_event_upper(182, 0.975) > 0.02 >= zero_event_upper(183, 0.975)
    sizes = [clusters_to_keep(sd, 0.03, 1.0) or 0 for sd in (0.0, 0.1, 0.2, 0.4)]
    assert sizes == sorted(sizes)
    assert clusters_to_keep(0.1, 1e-160, 1.0) is None
