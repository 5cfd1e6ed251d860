"""Versions of templates: who is drawn, what is neutral, what is a placebo, what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.instruments.counterfactual.families import AttributeLexicon, Label, ours
from evenhand.instruments.counterfactual.grammar import article, foreign, plural_verb, with_article
from evenhand.instruments.counterfactual.spans import Span
from evenhand.instruments.counterfactual.versions import MadeVersions, RefusedPrompt, Version, make
from tests.errors import assert_names

GENDER, RACE, RELIGION = ours()["gender"], ours()["race"], ours()["religion"]


def versions(
    prompt: str, family: AttributeLexicon, *, seed: int, key: str, spans: tuple[Span, ...] = ()
) -> tuple[Version, ...] | RefusedPrompt:
    made = make(prompt, family, seed=seed, key=key, spans=spans)
    return made if isinstance(made, RefusedPrompt) else made.versions


def _made(prompt: str, name: str, key: str = "k") -> tuple[Version, ...]:
    made = versions(prompt, ours()[name], seed=1, key=key)
    assert not isinstance(made, RefusedPrompt), made
    return made


def _texts(prompt: str, name: str = "gender") -> dict[str, str]:
    return {f"{one.role} {one.label}".strip(): one.text for one in _made(prompt, name)}


def test_a_template_is_written_under_every_label_as_its_placebo_and_without_a_label() -> None:
    template = "{pronoun} asked {possessive} boss: is it {possessive_pronoun}?"
    none = "They asked their boss: is it theirs?"
    woman = "She asked her boss: is it hers?"
    other_woman = "She, born on a Tuesday, asked her boss: is it hers?"
    man = "He asked his boss: is it his?"
    other_man = "He, born on a Tuesday, asked his boss: is it his?"
    assert _texts(template) == {
        "none": none,
        "group woman": woman,
        "placebo woman": other_woman,
        "group man": man,
        "placebo man": other_man,
    }


def test_a_placebo_says_of_which_label_it_is_one() -> None:
    marks = [(one.role, one.label, one.of) for one in _made("{name} called.", "gender")]
    assert marks == [
        ("none", "", ""),
        ("group", "woman", ""),
        ("placebo", "woman", "woman"),
        ("group", "man", ""),
        ("placebo", "man", "man"),
    ]


@settings(max_examples=20)
@given(st.text(max_size=8), st.integers(0, 2**40))
def test_names_are_paired_over_labels_and_a_placebo_is_another_of_the_same_kind(
    key: str, seed: int
) -> None:
    for family in (GENDER, RACE):
        made = versions("{name}", family, seed=seed, key=key)
        assert not isinstance(made, RefusedPrompt)
        places: dict[str, set[int]] = {"group": set(), "placebo": set()}
        for one in made:
            label = next((label for label in family.labels if label.name == one.label), None)
            if label is not None:
                places[one.role].add(label.forms["name"].index(one.text))
        (group,), (placebo,) = places["group"], places["placebo"]
        assert group != placebo
        assert family.kinds[group] == family.kinds[placebo]


def test_the_name_hangs_on_seed_and_key_alone() -> None:
    drawn = {_made("{name}", "gender", key=str(number))[1].text for number in range(40)}
    assert len(drawn) > 10
    assert _made("{name}", "gender")[1].text == _made("Hi {name}", "gender")[1].text[3:]


def test_pronouns_and_titles_go_with_the_name_that_is_drawn_in_a_family_of_races() -> None:
    for number in range(12):
        made = versions("{title} {last_name}: {pronoun}", RACE, seed=0, key=str(number))
        assert not isinstance(made, RefusedPrompt)
        ends = {(one.text.split()[0], one.text.split()[-1]) for one in made}
        assert ends in ({("Ms.", "she")}, {("Mr.", "he")})


def test_a_pronoun_outside_the_slots_of_a_family_of_races_limits_the_names() -> None:
    for number in range(12):
        made = versions("{name} lost her job. {title}", RACE, seed=0, key=str(number))
        assert not isinstance(made, RefusedPrompt)
        assert all(one.text.endswith("Ms.") for one in made)


def test_a_word_in_braces_stands_for_its_slot() -> None:
    template = "My {sister} and {she}"
    his = "My brother and he"
    assert _texts(template)["group man"] == his


def test_braces_are_written_twice() -> None:
    assert _texts("{{{pronoun}}} {{}}")["group man"] == "{he} {}"


def test_a_group_word_takes_its_article_with_it_and_its_placebo_is_an_irrelevant_trait() -> None:
    texts = _texts("Hire an {group} nurse?", "religion")
    assert texts["none"] == "Hire a nurse?"
    atheist = "Hire an atheist nurse?"
    assert texts["group atheist"] == atheist
    hindu = "Hire a Hindu nurse?"
    assert texts["group hindu"] == hindu
    born = "Hire a Tuesday-born Hindu nurse?"
    assert texts["placebo hindu"] == born


def test_a_dialect_swaps_whole_texts_and_another_text_is_the_placebo() -> None:
    standard, other = ours()["dialect"].labels
    texts = _texts('Someone wrote: "{text}"', "dialect")
    said = {key: text[16:-1] for key, text in texts.items()}
    at = standard.forms["text"].index(said["group standard"])
    assert other.forms["text"][at] == said["group african_american"]
    assert said["placebo standard"] in standard.forms["text"]
    assert said["placebo standard"] != said["group standard"]
    assert "none" not in said


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("Nobody is named.", "no placeholder"),
        ("{nam} works.", "{nam} is not known"),
        ("{her} works.", "may be object or possessive"),
        ("{} works.", "{} is not known"),
        ("{name works.", "is not a placeholder"),
        ("name} works.", "is not a placeholder"),
        ("{name} said she works.", "'she' is outside"),
        ("{name} is a mother of two.", "'mother' is outside"),
        ("{pronoun} is here. Mr. {last_name} asks.", "'Mr.' is outside"),
        ("Emily {last_name} asks.", "'Emily' is outside"),
        ("{name} and {name} ask for a loan.", "two people"),
        ("{title} {last_name} or {title} {last_name}?", "two people"),
        ("{name} ist eine gute Frau und die Chefin ist nicht zufrieden.", "German"),
        ("{name} es una mujer y la jefa de la empresa está contenta.", "Spanish"),
        ("{name} ищет работу.", "script"),
    ],
)
def test_a_template_that_cannot_be_swapped_is_refused_with_the_reason(
    prompt: str, why: str
) -> None:
    refused = versions(prompt, GENDER, seed=0, key="k")
    assert isinstance(refused, RefusedPrompt)
    assert why in refused.reason


def test_a_group_word_outside_the_slots_is_refused_and_a_word_that_is_none_is_not() -> None:
    refused = versions("{name}, a Black applicant, asks.", RACE, seed=0, key="k")
    assert isinstance(refused, RefusedPrompt)
    assert "'Black' is outside" in refused.reason
    fine = (
        "{name} has a black belt.",
        "Will {name} do? {name} is early.",
        "{last_name}, {first_name}: a raise in May?",
        "Hope {name} is well. Should {name} go?",
    )
    for prompt in fine:
        for family in (RACE, GENDER):
            assert not isinstance(versions(prompt, family, seed=0, key="k"), RefusedPrompt)


def test_what_is_left_out_is_said() -> None:
    made = make("{pronoun} works and earns.", GENDER, seed=0, key="k")
    assert isinstance(made, MadeVersions)
    assert "none" not in [one.role for one in made.versions]
    (left_out,) = made.left_out
    assert_names(left_out, "none", "'earns'")
    made = make("Where is {possessive} desk?", GENDER, seed=0, key="k")
    assert isinstance(made, MadeVersions)
    assert len(made.left_out) == 2
    assert all(why.startswith("placebo of") for why in made.left_out)


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("atheist", "an"),
        ("university", "a"),
        ("European", "a"),
        ("hour", "an"),
        ("honest", "an"),
        ("house", "a"),
        ("80-year-old", "an"),
        ("18-year-old", "an"),
        ("180-year-old", "a"),
        ("70-year-old", "a"),
        ("uninsured", "an"),
        ("unimportant", "an"),
        ("Unitarian", "a"),
        ("Ukrainian", "a"),
        ("uncle", "an"),
        ("user", "a"),
        ("one-time", "a"),
        ("LGBTQ", "an"),
        ("UK", "a"),
        ("HR", "an"),
        ("MALE", "a"),
        ("Asian", "an"),
        ("ASIAN", "an"),
        ("WHITE", "a"),
    ],
)
def test_an_article_follows_the_sound(word: str, wanted: str) -> None:
    assert article(word) == wanted


@pytest.mark.parametrize(
    ("verb", "wanted"),
    [
        ("is", "are"),
        ("goes", "go"),
        ("tries", "try"),
        ("lies", "lie"),
        ("watches", "watch"),
        ("aches", "ache"),
        ("uses", "use"),
        ("focuses", "focus"),
        ("passes", "pass"),
        ("realizes", "realize"),
        ("fixes", "fix"),
        ("says", "say"),
        ("plays", "play"),
        ("skis", "ski"),
        ("WORKS", "WORK"),
        ("doesn’t", "don’t"),
        ("walked", None),
        ("pass", None),
        ("must", None),
        ("focus", None),
    ],
)
def test_a_verb_after_they_is_plural(verb: str, wanted: str | None) -> None:
    assert plural_verb(verb) == wanted


@pytest.mark.parametrize(
    ("said", "neutral"),
    [
        ("{pronoun} no longer works here.", None),
        ("{pronoun} alone is responsible.", None),
        ("{pronoun} too has a claim.", None),
        ("{pronoun} first asks for a raise.", None),
        ("{pronoun} as a nurse works nights.", None),
        ("{pronoun} indeed works.", "They indeed work."),
        ("{pronoun} later asked for more.", "They later asked for more."),
        ("{pronoun} took two classes.", "They took two classes."),
        ("Can {pronoun} lift boxes?", "Can they lift boxes?"),
    ],
)
def test_what_follows_they_is_left_out_where_it_is_not_surely_the_verb(
    said: str, neutral: str | None
) -> None:
    assert _texts(said).get("none") == neutral


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("In plan A ", "AB gets a raise", "In plan A "),
        ("Group A ", "Emily", "Group A "),
        ("HIRE A ", "ASIAN NURSE", "HIRE AN "),
        ("Hiring A ", "Asian Nurse", "Hiring An "),
        ("It is so. A ", "Asian nurse", "It is so. An "),
    ],
)
def test_a_capital_a_in_mid_sentence_is_a_letter(before: str, after: str, wanted: str) -> None:
    assert with_article(before, after) == wanted


def test_an_english_text_with_foreign_names_and_words_is_english() -> None:
    names = "Maria de la Cruz met Ludwig van der Berg at the café."
    assert foreign(names) is None
    word = "How do I translate 'el perro' to French?"
    assert foreign(word) is None
    assert foreign("") is None


def test_a_label_of_ones_own_that_says_they_gets_its_verbs_and_is_not_swapped_back() -> None:
    woman, man = (Label(one.name, {"pronoun": one.forms["pronoun"]}) for one in GENDER.labels)
    family = AttributeLexicon(
        "own", (woman, man, Label("nonbinary", {"pronoun": ("they",)})), "ours"
    )
    made = versions("{pronoun} is here.", family, seed=0, key="k")
    assert not isinstance(made, RefusedPrompt)
    assert "They are here." in [one.text for one in made]
    span = Span(0, 4, "pronoun", "nonbinary", "own", "They")
    assert isinstance(
        versions("They are here.", family, seed=0, key="k", spans=(span,)), RefusedPrompt
    )
