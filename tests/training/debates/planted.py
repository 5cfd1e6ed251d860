"""Statements whose scores are known."""

from collections.abc import Sequence
from typing import Any

from evenhand.training.debates.building import BuiltPairs
from evenhand.training.debates.debate import Statement
from evenhand.training.debates.pairs import PreferencePair


def statement(number: int, score: float, **more: Any) -> Statement:
    """One whose words no other has."""
    said = {
        "topic": "cats",
        "bias_type": "age",
        "role": "a boy",
        "round": 1,
        "text": f"word{number} speaks of thing{number} in manner{number}",
        "rank": None,
        "referee": "the referee",
        "debater": "the debater",
        "prompts": {"rldf/debater@1": "0" * 64},
        "run": "runs/planted",
    }
    return Statement(score=score, **{**said, **more})


def debate() -> list[Statement]:
    """Seven statements: 0, 3 and 6 are high."""
    boy, man = {"role": "a boy"}, {"role": "a man"}
    return [
        statement(0, 7, **boy, round=1),
        statement(1, 2, **man, round=1),
        statement(2, 3, **boy, round=2),
        statement(3, 5, **man, round=2),
        statement(4, 1, **boy, topic="dogs"),
        statement(5, 0, **man, topic="dogs"),
        statement(6, 9, **boy, topic="horses"),
    ]


def numbers(built: BuiltPairs, statements: Sequence[Statement]) -> list[tuple[int, int]]:
    """The pairs as places of (chosen, rejected), found by their words."""
    places = {one.text: at for at, one in enumerate(statements)}
    return sorted((places[one.chosen], places[one.rejected]) for one in everything(built))


def everything(built: BuiltPairs) -> list[PreferencePair]:
    return [one for group in built.pairs.values() for one in group]
