"""The words of the catalogue: every code has a sentence, and every sentence is that of a code."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson

import evenhand
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Verdict
from evenhand.views import catalog
from evenhand.views.catalog.plurals import counted, counted_columns, listed
from evenhand.views.files import plain, printed

SOURCE = Path(evenhand.__file__).parent
# Codes that are put together: the first part, and what may follow.
PUT_TOGETHER = ("groups.", "guardrail.", "pack.", "example.")


def _codes() -> Iterator[str]:
    """Each literal that is the code of a remark."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remark":
                yield from (
                    str(value.value)
                    for value in ast.walk(node.args[0])
                    if isinstance(value, ast.Constant) and "." in str(value.value)
                )


def test_every_code_has_a_sentence() -> None:
    literal = {code for code in _codes() if not code.endswith(".")}
    assert len(literal) > 100
    assert literal - set(catalog.SENTENCES) == set()


def test_every_sentence_has_a_code_that_is_used() -> None:
    words = {
        node.value
        for file in SOURCE.rglob("*.py")
        if file.parent.name != "catalog"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    unused = {code for code in catalog.SENTENCES if code not in words}
    assert {code for code in unused if not code.startswith(PUT_TOGETHER)} == set()


def test_no_code_has_two_sentences() -> None:
    keys = [
        key.value
        for file in (SOURCE / "views/catalog").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    ]
    assert [key for key, times in Counter(keys).items() if times > 1] == []


def test_plurals_are_made_in_one_place() -> None:
    assert [counted(n, "look") for n in (1, 2, 1_200)] == ["1 look", "2 looks", "1,200 looks"]
    assert counted(2, "category") == "2 categories"
    assert counted_columns({"group": 50, "category": 15, "sex": 0}) == "50 groups and 15 categories"
    assert [listed(names) for names in (["a"], ["a", "b", "c"])] == ["a", "a, b and c"]


def test_a_remark_within_a_remark_is_turned_into_words_first() -> None:
    why = Remark("worth.beats", references=(Remark("reference.fairness"), "x"))
    remark = Remark("worth.utility_not_measured", why=why)
    assert catalog.text(remark) == "better than the fairness prompt and x; utility was not measured"
    assert str(remark) == catalog.text(remark)
    assert catalog.text("a text of an instrument") == "a text of an instrument"


def test_json_has_the_code_the_values_and_the_words() -> None:
    verdict = Verdict(
        state="inconclusive", says=(Remark("report.none_scored", n=1_200), "as it is")
    )
    said = [
        {
            "code": "report.none_scored",
            "values": {"n": 1_200},
            "text": "None of 1,200 answers could be scored.",
        },
        "as it is",
    ]
    assert plain(verdict)["says"] == said
    assert orjson.loads(printed({"says": verdict.says}))["says"] == said


def test_what_a_change_says_has_as_many_digits_as_tell_it_from_0() -> None:
    values = {"effect": -0.5, "low": -0.9, "high": -0.00001, "undefined": None, "clusters": 4}
    remark = Remark("change", **values, unit="share", if_known=None)
    assert catalog.text(remark) == "-0.500 (-0.900 to -0.00001)"
    same = Remark("change", **{**values, "low": None, "undefined": "no_spread"}, unit="percent",
                  if_known=Remark("change.if_known", missing=1, low=None, high=None,
                                  unit="percent"))  # fmt: skip
    expected = "-0.5 (identical in all 4 clusters); unbounded with 1 missing answer"
    assert catalog.text(same) == expected
