"""Answers drawn from a model on this machine."""

from collections.abc import Sequence
from typing import Any

import torch

from evenhand.training.render import Messages, prompt_ids
from evenhand.training.weights import on_gpu


@torch.inference_mode()
def answers(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Messages],
    *,
    max_new_tokens: int,
    seed: int,
    temperature: float = 1.0,
    batch: int = 16,
) -> list[str]:
    """One answer to each prompt, drawn from the whole distribution."""
    model = model.eval().to("cuda" if on_gpu() else "cpu")
    torch.manual_seed(seed)
    responses: list[str] = []
    for start in range(0, len(prompts), batch):
        rows = [prompt_ids(tokenizer, prompt) for prompt in prompts[start : start + batch]]
        width = max(map(len, rows))
        pad = tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        generated = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            max_new_tokens=max_new_tokens,
            do_sample=True,
            temperature=temperature,
            top_k=0,
            top_p=1.0,
            pad_token_id=pad,
            eos_token_id=tokenizer.eos_token_id,
        )
        responses += tokenizer.batch_decode(generated[:, width:], skip_special_tokens=True)
    return responses
