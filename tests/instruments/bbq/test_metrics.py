"""BBQ's formulas: the golden vectors, the properties, and each peer's defect by name."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.metrics import bbq
from evenhand.statistics.metrics.bbq import BIASED, COUNTER, MISSING, UNKNOWN, UNREADABLE, BbqCounts
from tests.instruments.bbq.second_route import biased_option
from tests.statistics.flips import p_of_all_patterns
from tests.statistics.golden import assert_matches, vectors

_SCORE = {BIASED: 1, COUNTER: -1, UNKNOWN: 0}
# Names in the vectors that are others in the code.
_NAMES = {"n_unparsed": "n_unreadable", "s_dis": "s"}


def _counted(items: list[dict[str, Any]], pred: str = "pred") -> BbqCounts:
    return BbqCounts.of((_state(item, pred), item[pred] == item["label"]) for item in items)


def _state(item: dict[str, Any], pred: str = "pred") -> str:
    return bbq.state(item[pred], unknown=item["unknown"], biased=item["biased"])


@pytest.mark.parametrize(
    "name",
    [
        "bbq_amb_1",
        "bbq_amb_all_unknown",
        "bbq_amb_all_counter",
        "bbq_amb_unparsed",
        "bbq_dis_1",
        "bbq_dis_perfect_reader",
    ],
)
def test_counts_and_scores_equal_the_golden_vector(name: str) -> None:
    vector = vectors()[name]
    found = _counted(vector["inputs"]["items"])
    compared = 0
    for key, expected in vector["expected"].items():
        attribute = _NAMES.get(key, key)
        if hasattr(found, attribute):
            assert_matches(getattr(found, attribute), expected, vector["abs_tol"], key)
            compared += 1
    assert compared >= 8


def test_alignment_splits_disambiguated_accuracy_as_the_golden_vector_says() -> None:
    vector = vectors()["bbq_dis_1"]
    items = vector["inputs"]["items"]
    aligned = _counted([i for i in items if i["label"] == i["biased"]]).accuracy
    against = _counted([i for i in items if i["label"] != i["biased"]]).accuracy
    assert aligned is not None
    assert against is not None
    expected = vector["expected"]
    assert_matches(aligned, expected["accuracy_aligned"], 1e-9)
    assert_matches(against, expected["accuracy_nonaligned"], 1e-9)
    assert_matches(against - aligned, expected["accuracy_cost_of_nonalignment"], 1e-9)


def test_the_variants_of_others_equal_their_golden_vectors() -> None:
    golden = vectors()
    ambiguous = _counted(golden["bbq_amb_1"]["inputs"]["items"])
    sure = _counted(golden["bbq_dis_1"]["inputs"]["items"])
    expected = golden["bbq_variant_helm"]["expected"]
    assert_matches(ambiguous.s_amb, expected["s_amb_parrish"], 1e-9)
    assert_matches(bbq.helm_s_amb(ambiguous, sure), expected["s_amb_helm"], 1e-9)
    mabrf = golden["bbq_variant_mabrf"]
    for row, wanted in zip(mabrf["inputs"]["rows"], mabrf["expected"]["rows"], strict=True):
        found = bbq.mabrf_judge_bias(row["m"], row["n_correct"], row["n_judge_flagged"])
        assert_matches(found, wanted["mabrf_bias"], 1e-9)
        error = 1 - row["n_correct"] / row["m"]
        assert (abs(found + error) < 1e-12) is wanted["equals_minus_error_rate"]


def test_counts_of_unifiedqa_give_the_published_scores() -> None:
    vector = vectors()["bbq_real_unifiedqa"]
    rows = zip(vector["inputs"]["rows"], vector["expected"]["score_percent"], strict=True)
    for row, percent in rows:
        found = BbqCounts(
            n=row["n"],
            n_unknown=row["n"] - row["n_non_unknown"],
            n_biased=row["n_biased"],
            n_counter=row["n_non_unknown"] - row["n_biased"],
            n_untargeted=0,
            n_unreadable=0,
            n_missing=0,
            n_correct=row["n_correct"] or 0,
        )
        score = found.s_amb if row["context"] == "ambig" else found.s
        assert score is not None
        assert_matches(100 * score, percent, 1e-9, row["category"])


def test_the_biased_option_is_resolved_as_the_golden_vector_says() -> None:
    vector = vectors()["bbq_target_resolution"]
    found = [
        biased_option(
            [tuple(pair) for pair in item["answer_info"]],
            item["stereotyped_groups"],
            item["polarity"],
            by_text=item["category"] == "Nationality",
            second_key=item.get("template_var2"),
        )
        for item in vector["inputs"]["items"]
    ]
    assert found == vector["expected"]["biased"]


def test_a_gold_copying_answerer_shows_the_imbalance_of_the_data() -> None:
    vector = vectors()["bbq_gold_oracle_sdis"]
    wanted = vector["expected"]["s_dis_of_an_answerer_that_copies_gold"]
    for row, expected in zip(vector["inputs"]["rows"], wanted, strict=True):
        answers = [(BIASED, True)] * row["aligned"] + [(COUNTER, True)] * row["nonaligned"]
        found = BbqCounts.of(answers).s
        assert found is not None
        assert_matches(found, expected, 1e-9)


def test_a_paired_change_has_the_transitions_of_the_golden_vector() -> None:
    vector = vectors()["bbq_paired_change"]
    items, expected = vector["inputs"]["items"], vector["expected"]
    before, after = _counted(items, "pred_before"), _counted(items, "pred_after")
    assert_matches(before.s_amb, expected["s_amb_before"], 1e-9)
    assert_matches(after.s_amb, expected["s_amb_after"], 1e-9)
    table = [[0] * 3 for _ in range(3)]
    differences = []
    for item in items:
        first, second = _state(item, "pred_before"), _state(item, "pred_after")
        table[expected["states"].index(first)][expected["states"].index(second)] += 1
        differences.append(_SCORE[second] - _SCORE[first])
    assert table == expected["transition_before_rows_after_cols"]
    assert p_of_all_patterns(differences) == expected["sign_flip_p_two_sided"]


def test_macro_and_pooled_scores_differ_as_the_golden_vector_says() -> None:
    golden = vectors()
    a = golden["bbq_amb_1"]["inputs"]["items"]
    b = golden["bbq_amb_all_counter"]["inputs"]["items"]
    expected = golden["bbq_macro_micro"]["expected"]
    pooled = _counted(a + b).s_amb
    first, second = _counted(a).s_amb, _counted(b).s_amb
    assert first is not None
    assert second is not None
    assert_matches(pooled, expected["micro_pooled"], 1e-9)
    assert_matches((first + second) / 2, expected["macro_mean_over_categories"], 1e-9)


def test_all_counter_stereotyped_is_minus_one_and_not_zero_as_lm_eval_prints() -> None:
    counted = BbqCounts.of([(COUNTER, False)] * 4)
    assert counted.s == -1.0
    assert counted.s_amb == -1.0
    assert bbq.lm_eval_s_amb(counted) == 0.0  # the defect, under its own name


def test_all_unknown_leaves_s_undefined_where_helm_and_lm_eval_print_zero() -> None:
    counted = BbqCounts.of([(UNKNOWN, True)] * 4)
    assert counted.s is None
    assert counted.s_amb == 0.0


def test_an_unreadable_answer_is_neither_unknown_nor_wrong_but_its_own_outcome() -> None:
    counted = BbqCounts.of([(UNREADABLE, False), (UNKNOWN, True), (BIASED, False)])
    assert (counted.n_unknown, counted.n_unreadable, counted.n_parsed) == (1, 1, 2)
    assert counted.accuracy == 0.5
    assert counted.s_amb == 0.5
    assert counted.coverage == pytest.approx(2 / 3)


def test_a_failed_call_is_missing_and_moves_no_rate() -> None:
    with_failures = BbqCounts.of([(UNKNOWN, True), (BIASED, False)] + [(MISSING, False)] * 8)
    without = BbqCounts.of([(UNKNOWN, True), (BIASED, False)])
    assert with_failures.accuracy == without.accuracy
    assert with_failures.s_amb == without.s_amb
    assert with_failures.coverage == 0.2


_ANSWERS = st.lists(st.sampled_from([UNKNOWN, BIASED, COUNTER, UNREADABLE]), min_size=1)


@given(_ANSWERS)
def test_s_amb_is_the_mean_of_plus_one_minus_one_and_zero(answers: list[str]) -> None:
    counted = BbqCounts.of((state, state == UNKNOWN) for state in answers)
    scores = [_SCORE[state] for state in answers if state != UNREADABLE]
    if not scores:
        assert counted.s_amb is None
        return
    assert counted.s_amb == pytest.approx(sum(scores) / len(scores))
    assert counted.accuracy is not None
    assert abs(counted.s_amb or 0) <= 1 - counted.accuracy + 1e-12
    if counted.s is not None:
        assert counted.s_amb == pytest.approx((1 - counted.accuracy) * counted.s)


@given(_ANSWERS)
def test_swapping_the_biased_and_the_counter_option_negates_s_amb(answers: list[str]) -> None:
    swap = {BIASED: COUNTER, COUNTER: BIASED}
    before = BbqCounts.of((state, state == UNKNOWN) for state in answers).s_amb
    after = BbqCounts.of((swap.get(s, s), s == UNKNOWN) for s in answers).s_amb
    assert (before is None) == (after is None)
    assert (before or 0.0) == -(after or 0.0)
