"""Topics that say the same are on the same side, whatever their order and their number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.training.debates import splits
from evenhand.training.debates.splits import ALIKE, draw, sides, topic_families, trained

TOPICS = [(f"word{n} thing{n} matter{n}", "age") for n in range(400)]


def test_about_the_share_that_was_asked_for_is_held_out() -> None:
    found = sides(TOPICS, 0.1, seed=0)
    assert 0.06 < list(found.values()).count("test") / 400 < 0.14
    assert found != sides(TOPICS, 0.1, seed=1)


def test_a_topic_stays_on_its_side_when_others_join() -> None:
    few = sides(TOPICS[:300], 0.1, seed=3)
    more = sides(reversed(TOPICS), 0.1, seed=3)
    assert all(more[topic] == side for topic, side in few.items())


def test_two_wordings_of_a_topic_are_on_one_side() -> None:
    worded = [
        ("Should people over 60 be allowed to drive at night?", "age"),
        ("Should people over 60 be allowed to drive at night", "age"),
        ("should all people over 60 be allowed to drive at night", "beauty"),
        ("People over 60 should not be allowed to drive at night.", "age"),
    ]
    for seed in range(20):
        found = sides([*TOPICS[:10], *worded], 0.5, seed)
        assert len({found[topic] for topic, _ in worded}) == 1


def test_a_topic_without_a_side_is_trained_on_unless_it_is_like_one_that_is_held_out() -> None:
    night = "people over 60 driving cars at night"
    found = trained(
        ["cats sing", "dogs dance", night, f"old {night}", "cows read"],
        {"cats sing": "train", "dogs dance": "test", night: "test"},
    )
    assert found == {"cats sing", "cows read"}


@pytest.mark.parametrize("seed", range(20))
def test_each_bias_type_has_something_held_out_and_something_to_train_on(seed: int) -> None:
    few = [("cats drive", "age"), ("dogs sing", "age"), ("cows read", "beauty"), ("pigs", "beauty")]
    found = sides(few, 0.01, seed)
    for kind in ("age", "beauty"):
        assert {found[topic] for topic, of in few if of == kind} == {"train", "test"}


def test_a_single_topic_is_trained_on_and_no_share_holds_nothing_out() -> None:
    for seed in range(20):
        assert sides([("cats", "age")], 0.5, seed) == {"cats": "train"}
    assert set(sides(TOPICS, 0, 0).values()) == {"train"}
    assert set(sides(TOPICS[:5], 0.999999, 0).values()) == {"train", "test"}


def test_the_family_with_most_topics_is_not_what_is_held_out() -> None:
    large = [(f"old doctors cure many sad cats daily{n}", "age") for n in range(9)]
    for seed in range(20):
        found = sides([*large, ("dogs sing", "age")], 0.0001, seed)
        assert found["dogs sing"] == "test"


_SETS = st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=25)


@settings(max_examples=300)
@given(_SETS)
def test_filing_under_rare_words_finds_what_comparing_all_finds(
    features: list[frozenset[str]],
) -> None:
    first = list(range(len(features)))
    for _ in features:  # long enough for every chain
        for one, left in enumerate(features):
            for two, right in enumerate(features):
                union = left | right
                if not union or len(left & right) / len(union) >= ALIKE:
                    first[one] = first[two] = min(first[one], first[two])
    assert splits._first_alike(features) == first


def test_ten_thousand_topics_of_one_mould_take_no_minutes() -> None:
    """As many as a large job has; all share their common words."""
    topics = [f"Should a person of group{n} be hired by firm{n % 97}?" for n in range(10_000)]
    assert len(set(topic_families(topics))) >= 1


def test_the_draw_is_the_same_on_every_machine() -> None:
    """The first 16 digits are those that sha256sum prints for 1, side, cats with NULs between."""
    assert draw(1, "side", "cats") == 0x86A6B14EEEC7FE5E / 2**64
