"""Who is paired with whom, by hand and by property."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.training.debates.building import from_statements
from evenhand.training.debates.debate import Statement
from evenhand.training.debates.pairs import (
    STRATEGIES,
    Pairing,
    Split,
    Strategy,
    has_opener,
    without_opener,
)
from tests.errors import raises_naming
from tests.stage import golden

from .planted import debate, everything, numbers, statement

ALL = Split(test_share=0)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("same_topic", [(1, 0), (1, 3), (2, 0), (2, 3)]),
        ("same_round", [(1, 0), (2, 3)]),
        ("same_role", [(1, 3), (2, 0)]),
        ("any", [(low, high) for low in (1, 2, 4, 5) for high in (0, 3, 6)]),
    ],
)
def test_a_planted_debate_gives_the_pairs_worked_out_by_hand(
    strategy: Strategy, expected: list[tuple[int, int]]
) -> None:
    said = debate()
    built = from_statements(said, Pairing(strategy=strategy), ALL)
    assert numbers(built, said) == expected
    assert built.report.to_dict()["possible_pairs"] == {
        "same_topic": 4,
        "same_round": 2,
        "same_role": 2,
        "any": 12,
    }
    alone = [] if strategy == "any" else ["dogs"]
    assert built.report.to_dict()["topics_without_pair"] == [*alone, "horses"]


def test_the_golden_vector_of_pairs() -> None:
    vector = golden("rldf_pairs")
    expected = vector["expected"]
    said = [
        statement(n, one["referee_score"], topic=one["topic"], round=int(one["round"][1:]))
        for n, one in enumerate(vector["inputs"]["statements"])
    ]
    pairing = Pairing(threshold=vector["inputs"]["threshold"])
    built = from_statements(said, pairing, ALL)
    assert numbers(built, said) == [tuple(one) for one in expected["pairs_low_high_same_topic"]]
    assert built.report.to_dict()["topics_without_pair"] == expected["topics_without_pair"]
    counts = built.report.to_dict()["statements"]
    assert (counts["high"], counts["low"]) == (
        len(expected["high_indices"]),
        len(expected["low_indices"]),
    )


def test_a_pair_keeps_where_its_two_sides_come_from() -> None:
    said = debate()
    (pair,) = (
        one
        for one in everything(from_statements(said, Pairing(), ALL))
        if (one.chosen, one.rejected) == (said[2].text, said[0].text)
    )
    row = pair.row()
    assert row["chosen"] == [{"role": "assistant", "content": said[2].text}]
    assert (row["score_chosen"], row["score_rejected"], row["margin"]) == (3, 7, 0.4)
    assert (row["round_chosen"], row["round_rejected"]) == (2, 1)
    assert (row["role_chosen"], row["role_rejected"]) == ("a boy", "a boy")
    assert row["prompts"] == f'{{"rldf/debater@1":"{"0" * 64}"}}'
    assert (row["referee"], row["run"], row["source"]) == ("the referee", "runs/planted", "debate")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_prompt_names_a_role_only_where_both_share_it(strategy: Strategy) -> None:
    for one in everything(from_statements(debate(), Pairing(strategy=strategy), ALL)):
        asked = one.prompt[0].content
        assert ("a boy" in asked or "a man" in asked) == (strategy == "same_role")
        assert ("cats" in asked) == (strategy != "any")


def test_scores_of_two_referees_are_never_compared() -> None:
    said = [statement(0, 9), statement(1, 1, referee="another")]
    with raises_naming(UserError, "2 statements", "1 are high", "--min-gap"):
        from_statements(said, Pairing(strategy="any"), ALL)


def test_a_least_gap_leaves_out_pairs_that_are_nearly_equal() -> None:
    said = debate()
    built = from_statements(said, Pairing(min_gap=3), ALL)
    assert numbers(built, said) == [(1, 0), (1, 3), (2, 0)]  # 5 - 2 is enough, 5 - 3 is not


def test_a_cap_draws_the_same_pairs_with_the_same_seed() -> None:
    said = [statement(n, n % 10, topic=f"topic{n // 40}") for n in range(120)]
    capped = Split(test_share=0, per_topic=5, seed=1)
    one, again = (numbers(from_statements(said, Pairing(), capped), said) for _ in range(2))
    other = numbers(from_statements(said, Pairing(), replace(capped, seed=2)), said)
    assert one == again != other
    assert len(one) == len(set(one)) == 15
    whole = numbers(from_statements(said, Pairing(), ALL), said)
    assert len(whole) == 3 * 16 * 24  # of forty, four tens of scores: 16 low, 24 high
    assert set(one) < set(whole)


def test_any_draws_from_nine_million_pairs_without_writing_them_down() -> None:
    said = [statement(n, 9 * (n % 2), topic=f"topic{n // 2}") for n in range(6_000)]
    built = from_statements(said, Pairing(strategy="any"), Split(per_topic=1))
    assert len(everything(built)) == 3_000
    where = {topic: side for side, group in built.pairs.items() for topic in _topics(group)}
    for side, group in built.pairs.items():
        assert all(where.get(one.topic_rejected, side) == side for one in group)


def _topics(pairs: Any) -> set[str]:
    return {one.topic for one in pairs}


@pytest.mark.parametrize(
    ("said", "pairing", "helps"),
    [
        ([statement(0, 1), statement(1, 2)], Pairing(), ("0 are high", "--threshold")),
        ([statement(0, 2), statement(1, 2)], Pairing(), ("0 are high", "more topics")),
        (
            [statement(0, 1), statement(1, 9, topic="dogs")],
            Pairing(),
            ("1 are high", "--strategy any"),
        ),
        ([statement(0, 3), statement(1, 4)], Pairing(min_gap=2), ("1 are high", "--min-gap")),
        ([], Pairing(), ("0 statements", "0 are high")),
    ],
)
def test_no_pair_says_how_many_were_high_and_what_to_change(
    said: list[Statement], pairing: Pairing, helps: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *helps):
        from_statements(said, pairing, ALL)


# -- near-duplicates and openers -------------------------------------------------------------------


def test_what_was_nearly_said_before_is_left_out() -> None:
    long = "Older people know more of the world than young ones do, and so they should decide it"
    said = [
        statement(0, 1, text=f"{long} now"),
        statement(1, 9, text=f"{long}, today!"),
        statement(2, 9),
        statement(3, 2, text=long, topic="dogs"),
        statement(4, 2, text=f"{long.upper()}.", topic="horses"),
    ]
    built = from_statements(said, Pairing(), ALL)
    assert numbers(built, said) == [(0, 2)]
    # 1 nearly repeats 0, 4 repeats 3 elsewhere; 3 nearly repeats 0, on another topic: it stays.
    assert built.report.to_dict()["statements"]["near_duplicates_dropped"] == 2


@pytest.mark.parametrize(
    ("text", "role", "rest"),
    [
        ("As a 60-year-old, I think cats matter.", "a 60-year-old", "I think cats matter."),
        ("As a 60-year-old I think cats matter.", "a 60-year-old", "I think cats matter."),
        ("Speaking as a teacher, cats matter.", "a teacher", "Cats matter."),
        ("As a retired, kind teacher, I like cats.", "a teacher", "I like cats."),
        ("As someone who is forty, I like cats.", "a man", "I like cats."),
        ("From the perspective of a doctor, cats matter.", "a doctor", "Cats matter."),
        ("In my role as an engineer, I build.", "an engineer", "I build."),
        ("Being a lawyer, I know cats.", "a lawyer", "I know cats."),
        ("**A doctor:** As a doctor, I know cats.", "a doctor", "I know cats."),
        ("I am a 20-year-old, and I like cats.", "a 20-year-old", "I like cats."),
        ("I’m a doctor. Cats matter a lot.", "a doctor", "Cats matter a lot."),
    ],
)
def test_an_opener_is_cut_off(text: str, role: str, rest: str) -> None:
    assert has_opener(text, role)
    assert without_opener(text, role) == rest


@pytest.mark.parametrize(
    "text",
    [
        "As a result, cats matter.",
        "As a society, we need cats.",
        "As the population ages, cats matter.",
        "Being a teacher is hard, and cats help.",
        "For the elderly, cats matter.",
        "I am a firm believer in cats. They matter.",
        "Cats matter, as a teacher knows.",
        "As always, cats matter.",
    ],
)
def test_a_statement_that_tells_nothing_of_its_speaker_stays_as_it_is(text: str) -> None:
    assert not has_opener(text, "a teacher")
    assert without_opener(text, "a teacher") == text


def test_openers_are_reported_and_stripped_kept_or_dropped() -> None:
    def opened(one: Statement) -> Statement:
        return replace(one, text=f"As a teacher, {one.text}") if one.score > 3 else one

    said = [opened(one) for one in debate()]
    stripped = from_statements(said, Pairing(), ALL)
    assert stripped.report.to_dict()["statements"]["with_opener"] == {"high": 1.0, "low": 0.0}
    assert stripped.report.to_dict()["shortcuts"]["train"]["has_opener"] == {
        "chosen": 0.0,
        "rejected": 0.0,
    }
    kept = from_statements(said, Pairing(openers="keep"), ALL)
    assert kept.report.to_dict()["shortcuts"]["train"]["has_opener"] == {
        "chosen": 0.0,
        "rejected": 1.0,
    }
    with raises_naming(UserError, "0 are high"):  # which is why dropping is not the default
        from_statements(said, Pairing(openers="drop"), ALL)


def test_a_statement_that_was_only_an_opener_is_dropped() -> None:
    said = [*debate(), statement(7, 9, text="As a teacher, I agree.")]
    assert (
        from_statements(said, Pairing(), ALL).report.to_dict()["statements"]["openers_dropped"] == 1
    )


# -- lengths ---------------------------------------------------------------------------------------


def test_the_length_gap_is_counted_as_by_hand() -> None:
    said = [
        statement(0, 9, text="one two three four five six"),
        statement(1, 1, text="seven eight nine"),
        statement(2, 1, text="ten eleven twelve thirteen fourteen fifteen"),
    ]
    found = from_statements(said, Pairing(), ALL).report.to_dict()["shortcuts"]["train"]
    assert found["words"] == {"chosen": 4.5, "rejected": 6.0}
    assert found["characters"] == {"chosen": (16 + 43) / 2, "rejected": 27.0}
    assert found["shorter_wins"] == 0.75  # right once, and a guess once


def test_matched_lengths_leave_a_rule_on_length_at_chance() -> None:
    texts = [f"{'w ' * (5 + n % 7)}t{n} u{n} v{n}" for n in range(90)]
    said = [
        statement(n, 9 if len(text.split()) > 10 or n % 5 == 0 else 1, text=text)
        for n, text in enumerate(texts)
    ]
    before = from_statements(said, Pairing(), ALL).report.to_dict()
    built = from_statements(said, Pairing(), replace(ALL, match_lengths=True))
    after = built.report.to_dict()["shortcuts"]["train"]
    assert before["shortcuts"]["train"]["shorter_wins"] > 0.8
    assert after["shorter_wins"] == 0.5
    assert after["words"]["chosen"] == pytest.approx(after["words"]["rejected"], abs=0.4)
    assert (
        built.report.to_dict()["lengths_dropped"]
        == before["shortcuts"]["train"]["pairs"] - after["pairs"]
    )


def test_pairs_that_cannot_be_matched_are_said_to_be() -> None:
    said = [statement(0, 9, text="one two three four"), statement(1, 1, text="five six seven")]
    with raises_naming(UserError, "1 pairs", "--match-lengths"):
        from_statements(said, Pairing(), replace(ALL, match_lengths=True))


# -- always ----------------------------------------------------------------------------------------

_WORDINGS = ("Should cats drive", "should the cats drive?", "Cats should drive!", "Dogs at work")
_SAID = st.lists(
    st.builds(
        lambda score, topic, role, round_, kind, referee: {
            "score": score,
            "topic": topic,
            "role": role,
            "round": round_,
            "bias_type": kind,
            "referee": referee,
        },
        st.floats(0, 10),
        st.sampled_from((*_WORDINGS, *(f"topic{n} of{n}" for n in range(6)))),
        st.sampled_from(("a boy", "a man", "a woman")),
        st.integers(1, 5),
        st.sampled_from(("age", "beauty")),
        st.sampled_from(("one", "another")),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(
    said=_SAID,
    pairing=st.builds(
        Pairing,
        strategy=st.sampled_from(STRATEGIES),
        threshold=st.floats(0, 10),
        min_gap=st.sampled_from((0.0, 1.0, 4.0)),
    ),
    split=st.builds(
        Split,
        test_share=st.sampled_from((0.0, 0.1, 0.5)),
        per_topic=st.sampled_from((None, 1, 3)),
        match_lengths=st.booleans(),
        seed=st.integers(0, 9),
    ),
)
def test_the_chosen_one_is_less_biased_and_no_topic_is_on_both_sides(
    said: list[dict[str, Any]], pairing: Pairing, split: Split
) -> None:
    told = [statement(n, **one) for n, one in enumerate(said)]
    by_text = {one.text: one for one in told}
    try:
        built = from_statements(told, pairing, split)
    except UserError:
        return
    for one in everything(built):
        chosen, rejected = by_text[one.chosen], by_text[one.rejected]
        assert chosen.score <= pairing.threshold < rejected.score
        assert chosen.score < rejected.score
        assert one.margin == pytest.approx((rejected.score - chosen.score) / 10)
        assert chosen.bias_type == rejected.bias_type == one.bias_type
        assert chosen.referee == rejected.referee
    sides = [
        {_family(topic) for one in group for topic in (one.topic, one.topic_rejected)}
        for group in built.pairs.values()
    ]
    assert not sides[0] & sides[1]


def _family(topic: str) -> str:
    return "cats" if topic in _WORDINGS[:3] else topic
