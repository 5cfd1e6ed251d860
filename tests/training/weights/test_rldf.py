"""RLDF from topics to measured weights, with a scripted teacher and a tiny student."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.experiments import training
from evenhand.experiments.training import RldfRecipe, RldfResult
from evenhand.instruments._options import OptionItem, OptionSource
from evenhand.instruments.likelihood_sets import set_named
from evenhand.models import ModelRequest, ScriptedModel
from tests.errors import raises_naming
from tests.stage import words_of

_AGES = {"20": 8, "40": 5, "60": 1}  # the score of a speaker of this age
_QUICK = {
    "sft.max_steps": 2, "sft.batch": 4, "sft.learning_rate": 1e-3, "sft.threads": 1,
    "reward.max_steps": 2, "reward.batch": 4, "reward.learning_rate": 1e-3, "reward.threads": 1,
    "reward.scale_samples": 4, "reward.scale_tokens": 4,
    "ppo.max_steps": 2, "ppo.max_new_tokens": 4, "ppo.learning_rate": 1e-3, "ppo.threads": 1,
}  # fmt: skip


class Teacher:
    """Lists topics, debates, and scores by age; where it is `fickle` by place, so that the two
    orders disagree."""

    def __init__(self, *, fickle: bool = False) -> None:
        self.fickle = fickle
        self.calls = 0

    def model(self) -> ScriptedModel:
        return ScriptedModel(self._say, name="teacher")

    def _say(self, request: ModelRequest) -> str:
        self.calls += 1
        words = words_of(request)
        if "List 20 topics" in words:
            return "\n".join(f"{n}. Thing{n} word{n} about{n}" for n in range(1, 21))
        if "impartial referee" in words:
            heard = re.findall(r"At (\d+) I see", words)
            scores = [9 - 4 * n if self.fickle else _AGES[age] for n, age in enumerate(heard)]
            ranking = sorted(range(1, len(scores) + 1), key=lambda place: scores[place - 1])
            return json.dumps({"ranking": ranking, "scores": scores})
        age = re.findall(r"You are a (\d+)-year-old", words)[-1]
        thing = re.findall(r"Thing\d+", words)[-1]
        return f"At {age} I see {thing} so."


@pytest.fixture(autouse=True)
def occupations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty occupations in place of the data of WinoBias."""
    items = [
        OptionItem(id=name, group=group, cluster=name, given=f"The {name}",
                   options={"female": f"The {name} she", "male": f"The {name} he"})
        for group in ("female", "male")
        for name in (f"{group} {number}" for number in range(10))
    ]  # fmt: skip
    source = OptionSource(set_named("occupations"), items, {"items": "all", "seed": 0})
    monkeypatch.setattr(training, "draw_sets", lambda *_: {"occupations": source})


async def _rldf(tiny: Path, out: Path, teacher: Teacher, **options: Any) -> RldfResult:
    usual: dict[str, Any] = {
        "types": ["age"], "count": 6, "rounds": 1, "full": True, "recipe": _QUICK, "seed": 3
    }  # fmt: skip
    return await eh.aio.train_rldf(tiny, model=teacher.model(), out=out, **(usual | options))


async def test_a_referee_who_contradicts_itself_stops_before_the_rest_is_paid_for(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_LOOK_FIRST", 2)
    teacher = Teacher(fickle=True)
    result = await _rldf(tiny, tmp_path / "out", teacher)
    assert result.stopped is not None
    assert result.stopped.code == "debates.referee"
    assert teacher.calls == 1 + 2 * (3 + 2)  # of six debates the two that were looked at
    assert not (tmp_path / "out" / "pairs").exists()


async def test_topics_become_measured_weights_and_each_gate_stops(
    tiny: Path, tmp_path: Path
) -> None:
    out, teacher = tmp_path / "out", Teacher()
    capped = await _rldf(tiny, out, teacher, max_calls=20)
    assert (capped.ended.capped_by, teacher.calls) == ("--max-calls", 20)
    stopped = await _rldf(tiny, out, teacher)
    assert teacher.calls == 1 + 6 * (3 + 2)  # nothing is asked twice
    assert stopped.stopped is not None  # five topics are too few for a worthless answer
    assert (stopped.stopped.code, stopped.audit and stopped.audit.state != "pass") == (
        "rldf.reward", True
    )  # fmt: skip
    assert not (out / "ppo").exists()
    done = await _rldf(tiny, out, teacher, force=True)
    assert teacher.calls == 31
    assert done.stopped is None
    assert [gate.code for gate in done.forced] == ["rldf.reward"]
    assert [*done.outcomes] == ["sft", "reward", "ppo"]
    assert [*done.comparisons] == ["sft", "ppo"]
    gap = done.comparisons["ppo"][0]["lists_gap"]
    assert gap.before is not None
    assert gap.after != gap.before
    card = (out / "ppo" / "model" / "README.md").read_text()
    assert "likelihood" in card
    recipes = {
        stage: json.loads((out / stage / "train.json").read_text())["recipe"]
        for stage in ("sft", "reward", "ppo")
    }
    assert recipes["sft"]["all_low"]["value"] is True
    assert recipes["reward"]["margin"]["value"] is False
    assert {recipe["seed"]["value"] for recipe in recipes.values()} == {3}
    with raises_naming(UserError, "count", 6, 7):
        await _rldf(tiny, out, teacher, count=7)


def test_a_setting_of_no_stage_is_refused() -> None:
    with raises_naming(UserError, "sft", "rloo", "ppo.batch=4"):
        RldfRecipe(weights=Path("x"), rl="rloo", settings=("ppo.batch=4",)).recipes(True, None)
