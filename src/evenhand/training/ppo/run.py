"""`evenhand train ppo`: from the SFT model, a reward model and the prompts of a pairs folder."""

import shutil
from pathlib import Path

from evenhand.training import data
from evenhand.training import record as records
from evenhand.training.checkpoints import to_disk
from evenhand.training.events import Tell, silent
from evenhand.training.gate import require_passed
from evenhand.training.ppo.loop import Outcome, fitting, learn, prepare, resume
from evenhand.training.ppo.processes import joined
from evenhand.training.ppo.step import Ppo
from evenhand.training.recipes import PpoRecipe
from evenhand.training.reward_model import RewardModel
from evenhand.training.stage import Stage, open_stage


def train(
    recipe: PpoRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    reward: Path,
    force: bool = False,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """`model` is the SFT model; `reward` a reward model that passed its probes."""
    gate = require_passed(reward, force)
    stage = open_stage("ppo", recipe, model, pairs, out, config=config, tell=tell, reward=reward)
    if stage.done:
        return out / "model"
    processes = joined()
    if not processes.first:
        tell = silent
    scorer = RewardModel.load(reward, max_length=recipe.max_length, device=str(processes.device))
    ppo = prepare(model, recipe, scorer.score, processes)
    available = data.prompts(data.rows(pairs, config))
    prompts = fitting(ppo, available)
    stage.record["gate"] = gate
    stage.note_prompts(len(available), len(prompts))
    progress = resume(ppo, out, tell)
    if progress.step:
        stage.record["resumed_from"].append(progress.step)
    if processes.first:
        records.save(out, stage.record)
    outcome = learn(ppo, prompts, out, progress, tell)
    _note(stage, outcome)
    return _finish(stage, ppo)


def _note(stage: Stage, outcome: Outcome) -> None:
    stage.note_steps(len(outcome.history), outcome.history)
    stage.record["stopped_at_kl"] = outcome.stopped_at_kl


def _finish(stage: Stage, ppo: Ppo) -> Path:
    final = stage.out / "model"
    if ppo.processes.first:
        part = stage.out / ".model.part"
        shutil.rmtree(part, ignore_errors=True)
        ppo.networks.finished(stage.out / "adapter").save_pretrained(part)
        ppo.tokenizer.save_pretrained(part)
        to_disk(part)
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)
    ppo.processes.wait()
    stage.close(final)
    return final
