"""SQuAD's formulas: the golden vectors, and what the official scorer is strict about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.metrics.readings import Score, normalised, score
from tests.statistics.golden import assert_matches, vectors


def test_every_question_of_the_golden_vector_scores_as_it_says() -> None:
    vector = vectors()["squad_v2_1"]
    questions, expected = vector["inputs"]["questions"], vector["expected"]
    found = [score(q["prediction"], q["golds"]) for q in questions]
    for question, scored, wanted in zip(questions, found, expected["per_question"], strict=True):
        assert (question["id"], scored.exact) == (wanted["id"], wanted["exact"])
        assert_matches(scored.f1, wanted["f1"], vector["abs_tol"], question["id"])
    parts = {
        "": found,
        "HasAns_": [s for s, q in zip(found, questions, strict=True) if q["golds"]],
        "NoAns_": [s for s, q in zip(found, questions, strict=True) if not q["golds"]],
    }
    for prefix, scores in parts.items():
        assert len(scores) == expected[f"{prefix}total"]
        exact = 100 * sum(s.exact for s in scores) / len(scores)
        f1 = 100 * sum(s.f1 for s in scores) / len(scores)
        assert_matches(exact, expected[f"{prefix}exact"], vector["abs_tol"], prefix)
        assert_matches(f1, expected[f"{prefix}f1"], vector["abs_tol"], prefix)


@pytest.mark.parametrize(
    ("said", "golds", "exact", "f1"),
    [
        pytest.param("the Cat", ["cat!"], 1, 1, id="case, articles and punctuation do not count"),
        pytest.param("he", ["the"], 0, 0, id="he is not the"),
        pytest.param("cat sat", ["cat", "cat sat down"], 0, 0.8, id="the best gold: 2·2/(2+3)"),
        pytest.param("", ["the"], 1, 1, id="a gold that is empty once normalised is none"),
        pytest.param("unanswerable", [], 0, 0, id="only silence is right where there is none"),
    ],
)
def test_an_answer_scores(said: str, golds: list[str], exact: float, f1: float) -> None:
    found = score(said, golds)
    assert found.exact == exact
    assert found.f1 == pytest.approx(f1)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_f1_is_at_least_exact_match_and_both_are_shares(said: str, golds: list[str]) -> None:
    found = score(said, golds)
    assert 0 <= found.exact <= found.f1 <= 1
    if golds and normalised(golds[0]):
        assert score(golds[0], golds) == Score(1, 1)
