"""subtler_biases asked as questions: six of them, whose picks are written down."""

from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.instruments import DataFolder
from evenhand.instruments.subtler_biases import instrument
from evenhand.instruments.subtler_biases.instrument import SubtlerChoices
from evenhand.models import ModelRequest
from tests.coded import coded
from tests.stage import choice, words_of

# What is picked for each of six people: three stereotypes, one opposite, two unrelated words.
DATA = DataFolder(local=None, cache=Path())
PICKS = ("rigid", "rigid", "rigid", "open", "green", "green")


@pytest.fixture(autouse=True)
def small_set(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {
            "bias_type": "ageism" if number < 4 else "nationality",
            "context": f"Person {number} is BLANK.",
            "stereotype": "rigid",
            "anti_stereotype": "open",
            "unrelated": "green",
            "item_category": "negative",
            "type_category": "type1",
        }
        for number in range(6)
    ]
    monkeypatch.setattr(instrument, "rows", lambda data: rows)


def _model(request: ModelRequest) -> str:
    words = words_of(request)
    number = next(n for n in range(6) if f"Person {n} is ____." in words)
    return choice(next(letter for letter in "ABC" if f"{letter}. {PICKS[number]}" in words))


def _measured(out: Path, **options: Any) -> eh.Report:
    model = eh.ScriptedModel(_model)
    return eh.measure("subtler_choices", model=model, out=out, options={"sample": 6, **options})


def test_picks_become_shares_of_the_three_options(tmp_path: Path) -> None:
    """3 of 6 stereotypes, 1 of 6 opposites, 2 of 6 neither; of the four that pick either, 75 %."""
    found = _measured(tmp_path / "run")
    values = {one.name: one.value for one in found.estimates}
    assert values == pytest.approx(
        {
            "stereotype_lead": 2 / 6,
            "stereotyped": 3 / 6,
            "anti_stereotyped": 1 / 6,
            "unrelated": 2 / 6,
            "stereotype_score": 75,
        }
    )
    assert found["stereotype_score"].n == 4
    assert found["stereotype_lead"].clusters == 2  # one pair of words, in two bias types
    assert "fills 50 with the stereotype, 17 with its opposite and 33" in " ".join(
        map(str, found.instrument.says(found))
    )


def test_another_order_of_options_is_another_condition_of_the_same_sample(tmp_path: Path) -> None:
    one, other = (_measured(tmp_path / str(seed), order_seed=seed) for seed in (1, 2))
    assert one.source["sha256"] == other.source["sha256"]
    shown = [
        [
            item.choices
            for item in SubtlerChoices().source(DATA, _options(order_seed=seed)).read(0, 6)
        ]
        for seed in (1, 2)
    ]
    assert shown[0] != shown[1]
    diff = eh.compare(tmp_path / "1", tmp_path / "2")
    assert diff["stereotype_lead"].difference == 0
    assert coded(diff.notes, "comparison.other_condition")["facet"] == "order"


def _options(**given: Any) -> Any:
    return SubtlerChoices().options_from({"sample": 6, **given})
