"""What each stage trains with. Each number stands beside the line of paper 002 that it comes from;
"ours" where the paper says nothing."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from evenhand.errors import UserError

T = TypeVar("T")

SCHEDULES = (
    "cosine",
    "linear",
    "constant",
    "constant_with_warmup",
    "cosine_with_restarts",
    "polynomial",
    "inverse_sqrt",
)  # of transformers, those that need no number of their own

_ONE_EPOCH = "All experiments are trained with one full epoch."
_LENGTH = "The maximum sequence length of the input sequence is set to 2048."
_RL_BATCH = (
    "When fine-tuning the language model using reinforcement learning, we use a batch size of 4"
)
_RL_RATE = "… and a learning rate of 5×10^-6"


def _paper(value: T, quotation: str) -> T:
    return field(default=value, metadata={"source": f"paper 002, 4.1: “{quotation}”"})


def _ours(value: T, why: str) -> T:
    return field(default=value, metadata={"source": f"ours: {why}"})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all stages share."""

    learning_rate: float = _ours(2e-4, "usual for LoRA")
    batch: int = _ours(32, "as the reward model; over all processes")
    micro_batch: int = _ours(4, "rows in memory at once in one process; batch is reached by steps")
    epochs: float = _paper(1.0, _ONE_EPOCH)
    max_steps: int | None = _ours(None, "stops an epoch early, to try a recipe")
    max_length: int = _paper(2048, _LENGTH)
    full: bool = _ours(False, "7B with Adam does not fit 4 x 32 GB; the paper does not say")
    lora_rank: int = _ours(16, "the paper names no adapter")
    lora_alpha: int = _ours(32, "twice the rank")
    held_out: int = _ours(256, "pairs of the test side to look at in the end, topics in turn")
    warmup: float = _ours(0.03, "share of the steps")
    schedule: str = _ours("cosine", "the paper names none")
    weight_decay: float = _ours(0.0, "one epoch over-fits little")
    seed: int = _ours(0, "order of rows, adapters, sampling")
    save_every: int = _ours(50, "steps between checkpoints")
    keep: int = _ours(2, "checkpoints; a truncated newest one has a forerunner")
    threads: int | None = _ours(None, "of torch on a CPU; 1 makes runs bit-identical")

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch", "micro_batch", "epochs", "save_every", "keep"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        if self.max_steps is not None and self.max_steps <= 0:
            raise UserError(
                f"max_steps must be above 0, not {self.max_steps}: no step, no training"
            )
        if not 0 <= self.warmup < 1:
            raise UserError(f"warmup is a share of the steps, from 0 to below 1, not {self.warmup}")
        if self.schedule not in SCHEDULES:
            raise UserError(f"no schedule {self.schedule!r}; there are: {', '.join(SCHEDULES)}")

    def full_weights(self) -> Self:
        return replace(self, full=True)

    def accumulation(self, processes: int) -> int:
        """Forward passes to one step. The batch counts rows over all processes."""
        at_once = min(self.micro_batch, self.batch) * processes
        if self.batch % at_once:
            raise UserError(
                f"a batch of {self.batch} is no multiple of {self.micro_batch} rows in each of "
                f"{processes} processes; change micro_batch (--set) or --processes"
            )
        return self.batch // at_once

    def require_step(self, rows: int, what: str, processes: int) -> None:
        """Refuse rows that do not fill the batch of one step.

        Args:
            rows: How many there are to learn from.
            what: Their name in the error.
            processes: Those that share a batch.
        """
        if rows >= self.batch:
            return
        unit = min(self.micro_batch, max(1, rows // processes)) * processes
        fits = rows - rows % unit
        smaller = f", or --set batch={fits} --set micro_batch={unit // processes}" if fits else ""
        raise UserError(
            f"{rows} {what} do not fill one step: a batch has {self.batch}. "
            f"Give {self.batch} or more{smaller}"
        )

    def describe(self) -> dict[str, dict[str, Any]]:
        """Each setting with its value and where it comes from, for records and cards."""
        return {
            f.name: {"value": getattr(self, f.name), "source": _source(f.metadata, self, f.name)}
            for f in fields(self)
        }


def _source(metadata: Any, recipe: Recipe, name: str) -> str:
    default = type(recipe).__dataclass_fields__[name].default
    return str(metadata["source"]) if getattr(recipe, name) == default else "given for this run"


@dataclass(frozen=True, kw_only=True)
class SftRecipe(Recipe):
    """Supervised fine-tuning on the chosen answers (Figure 3: "Data of low bias is labeled and used
    for supervised fine-tuning"). Also the paper's baseline SFT."""

    all_low: bool = _ours(False, "what is chosen in a pair; true, as the paper: all low statements")

    def full_weights(self) -> Self:
        return replace(self, full=True, learning_rate=2e-5)


@dataclass(frozen=True, kw_only=True)
class RewardRecipe(Recipe):
    """The reward model, with the loss of equation 3 and a margin in it, unless that is off."""

    learning_rate: float = _paper(3e-5, "The RM fine-tuning learning rate is set to 3×10^-5.")
    batch: int = _paper(32, "The batch size we use is 32.")
    margin: bool = _ours(True, "score gap / 10 in the loss; the paper's loss has none")
    scale_samples: int = _ours(64, "SFT samples that set the reward's mean 0 and deviation 1")
    scale_tokens: int = _ours(64, "longest such sample")


@dataclass(frozen=True, kw_only=True)
class DpoRecipe(Recipe):
    """Direct preference optimisation, which needs no reward model. Not in the paper."""

    learning_rate: float = _ours(5e-5, "usual for LoRA")
    beta: float = _ours(0.1, "the value of the DPO paper")

    def full_weights(self) -> Self:
        return replace(self, full=True, learning_rate=5e-6)


@dataclass(frozen=True, kw_only=True)
class _OnPolicy(Recipe):
    """Answers sampled from the model, rewarded, and held near the model it started from."""

    learning_rate: float = _paper(5e-6, _RL_RATE)
    batch: int = _paper(4, _RL_BATCH)
    max_prompt: int = _ours(512, "tokens of a prompt; longer ones are left out and counted")
    max_new_tokens: int = _ours(128, "tokens of an answer")
    temperature: float = _ours(1.0, "samples from the policy itself")
    beta: float = _ours(0.05, "weight of KL; equation 4 has it and gives no value")
    target_kl: float = _ours(0.5, "nats a token at which training stops; 0.25 already drifted")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= 0:
            raise UserError("beta must be above 0: without it KL is neither bounded nor measured")


@dataclass(frozen=True, kw_only=True)
class RlooRecipe(_OnPolicy):
    """The paper's objective with a leave-one-out baseline in place of the critic."""

    generations: int = _ours(2, "answers to a prompt; each is the other's baseline")
    clip: float = _ours(0.2, "of the ratio; the PPO paper's")
    vllm: bool = _ours(False, "answers by vLLM in the same processes; needs GPUs")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.generations < 2 or self.batch % self.generations:
            raise UserError(
                f"a batch of {self.batch} answers is no multiple of {self.generations} answers to "
                "a prompt (at least 2); change batch or generations (--set)"
            )


@dataclass(frozen=True, kw_only=True)
class PpoRecipe(_OnPolicy):
    """Proximal policy optimisation as the paper names it, with a critic."""

    inner_epochs: int = _ours(2, "passes over one batch of answers")
    clip: float = _ours(0.2, "of the ratio; the PPO paper's")
    value_clip: float | None = _ours(0.2, "of the critic's change; none: not clipped")
    critic_learning_rate: float = _ours(5e-5, "the critic has weights of its own, its head from 0")
    gamma: float = _ours(1.0, "an answer has one reward, at its end")
    gae_lambda: float = _ours(0.95, "the PPO paper's")
    whiten: bool = _ours(True, "advantages to mean 0 and deviation 1 in a batch")
    max_grad_norm: float = _ours(1.0, "usual")
    missing_eos_penalty: float = _ours(0.0, "off the reward of an answer that does not end")

    def full_weights(self) -> Self:
        return replace(self, full=True, critic_learning_rate=1e-5)
