"""Responses sampled from the policy, with the masks and positions that their prompts need."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Episodes:
    """Prompts are padded on the left and responses on the right: a response starts where its
    prompt ends, and all of them start in one column.

    Masks go by place, never by the padding's token: many tokenizers pad with the end token.
    """

    prompts: Tensor  # [episode, prompt token]
    prompt_mask: Tensor
    responses: Tensor  # [episode, response token]
    mask: Tensor  # true up to and with the token that ends the response

    def __len__(self) -> int:
        return len(self.prompts)

    def rows(self, chosen: slice) -> "Episodes":
        return Episodes(
            self.prompts[chosen],
            self.prompt_mask[chosen],
            self.responses[chosen],
            self.mask[chosen],
        )

    def inputs(self) -> dict[str, Tensor]:
        """What a model reads: the first real token of each row has position 0."""
        attention = torch.cat([self.prompt_mask, self.mask], dim=1).long()
        return {
            "input_ids": torch.cat([self.prompts, self.responses], dim=1),
            "attention_mask": attention,
            "position_ids": _positions(attention),
        }


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    noise: Tensor,
    *,
    ends: Tensor,
    pad: int,
    temperature: float,
) -> Episodes:
    """One response per prompt; token t of episode i is drawn by the number noise[i, t] in [0, 1).

    A response stops after one of the tokens `ends`, or with the last column of `noise`.
    """
    ids, prompt_mask = _padded_left(prompts, pad, noise.device)
    attention = prompt_mask.long()
    positions, inputs, cache = _positions(attention), ids, None
    going = torch.ones(len(ids), dtype=torch.bool, device=noise.device)
    responses, masks = [], []
    for column in noise.T:
        with torch.no_grad():
            out = model(
                input_ids=inputs,
                attention_mask=attention,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
        tokens = draw(out.logits[:, -1].float() / temperature, column).where(going, pad)
        responses.append(tokens)
        masks.append(going)
        attention = torch.cat([attention, going[:, None].long()], dim=1)
        positions = positions[:, -1:] + 1
        inputs, cache = tokens[:, None], out.past_key_values
        going = going & ~torch.isin(tokens, ends)
        if not going.any():
            break
    return Episodes(ids, prompt_mask, torch.stack(responses, dim=1), torch.stack(masks, dim=1))


def draw(logits: Tensor, noise: Tensor) -> Tensor:
    """The token at which each row's cumulative probability passes its number."""
    reached = logits.double().softmax(dim=-1).cumsum(dim=-1)
    threshold = (noise.double() * reached[:, -1])[:, None]
    tokens = torch.searchsorted(reached, threshold, right=True)[:, 0]
    return tokens.clamp(max=logits.shape[1] - 1)


def noise(seed: int, episodes: range, length: int) -> Tensor:
    """An episode's numbers follow from the seed and its place in the run alone: a resumed run and
    a run on more processes draw the same, and there is no generator whose state could be lost."""
    rows = []
    for episode in episodes:
        chance = random.Random(f"{seed} episode {episode}")
        rows.append([chance.random() for _ in range(length)])
    return torch.tensor(rows, dtype=torch.float64)


def texts(tokenizer: Any, episodes: Episodes) -> list[str]:
    """What a reader of each response sees: the end token is not part of it."""
    rows = zip(episodes.responses, episodes.mask, strict=True)
    return [
        tokenizer.decode(tokens[held].tolist(), skip_special_tokens=True) for tokens, held in rows
    ]


def _padded_left(
    rows: Sequence[Sequence[int]], pad: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    columns = torch.arange(width, device=device)
    return ids, columns >= (width - lengths)[:, None]


def _positions(attention: Tensor) -> Tensor:
    return (attention.cumsum(dim=1) - 1).clamp(min=0)
