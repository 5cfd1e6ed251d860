"""Means and differences of labels, and the same judgements given twice: numbers by hand."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.conclusions import Outcome
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.instruments.judge.evidence import JudgeEvidence
from evenhand.instruments.judge.figures import Changes, changes, figures
from evenhand.instruments.judge.tables import sections
from evenhand.statistics.metrics.malibu import SET_UPS, single

from .in_process import SCORES, Judge, rows
from .test_metrics import asked, block, pairs, table

T_OF_TWO = 4.302653  # the 97.5 % point of t with two degrees of freedom


def _three_bases(**female: float | None) -> pl.DataFrame:
    """Two texts each; without a label 5, 6 and 7, under `female` as given, else the same."""
    found = []
    for base, mark in zip("abc", (5.0, 6.0, 7.0), strict=True):
        for text in "01":
            found.append(asked("none", base, mark, text=text))
            found.append(asked("male", base, mark, text=text))
            found.append(asked("female", base, female.get(base + text, mark), text=text))
    return table(found)


def _mean(rows: pl.DataFrame, label: str, metric: str = "combined") -> Any:
    found = figures(single(rows)).means
    return next(m.mean for m in found if (m.label, m.metric) == (label, metric))


def test_a_mean_mark_has_an_interval_over_bases_and_counts_marks() -> None:
    """Base means 5, 6, 7: mean 6, standard deviation 1, half of the interval t·1/√3."""
    mean = _mean(_three_bases(), "none")
    assert (mean.value, mean.n, mean.clusters, mean.bounds) == (6.0, 6, 3, None)
    assert mean.high - mean.value == pytest.approx(T_OF_TWO / 3**0.5, abs=1e-5)
    assert mean.value - mean.low == pytest.approx(T_OF_TWO / 3**0.5, abs=1e-5)


def test_a_missing_mark_is_in_no_mean_and_bounds_it() -> None:
    """Base c has 9 and nothing: its mean is 9; with 0 or 10 in its place 4.5 or 9.5."""
    mean = _mean(_three_bases(c0=9.0, c1=None), "female")
    assert (mean.value, mean.n) == (pytest.approx(20 / 3), 5)
    assert (mean.bounds.missing, mean.bounds.low) == (1, pytest.approx((5 + 6 + 4.5) / 3))
    assert mean.bounds.high == pytest.approx((5 + 6 + 9.5) / 3)


def test_every_metric_has_its_mean_and_the_combined_one_is_theirs() -> None:
    rows = table([asked("none", base, 4.0, creativity=8.0) for base in "ab"])
    assert [_mean(rows, "none", metric).value for metric in ("creativity", "accuracy")] == [8, 4]
    assert _mean(rows, "none").value == 5.0


def test_the_difference_of_two_labels_is_taken_on_the_same_texts() -> None:
    """female − male in the bases: 1, 0 and, with what only one of them has left out, 2."""
    rows = _three_bases(a0=6.0, a1=6.0, c0=9.0, c1=None)
    (gap,) = figures(single(rows)).gaps
    assert (gap.label, gap.other) == ("male", "female")  # in the order in which they were asked
    assert gap.difference.value == pytest.approx(-1.0)
    assert gap.difference.n == 5
    # In c the missing one is 0 or 10 against 7: (−2 + 7)/2 or (−2 − 3)/2 instead of −2.
    assert gap.difference.bounds is not None
    assert gap.difference.bounds.high == pytest.approx((-1 + 0 + 2.5) / 3)
    assert gap.difference.bounds.low == pytest.approx((-1 + 0 - 2.5) / 3)


def test_three_metrics_are_combined_by_their_own_mean() -> None:
    marks = {"creativity": 9.0, "efficiency": 6.0, "quality": 3.0}
    keys = {"phase": "single", "scenario": "a/0", "text": "0", "repeat": "0", "label": "none"}
    rows = pl.DataFrame([{**keys, "base": base, **marks} for base in "ab"])
    assert _mean(rows, "none").value == 6.0
    assert _mean(rows, "none", "quality").value == 3.0
    assert set(SET_UPS["three"]) == set(marks)


# -- the same judgements twice ---------------------------------------------------------------------


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(item_id=pl.int_range(pl.len()).cast(pl.String))


def _twice(before: pl.DataFrame, after: pl.DataFrame) -> Changes:
    blank = pairs(block([0.5] * 4))
    sides = [_with_ids(pl.concat([one, blank], how="diagonal")) for one in (before, after)]
    return changes(*sides, margin=0.25, margin_wins=0.05)


def test_the_change_of_a_labels_effect_is_a_difference_of_differences() -> None:
    """female − none: alone 1, 0, 0 and after 2, 1, 2, so the change is 1, 1, 2: mean 4/3. The mean
    mark rises by (1 + 1 + 2)/3 in one of three labels; male stays as it is."""
    alone = _three_bases(a0=6.0, a1=6.0)
    after = _three_bases(a0=7.0, a1=7.0, b0=7.0, b1=7.0, c0=9.0, c1=9.0)
    found = _twice(alone, after)
    female, male = found.labels
    assert (female.label, female.bases) == ("female", 3)
    assert female.estimate == pytest.approx(4 / 3)
    assert female.se == pytest.approx(1 / 3)  # standard deviation of 1, 1, 2 is 1/√3
    assert female.low is not None
    assert female.low < 0  # sign flips of three bases show nothing
    assert (male.label, male.estimate) == ("male", 0.0)
    assert found.marks.value == pytest.approx(4 / 9)
    assert found.marks_moved.value == pytest.approx(1 / 3)


def test_a_verdict_is_turned_where_another_slot_wins_and_not_where_it_wins_by_more() -> None:
    """Of four verdicts ½ → 1, 1 → 1, 0.75 → 1 (of a panel, still the first) and 1 → 0."""
    one = _three_bases()
    before, after = ([0.5, 1.0, 0.75, 1.0], [1.0, 1.0, 1.0, 0.0])
    sides = [
        _with_ids(pl.concat([one, pairs([*block(v, "a"), *block(v, "b")])], how="diagonal"))
        for v in (before, after)
    ]
    found = changes(*sides, margin=0.25, margin_wins=0.05)
    assert found.verdicts_turned.value == 0.5
    assert found.first_slot.value == pytest.approx((0.5 + 0 + 0.25 - 1) / 4)
    # female had the first slot in the first and the third: it gains (½ + ¼ + 0 + 1)/4.
    female = next(e for e in found.in_pairs if e.label == "female")
    assert female.estimate == pytest.approx((0.5 + 0 + 0.25 + 1) / 4)


def test_the_page_of_a_panel_says_what_its_discussion_changes() -> None:
    few = JudgeDesign(bases=6, pairs=6, texts=1, identities=("female",))
    alone, after = (rows(judge, few, 0) for judge in (Judge(), Judge(hurt="female", by=1.0)))
    tables = {one.name: one for one in sections(JudgeEvidence(after, draws=10, alone=alone))}
    (mean, *_), (label, shift, *_) = tables["discussion"].rows, tables["discussion_labels"].rows[0]
    assert mean[:2] == ("mean mark", "-0.250")  # one of four labels, by one point
    assert (label, shift) == ("female", "-1.000")
    assert "discussion" not in {one.name for one in sections(JudgeEvidence(after, draws=10))}


SIXTY = JudgeDesign(identities=("female", "male"), pairs=60)


def _changed(before: Judge, after: Judge) -> Changes:
    sides = [rows(judge, SIXTY, 0) for judge in (before, after)]
    return changes(*sides, margin=0.25, margin_wins=0.05)


def test_sixty_bases_show_that_nothing_changed_and_that_something_did() -> None:
    same = _changed(Judge(hurt="female", by=1.0), Judge(hurt="female", by=1.0))
    assert {e.verdict for e in same.labels} == {Outcome.RULED_OUT}
    other = _changed(Judge(), Judge(hurt="female", by=1.0))
    assert {e.label: e.verdict for e in other.labels} == {
        "female": Outcome.DETECTED,
        "male": Outcome.RULED_OUT,
    }


def test_one_side_that_refuses_a_tenth_of_a_label_is_not_shown_to_do_the_same() -> None:
    found = _changed(Judge(), Judge(refuses="male", of_share=0.1))
    male = next(e for e in found.labels if e.label == "male")
    assert male.estimate == 0.0
    assert male.missing > 0
    assert male.verdict in (Outcome.DETECTED, Outcome.INCONCLUSIVE)


_BETTER = {Outcome.DETECTED: 0, Outcome.INCONCLUSIVE: 1, Outcome.RULED_OUT: 2}


@settings(max_examples=3)
@given(lost=st.lists(st.integers(0, 599), min_size=1, max_size=6), side=st.integers(0, 1))
def test_what_is_missing_makes_no_change_look_smaller(lost: list[int], side: int) -> None:
    sides = [rows(Judge(), SIXTY, 0), rows(Judge(hurt="female", by=0.1), SIXTY, 0)]
    whole = changes(*sides, margin=0.25, margin_wins=0.05)
    row = pl.int_range(pl.len())
    sides[side] = sides[side].with_columns(
        pl.when(~row.is_in(lost)).then(pl.col(name)).alias(name) for name in SCORES
    )
    less = changes(*sides, margin=0.25, margin_wins=0.05)
    for before, after in zip(whole.labels, less.labels, strict=True):
        assert _BETTER[after.verdict] <= _BETTER[before.verdict]
        assert after.p_equivalence >= before.p_equivalence
