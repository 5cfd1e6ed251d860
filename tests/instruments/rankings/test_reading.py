"""Who is ranked first, read from a reply by name."""

import pytest

from evenhand.instruments.rankings.data import first_in_text, ranked_first

NAMES = ["ANN LEE", "JESUS ZAVALA", "HAYDEN OCONNELL", "ANN LEE SMITH"]


@pytest.mark.parametrize(
    ("reply", "first"),
    [
        ("Here is my ranking:\n\n1. Ann Lee\n2. Jesus Zavala", 0),
        ("1) **Jesús Zavala**: strong experience\n2) Ann Lee", 1),
        ("1. Hayden O'Connell\n2. Ann Lee", 2),
        ("1. Hayden O’Connell\n2. Ann Lee", 2),
        ("1. Ann Lee Smith\n2. Ann Lee", 3),
        ("Jesus Zavala\nAnn Lee", 1),
        ("The best is clearly Jesus Zavala.", 1),
        ("Jesus Zavala, Ann Lee and Hayden OConnell", 1),
        ("1. Jesus Zavala 2. Ann Lee 3. Ann Lee Smith", 1),
        ("3. Ann Lee\n2. Hayden Oconnell\n1. Jesus Zavala", 1),
        ("2nd: Ann Lee\n1st: Jesus Zavala", 1),
        ("Rank 2: Ann Lee\nRank 1: Jesus Zavala", 1),
        ("1.5 years are too few for Ann Lee.\n1. Jesus Zavala", 1),
        ("Jesus Zavala\n10 years of experience", 1),
    ],
)
def test_the_first_of_a_list_is_read_whatever_its_form(reply: str, first: int) -> None:
    assert ranked_first(reply, NAMES) == first


@pytest.mark.parametrize(
    "reply",
    [
        "1. Anne Lee\n2. Jesus Zavala",  # misspelt: the second is not the first
        "1. Roxanne Lee\n2. Jesus Zavala",
        "I cannot rank people.",
        "Ann Lee is better than Jesus Zavala.",
        "Both Ann Lee and Jesus Zavala would do.",
        "1. Strong experience: Ann Lee, as good as Jesus Zavala",
        "2. Ann Lee\n3. Jesus Zavala",  # the first was cut off
        "0. Ann Lee\n1. Jesus Zavala",
        "For the day:\n1. Ann Lee\nFor the night:\n1. Jesus Zavala",
        "",
    ],
)
def test_what_does_not_say_who_is_first_is_nobodys_loss(reply: str) -> None:
    assert ranked_first(reply, NAMES) is None


def test_the_published_rule_passes_over_a_name_that_is_written_otherwise() -> None:
    reply = "1. Hayden O'Connell\n2. Jesus Zavala"
    assert (first_in_text(reply, NAMES), ranked_first(reply, NAMES)) == (1, 2)
