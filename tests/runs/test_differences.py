"""A folder that is not resumed says which settings differ, with both values."""

from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.runs.store.run_record import refuse, told_apart
from tests.errors import raises_naming

RECORD: dict[str, Any] = {
    "method": {"name": "stardtox", "settings": {"max_iterations": 2, "critique": None}},
    "prompts": {"stardtox/judge@1": "a" * 64},
    "cast": {"default": {"model": "small", "url": "http://127.0.0.1/v1"}},
    "source": {
        "sampling": {"per_category": 8, "seed": 0},
        "items": 88,
        "sha256": "b" * 64,
        "margins": {"score": 0.5},
    },
    "limits": {"calls": 16},
    "seed": None,
}


def _with(**changes: Any) -> dict[str, Any]:
    """The record with changes to whole sections, each of which keeps what is not named."""
    changed = {name: {**RECORD[name], **new} for name, new in changes.items() if name != "seed"}
    return {**RECORD, **changed, **({"seed": changes["seed"]} if "seed" in changes else {})}


@pytest.mark.parametrize(
    ("planned", "differences"),
    [
        (
            _with(source={"sampling": {"per_category": 12, "seed": 0}, "items": 132}),
            [("per_category", "8", "12")],
        ),
        (
            _with(source={"sampling": {"preset": "all", "seed": 0}, "sha256": "c" * 64}),
            [("per_category", "8", "not set"), ("preset", "not set", "all")],
        ),
        (
            _with(method={"name": "cot", "settings": {}}, prompts={"cot@1": "d" * 64}),
            [("method", "stardtox", "cot")],
        ),
        (_with(seed=7), [("seed", "not set", "7")]),
        (_with(limits={"calls": 7}), [("calls", "16", "7")]),
        (_with(source={"sha256": "c" * 64}), [("items", "bbbbbbbb…", "cccccccc…")]),
        (
            _with(prompts={"stardtox/judge@1": "e" * 64}),
            [("stardtox/judge@1", "aaaaaaaa…", "eeeeeeee…")],
        ),
        (
            _with(cast={"default": {"model": "large", "url": "http://127.0.0.1/v1"}}),
            [("model", "small", "large")],
        ),
        (_with(limits={"calls": "9" * 99}), [("calls", "16", f"{'9' * 60}…")]),
    ],
)
def test_what_differs_is_named_with_both_values(
    planned: dict[str, Any], differences: list[tuple[str, str, str]]
) -> None:
    named = [fact for difference in differences for fact in difference]
    with raises_naming(UserError, "runs/a", "--out", *named):
        refuse(RECORD, planned, "runs/a")
    values = [(before, after) for _, before, after in differences]
    assert [(told.before, told.after) for told in told_apart(RECORD, planned)] == values


def test_the_same_plan_is_not_refused() -> None:
    refuse(RECORD, _with(), "runs/a")


def test_a_setting_that_the_record_does_not_know_is_a_difference() -> None:
    """It may have been made before there was such a setting, with another behaviour."""
    with raises_naming(UserError, "new_setting not set", "has not set"):
        refuse(RECORD, _with(limits={"new_setting": None}), "runs/a")
