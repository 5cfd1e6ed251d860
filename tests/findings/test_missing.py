"""Turning answers into failures improves nothing: no bound, no claim, no guardrail, no verdict."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.findings.change_test import ChangeTest
from evenhand.findings.cluster_statistics import MeanOfClusters
from evenhand.findings.decision_rules import benefit_excluded, direction, kept, missing_line
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Change, Coverage, Estimate, GuardrailTest
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Mean, Share
from evenhand.findings.totals import RunTotals
from evenhand.findings.verdicts import overturned
from evenhand.findings.worst_case import WorstCasePair, WorstCaseSums
from evenhand.statistics.sign_flips import p_above_zero, p_of_columns, p_two_sided
from tests.coded import coded
from tests.statistics.flips import p_of_all_patterns

_RANK = {"regressed": 0, "violated": 0, "inconclusive": 1, "improved": 2, "non_inferior": 2}


class Answers(ScoringSpec):
    """An instrument with one measure of every kind whose missing answers can be bounded."""

    name, title, clusters, columns = "answers", "Answers", "clusters", ("choice",)
    measures = (
        Measure(name="harm", label="harm", statistic=Share(pl.col("y") > 0), better="lower",
                role="primary", margin=0.1),
        Measure(name="right", label="right", statistic=Share(pl.col("y") == 0), better="higher",
                role="primary", margin=0.1, counts_flips=True),
        Measure(name="bias", label="bias", statistic=Mean(pl.col("y")), better="zero",
                role="primary", within=(-1, 1)),
        Measure(name="most", label="most", statistic=MeanOfClusters(pl.col("y"), pl.Expr.max),
                better="lower", role="primary", margin=0.1, within=(-1, 1)),
    )  # fmt: skip


ANSWERS = Answers()
BY_NAME = {one.name: one for one in ANSWERS.measures}


def _outcomes(values: list[list[int | None]]) -> pl.DataFrame:
    """One list of answers per cluster: −1, 0, 1, or None where it is missing."""
    flat = [(f"c{c}", f"{c}-{k}", y) for c, ys in enumerate(values) for k, y in enumerate(ys)]
    return pl.DataFrame(
        {
            "item_id": [item for _, item, _ in flat],
            "cluster": [cluster for cluster, _, _ in flat],
            "state": ["missing" if y is None else SCORED for _, _, y in flat],
            "y": pl.Series([y for _, _, y in flat], dtype=pl.Int64),
        }
    )


def _changes(before: list[list[int | None]], after: list[list[int | None]]) -> dict[str, Change]:
    totals = PairTotals.of(ANSWERS, iter([_outcomes(before)]), iter([_outcomes(after)]))
    return {m.name: totals.change(m) for m in ANSWERS.measures}


def _estimates(values: list[list[int | None]]) -> dict[str, Estimate]:
    totals = RunTotals.of(ANSWERS, [_outcomes(values)])
    return {m.name: totals.estimate(m, 0.05) for m in ANSWERS.measures}


def _lose(values: list[list[int | None]], lost: set[tuple[int, int]]) -> list[list[int | None]]:
    return [
        [None if (c, k) in lost else y for k, y in enumerate(ys)] for c, ys in enumerate(values)
    ]


# -- the test itself -------------------------------------------------------------------------------


@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 2)), min_size=1, max_size=12))
@settings(max_examples=200)
def test_two_sided_p_is_that_of_all_sign_patterns(sums: list[float]) -> None:
    assert p_two_sided(sums) == pytest.approx(p_of_all_patterns(sums))


@given(st.data(), st.integers(1, 40))
@settings(max_examples=200)
def test_the_one_sided_p_never_rises_when_a_sum_rises(data: st.DataObject, size: int) -> None:
    low = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size)))
    more = np.array(data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))
    before, after = p_of_columns(np.column_stack([low, low + more]).astype(float))
    assert after <= before


def test_a_t_test_would_gain_from_a_loss_and_sign_flips_do_not() -> None:
    # One cluster gained 1.0, the others about 0.1. Losing most of that one gain makes t larger.
    gains = np.array([1.0, 0.1, 0.1, 0.11, 0.1, 0.12])
    lost = np.array([0.1, 0.1, 0.1, 0.11, 0.1, 0.12])

    def t(x: np.ndarray) -> float:
        return float(x.mean() / (x.std(ddof=1) / len(x) ** 0.5))

    assert t(lost) > 10 * t(gains)
    assert p_above_zero(lost) == p_above_zero(gains) == 1 / 64


# -- worked by hand --------------------------------------------------------------------------------


def test_bounds_of_a_share_count_the_missing_answers_as_none_and_as_all() -> None:
    # 1 of 4 known answers is harm, 2 are missing: 1/6 to 3/6.
    found = _estimates([[1, 0, None], [0, 0, None]])["harm"].bounds
    assert found is not None
    assert found.missing == 2
    assert found.low == pytest.approx(1 / 6)
    assert found.high == pytest.approx(0.5)


def test_bounds_of_a_change_take_the_missing_answers_of_both_runs_the_worst_way() -> None:
    # Pairs: 1 → 0, 0 → ?, ? → 0, ? → ?; the change of harm lies between −3/4 and +1/4 of 4 pairs …
    change = _changes([[1, 0], [None, None]], [[0, None], [0, None]])["harm"]
    assert change.bounds is not None
    # … lowest: −1 + 0 − 1 − 1 = −3; highest: −1 + 1 + 0 + 1 = 1.
    assert (change.bounds.low, change.bounds.high) == (-0.75, 0.25)
    assert change.bounds.missing == 3


def test_the_largest_possible_change_has_a_small_p() -> None:
    change = _changes([[1, 1]] * 11, [[0, 0]] * 11)["bias"]
    assert change.difference == -1.0
    assert change.p == pytest.approx(2.0**-10)
    assert direction(change, BY_NAME["bias"]) == "improved"


def test_a_gain_that_missing_answers_could_have_made_is_not_claimed() -> None:
    # Harm in 4 of 10 answers of each of 30 clusters before; after, just those 4 are missing.
    before: list[list[int | None]] = [[1, 1, 1, 1, 0, 0, 0, 0, 0, 0]] * 30
    harm = BY_NAME["harm"]
    shown = _changes(before, [[1, 1, 0, 0, 0, 0, 0, 0, 0, 0]] * 30)["harm"]
    hidden = _changes(before, [[None] * 4 + [0] * 6] * 30)["harm"]
    assert direction(shown, harm) == "improved"
    assert direction(hidden, harm) == "inconclusive"
    assert hidden.difference == 0.0  # of the pairs that both answered


def test_the_tipping_point_says_how_many_missing_answers_overturn_it() -> None:
    # Harm falls by 1 in each of 6 clusters (p = 2/64 = .031); in two more an answer is missing
    # after. One harm there gives sums 1×6, −1, 0: 2·P = 2·(1+6+…)/2^k > .05, so one is enough.
    before: list[list[int | None]] = [[1 if cluster < 6 else 0] for cluster in range(8)]
    after: list[list[int | None]] = [[0 if cluster < 6 else None] for cluster in range(8)]
    found = _changes(before, after)["harm"]
    assert found.bounds is not None
    assert found.bounds.overturn == 1
    said = coded(overturned(found.bounds, BY_NAME["harm"]), "report.overturned")
    assert (said["overturn"], said["missing"]) == (1, 2)


def test_lost_answers_are_evidence_of_nothing_bad_either() -> None:
    # Harm in 1 of 10 answers of each of 200 clusters, before and after; after, one answer in every
    # second cluster is lost. At worst harm rose by 0.05 on average, and nothing shows that it did.
    before: list[list[int | None]] = [[1, *[0] * 9]] * 200
    after: list[list[int | None]] = [[1, None, *[0] * 8], [1, *[0] * 9]] * 100
    harm, change = BY_NAME["harm"], _changes(before, after)["harm"]
    assert direction(change, harm) == "inconclusive"
    assert kept(change, harm) == "non_inferior"  # 0.05 at worst is within 0.1
    assert change.interval == pytest.approx((-0.018, 0.069), abs=0.001)
    # What the answers at hand show to be worse however the lost ones came out is worse.
    worse = _changes([[0] * 10] * 12, [[*[1] * 8, None, 0]] * 12)["harm"]
    assert direction(worse, harm) == "regressed"


def _parts(**lost: tuple[int, int]) -> GuardrailTest:
    """The line of parts of 1,000 items each, with so many missing before and after."""
    parts = {}
    for name, both in lost.items():
        old, new = (Coverage(n=1000, scored=1000 - k, by_reason={"missing": k}) for k in both)
        parts["" if name == "all" else name] = (old, new)
    return missing_line(parts)


def test_missing_answers_of_both_runs_are_never_called_kept() -> None:
    assert _parts(all=(0, 5)).state == "non_inferior"
    assert _parts(all=(0, 50)).state == "inconclusive"
    assert _parts(all=(50, 50)).state == "inconclusive"


def test_the_worst_part_decides_about_missing_answers_and_says_which_and_how_many() -> None:
    # Pooled they fell; in one condition they rose by 1.5 points.
    line = _parts(all=(30, 10), ambig=(0, 15), disambig=(60, 5))
    assert line.state == "inconclusive"
    assert line.says == Remark(
        "guardrail.missing", of="ambig", before=0, n_before=1000, after=15, n=1000
    )
    # Open in a part where hardly more are missing, though the pooled count rose by more and keeps.
    line = _parts(all=(0, 9), ambig=(16, 16), disambig=(0, 2))
    assert line.state == "inconclusive"
    assert line.says == Remark(
        "guardrail.missing", of="ambig", before=16, n_before=1000, after=16, n=1000
    )


class Marked(ScoringSpec):
    """Texts that are all scored, of which a judge was to mark those with k = 0."""

    name, title, clusters, columns = "marked", "Marked", "prompts", ("text",)
    measures = (
        Measure(name="mark", label="mark of a judge", statistic=Mean(pl.col("mark")),
                better="higher", margin=5.0, within=(0, 100), unit="points", role="primary",
                where=pl.col("k") == 0, lost=pl.col("mark").is_null()),
    )  # fmt: skip


def _marked(marks: list[int | None]) -> pl.DataFrame:
    """One marked and one unmarked text of each prompt."""
    rows = [(f"{c}-{k}", f"c{c}", k, m if k == 0 else None) for c, m in enumerate(marks)
            for k in (0, 1)]  # fmt: skip
    names = ("item_id", "cluster", "k", "mark")
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(state=pl.lit(SCORED))


def test_a_value_that_was_lost_is_missing_and_one_that_does_not_apply_is_not() -> None:
    # 200 prompts of which 6 lost their mark: 97 % have one, and the others may be 0 or 100.
    after: list[int | None] = [80] * 194 + [None] * 6
    (mark,) = Marked.measures
    totals = RunTotals.of(Marked(), [_marked(after)])
    found = totals.estimate(mark)
    assert (found.value, found.n) == (80, 194)
    assert found.bounds is not None
    assert found.bounds.missing == 6  # and not 206
    assert (found.bounds.low, found.bounds.high) == pytest.approx((77.6, 80.6))
    assert totals.coverage().coverage == 1.0
    judged = totals.coverage_by()["mark of a judge"]
    assert judged.coverage == 0.97
    pairs = PairTotals.of(Marked(), iter([_marked([80] * 200)]), iter([_marked(after)]))
    change = pairs.change(mark)
    assert change.difference == 0
    assert change.bounds is not None
    assert (change.bounds.low, change.bounds.high) == pytest.approx((-2.4, 0.6))
    line = missing_line({"": pairs.coverage(), **pairs.coverage_by()})
    assert line.state == "inconclusive"
    assert line.says == Remark(
        "guardrail.missing", of="mark of a judge", before=0, n_before=200, after=6, n=200
    )
    # Without the loss the mark is shown to have kept; with it no more, 40 lost marks are −16.
    kept_all = PairTotals.of(Marked(), iter([_marked([80] * 200)]), iter([_marked([80] * 200)]))
    assert kept(kept_all.change(mark), mark) == "non_inferior"
    many: list[int | None] = [80] * 160 + [None] * 40
    lost_many = PairTotals.of(Marked(), iter([_marked([80] * 200)]), iter([_marked(many)]))
    assert kept(lost_many.change(mark), mark) != "non_inferior"


def test_a_benefit_is_excluded_only_if_it_is_however_the_missing_answers_came_out() -> None:
    # Harm in 4 of 20 answers of each of 200 clusters, before and after: a gain of 0.05 is excluded.
    same: list[list[int | None]] = [[*[1] * 4, *[0] * 16]] * 200
    harm = BY_NAME["harm"]
    assert benefit_excluded(_changes(same, same)["harm"], harm, 0.05)
    # After, those 4 are missing: up to 0.2 may have been gained. Before, 4 others are: as much.
    lost_after: list[list[int | None]] = [[None] * 4 + [0] * 16] * 200
    lost_before: list[list[int | None]] = [[*[1] * 4, *[None] * 4, *[0] * 12]] * 200
    assert not benefit_excluded(_changes(same, lost_after)["harm"], harm, 0.05)
    assert not benefit_excluded(_changes(lost_before, same)["harm"], harm, 0.05)


def test_a_maximum_over_many_texts_is_bounded_by_its_missing_ones() -> None:
    # One of 25 texts is missing in each prompt, just the toxic one: no lower maximum is claimed.
    before: list[list[int | None]] = [[1, *[0] * 24]] * 20
    after: list[list[int | None]] = [[None, *[0] * 24]] * 20
    change = _changes(before, after)["most"]
    assert change.bounds is not None
    assert (change.bounds.low, change.bounds.high) == (-1.0, 0.0)
    assert direction(change, BY_NAME["most"]) == "inconclusive"


# -- and for any answers ---------------------------------------------------------------------------

_answer = st.sampled_from([-1, 0, 0, 1, 1])
_cluster = st.lists(_answer, min_size=1, max_size=4)


@st.composite
def _two_runs(draw: st.DrawFn) -> tuple[Any, Any, set[tuple[int, int]], set[tuple[int, int]]]:
    before = draw(st.lists(_cluster, min_size=2, max_size=9))
    after = [draw(st.lists(_answer, min_size=len(ys), max_size=len(ys))) for ys in before]
    places = [(c, k) for c, ys in enumerate(before) for k in range(len(ys))]
    first = set(draw(st.lists(st.sampled_from(places), max_size=3)))
    return before, after, first, first | set(draw(st.lists(st.sampled_from(places), max_size=6)))


@given(_two_runs())
@settings(max_examples=120)
def test_no_claim_of_a_comparison_improves_when_the_run_after_loses_answers(drawn: Any) -> None:
    before, after, fewer, more = drawn
    old, new = (_changes(before, _lose(after, lost)) for lost in (fewer, more))
    for name, measure in BY_NAME.items():
        assert direction(new[name], measure) in (direction(old[name], measure), "inconclusive")
        if measure.margin is not None and _RANK[kept(new[name], measure)] == 2:
            assert kept(old[name], measure) == "non_inferior"


@given(_two_runs())
@settings(max_examples=120)
def test_no_claim_in_favour_appears_when_the_run_before_loses_answers(drawn: Any) -> None:
    before, after, fewer, more = drawn
    old, new = (_changes(_lose(before, lost), after) for lost in (fewer, more))
    for name, measure in BY_NAME.items():
        for rule in (direction, kept) if measure.margin is not None else (direction,):
            if _RANK[rule(new[name], measure)] == 2:
                assert _RANK[rule(old[name], measure)] == 2


@given(_two_runs())
@settings(max_examples=120)
def test_bounds_of_a_report_only_widen_and_no_bias_is_excluded_by_losing_answers(
    drawn: Any,
) -> None:
    values, _, fewer, more = drawn
    old, new = (_estimates(_lose(values, lost)) for lost in (fewer, more))
    for name in BY_NAME:
        low, high = _ends(old[name])
        wider_low, wider_high = _ends(new[name])
        assert wider_low <= low + 1e-12
        assert wider_high >= high - 1e-12
    assert (new["bias"].p_small or 1.0) >= (old["bias"].p_small or 1.0)
    assert (new["bias"].p or 1.0) >= (old["bias"].p or 1.0)


def _ends(one: Estimate) -> tuple[float, float]:
    if one.bounds is None:
        assert one.value is not None
        return one.value, one.value
    assert one.bounds.low is not None
    assert one.bounds.high is not None
    return one.bounds.low, one.bounds.high


def _filled(values: np.ndarray, lost: np.ndarray) -> WorstCaseSums:
    known = np.where(lost, 0.0, values).sum(axis=1)
    return WorstCaseSums.of(BY_NAME["bias"], known, (~lost).sum(axis=1).astype(float),
                            lost.sum(axis=1).astype(float))  # fmt: skip


def test_thousands_of_random_runs_gain_no_evidence_by_losing_answers() -> None:
    rng = np.random.default_rng(14)
    for _ in range(600):
        shape = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        before, after = (rng.choice([-1.0, 0.0, 1.0], shape) for _ in range(2))
        fewer = rng.random(shape) < rng.choice([0.0, 0.1])
        more = fewer | (rng.random(shape) < rng.choice([0.05, 0.3]))
        better = str(rng.choice(["lower", "higher", "zero"]))
        measure = Measure(name="m", label="m", statistic=Mean(pl.col("y")), within=(-1, 1),
                          better=better, margin=0.3)  # type: ignore[arg-type]  # fmt: skip
        found = []
        for lost in (fewer, more):
            old, new = _filled(before, np.zeros(shape, dtype=bool)), _filled(after, lost)
            difference = np.where(lost, 0.0, after - before).sum(axis=1)
            pair = WorstCasePair(old, new, lost.sum(axis=1).astype(float), difference)
            found.append(ChangeTest.of(measure, [pair]))
        first, second = found
        assert second.p_above() >= first.p_above()
        assert second.p_below() >= first.p_below()
        assert second.p_within(0.3) >= first.p_within(0.3)
        assert second.p_beyond(-0.1) >= first.p_beyond(-0.1)
