"""What a reward model is asked, and the figures made of its rewards, worked out by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import Undefined, UserError
from evenhand.instruments.reward.audit import RewardAudit, judged
from evenhand.metrics import reward_probes as metric
from evenhand.training.probe_texts import BIASED_TAIL, NEUTRAL_TAIL, Texts, unopened
from evenhand.training.probes import Messages, Pair, ask, drawn, held_out
from evenhand.views import markdown, page_of
from training.conftest import TOPICS, pair_rows, write_pairs

TEXTS = Texts.shipped()
GOOD, BIASED = "Ask each person, for all are EQUAL here.", "They are LAZY, all of them are."


def pairs(topics: int = 12, a_topic: int = 2) -> list[Pair]:
    return [
        Pair(
            prompt=[{"role": "user", "content": f"What of topic {topic}?"}],
            chosen=f"{GOOD} {topic}.{number}",
            rejected=f"{BIASED} {topic}.{number}",
            topic=f"topic {topic}",
            bias_type="age" if topic % 2 else "beauty",
        )
        for topic in range(topics)
        for number in range(a_topic)
    ]


def reader(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
    """What a reward model should be: the biased word counts, wherever it stands."""
    return [-1.0 if "LAZY" in text else float("EQUAL" in text) for text in responses]


def checks(found: RewardAudit) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in found.to_dict()["checks"]}


def failed(found: RewardAudit) -> set[str]:
    return {name for name, check in checks(found).items() if check["state"] == "failed"}


def test_a_tie_is_not_right() -> None:
    found = metric.accuracy([2, 1, 1, 0], [1, 1, 0, 1], ["a", "a", "b", "b"])
    assert (found.estimate, found.n, found.clusters) == (0.5, 4, 2)


def test_taking_the_longer_answer_gets_half_of_equal_ones() -> None:
    assert metric.longer_wins([3, 2, 5], [1, 2, 9]) == 0.5  # (1 + ½ + 0) / 3


def test_a_worthless_answer_wins_where_one_of_its_wordings_gets_no_less() -> None:
    found = metric.beaten({"x": [1, 0, 0, 5], "y": [0, 2, 0, 0]}, [1, 2, 3, 4], list("abcd"))
    assert found.share.estimate == 0.75  # x wins the first (a tie) and the last, y the second
    assert (found.wording, found.wording_share) == ("x", 0.5)


def test_an_effect_is_told_in_gaps_with_an_interval_over_topics() -> None:
    found = metric.effect([1, 0, 2, 1], [0, 0, 0, 0], [2, 2, 2, 2], list("aabb"))
    assert found.estimate == 0.5  # 4/8
    # u = (1 − 2, 3 − 2), se² = 2/1 · (1 + 1)/8² = 1/16, and t of one degree of freedom is 12.706
    assert found.high == pytest.approx(0.5 + 12.7062 / 4, abs=1e-4)
    with pytest.raises(Undefined, match="no gap"):
        metric.effect([1, 0], [0, 0], [1, -1], list("ab"))


def test_the_correlation_with_length_is_of_ranks() -> None:
    assert metric.length_correlation([1, 9, 8], [10, 30, 20], list("abc")).estimate == 1
    assert metric.length_correlation([1, 3, 2], [10, 20, 30], list("abc")).estimate == 0.5
    with pytest.raises(Undefined):
        metric.length_correlation([1, 2], [5, 5], list("ab"))


def test_the_effect_of_length_is_the_slope_in_gaps_and_not_how_even_it_is() -> None:
    # z = (−1, 1), r − r̄ = (−1, 1): the slope is 1 a standard deviation, and the gap is 4.
    assert metric.length_effect([1, 3], [10, 20], [4, 4], list("ab")).estimate == 0.25
    tiny = metric.length_effect([1, 1.001], [10, 20], [4, 4], list("ab")).estimate
    assert tiny == pytest.approx(0.000125)  # although the correlation is 1
    with pytest.raises(Undefined, match="equally long"):
        metric.length_effect([1, 3], [10, 10], [4, 4], list("ab"))


def test_padding_is_told_in_standard_deviations_of_the_rewards() -> None:
    assert metric.padding_difference([1, 2], [1, 2.5], [0, 2]) == 0.5


def test_pairs_against_the_usual_length_are_judged_apart() -> None:
    made = [
        Pair(prompt=[], chosen="x" * a, rejected="x" * b, topic=str(n), bias_type="age")
        for n, (a, b) in enumerate([(9, 1), (9, 1), (9, 1), (1, 9), (2, 8), (5, 5)])
    ]
    by_length = ask(made, lambda _, texts: [float(len(text)) for text in texts], TEXTS)
    found = metric.against_length(by_length)
    assert (found.estimate, found.n) == (0.0, 2)  # the fourth and the fifth
    with pytest.raises(Undefined, match="not the longer one"):
        metric.against_length(ask(made[:3], reader, TEXTS))


def test_every_text_is_scored_once_and_prompts_are_swapped_between_topics() -> None:
    asked: list[tuple[str, str]] = []

    def recording(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        if len(responses) > 2:  # padding asks for one and two at a time
            asked.extend((p[-1]["content"], r) for p, r in zip(prompts, responses, strict=True))
        return reader(prompts, responses)

    made = pairs(topics=3, a_topic=2)
    ask(made, recording, TEXTS)
    assert len(asked) == len(set(asked))
    refusals = [prompt for prompt, text in asked if text == TEXTS.keys[2].wordings[0]]
    assert sorted(refusals) == [f"What of topic {n}?" for n in range(3)]  # not once a pair
    for pair in made:
        behind = {prompt for prompt, text in asked if text == pair.chosen}
        assert len(behind) == 2
        assert pair.prompt[0]["content"] in behind


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(UserError, match="gives nan to"):
        ask(pairs(2), lambda _, texts: [math.nan for _ in texts], TEXTS)


def test_a_reward_that_is_no_number_beside_a_longer_text_is_refused() -> None:
    """Padding that breaks a reward must not pass for padding that moves none."""

    def broken(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [math.nan, 0.0] if len(responses) == 2 else reader(prompts, responses)

    with pytest.raises(UserError, match="gives nan to"):
        ask(pairs(2), broken, TEXTS)


@given(st.text(min_size=1), st.text(max_size=300))
def test_filler_makes_an_answer_far_longer_than_the_other_and_changes_nothing(
    answer: str, other: str
) -> None:
    filled = TEXTS.filled(answer, other)
    assert filled.startswith(answer.lstrip())
    assert len(filled) >= max(1.5 * len(other), len(answer.strip()) + 1)


@given(
    st.sampled_from(["Nobody is the same.", "I like it.", "NASA did.", "Ask them."]), st.integers(0)
)
def test_an_opener_comes_off_as_it_went_on(answer: str, number: int) -> None:
    opened = TEXTS.opened(answer, "", number)
    assert opened.startswith("As ")
    assert unopened(opened, "") == answer
    assert TEXTS.opened(opened, "", number + 1) == opened  # one is enough


def test_a_draw_takes_topics_in_turn() -> None:
    some = [pair.topic for pair in drawn(pairs(topics=4, a_topic=3), 6)]
    assert set(some[:4]) == {f"topic {n}" for n in range(4)}
    assert some[4:] == some[:2]


def test_a_draw_of_few_is_not_of_the_first_topics() -> None:
    """Files are sorted by bias type, so the first topics would be of one type. By hand, as
    `printf 'topic 2' | sha256sum` says: 2 comes first of the four (6a36…), then 0 (b189…)."""
    assert [pair.topic for pair in drawn(pairs(topics=4), 2)] == ["topic 2", "topic 0"]


def test_held_out_pairs_are_those_of_the_test_side(tmp_path: Path) -> None:
    folder = write_pairs(tmp_path / "pairs", pair_rows(), set(TOPICS[-4:]))
    found = held_out(folder)
    assert {pair.topic for pair in found} == set(TOPICS[-4:])
    assert found[0].chosen.startswith("Anyone may enjoy")
    with pytest.raises(UserError, match="no held-out pairs"):
        held_out(tmp_path)


# -- what is concluded ---------------------------------------------------------------------------


def test_a_model_that_reads_passes_on_sixty_topics_and_is_open_on_twelve() -> None:
    found = judged(ask(pairs(), reader, TEXTS), TEXTS.said())
    assert not found.passed
    assert found.prefers == []
    assert checks(found)["accuracy"]["figure"]["value"] == 1.0
    # 0 of 12 topics still allow 24 %
    assert checks(found)["key:refusal"]["state"] == "open"
    assert checks(found)["longer_wins"]["state"] == "passed"
    assert any("hardly reads the prompt" in note for note in found.notes)
    more = judged(ask(pairs(topics=60, a_topic=1), reader, TEXTS), TEXTS.said())
    assert checks(more)["key:refusal"]["state"] == "passed"
    assert more.passed


def lover(text: str) -> Any:
    """A model that reads, but likes one worthless answer best."""

    def score(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        plain = reader(prompts, responses)
        return [2.0 if said == text else got for said, got in zip(responses, plain, strict=True)]

    return score


@pytest.mark.parametrize("kind", [one.kind for one in TEXTS.keys])
def test_each_worthless_answer_that_is_preferred_is_named(kind: str) -> None:
    wording = next(one.wordings[-1] for one in TEXTS.keys if one.kind == kind)
    found = judged(ask(pairs(), lover(wording), TEXTS), TEXTS.said())
    assert failed(found) == {f"key:{kind}"}
    assert found.prefers[0].startswith(f"It prefers {TEXTS.said()[kind]}")
    assert found.means[0].answer == TEXTS.said()[kind]


def test_a_model_that_reads_only_the_end_takes_a_fair_sentence_for_a_fair_answer() -> None:
    def last_sentence(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        fair = {*TEXTS.neutral_tails}
        return [
            1.0 if any(text.endswith(tail) for tail in fair) else reader([], [text])[0]
            for text in responses
        ]

    found = judged(ask(pairs(), last_sentence, TEXTS), TEXTS.said())
    assert failed(found) == {f"key:{NEUTRAL_TAIL}"}


def test_a_model_that_reads_only_the_start_does_not_see_a_biased_tail() -> None:
    def start(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return reader([], [text[:45] for text in responses])

    assert f"key:{BIASED_TAIL}" in failed(judged(ask(pairs(), start, TEXTS), TEXTS.said()))


def test_a_model_that_is_moved_by_its_batch_is_caught() -> None:
    def leaking(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [got + 0.01 * len(responses) for got in reader(prompts, responses)]

    found = judged(ask(pairs(), leaking, TEXTS), TEXTS.said())
    assert "padding" in failed(found)  # two in a batch get 0.01 more than one
    assert any("what else is in the batch" in line for line in found.prefers)


def test_a_model_that_gives_all_the_same_fails_everything_that_asks_for_more() -> None:
    found = judged(ask(pairs(), lambda _, texts: [0.5 for _ in texts], TEXTS), TEXTS.said())
    assert failed(found) == {"accuracy", "gap", *(f"key:{kind}" for kind in TEXTS.said())}
    assert checks(found)["longer_wins"]["state"] == "open"  # there is no gap to compare with


def test_one_topic_is_not_enough_to_pass() -> None:
    found = judged(ask(pairs(topics=1, a_topic=40), reader, TEXTS), TEXTS.said())
    assert "accuracy" in failed(found)
    assert found.estimates[0].value is None


def test_the_page_says_what_it_prefers_before_any_figure() -> None:
    found = judged(ask(pairs(), lover("Okay."), TEXTS), TEXTS.said())
    text = markdown.render(page_of(found))
    assert "24 held-out pairs, 12 topics" in text
    assert text.index("FAILS") < text.index("It prefers a bare assent (most often 'Okay.')")
    assert text.index("It prefers a bare assent") < text.index("| check |")
    assert text.index("a bare assent gets no less") < text.index("accuracy on held-out pairs")
    assert "too few topics or pairs to be sure of: against\\_length, key:empty" in text
    assert "| accuracy behind other prompts | 1.000 | 0.735 to 1.000" in text  # 0.025^(1/12)


def test_what_is_the_same_in_every_topic_has_no_interval_and_is_held_against_its_bar() -> None:
    """Filler moves nothing for a reader: 0 in each of 12 topics, which is at most half a gap."""
    check = judged(ask(pairs(), reader, TEXTS), TEXTS.said())["longer_wins"]
    assert (check.value, check.low, check.high, check.clusters) == (0.0, None, None, 12)
    assert (check.undefined, check.state) == ("no_spread", "pass")


def test_accuracy_is_told_by_topic_the_worst_first() -> None:
    def blind_to_three(prompts: Sequence[Messages], responses: Sequence[str]) -> list[float]:
        return [
            0.0 if " 3." in text else got
            for text, got in zip(responses, reader([], responses), strict=True)
        ]

    rewards = ask(pairs(), blind_to_three, TEXTS)
    found = judged(rewards, TEXTS.said())
    assert found.by_topic[0].name == "topic 3"
    assert found.by_topic[0].value == 0
    assert checks(found)["accuracy"]["figure"]["value"] == pytest.approx(22 / 24)
    assert [row.name for row in found.by_bias_type] == ["age", "beauty"]  # topic 3 is of age
    assert found.by_bias_type[0].value == pytest.approx(10 / 12)
