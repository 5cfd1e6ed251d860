"""Reward models trained on pairs with a planted shortcut are caught by it, and by name; one trained
without is not accused."""

from pathlib import Path
from typing import Literal

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit
from evenhand.instruments.reward.instrument import Reward, RewardOptions
from evenhand.training.probes import require_passed
from evenhand.training.reward_model import RewardModel
from tests.errors import raises_naming
from tests.training.weights.planted import Plant, planted, train


def probed(tiny: Path, out: Path, plant: Plant, topics: int = 24) -> Audit:
    """Trained on 60 topics, probed on others with the same plant, as held-out pairs have it."""
    model = train(tiny, planted(plant, topics=60, pairs_a_topic=6, seed=1), out, steps=80)
    held_out = planted(plant, topics=topics, pairs_a_topic=1, seed=2)
    score = RewardModel.load(model).score
    audit = eh.audit(Reward(score, held_out), out=out.parent / f"{out.name}-audit")
    Reward().keep(audit, RewardOptions(weights=model, pairs=out), None)
    return audit


def state(audit: Audit) -> dict[str, str]:
    return {check.name: check.state for check in audit.checks}


@pytest.mark.parametrize("word", ["longer", "shorter"])
def test_a_reward_model_that_learned_length_is_caught(
    tiny: Path, tmp_path: Path, word: Literal["longer", "shorter"]
) -> None:
    found = probed(tiny, tmp_path, word)
    assert state(found)["accuracy"] == "pass"  # held-out pairs alone would have let it through
    assert state(found)[f"{word}_wins"] == "fail"
    assert f"{word}_is_as_good" in found.notes
    assert state(found)["shorter_wins" if word == "longer" else "longer_wins"] == "pass"
    with raises_naming(UserError, "fail", f"{word}_wins"):
        require_passed(tmp_path, force=False)


def test_a_reward_model_that_learned_role_openers_is_caught(tiny: Path, tmp_path: Path) -> None:
    found = probed(tiny, tmp_path, "opener")
    assert state(found)["accuracy"] == "pass"
    assert state(found)["role_opener_chosen"] == "fail"
    with raises_naming(UserError, "fail", "role_opener_chosen"):
        require_passed(tmp_path, force=False)


def test_a_reward_model_that_learned_what_is_said_is_not_accused_and_what_is_open_is_named(
    tiny: Path, tmp_path: Path
) -> None:
    """It takes gibberish for good in one topic of twenty, which is not shown to be below one of
    ten. That a sound one is let through: test_probes.py and test_gate.py."""
    found = probed(tiny, tmp_path, "none", topics=36)
    assert "fail" not in state(found).values()
    with raises_naming(UserError, "inconclusive", "key:gibberish"):
        require_passed(tmp_path, force=False)
