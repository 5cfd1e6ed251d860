"""Pairs and a launch for OpenRLHF or verl, which train on clusters.

Both pin other versions of what evenhand trains with, so they get files and are not a dependency:
rows in their columns, and a script with the numbers of our recipes under their names for them.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from evenhand.core.errors import UserError, choices_for
from evenhand.core.package_data import render
from evenhand.training import data
from evenhand.training.debates.dataset import require_new
from evenhand.training.folders import require_model
from evenhand.training.recipes import PpoRecipe, RewardRecipe

Target = Literal["openrlhf", "verl"]

# The versions whose options these are. A later one may have renamed them.
VERSIONS = {"openrlhf": "0.11.2", "verl": "0.9.1"}
VERL_CONFIG = "evenhand_ppo"
_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
_VERL_ROWS = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", _MESSAGES),
        ("ability", pa.string()),
        # A rule would need a true answer. A reward model needs none, but the column must be there.
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("index", pa.int64()), ("split", pa.string())])),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """What to train, and on how many GPUs."""

    pairs: Path
    model: Path
    reward: Path | None
    nodes: int = 1
    gpus: int = 4  # paper 002 trains on four
    ppo: PpoRecipe = field(default_factory=PpoRecipe)
    rewarding: RewardRecipe = field(default_factory=RewardRecipe)

    def __post_init__(self) -> None:
        if min(self.nodes, self.gpus) < 1:
            raise UserError(f"{self.nodes} machines with {self.gpus} GPUs each train nothing")

    @property
    def processes(self) -> int:
        return self.nodes * self.gpus

    @property
    def batch(self) -> int:
        """The recipe's, or the next that all GPUs share evenly."""
        return -(-self.ppo.batch // self.processes) * self.processes

    @property
    def kl_weight(self) -> float:
        """Neither project reads `reward_scale.json`. Rewards that are larger by a factor want a KL
        term that is larger by it, so that the same policy is the best one."""
        scale = self.reward / "reward_scale.json" if self.reward else None
        if scale is None or not scale.is_file():
            return self.ppo.beta
        return self.ppo.beta * float(json.loads(scale.read_text())["scale"])


def export(target: Target, job: ExportJob, out: Path) -> list[Path]:
    """Write the files for training with OpenRLHF or verl.

    Args:
        target: The project to write for.
        job: The models, the pairs and the recipe.
        out: The folder to make.

    Returns:
        The files written, in order.

    Raises:
        UserError: If the folder exists, a model folder is not valid, or the project is unknown.
    """
    if target not in VERSIONS:
        raise UserError(f"no project {target!r}. {choices_for(target, VERSIONS)}")
    require_new(out)
    for folder in filter(None, (job.model, job.reward)):
        require_model(folder)  # whose code both projects would run, whatever they are told
    rows = {"train": data.rows(job.pairs), "test": data.held_out(job.pairs)}
    written = _openrlhf(job, rows, out) if target == "openrlhf" else _verl(job, rows, out)
    return list(written)


def _openrlhf(job: ExportJob, rows: Mapping[str, Sequence[data.Row]], out: Path) -> Iterator[Path]:
    out.mkdir(parents=True, exist_ok=True)
    for split, examples in rows.items():
        if examples:
            yield _lines(out / f"pairs-{split}.jsonl", map(_preference, examples))
    prompts = data.prompts(list(rows["train"]))
    yield _lines(out / "prompts.jsonl", ({"input": prompt} for prompt in prompts))
    yield _script(
        out / "reward.sh", "deepspeed --module", _reward_arguments(job, bool(rows["test"]))
    )
    yield _script(out / "ppo.sh", "python3 -m", openrlhf_arguments(job))
    yield _note(out, "openrlhf")


def _preference(row: data.Row) -> dict[str, Any]:
    columns = ("prompt", "chosen", "rejected")
    return {**{name: row[name] for name in columns}, "margin": row["margin"] or 0.0}


def _reward_arguments(job: ExportJob, held_out: bool) -> list[str]:
    recipe = job.rewarding
    tested = ["--eval.dataset", "pairs-test.jsonl"] if held_out else []
    return [
        "openrlhf.cli.train_rm",
        *("--model.model_name_or_path", _path(job.model)),
        *("--data.dataset", "pairs-train.jsonl", "--data.prompt_key", "prompt"),
        *("--data.apply_chat_template", "--data.max_len", str(recipe.max_length)),
        *tested,
        *(["--model.margin_loss_enable"] if recipe.margin else []),
        *("--adam.lr", str(recipe.learning_rate), "--train.batch_size", str(recipe.batch)),
        *("--train.micro_batch_size", "1", "--train.max_epochs", str(round(recipe.epochs))),
        *("--lr_warmup_ratio", str(recipe.warmup), "--train.seed", str(recipe.seed)),
        *_openrlhf_lora(recipe),
        *("--ds.zero_stage", "3", "--model.gradient_checkpointing_enable"),
        *("--ckpt.output_dir", "reward-model", "--logger.tensorboard_dir", "logs/reward"),
    ]


def openrlhf_arguments(job: ExportJob) -> list[str]:
    recipe, gpus = job.ppo, str(job.gpus)
    placed = [
        word
        for role in ("actor", "critic", "ref", "reward")
        for word in (f"--{role}.num_nodes", str(job.nodes), f"--{role}.num_gpus_per_node", gpus)
    ]
    return [
        "openrlhf.cli.train_ppo_ray",
        *placed,
        *("--train.colocate_all", "--vllm.num_engines", str(job.processes), "--vllm.enable_sleep"),
        *("--vllm.gpu_memory_utilization", "0.3", "--ds.enable_sleep", "--ds.zero_stage", "3"),
        *("--actor.model_name_or_path", _path(job.model)),
        *("--reward.model_name_or_path", _path(job.reward) if job.reward else "reward-model"),
        *("--data.prompt_dataset", "prompts.jsonl", "--data.input_key", "input"),
        *("--data.apply_chat_template", "--data.max_len", str(recipe.max_length)),
        *("--rollout.max_new_tokens", str(recipe.max_new_tokens)),
        *("--rollout.temperature", str(recipe.temperature)),
        *("--rollout.batch_size", str(job.batch), "--train.batch_size", str(job.batch)),
        *("--train.micro_batch_size", "1", "--train.max_epochs", str(recipe.inner_epochs)),
        *("--train.num_episodes", str(round(recipe.epochs)), "--train.seed", str(recipe.seed)),
        *("--actor.adam.lr", str(recipe.learning_rate)),
        *("--critic.adam.lr", str(recipe.learning_rate)),
        *("--actor.eps_clip", str(recipe.clip), "--critic.value_clip", str(recipe.value_clip)),
        *("--algo.advantage.estimator", "gae", "--algo.advantage.gamma", str(recipe.gamma)),
        *("--algo.advantage.lambd", str(recipe.gae_lambda)),
        *("--algo.kl.init_coef", f"{job.kl_weight:g}", "--algo.kl.estimator", "k1"),
        *_openrlhf_lora(recipe),
        *("--actor.gradient_checkpointing_enable", "--ckpt.output_dir", "policy"),
        *("--ckpt.path", "checkpoints", "--ckpt.save_steps", str(recipe.save_every)),
        *("--ckpt.load_enable", "--logger.tensorboard_dir", "logs/ppo"),
    ]


def _openrlhf_lora(recipe: PpoRecipe | RewardRecipe) -> list[str]:
    if recipe.full:
        return []
    return ["--ds.lora.rank", str(recipe.lora_rank), "--ds.lora.alpha", str(recipe.lora_alpha)]


def _verl(job: ExportJob, rows: Mapping[str, Sequence[data.Row]], out: Path) -> Iterator[Path]:
    if job.reward is None:
        raise UserError(
            "verl does not train a reward model. Pass one with --reward (create it with `evenhand "
            "train reward`)."
        )
    if not rows["test"]:
        raise UserError(
            "verl needs held-out prompts. Create pairs with a test split (--test-share)."
        )
    out.mkdir(parents=True, exist_ok=True)
    for split, examples in rows.items():
        table = pa.Table.from_pylist(
            [_question(prompt, n, split) for n, prompt in enumerate(data.prompts(list(examples)))],
            schema=_VERL_ROWS,
        )
        pq.write_table(table, out / f"{split}.parquet", compression="zstd")
        yield out / f"{split}.parquet"
    config = out / f"{VERL_CONFIG}.yaml"
    config.write_text(yaml.safe_dump(verl_config(job), sort_keys=False))
    yield config
    launch = ["verl.trainer.main_ppo", "--config-dir", ".", "--config-name", VERL_CONFIG]
    yield _script(out / "ppo.sh", "python3 -m", launch)
    yield _note(out, "verl")


def _question(prompt: Sequence[Mapping[str, str]], number: int, split: str) -> dict[str, Any]:
    return {
        "data_source": "evenhand",
        "prompt": list(prompt),
        "ability": "bias",
        "reward_model": {"style": "model", "ground_truth": ""},
        "extra_info": {"index": number, "split": split},
    }


def verl_config(job: ExportJob) -> dict[str, Any]:
    """On top of verl's own `ppo_trainer`: only what we set."""
    recipe = job.ppo
    model = {
        "path": _path(job.model),
        "enable_gradient_checkpointing": True,
        "trust_remote_code": False,
    }
    if not recipe.full:
        model |= {"lora_rank": recipe.lora_rank, "lora_alpha": recipe.lora_alpha}
    optimiser = {"lr": recipe.learning_rate, "lr_warmup_steps_ratio": recipe.warmup}
    log_prob = {"log_prob_micro_batch_size_per_gpu": 1}
    return {
        "defaults": ["ppo_trainer", "_self_"],
        "data": {
            "train_files": "train.parquet",
            "val_files": "test.parquet",
            "train_batch_size": job.batch,
            "max_prompt_length": recipe.max_prompt,
            "max_response_length": recipe.max_new_tokens,
            "filter_overlong_prompts": True,
            "trust_remote_code": False,
            "seed": recipe.seed,
        },
        "actor_rollout_ref": {
            "model": model,
            "actor": {
                "strategy": "fsdp2",
                "optim": optimiser,
                "ppo_mini_batch_size": job.batch,
                "ppo_micro_batch_size_per_gpu": 1,
                "ppo_epochs": recipe.inner_epochs,
                **{f"clip_ratio{end}": recipe.clip for end in ("", "_low", "_high")},
                "checkpoint": {"save_contents": ["model", "optimizer", "extra", "hf_model"]},
            },
            "ref": log_prob,
            "rollout": {
                "name": "vllm",
                "temperature": recipe.temperature,
                "tensor_model_parallel_size": 1,
                "gpu_memory_utilization": 0.3,
                **log_prob,
            },
        },
        "critic": {
            "strategy": "fsdp2",
            "model": model,
            "optim": optimiser,
            "ppo_micro_batch_size_per_gpu": 1,
            "cliprange_value": recipe.value_clip,
        },
        "reward": {
            "reward_model": {
                "enable": True,
                "model_path": _path(job.reward) if job.reward else None,
                "rollout": {"name": "vllm", "tensor_model_parallel_size": 1},
            }
        },
        "algorithm": {
            "adv_estimator": "gae",
            "gamma": recipe.gamma,
            "lam": recipe.gae_lambda,
            "use_kl_in_reward": True,
            "kl_ctrl": {"type": "fixed", "kl_coef": job.kl_weight},
        },
        "trainer": {
            "nnodes": job.nodes,
            "n_gpus_per_node": job.gpus,
            "total_epochs": round(recipe.epochs),
            "save_freq": recipe.save_every,
            "logger": ["console", "tensorboard"],
            "project_name": "evenhand",
            "experiment_name": "ppo",
        },
    }


def _lines(path: Path, rows: Iterable[Any]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def _script(path: Path, launcher: str, arguments: Sequence[str]) -> Path:
    words: list[str] = []
    for argument in arguments:  # an option and its values on one line
        quoted = shlex.quote(argument)
        if words and not argument.startswith("--"):
            words[-1] += f" {quoted}"
        else:
            words.append(quoted)
    command = " \\\n  ".join([f"{launcher} {words[0]}", *words[1:]])
    path.write_text(f'#!/bin/sh\nset -e\ncd "$(dirname "$0")"\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def _note(out: Path, target: Target) -> Path:
    path = out / "README.md"
    values = {"version": VERSIONS[target], "config": VERL_CONFIG}
    path.write_text(render(__package__, f"{target}.md", **values))
    return path


def _path(folder: Path) -> str:
    return str(folder.resolve())
