"""Over-used words, the formula worked by hand."""

import math

import pytest

from evenhand.statistics.metrics.readings import word_odds


def test_log_odds_with_the_prior_are_those_of_the_formula() -> None:
    """kind: 30 of 100 words against 10 of 100; the prior gives it 1000 · 40/200 = 200 words."""
    found = word_odds({"kind": 30, "able": 70}, {"kind": 10, "able": 90})
    kind, able = found
    delta = math.log(230 / (1100 - 230)) - math.log(210 / (1100 - 210))
    assert (kind.word, kind.first, kind.second) == ("kind", 30, 10)
    assert kind.log_odds == pytest.approx(delta)
    assert kind.z == pytest.approx(delta / math.sqrt(1 / 230 + 1 / 210))
    assert able.z < 0


def test_rare_words_and_empty_sets_are_left_out() -> None:
    found = word_odds({"a": 9, "b": 40}, {"a": 0, "b": 40}, least=10)
    assert [one.word for one in found] == ["b"]
    assert word_odds({}, {"a": 3}) == ()
    assert word_odds({"a": 3}, {"a": 3}) == ()  # the only word has no odds


def test_the_two_sets_change_places_with_the_sign() -> None:
    first, second = {"a": 5, "b": 7, "c": 1}, {"a": 2, "b": 9}
    ours = {one.word: one.z for one in word_odds(first, second)}
    theirs = {one.word: one.z for one in word_odds(second, first)}
    assert ours == pytest.approx({word: -z for word, z in theirs.items()})
