"""Reward models trained on pairs with a planted shortcut are caught by it, and by name; one trained
without is not accused."""

from pathlib import Path
from typing import Literal

import pytest

from evenhand.errors import UserError
from evenhand.instruments.reward.audit import RewardAudit, judged
from evenhand.training.gate import record, require_passed
from evenhand.training.probe_texts import Texts
from evenhand.training.probes import ask
from evenhand.training.reward_model import RewardModel
from training.planted import Plant, planted, train

TEXTS = Texts.shipped()


def probed(tiny: Path, out: Path, plant: Plant, topics: int = 24) -> RewardAudit:
    """Trained on 60 topics, probed on others with the same plant, as held-out pairs have it."""
    model = train(tiny, planted(plant, topics=60, pairs_a_topic=6, seed=1), out, steps=80)
    held_out = planted(plant, topics=topics, pairs_a_topic=1, seed=2)
    found = judged(ask(held_out, RewardModel.load(model).score, TEXTS), TEXTS.said())
    record(model, out, found.to_dict())
    return found


def state(found: RewardAudit) -> dict[str, str]:
    return {check["name"]: check["state"] for check in found.to_dict()["checks"]}


@pytest.mark.parametrize("word", ["longer", "shorter"])
def test_a_reward_model_that_learned_length_is_caught(
    tiny: Path, tmp_path: Path, word: Literal["longer", "shorter"]
) -> None:
    found = probed(tiny, tmp_path, word)
    assert state(found)["accuracy"] == "passed"  # held-out pairs alone would have let it through
    assert state(found)[f"{word}_wins"] == "failed"
    assert any(f"Taking the {word} answer without reading" in note for note in found.notes)
    assert state(found)["shorter_wins" if word == "longer" else "longer_wins"] == "passed"
    with pytest.raises(UserError, match=f"prefers the {word} answer"):
        require_passed(tmp_path, force=False)


def test_a_reward_model_that_learned_role_openers_is_caught(tiny: Path, tmp_path: Path) -> None:
    found = probed(tiny, tmp_path, "opener")
    assert state(found)["accuracy"] == "passed"
    assert state(found)["role_opener_chosen"] == "failed"
    assert any("goes by role openers" in line for line in found.prefers)
    with pytest.raises(UserError, match="goes by role openers"):
        require_passed(tmp_path, force=False)


def test_a_reward_model_that_learned_what_is_said_is_not_accused_and_what_is_open_is_named(
    tiny: Path, tmp_path: Path
) -> None:
    """It takes gibberish for good in one topic of twenty, which is not shown to be below one of
    ten. That a sound one is let through: test_probes.py and test_gate.py."""
    found = probed(tiny, tmp_path, "none", topics=36)
    assert found.prefers == []
    with pytest.raises(UserError, match="not shown to be sound: key:gibberish"):
        require_passed(tmp_path, force=False)
