"""Models from Hugging Face folders, adapters on them, the finished model as such a folder, and the
one way from a prompt and a response to token ids.

Reward training, reward scoring and PPO all render by it, because a reward depends on the last
tokens that it sees: the same answer without the template's last line break got 0.99, not 7.09.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from evenhand.core.errors import UserError
from evenhand.training.folders import to_disk
from evenhand.training.recipes import Recipe

Messages = Sequence[Mapping[str, str]]

# Stands for a response to find where the template puts one. No text holds a private-use character.
_MARK = "\ue000response\ue000"


def render(tokenizer: Any, prompt: Messages, response: str, max_length: int) -> list[int]:
    """Apply the chat template to a prompt and a response, and cut them to `max_length` tokens.

    Paper 002, 4.1: "If an input exceeds the maximum length, we truncate it on the right to keep the
    integrity of the response as much as possible". So the response loses its end, and what the
    template writes behind a response is kept.

    Args:
        tokenizer: The tokenizer with the template.
        prompt: The messages of the prompt.
        response: The text of the response.
        max_length: The most tokens.

    Returns:
        The token ids.

    Raises:
        UserError: If the prompt leaves no room for a response.
    """
    ids = _ids(tokenizer, _text(tokenizer, prompt, response))
    if len(ids) <= max_length:
        return ids
    head, _, tail = _text(tokenizer, prompt, _MARK).rpartition(_MARK)
    tail_ids = _ids(tokenizer, tail) if tail else []
    room = max_length - len(tail_ids)
    if len(_ids(tokenizer, head)) >= room:
        raise UserError(
            f"a prompt leaves no room for a response in {max_length} tokens; raise max_length "
            f"(--set) or leave out the row whose prompt starts {str(prompt[-1]['content'])[:60]!r}"
        )
    return [*ids[:room], *tail_ids]


def cut(tokenizer: Any, prompt: Messages, response: str, max_length: int) -> str:
    """Cut a response as `render` does, for a trainer that takes only text.

    Args:
        tokenizer: The tokenizer with the template.
        prompt: The messages of the prompt.
        response: The text of the response.
        max_length: The most tokens of prompt and response together.

    Returns:
        The part of the response that fits.
    """
    full_ids = _ids(tokenizer, _text(tokenizer, prompt, response))
    if len(full_ids) <= max_length:
        return response
    head, _, tail = _text(tokenizer, prompt, _MARK).rpartition(_MARK)
    cut_ids = render(tokenizer, prompt, response, max_length)
    last = len(cut_ids) - len(_ids(tokenizer, tail))
    return str(tokenizer.decode(cut_ids[len(_ids(tokenizer, head)) : last]))


def prompt_ids(tokenizer: Any, prompt: Messages) -> list[int]:
    """The prompt up to where a model starts to answer."""
    require_template(tokenizer)
    text = tokenizer.apply_chat_template(list(prompt), tokenize=False, add_generation_prompt=True)
    return _ids(tokenizer, text)


def fitting_prompts(
    tokenizer: Any, prompts: Sequence[Messages], room: int
) -> list[tuple[Messages, list[int]]]:
    """Select the prompts that are short enough.

    Args:
        tokenizer: The tokenizer with the template.
        prompts: The prompts.
        room: The most tokens of a prompt.

    Returns:
        The prompts that fit, each with its token ids.

    Raises:
        UserError: If none fits.
    """
    read = [(prompt, prompt_ids(tokenizer, prompt)) for prompt in prompts]
    selected = [(prompt, ids) for prompt, ids in read if len(ids) <= room]
    if not selected:
        raise UserError(
            f"None of {len(read)} prompts has at most {room} tokens. Raise max_prompt or lower "
            "max_new_tokens with --set."
        )
    return selected


def require_template(tokenizer: Any) -> None:
    if not tokenizer.chat_template:
        raise UserError(
            f"the tokenizer of {tokenizer.name_or_path} has no chat template; put the "
            "chat_template.jinja of its instruction-tuned sibling into the folder"
        )


def _text(tokenizer: Any, prompt: Messages, response: str) -> str:
    require_template(tokenizer)
    talk = [*prompt, {"role": "assistant", "content": response}]
    return str(tokenizer.apply_chat_template(talk, tokenize=False))


def _ids(tokenizer: Any, text: str) -> list[int]:
    # The template writes the special tokens itself.
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


_PAD = "<|pad|>"
_LEFT_OUT = ("training_args.bin", "README.md")  # a pickle, and a card that is not ours


def load_tokenizer(folder: Path) -> Any:
    """Load a tokenizer, with a separate padding token.

    The reward is read at the last token other than padding: if the end of a turn were padding
    too, it would be read before the end.
    """
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
    """Load a model with a linear layer that outputs one number for the last token.

    Paper 002, 4.1: "last token embedding … and then add a linear layer to output a scalar". The
    layer starts at random, by the recipe's seed.

    Args:
        folder: The folder of the model.
        tokenizer: Its tokenizer, which gives the padding token.
        recipe: The settings of the training.

    Returns:
        The model.
    """
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


def padded(
    rows: Sequence[Sequence[int]], pad: int, device: torch.device | str, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of token ids filled up to one length, and the mask that is 1 where a row has a token.

    Args:
        rows: The ids of each row.
        pad: The token to fill up with.
        device: Where the tensors lie.
        left: Whether the filling stands before the rows and not behind them.
    """
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad, device=device)
    mask = torch.zeros_like(ids)
    for at, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(len(row))
        ids[at, place], mask[at, place] = torch.tensor(row, device=device), 1
    return ids, mask


def on_gpu() -> bool:
    return bool(torch.cuda.is_available())


def device() -> str:
    return "cuda" if on_gpu() else "cpu"


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
    """Save the trained model to `out/model`, with adapters merged into their base.

    Every process calls it, as a sharded model is gathered from all of them; one writes.

    Args:
        trainer: The trainer after training.
        fresh: Loads the model that the training started from, if adapters have to be merged.
        tokenizer: The tokenizer to save with the model.
        out: The folder of the training, where adapters are kept too.

    Returns:
        The folder of the model.
    """
    raw = out / "trained"
    trainer.save_model(str(raw))
    if trainer.is_world_process_zero():
        for name in _LEFT_OUT:
            (raw / name).unlink(missing_ok=True)
        with finished_model(out, tokenizer) as part:
            if (raw / "adapter_config.json").is_file():
                PeftModel.from_pretrained(fresh(), raw).merge_and_unload().save_pretrained(part)
                _replace(raw, out / "adapter")
            else:
                raw.rename(part)
    trainer.accelerator.wait_for_everyone()
    return out / "model"


@contextmanager
def finished_model(out: Path, tokenizer: Any) -> Iterator[Path]:
    """Give a place to save the weights at; with the tokenizer it becomes `out/model`."""
    part = out / ".model.part"
    shutil.rmtree(part, ignore_errors=True)
    yield part
    tokenizer.save_pretrained(part)
    to_disk(part)
    _replace(part, out / "model")


def _replace(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    source.rename(target)
