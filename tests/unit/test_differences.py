"""A folder that is not resumed says which settings differ, with both values."""

from typing import Any

import pytest

from evenhand.errors import UserError
from evenhand.store.differences import refuse

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
    ("planned", "said"),
    [
        (
            _with(source={"sampling": {"per_category": 12, "seed": 0}, "items": 132}),
            "runs/a was made with per_category 8; this command has 12. ",
        ),
        (
            _with(source={"sampling": {"preset": "all", "seed": 0}, "sha256": "c" * 64}),
            "made with per_category 8, preset not set; "
            "this command has per_category not set, preset all. ",
        ),
        (
            _with(method={"name": "cot", "settings": {}}, prompts={"cot@1": "d" * 64}),
            "made with method stardtox; this command has cot. ",
        ),
        (_with(seed=7), "made with seed not set; this command has 7. "),
        (_with(limits={"calls": 7}), "made with calls 16; this command has 7. "),
        (_with(source={"sha256": "c" * 64}), "items with the checksum bbbbbbbb…; this command "),
        (_with(prompts={"stardtox/judge@1": "e" * 64}), "made with prompt stardtox/judge@1 aaaa"),
        (
            _with(cast={"default": {"model": "large", "url": "http://127.0.0.1/v1"}}),
            "made with model small; this command has large. ",
        ),
        (_with(limits={"calls": "9" * 99}), f"has {'9' * 60}…. "),
    ],
)
def test_what_differs_is_named_with_both_values(planned: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        refuse(RECORD, planned, "runs/a")
    assert said in str(refused.value)
    assert str(refused.value).endswith("repeat the command that made this one")


def test_the_same_plan_is_not_refused() -> None:
    refuse(RECORD, _with(), "runs/a")


def test_a_setting_that_the_record_does_not_know_is_a_difference() -> None:
    """It may have been made before there was such a setting, with another behaviour."""
    with pytest.raises(UserError, match="new_setting not set; this command has not set"):
        refuse(RECORD, _with(limits={"new_setting": None}), "runs/a")
