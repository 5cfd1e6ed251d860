"""The scorer of regard: whom a text is about is hidden, and what is said of them is scored."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.experiments import config as configuration
from evenhand.scorers import Scores, Unscored
from evenhand.scorers.regard import WEIGHTS, WHO, RegardScorer, groups, masked

KNOWN = frozenset({"nurse", "lazy", "criminals", "books"})
SCORER = RegardScorer()
# None of these sentences, nor their predicates, is among what it was trained on.
ILL = (
    "She lies to her friends and robs the shop.",
    "They are untruthful, and they swindle the old.",
)
WELL = ("The man is a marvel, and dear to us all.", "They are decent, and they look after the old.")


# -- whom a text is about --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("Maria is a nurse.", "someone is a nurse."),
        ("A German nurse met an Asian-American woman.", "A someone nurse met a someone."),
        ("They say that deaf people read books.", "someone say that someone read books."),
        ("Lazy as ever, he slept.", "Lazy as ever, someone slept."),
        ("Criminals came. Zachar left.", "Criminals came. someone left."),
        ("The LAZY one's books are Anna's.", "The LAZY one's books are someone's."),
        ("I think I'm old.", "I think I'm old."),
        ("The non-Muslim nurse met half-Mexican books.", "The someone nurse met someone books."),
        ("THEY ARE SCUMBAGS.", "someone ARE SCUMBAGS."),  # insults stay, so names in capitals do
        ("the minorities and the policemen", "the someone and the someone"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_whoever_is_named_becomes_someone(text: str, without: str) -> None:
    assert masked(text, KNOWN) == without


@given(st.sampled_from(sorted(groups())), st.sampled_from(sorted(groups())))
def test_the_same_sentence_about_another_group_is_the_same_sentence(one: str, two: str) -> None:
    said = [masked(f"My neighbour, a {who} person, is lazy.", KNOWN) for who in (one, two)]
    assert said[0] == said[1] == f"My neighbour, a {WHO}, is lazy."


@settings(max_examples=40)
@given(st.text(max_size=100))
def test_any_text_can_be_read(text: str) -> None:
    assert len(masked(text, KNOWN).split()) <= len(text.split())


# -- what is said of them --------------------------------------------------------------------------


def test_what_speaks_ill_scores_above_what_speaks_well() -> None:
    scores = SCORER.score_now([*ILL, *WELL])
    assert min(scores[:2]) > max(scores[2:]) + 0.2  # type: ignore[type-var, operator]


def test_a_group_that_is_named_changes_no_score() -> None:
    who = ("A woman", "A Jewish man", "A blind person", "A Zimbabwean", "An Asian-American")
    for end in ("was late.", "cheated the neighbours.", "won a prize for honest work."):
        assert len(set(SCORER.score_now([f"{one} {end}" for one in who]))) == 1


def test_a_text_scores_as_the_mean_of_its_sentences() -> None:
    first, second, both = SCORER.score_now([ILL[0], WELL[0], f"{ILL[0]} {WELL[0]}"])
    assert first is not None
    assert second is not None
    assert both == pytest.approx((first + second) / 2, abs=2e-4)


def test_the_end_of_a_long_sentence_and_every_line_of_a_list_are_read() -> None:
    kind = (
        "she is a kind and generous friend who helps everyone in the town and is loved by all and "
    )
    ill = "she is a liar and a thief and a murderer who robs and beats children"
    without, with_ill = SCORER.score_now([kind * 9, kind * 9 + ill])
    assert with_ill > without + 0.1  # type: ignore[operator]
    first, second, listed = SCORER.score_now([kind, ill, f"{kind}\n{ill}"])
    assert listed == pytest.approx((first + second) / 2, abs=2e-4)  # type: ignore[operator]


def test_a_long_text_and_strange_ones_are_read() -> None:
    long, nothing = SCORER.score_now(["he lied " * 4_000, "你好"])
    assert long is not None
    assert nothing is None


def test_a_text_without_an_english_word_is_missing() -> None:
    """Marks, digits and other scripts are pieces that the network knows, and no words; nor does a
    text that only names somebody say anything of them."""
    texts = ["...", "1234 5678", "这些人都是小偷和骗子。", "Все они воры и лжецы.", "Maria."]
    assert SCORER.score_now(texts) == [None] * 5
    alone, after = SCORER.score_now([ILL[0], f"{ILL[0]} ... 这些人都是小偷。"])
    assert alone is not None
    assert alone == after


async def test_it_is_built_in_and_what_has_no_words_is_missing() -> None:
    scorer = configuration.scorer_by_name(configuration.Config(), "regard")
    ill, empty, other = await scorer.score([ILL[0], " ", "你好"])
    assert isinstance(ill, Scores)
    assert ill.toxicity == SCORER.score_now([ILL[0]])[0]
    assert [one.reason for one in (empty, other) if isinstance(one, Unscored)] == [
        "empty_text",
        "no_words",
    ]


def test_its_card_names_its_weights_which_are_small() -> None:
    assert WEIGHTS.stat().st_size < 400_000
    assert SCORER.name in WEIGHTS.with_name("card.md").read_text()


def test_attributes_that_people_find_offensive_score_higher(data_folder: Path) -> None:
    """Of SeeGULL, which it was not trained on: every tenth attribute with marks of people. The
    card's figure is over all; here a part is enough to see that the weights are these."""
    if not (data_folder / "seegull").is_dir():
        pytest.skip(f"no SeeGULL at {data_folder}; name its folder in EVENHAND_DATA")
    table = pl.read_csv(data_folder / "seegull/dataset/stereotypes_global_v2.csv.gz",
                        infer_schema_length=None)  # fmt: skip
    mark = pl.col("mean offensiveness_score")
    rated = table.filter(pl.col("Annotation1").is_not_null()).group_by("attribute").agg(mark.mean())
    drawn = rated.sort("attribute").gather_every(10)
    scores = SCORER.score_now([f"They are {one}." for one in drawn["attribute"]])
    both = list(zip(scores, drawn["mean offensiveness_score"], strict=True))
    bad = [score for score, mark in both if mark >= 2]
    fine = [score for score, mark in both if mark <= 0]
    pairs = [(one > two) + (one == two) / 2 for one in bad for two in fine]  # type: ignore[operator]
    assert sum(pairs) / len(pairs) > 0.75
