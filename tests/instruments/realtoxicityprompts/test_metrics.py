"""RealToxicityPrompts' formulas: the golden vectors, and peers' defects by name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.metrics import toxicity
from evenhand.statistics.metrics.toxicity import Toxicity
from tests.statistics.golden import assert_matches, vectors


@pytest.mark.parametrize("name", ["rtp_1", "rtp_missing", "rtp_25"])
def test_the_figures_equal_the_golden_vector(name: str) -> None:
    vector = vectors()[name]
    found = Toxicity.of(vector["inputs"]["scores"], vector["inputs"]["threshold"])
    for key, expected in vector["expected"].items():
        assert_matches(getattr(found, key), expected, vector["abs_tol"], key)


def test_the_largest_of_n_equals_the_golden_vector_both_ways() -> None:
    vector = vectors()["rtp_expected_max_curve"]
    scores = vector["inputs"]["scores"]
    for n, expected in vector["expected"].items():
        again = toxicity.expected_max_with_replacement(scores, int(n))
        once = toxicity.expected_max_without_replacement(scores, int(n))
        assert_matches(again, expected["with_replacement"], vector["abs_tol"], n)
        assert_matches(once, expected["without_replacement"], vector["abs_tol"], n)


def test_prompts_fall_into_the_buckets_of_the_golden_vector() -> None:
    vector = vectors()["rtp_buckets"]
    found = [toxicity.bucket(score) for score in vector["inputs"]["prompt_toxicity"]]
    for name in ("moderate", "high"):
        places = [place for place, bucket in enumerate(found) if bucket == name]
        assert places == vector["expected"][f"{name}_indices"]


def test_a_missing_score_is_not_a_harmless_text() -> None:
    """A peer that writes 0 for a failed call has a mean of 0.4 here, and 0.4 is not measured."""
    measured = Toxicity.of([[0.8, None], [0.8, None]])
    assert measured.mean_of_prompt_means == measured.expected_max_toxicity == 0.8
    as_zero = Toxicity.of([[0.8, 0.0], [0.8, 0.0]])
    assert as_zero.mean_of_prompt_means == 0.4


def test_a_score_of_exactly_zero_counts_where_helm_drops_it() -> None:
    assert Toxicity.of([[0.0, 0.6]]).mean_of_prompt_means == pytest.approx(0.3)


def test_without_any_score_there_is_no_figure() -> None:
    found = Toxicity.of([[None, None]])
    assert (found.n_prompts, found.n_dropped) == (0, 1)
    assert found.expected_max_toxicity is found.toxicity_probability is found.pooled_mean is None


def test_bounds_fill_what_is_missing_with_the_best_and_with_the_worst() -> None:
    harmless, toxic = toxicity.bounds([[0.2, 0.6], [0.4, None], [None, None]])
    # 0: maxima .6, .4, 0; means .4, .2, 0.   1: maxima .6, 1, 1; means .4, .7, 1.
    assert harmless.expected_max_toxicity == pytest.approx(1.0 / 3)
    assert harmless.mean_of_prompt_means == pytest.approx(0.2)
    assert harmless.toxicity_probability == pytest.approx(1 / 3)
    assert toxic.expected_max_toxicity == pytest.approx(2.6 / 3)
    assert toxic.mean_of_prompt_means == pytest.approx(0.7)
    assert toxic.toxicity_probability == 1.0


_SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(_SCORES, st.integers(1, 6))
def test_the_unbiased_largest_of_n_is_the_mean_over_all_choices(
    scores: list[float], n: int
) -> None:
    found = toxicity.expected_max_without_replacement(scores, n)
    assert (found is None) == (n > len(scores))
    if found is None:
        return
    every = [max(chosen) for chosen in itertools.combinations(scores, n)]
    assert found == pytest.approx(sum(every) / len(every))
    biased = toxicity.expected_max_with_replacement(scores, n)
    assert biased is not None
    assert biased <= found + 1e-9


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=4), min_size=1))
def test_whatever_is_missing_the_truth_lies_between_the_bounds(
    prompts: list[list[float | None]],
) -> None:
    truth = Toxicity.of([[0.37 if s is None else s for s in one] for one in prompts])
    harmless, toxic = toxicity.bounds(prompts)
    for name in ("expected_max_toxicity", "toxicity_probability", "mean_of_prompt_means"):
        low, true, high = (getattr(one, name) for one in (harmless, truth, toxic))
        assert low - 1e-9 <= true <= high + 1e-9


def test_distinct_n_counts_different_n_grams() -> None:
    texts = [["a", "b", "a"], ["a", "b"]]
    assert toxicity.distinct(texts, 1) == 2 / 5
    assert toxicity.distinct(texts, 2) == 2 / 3  # ab, ba, ab
    assert toxicity.distinct(texts, 3) == 1.0
    assert toxicity.distinct(texts, 4) is None
