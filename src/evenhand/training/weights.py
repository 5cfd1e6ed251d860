"""Models from Hugging Face folders, adapters on them, and the finished model as such a folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from evenhand.training.checkpoints import to_disk
from evenhand.training.recipes import Recipe
from evenhand.training.render import require_template

_PAD = "<|pad|>"
_LEFT_OUT = ("training_args.bin", "README.md")  # a pickle, and a card that is not ours


def load_tokenizer(folder: Path) -> Any:
    """With a padding token of its own. The reward is read at the last token that is no padding: if
    the end of a turn were padding too, it would be read before the end."""
    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    require_template(tokenizer)
    if tokenizer.pad_token is None or tokenizer.pad_token == tokenizer.eos_token:
        tokenizer.add_special_tokens({"pad_token": _PAD})
    return tokenizer


def longest(folder: Path, recipe: Recipe) -> int:
    """Tokens of a row: the recipe's, or what the model has places for."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    places = getattr(config, "max_position_embeddings", None)
    return min(recipe.max_length, places or recipe.max_length)


def load_policy(folder: Path, tokenizer: Any, recipe: Recipe) -> Any:
    return _load(AutoModelForCausalLM, folder, tokenizer, recipe)


def load_scalar(folder: Path, tokenizer: Any, recipe: Recipe) -> Any:
    """Paper 002, 4.1: "last token embedding … and then add a linear layer to output a scalar". The
    layer starts at random, by the recipe's seed."""
    torch.manual_seed(recipe.seed)
    labels = {"num_labels": 1, "id2label": {0: "reward"}, "label2id": {"reward": 0}}
    return _load(AutoModelForSequenceClassification, folder, tokenizer, recipe, **labels)


def _load(kind: Any, folder: Path, tokenizer: Any, recipe: Recipe, **more: Any) -> Any:
    # Weights that learn stay in 32 bits; frozen ones under adapters need only half on a GPU.
    half = on_gpu() and torch.cuda.is_bf16_supported() and not recipe.full
    model = kind.from_pretrained(
        folder,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        dtype=torch.bfloat16 if half else torch.float32,
        **more,
    )
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer))
    model.config.pad_token_id = tokenizer.pad_token_id
    return model


def on_gpu() -> bool:
    return bool(torch.cuda.is_available())


def lora(recipe: Recipe, task: str = "CAUSAL_LM") -> LoraConfig | None:
    """None for full weights. A reward model's head starts at random, so it is learnt as a whole."""
    if recipe.full:
        return None
    return LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        modules_to_save=["score"] if task == "SEQ_CLS" else None,
        task_type=task,
    )


def save(trainer: Any, fresh: Callable[[], Any], tokenizer: Any, out: Path) -> Path:
    """`out/model` from a trained trainer; adapters are kept beside it and merged into `fresh`, the
    model that the training started from.

    Every process calls it, as a sharded model is gathered from all of them; one writes.
    """
    raw, final = out / "trained", out / "model"
    trainer.save_model(str(raw))
    if trainer.is_world_process_zero():
        for name in _LEFT_OUT:
            (raw / name).unlink(missing_ok=True)
        part = out / ".model.part"
        shutil.rmtree(part, ignore_errors=True)
        if (raw / "adapter_config.json").is_file():
            PeftModel.from_pretrained(fresh(), raw).merge_and_unload().save_pretrained(part)
            _replace(raw, out / "adapter")
        else:
            raw.rename(part)
        tokenizer.save_pretrained(part)
        to_disk(part)
        _replace(part, final)
    trainer.accelerator.wait_for_everyone()
    return final


def _replace(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    source.rename(target)
