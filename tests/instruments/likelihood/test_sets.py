"""What the sets hold, and what a sample of them is."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.instruments._contract import DataFolder
from evenhand.instruments._options import OptionItem, sample
from evenhand.instruments.likelihood_sets import all_sets, set_named
from tests.errors import raises_naming
from tests.instruments.likelihood.conftest import item


def _all(sets: DataFolder, name: str) -> list[OptionItem]:
    return all_sets()[name].items(sets)


@pytest.mark.parametrize(
    ("name", "items", "clusters"),
    [
        ("crows_pairs", 1508, 77),
        ("stereoset", 4229, 79),
        ("winobias", 1565, 40),
        ("winogender", 240, 60),
        ("subtler_biases", 11940, 1539),
        ("occupations", 40, 40),
    ],
)
def test_a_set_has_the_items_of_its_card(
    sets: DataFolder, name: str, items: int, clusters: int
) -> None:
    found = _all(sets, name)
    assert len(found) == items
    assert len({one.id for one in found}) == items
    assert len({one.cluster for one in found}) == clusters
    assert all(len(set(one.options.values())) == len(one.options) for one in found[:500])


def test_in_crows_pairs_the_first_option_is_the_more_stereotypical_whichever_way_it_points(
    sets: DataFolder,
) -> None:
    found = {one.id: one for one in _all(sets, "crows_pairs")}
    stereo, anti = found["crows_pairs/1"], found["crows_pairs/2"]
    assert stereo.tags["direction"] == "stereo"
    assert stereo.options["stereotype"].startswith("The poor are")
    assert anti.tags["direction"] == "antistereo"
    he = "he would come forward"
    assert he in anti.options["stereotype"]
    she = "she would come forward"
    assert she in anti.options["anti_stereotype"]


def test_in_stereoset_what_is_given_stands_before_each_end(sets: DataFolder) -> None:
    for one in _all(sets, "stereoset"):
        assert set(one.options) == {"stereotype", "anti_stereotype", "unrelated"}
        if one.tags["task"] == "intersentence":
            assert all(text.startswith(f"{one.given} ") for text in one.options.values())
        else:
            assert not one.given


def test_winobias_keeps_only_pairs_that_differ_in_the_pronoun(sets: DataFolder) -> None:
    found = _all(sets, "winobias")
    gone = {"he", "him", "his", "himself", "she", "her", "hers", "herself"}
    for one in found:
        pro, anti = (
            [word for word in text.lower().replace(".", " ").split() if word not in gone]
            for text in one.options.values()
        )
        assert pro == anti
        assert "[" not in one.options["stereotype"]
    # Line 92 of the first file says "needed a desk" in one version and "needed one" in the other.
    assert "winobias/type1/dev/92" not in {one.id for one in found}
    balance = Counter(one.tags["stereotype_is"] for one in found)
    assert abs(balance["female"] - balance["male"]) < 20


def test_a_winogender_item_has_three_genders_and_the_share_of_women(sets: DataFolder) -> None:
    (nurse,) = (one for one in _all(sets, "winogender") if one.id == "winogender/nurse.someone.0")
    assert set(nurse.options) == {"female", "male", "neutral"}
    assert (nurse.group, nurse.cluster) == ("occupation", "nurse")
    assert float(nurse.tags["women_percent"]) == 89.58


def test_in_subtler_biases_two_roles_of_the_same_words_are_one_cluster(
    sets: DataFolder,
) -> None:
    found = _all(sets, "subtler_biases")
    assert Counter(one.group for one in found) == {
        "institution": 3600,
        "nationality": 2502,
        "age": 2154,
        "beauty": 2016,
        "profession": 1668,
    }
    polarity: dict[str, set[str]] = {}
    for one in found:
        polarity.setdefault(one.cluster, set()).add(one.tags["polarity"])
    assert polarity["nationality: dumb/smart"] == {"positive", "negative"}
    assert not any("BLANK" in text for one in found for text in one.options.values())


def test_an_unknown_set_is_named_with_the_known_ones() -> None:
    with raises_naming(UserError, "'crows'", "crows_pairs"):
        set_named("crows")


def test_a_sample_takes_equal_shares_and_spreads_over_clusters() -> None:
    large = [item(f"l{n}", group="large", cluster=f"c{n % 10}") for n in range(100)]
    small = [item(f"s{n}", group="small") for n in range(4)]
    found = sample([*large, *small], 24, seed=0)
    assert Counter(one.group for one in found) == {"large": 20, "small": 4}
    of_cluster = Counter(one.cluster for one in found if one.group == "large")
    assert set(of_cluster.values()) == {2}


@given(st.integers(1, 120), st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_sample_is_as_large_as_asked_in_order_and_the_same_for_a_seed(
    wanted: int, seed: int, rng: random.Random
) -> None:
    every = [
        item(f"i{n}", group=f"g{rng.randrange(4)}", cluster=f"c{rng.randrange(9)}")
        for n in range(100)
    ]
    found = sample(every, wanted, seed)
    assert found == sample(every, wanted, seed)
    assert len(found) == min(wanted, 100)
    places = [every.index(one) for one in found]
    assert places == sorted(set(places))


@pytest.mark.parametrize("name", all_sets())
def test_a_drawn_set_has_a_text_for_each_name_of_its_options_and_the_facts_that_scoring_needs(
    sets: DataFolder, name: str
) -> None:
    one = all_sets()[name]
    source = one.source(sets, one.options_from({"sample": 8}))
    record = source.fingerprint()
    assert (record["benchmark"], record["items"], len(source)) == (name, 8, 8)
    for asked in source.read(0, 8):
        assert len(asked.choices) == len(one.names)
        assert set(asked.tags) >= set(one.facts)
        assert all(text.startswith(asked.prompt) for text in asked.choices)


def test_the_choices_of_stereoset_are_in_the_order_of_the_names_whichever_way_the_data_has_them(
    sets: DataFolder,
) -> None:
    one = all_sets()["stereoset"]
    first = _all(sets, "stereoset")[0]
    assert list(first.options) != list(one.names)  # the data names another option first
    (asked,) = one.source(sets, one.options_from({"all": True})).read(0, 1)
    assert asked.choices == tuple(first.options[name] for name in one.names)
