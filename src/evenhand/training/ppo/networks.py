"""The networks of PPO: the policy and the critic, which learn, and the frozen reference.

Paper 002, 3: "the fine-tuned model acts as an actor, generating new data evaluated by a frozen
reference model, a critic model, and the reward model". The critic has weights of its own, so what
it learns never moves the policy. All start as the SFT model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn

from evenhand.training import weights
from evenhand.training.ppo.rollout import Episodes
from evenhand.training.recipes import PpoRecipe

Named = dict[str, nn.Parameter]

_POLICY = "default"  # the one name that is saved without a folder of its own
_CRITIC = "critic"


class Networks(Protocol):
    head: nn.Linear

    def policy(self) -> Any:
        """The model that answers; in use until another of these is asked for."""

    @contextmanager
    def reference(self) -> Iterator[Any]: ...

    def trunk(self) -> Any:
        """The critic below its head."""

    def learning(self) -> tuple[Named, Named]:
        """The policy's parameters and the critic's, by names that a checkpoint keeps."""

    def finished(self, adapter: Path) -> Any:
        """The policy as a plain model, and its adapter in a folder if it has one. The last call:
        nothing else works after it."""


class Adapters:
    """LoRA: one copy of the weights. The policy and the critic are an adapter each, the reference
    is the weights with no adapter."""

    def __init__(self, base: Any, config: LoraConfig) -> None:
        self._model = get_peft_model(base, config, adapter_name=_POLICY)
        self._model.add_adapter(_CRITIC, config)
        self._model.eval()
        self.head = _head(base)

    def policy(self) -> Any:
        self._model.set_adapter(_POLICY)
        return self._model

    @contextmanager
    def reference(self) -> Iterator[Any]:
        with self._model.disable_adapter():
            yield self._model

    def trunk(self) -> Any:
        self._model.set_adapter(_CRITIC)
        return self._model.get_base_model().base_model

    def learning(self) -> tuple[Named, Named]:
        parameters = dict(self._model.named_parameters())
        policy = {name: p for name, p in parameters.items() if f".{_POLICY}." in name}
        critic = {name: p for name, p in parameters.items() if f".{_CRITIC}." in name}
        return policy, critic | _named("head", self.head)

    def finished(self, adapter: Path) -> Any:
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


def load(model: Path, tokenizer: Any, recipe: PpoRecipe, device: torch.device) -> Networks:
    """Every network stays in evaluation mode: dropout would make a second look at the same tokens
    differ from the first, and the ratio of PPO with it."""
    torch.manual_seed(recipe.seed)  # a new token's embedding and the adapters start at random
    base = weights.load_policy(model, tokenizer, recipe).to(device)
    config = weights.lora(recipe)
    return Copies(base) if config is None else Adapters(base, config)


def log_probs(model: Any, episodes: Episodes, temperature: float) -> Tensor:
    """Log-probabilities of every token of the vocabulary at each place of the responses."""
    width = episodes.responses.shape[1]
    out = model(**episodes.inputs(), use_cache=False, logits_to_keep=width + 1)
    # The place before a token predicts it, so the first is the prompt's last and the last is none.
    logits: Tensor = out.logits[:, :-1].float() / temperature
    return logits.log_softmax(dim=-1)


def of_tokens(log_probs: Tensor, episodes: Episodes) -> Tensor:
    return log_probs.gather(dim=-1, index=episodes.responses[:, :, None])[:, :, 0]


def values(networks: Networks, episodes: Episodes) -> Tensor:
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
