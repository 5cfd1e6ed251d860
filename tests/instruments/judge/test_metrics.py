"""Contrasts, pairs and repeats: golden vectors, numbers by hand, and what must always hold."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import Undefined
from evenhand.statistics.metrics.malibu import (
    METRICS,
    base_means,
    both_orders,
    contrasts,
    difference_matrix,
    duels,
    label_effects,
    pair_effects,
    paper_histogram,
    paper_wins,
    repeats,
    single,
)
from evenhand.statistics.metrics.scorer_quality import brier, calibration
from tests.statistics.golden import assert_matches, vectors

VERDICTS = {"A": 1.0, "tie": 0.5, "B": 0.0}


def asked(
    label: str,
    base: str,
    score: float | None,
    *,
    text: str = "0",
    repeat: str = "0",
    **metrics: Any,
) -> dict[str, Any]:
    """One judgement of a single text, all four metrics alike unless said otherwise."""
    keys = {"phase": "single", "base": base, "scenario": f"{base}/0", "text": text}
    return {**keys, "label": label, "repeat": repeat, **dict.fromkeys(METRICS, score), **metrics}


def table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(METRICS, pl.Float64))


def shown(
    first: str, second: str, texts: str, preferred: float | None, base: str = "a", **more: Any
) -> dict[str, Any]:
    """One judgement of two texts: `texts` is "01" where the first slot has the first text."""
    keys = {"phase": "pair", "base": base, "scenario": f"{base}/0", "repeat": "0"}
    slots = {"first": first, "second": second, "first_text": texts[0], "second_text": texts[1]}
    scores = {f"{side}_{m}": 7.0 for side in ("first", "second") for m in METRICS}
    return {**keys, **slots, **scores, "preferred": preferred, **more}


def pairs(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides={"preferred": pl.Float64})


def shifts(rows: pl.DataFrame, value: str = "combined") -> dict[tuple[str, str], float]:
    found = contrasts(single(rows), value).select("label", "base", "difference")
    return {(label, base): difference for label, base, difference in found.iter_rows()}


# -- golden ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["judge_both_orders", "judge_pure_position_bias"])
def test_both_orders_agree_with_the_golden_vectors(name: str) -> None:
    vector = vectors()[name]
    verdicts = vector["inputs"]["verdicts_as_label_order1_A_first_order2_B_first"]
    found = both_orders(
        [VERDICTS[one] for one, _ in verdicts], [VERDICTS[two] for _, two in verdicts]
    )
    got = {
        "n": found.n,
        "position_consistency": found.position_consistency,
        "consistent_wins_A": found.consistent_wins,
        "consistent_wins_B": found.consistent_losses,
        "inconsistent": found.inconsistent,
        "label_A_score_half_ties": found.label_score,
        "first_slot_rate": found.first_slot_rate,
        "flip_rate": found.flip_rate,
    }
    assert_matches(got, vector["expected"], vector["abs_tol"], name)


def test_the_difference_matrix_agrees_with_the_golden_vector() -> None:
    vector = vectors()["malibu_difference_matrix"]
    got = {"matrix_x_minus_y": difference_matrix(vector["inputs"]["mean_score"])}
    assert_matches(got, vector["expected"], vector["abs_tol"])


def test_the_shift_against_no_label_agrees_with_the_golden_vector() -> None:
    vector = vectors()["malibu_control_shift"]
    arms = {"none": vector["inputs"]["no_label"], **vector["inputs"]["labelled"]}
    rows = [asked(label, str(n), s) for label, given in arms.items() for n, s in enumerate(given)]
    found = contrasts(single(table(rows)))
    got: dict[str, Any] = {}
    for (label,), part in found.group_by("label"):
        got[str(label)] = {
            "mean_shift_vs_no_label": part["difference"].mean(),
            "verdict_shift_rate": part["changed"].mean(),
        }
    female, male = (got[label]["mean_shift_vs_no_label"] for label in ("female", "male"))
    got["contrast_female_minus_male"] = female - male
    assert_matches(got, vector["expected"], vector["abs_tol"])


def test_calibration_agrees_with_the_golden_vector() -> None:
    vector = vectors()["judge_calibration"]
    given = vector["inputs"]
    found = calibration(given["probabilities"], given["labels"], given["ece_bins"])
    got = {"brier": found.brier, "auroc": found.auroc, "ece_equal_width_left_closed": found.ece}
    assert_matches(got, vector["expected"], vector["abs_tol"])


def test_calibration_without_two_kinds_of_labels_has_no_ranking_and_of_nothing_no_value() -> None:
    assert calibration([0.9, 0.7], [True, True]).auroc is None
    with pytest.raises(Undefined):
        brier([], [])


# -- single phase ----------------------------------------------------------------------------------


def test_texts_are_averaged_within_a_base_before_bases_count() -> None:
    rows = [
        asked("none", "a", 6, text="0"),
        asked("none", "a", 8, text="1"),
        asked("male", "a", 7, text="0"),  # +1
        asked("male", "a", 8, text="1"),  # 0
        asked("none", "b", 5),
        asked("male", "b", 4),  # −1
    ]
    assert shifts(table(rows)) == {("male", "a"): 0.5, ("male", "b"): -1.0}


def test_a_text_that_one_arm_lacks_is_left_out_of_both() -> None:
    rows = [
        asked("none", "a", 2, text="0"),
        asked("none", "a", 8, text="1"),
        asked("male", "a", None, text="0"),
        asked("male", "a", 8, text="1"),  # unmatched means would give 8 − 5 = +3
        asked("none", "b", None),
        asked("male", "b", 9),
    ]
    assert shifts(table(rows)) == {("male", "a"): 0.0}


def test_one_missing_metric_takes_the_combined_score_and_leaves_the_other_metrics() -> None:
    rows = [asked("none", "a", 6), asked("male", "a", 8, accuracy=None)]
    assert shifts(table(rows)) == {}
    assert shifts(table(rows), "creativity") == {("male", "a"): 2.0}
    assert shifts(table(rows), "accuracy") == {}


def test_a_repeat_is_compared_with_its_like() -> None:
    rows = [
        asked("none", "a", 6, repeat="0"),
        asked("none", "a", 7, repeat="1"),
        asked("male", "a", 6, repeat="0"),
        asked("male", "a", None, repeat="1"),
    ]
    assert shifts(table(rows)) == {("male", "a"): 0.0}


def test_blocks_hold_only_cells_that_every_label_has() -> None:
    rows = [asked(label, "a", 6, text=t) for label in ("none", "male") for t in "01"]
    rows += [asked("female", "a", 7, text="0"), asked("female", "a", None, text="1")]
    rows += [asked("none", "b", 6), asked("male", "b", 6)]
    found = base_means(single(table(rows)), ["none", "male", "female"])
    assert found.rows() == [("a", 6.0, 6.0, 7.0)]


scores = st.lists(st.integers(0, 10), min_size=4, max_size=4)


@settings(max_examples=40)
@given(given=st.lists(st.tuples(scores, scores), min_size=1, max_size=4), more=st.integers(-5, 5))
def test_a_constant_on_all_scores_changes_no_contrast(
    given: list[tuple[list[int], list[int]]], more: int
) -> None:
    rows = []
    for n, arms in enumerate(given):
        for label, four in zip(("none", "male"), arms, strict=True):
            rows.append(asked(label, str(n), 0) | dict(zip(METRICS, four, strict=True)))
    before = table(rows)
    after = before.with_columns(pl.col(METRICS) + more)
    assert shifts(after) == pytest.approx(shifts(before))


@settings(max_examples=60)
@given(means=st.lists(st.floats(0, 10), min_size=2, max_size=6))
def test_the_matrix_is_antisymmetric_and_additive(means: list[float]) -> None:
    matrix = difference_matrix({str(n): mean for n, mean in enumerate(means)})
    for a, row in enumerate(matrix):
        for b, cell in enumerate(row):
            assert cell == -matrix[b][a]
            for c in range(len(means)):
                assert row[c] == pytest.approx(cell + matrix[b][c], abs=1e-9)


# -- pairs -----------------------------------------------------------------------------------------


def block(verdicts: Sequence[float | None], base: str = "a") -> list[dict[str, Any]]:
    """female and male with either text in either slot; what the first slot got."""
    ways = [("female", "male", "01"), ("male", "female", "10")]
    ways += [("female", "male", "10"), ("male", "female", "01")]
    return [shown(*way, verdict, base) for way, verdict in zip(ways, verdicts, strict=True)]


def effects(rows: Sequence[dict[str, Any]], value: str = "win") -> dict[str, float]:
    found = pair_effects(duels(pairs(rows)), value)
    return dict(found.select("base", "effect").iter_rows())


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([1, 0, 1, 0], 0.5),  # female whatever the text and the slot
        ([0, 1, 0, 1], -0.5),
        ([1, 1, 1, 1], 0.0),  # the first slot
        ([1, 0, 0, 1], 0.0),  # the text "0"
        ([1, 0.5, 1, 1], 0.125),  # female 1, ½, 1, 0: 2.5/4 − ½
    ],
)
def test_the_label_effect_is_what_is_left_of_slot_and_text(
    verdicts: list[float], expected: float
) -> None:
    assert effects(block(verdicts)) == {"a": expected}


def test_a_block_with_a_missing_judgement_is_left_out() -> None:
    assert effects([*block([1, 0, 1, None]), *block([1, 0, 1, 0], "b")]) == {"b": 0.5}
    assert effects(block([1, 0, 1, 0])[:3]) == {}  # a row that is not even there


def test_scores_given_in_pairs_are_compared_in_the_same_way() -> None:
    rows = block([1, 0, 1, 0])
    for row in rows:
        side = "first" if row["first"] == "female" else "second"
        row[f"{side}_creativity"] = 9.0  # 2 of 4 metrics' points: +0.5
    assert effects(rows, "gap") == {"a": 0.5}


def test_a_label_is_worth_the_mean_of_its_pairs_in_a_base_either_way_round() -> None:
    rows = block([1, 0, 1, 0])  # female +½ against male
    for first, second, texts, verdict in (
        ("male", "other", "01", 0.5),
        ("other", "male", "10", 0.5),
        ("male", "other", "10", 1.0),
        ("other", "male", "01", 0.5),
    ):
        rows.append(shown(first, second, texts, verdict))  # male: (½ + ½ + 1 + ½)/4 − ½ = ⅛
    found = label_effects(pair_effects(duels(pairs(rows))))
    assert dict(found.select("label", "effect").iter_rows()) == {
        "female": 0.5,
        "male": (-0.5 + 0.125) / 2,
        "other": -0.125,
    }


@settings(max_examples=60)
@given(
    slots=st.lists(st.sampled_from([1.0, 0.5, 0.0]), min_size=1, max_size=5),
    missing=st.sets(st.integers(0, 19)),
)
def test_a_judge_that_sees_only_the_slot_has_a_label_effect_of_exactly_zero(
    slots: list[float], missing: set[int]
) -> None:
    """One habit for each base, and any judgements missing."""
    rows = [row for n, habit in enumerate(slots) for row in block([habit] * 4, str(n))]
    for place in missing & set(range(len(rows))):
        rows[place]["preferred"] = None
    assert all(effect == 0.0 for effect in effects(rows).values())


def test_a_probability_above_one_half_is_a_win_whatever_its_size() -> None:
    found = both_orders([0.9, 0.6, 0.2], [0.7, 0.4, 0.1])
    assert (found.consistent_wins, found.consistent_losses, found.inconsistent) == (1, 1, 1)
    assert found.position_consistency == pytest.approx(2 / 3)
    assert found.label_score == pytest.approx((0.9 + 0.6 + 0.2 + 0.7 + 0.4 + 0.1) / 6)


def test_nothing_but_ties_has_no_first_slot_rate_and_no_pairs_have_no_summary() -> None:
    assert both_orders([0.5], [0.5]).first_slot_rate is None
    with pytest.raises(Undefined):
        both_orders([], [])


# -- repeats, and the paper's own figures ----------------------------------------------------------


def test_repeats_are_stable_where_the_same_question_gets_the_same_score() -> None:
    rows = [asked("none", "a", s, repeat=str(n)) for n, s in enumerate((6, 6))]
    rows += [asked("none", "b", s, repeat=str(n)) for n, s in enumerate((6, 8))]  # variance 2
    rows += [asked("none", "c", 5, repeat="0"), asked("none", "c", None, repeat="1")]
    found = repeats(single(table(rows)), "combined", ("base", "label"))
    assert (found.questions, found.identical, found.deviation) == (2, 0.5, 1.0)
    with pytest.raises(Undefined):
        repeats(single(table(rows[:1])), "combined", ("base", "label"))


def test_the_papers_histogram_counts_every_row_and_leaves_out_what_is_missing() -> None:
    rows = [asked("male", "a", 7), asked("male", "b", 7), asked("female", "a", 10)]
    rows += [asked("female", "b", None)]
    found = paper_histogram(single(table(rows)), "accuracy", ["male", "female"])
    assert [row[7] for row in found] == [2, 0]
    assert [row[10] for row in found] == [0, 1]
    assert sum(map(sum, found)) == 3


def test_the_papers_win_rate_leaves_ties_out() -> None:
    found = paper_wins(pairs(block([1, 0.5, 1, None])))
    assert found == {"female": (2, 2), "male": (0, 2)}
