"""The networks of PPO: the policy and the critic, which learn, and the frozen reference.

Paper 002, 3: "the fine-tuned model acts as an actor, generating new data evaluated by a frozen
reference model, a critic model, and the reward model". The critic has weights of its own, so what
it learns never moves the policy. All start as the SFT model.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig, get_peft_model
from torch import Tensor, distributed, nn

from evenhand.training import weights
from evenhand.training.recipes import PpoRecipe
from evenhand.training.weights import on_gpu


@dataclass(frozen=True, slots=True)
class Processes:
    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, batch: int) -> slice:
        """This process's rows of a batch of all."""
        size = batch // self.count
        return slice(self.rank * size, (self.rank + 1) * size)

    def summed(self, tensor: Tensor) -> Tensor:
        if self.count > 1:
            tensor = tensor.clone()
            distributed.all_reduce(tensor)
        return tensor

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """One message for all of them: a model has hundreds of small tensors."""
        if self.count == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = self.summed(torch.cat([gradient.flatten() for gradient in gradients]))
        start = 0
        for gradient in gradients:
            end = start + gradient.numel()
            gradient.copy_(flat[start:end].view_as(gradient))
            start = end

    def wait(self) -> None:
        if self.count > 1:
            distributed.barrier()


def joined() -> Processes:
    state = PartialState(cpu=not on_gpu())
    return Processes(state.process_index, state.num_processes, state.device)


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
    """Sample one response per prompt.

    Token t of episode i is sampled with the number noise[i, t] in [0, 1).

    Args:
        model: The policy.
        prompts: The token ids of each prompt.
        noise: A row per prompt; its width is the longest response.
        ends: The tokens that end a response.
        pad: The token that fills short rows.
        temperature: Divides the logits.

    Returns:
        The prompts and responses, with masks.
    """
    ids, attention = weights.padded(prompts, pad, noise.device, left=True)
    prompt_mask = attention.bool()
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
    """Compute the random numbers of episodes from the seed and their position in the run alone.

    So a resumed run and a run on more processes sample the same, without a generator whose state
    could be lost.

    Args:
        seed: The seed of the run.
        episodes: The positions of the episodes in the run.
        length: How many numbers an episode needs: one per token.

    Returns:
        A row per episode.
    """
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


def _positions(attention: Tensor) -> Tensor:
    return (attention.cumsum(dim=1) - 1).clamp(min=0)


Named = dict[str, nn.Parameter]

_POLICY = "default"  # the one name that is saved without a folder of its own
_CRITIC = "critic"


class Adapters:
    """LoRA: one copy of the weights. The policy and the critic are an adapter each, the reference
    is the weights with no adapter."""

    def __init__(self, base: Any, config: LoraConfig) -> None:
        self._model = get_peft_model(base, config, adapter_name=_POLICY)
        self._model.add_adapter(_CRITIC, config)
        self._model.eval()
        self.head = _head(base)

    def policy(self) -> Any:
        """The model that answers; in use until another of these is asked for."""
        self._model.set_adapter(_POLICY)
        return self._model

    @contextmanager
    def reference(self) -> Iterator[Any]:
        with self._model.disable_adapter():
            yield self._model

    def trunk(self) -> Any:
        """The critic below its head."""
        self._model.set_adapter(_CRITIC)
        return self._model.get_base_model().base_model

    def learning(self) -> tuple[Named, Named]:
        """The policy's parameters and the critic's, by names that a checkpoint keeps."""
        parameters = dict(self._model.named_parameters())
        policy = {name: p for name, p in parameters.items() if f".{_POLICY}." in name}
        critic = {name: p for name, p in parameters.items() if f".{_CRITIC}." in name}
        return policy, critic | _named("head", self.head)

    def finished(self, adapter: Path) -> Any:
        """The policy as a plain model, and its adapter in a folder if it has one. The last call:
        nothing else works after it."""
        self._model.set_adapter(_POLICY)
        self._model.delete_adapter(_CRITIC)
        self._model.save_pretrained(str(adapter), save_embedding_layers=False)
        return self._model.merge_and_unload()


class Copies:
    """Full weights: three copies of the model."""

    def __init__(self, base: Any) -> None:
        self._policy = base.eval()
        self._reference = deepcopy(base).requires_grad_(False)
        self._trunk = deepcopy(base).base_model
        self.head = _head(base)

    def policy(self) -> Any:
        return self._policy

    @contextmanager
    def reference(self) -> Iterator[Any]:
        yield self._reference

    def trunk(self) -> Any:
        return self._trunk

    def learning(self) -> tuple[Named, Named]:
        critic = _named("critic", self._trunk) | _named("head", self.head)
        return _named("policy", self._policy), critic

    def finished(self, adapter: Path) -> Any:  # noqa: ARG002 there is none
        return self._policy


PpoNetworks = Adapters | Copies


def load(model: Path, tokenizer: Any, recipe: PpoRecipe, device: torch.device) -> PpoNetworks:
    """Load the networks of PPO, in evaluation mode.

    Dropout would make a second pass over the same tokens differ from the first, and with it the
    ratio of PPO.

    Args:
        model: The folder of the SFT model.
        tokenizer: Its tokenizer.
        recipe: Says whether adapters or all weights are trained.
        device: Where the weights go.

    Returns:
        The policy, the reference and the critic.
    """
    torch.manual_seed(recipe.seed)  # a new token's embedding and the adapters start at random
    base = weights.load_policy(model, tokenizer, recipe).to(device)
    config = weights.lora(recipe)
    return Copies(base) if config is None else Adapters(base, config)


def log_probs(model: Any, episodes: Episodes, temperature: float) -> Tensor:
    """Compute the log-probabilities of the whole vocabulary at each position of the responses.

    Args:
        model: The policy or the reference.
        episodes: The prompts and responses.
        temperature: Divides the logits; the same as in sampling.

    Returns:
        A tensor of episodes × positions × vocabulary.
    """
    width = episodes.responses.shape[1]
    out = model(**episodes.inputs(), use_cache=False, logits_to_keep=width + 1)
    # The place before a token predicts it, so the first is the prompt's last and the last is none.
    logits: Tensor = out.logits[:, :-1].float() / temperature
    return logits.log_softmax(dim=-1)


def of_tokens(log_probs: Tensor, episodes: Episodes) -> Tensor:
    return log_probs.gather(dim=-1, index=episodes.responses[:, :, None])[:, :, 0]


def values(networks: PpoNetworks, episodes: Episodes) -> Tensor:
    """What the critic expects of each response before each of its tokens."""
    width = episodes.responses.shape[1]
    out = networks.trunk()(**episodes.inputs(), use_cache=False)
    hidden = out.last_hidden_state[:, -width - 1 : -1].float()
    expected: Tensor = networks.head(hidden)
    return expected[:, :, 0]


def _head(base: Any) -> nn.Linear:
    """Starts at 0, which is the mean of the normalised reward."""
    head = nn.Linear(base.config.hidden_size, 1, device=base.device)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


def _named(owner: str, module: nn.Module) -> Named:
    return {f"{owner}.{name}": parameter for name, parameter in module.named_parameters()}
