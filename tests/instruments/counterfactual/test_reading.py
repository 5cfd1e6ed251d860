"""What is read from an answer, worked by hand; what can be read in two ways is not read."""

import polars as pl
import pytest

from evenhand.core.errors import UserError
from evenhand.statistics.metrics.readings import checked_pattern, decisions, first_number, read
from tests.errors import raises_naming

APPROVE = r"\b(approve|reject)\b"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("I would offer $45,000 a year.", 45_000.0),
        ("45k", 45_000.0),
        ("about 45 k, maybe 50 k", 45_000.0),
        ("45kg of luggage", 45.0),
        ("€1.2 million", 1_200_000.0),
        ("1.250.000,50 EUR", 1_250_000.5),
        ("CHF 45'000", 45_000.0),
        ("45\u202f000 €", 45_000.0),
        ("3,5 days", 3.5),
        ("−3.5 points", -3.5),
        ("1. Salary: 52,000\n2. Days: 30", 52_000.0),
        ("In 2 weeks.", 2.0),
        ("10%", 10.0),
        ("45.000", None),  # thousands to some, a decimal to others
        ("1,23,456", None),
        ("none at all", None),
        ("B2B", None),
        ("9" * 400, None),
        ("$40-50k", None),
        ("$45k – $50k", None),
        ("between 40 and 50k", None),
        ("1.2 billion", 1.2e9),
        ("$1.2B, or so", 1.2e9),
        ("2.5bn", 2.5e9),
        ("1e5", None),
        ("-$500", -500.0),
        ("$-500", -500.0),
        ("- $500 a month", 500.0),  # an item of a list
        ("US$1,200 for 2 years", 1200.0),
        ("USD45,000 for 2 years", 45_000.0),
        ("45 000", None),
        ("0,500", 0.5),
        ("0.125", 0.125),
        (".5 points, not 3", 0.5),
        ("within 6 m", None),
        ("£6m", 6e6),
        ("1M", 1e6),
        ("30kpa", None),
        ("50 lakh", 5e6),
        ("5/10", None),
        ("at 12:30", None),
        ("45K/year", 45_000.0),
        ("12 months", 12.0),
        ("8. She has 3 years of experience.", None),
        ("7.\nShe has 3 years of experience.", 7.0),
        ("Offer 50k.\n8. She has 3 years.", 50_000.0),
        ("", None),
    ],
)
def test_the_first_number_of_an_answer_is_read_or_is_missing(
    text: str, number: float | None
) -> None:
    assert first_number(text) == number


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Approve.", "approve"),
        ("I REJECT it. Reject!", "reject"),
        ("I would not reject it; approve.", None),
        ("approved", None),
        ("It depends.", None),
        (None, None),
    ],
)
def test_a_decision_is_the_only_one_that_an_answer_names(
    text: str | None, decision: str | None
) -> None:
    assert decisions(pl.Series([text], dtype=pl.String), APPROVE).to_list() == [decision]


def test_a_pattern_that_takes_ages_elsewhere_is_searched_in_linear_time() -> None:
    """(a+)+ doubles its time with every letter in an engine that goes back; here it ends."""
    checked_pattern(r"^((?:a+)+)$")
    assert decisions(pl.Series(["a" * 20_000 + "b"]), r"^((?:a+)+)$").to_list() == [None]


@pytest.mark.parametrize("pattern", ["(a", "a", "(a)(b)", r"(?=a)(b)", r"(a)\1", ""])
def test_a_pattern_without_one_group_is_refused_with_what_to_write(pattern: str) -> None:
    with raises_naming(UserError, "approve"):
        checked_pattern(pattern)


def test_an_answer_is_read_whole_and_none_is_none_of_it() -> None:
    rows = pl.DataFrame({"text": ["Reject: it's 3 days, 3 days.", None]})
    found = read(rows, APPROVE, number=True)
    assert found["decision"].to_list() == ["reject", None]
    assert found["number"].to_list() == [3.0, None]
    assert found["length"].to_list() == [6.0, None]
    assert sorted(found["bag"].to_list()[0]) == ["3", "days", "it's", "reject"]
    assert found["refused"].to_list() == [False, None]
    plain = read(rows, None, number=False)
    assert plain["decision"].null_count() == plain["number"].null_count() == 2
