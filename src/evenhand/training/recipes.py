"""What each stage trains with.

`recipes.toml` says for each number which line of paper 002 it comes from, or "ours" and why.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from evenhand.core.errors import UserError, choices_for
from evenhand.core.package_data import read_toml

SCHEDULES = (
    "cosine",
    "linear",
    "constant",
    "constant_with_warmup",
    "cosine_with_restarts",
    "polynomial",
    "inverse_sqrt",
)  # of transformers, those that need no further number


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all stages share."""

    full_rates: ClassVar[dict[str, Any]] = {}  # learning rates where all weights are trained

    learning_rate: float = 2e-4
    batch: int = 32
    micro_batch: int = 4
    epochs: float = 1.0
    max_steps: int | None = None
    max_length: int = 2048
    full: bool = False
    lora_rank: int = 16
    lora_alpha: int = 32
    held_out: int = 256
    warmup: float = 0.03
    schedule: str = "cosine"
    weight_decay: float = 0.0
    seed: int = 0
    save_every: int = 50
    keep: int = 2
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch", "micro_batch", "epochs", "save_every", "keep"):
            if getattr(self, name) <= 0:
                raise UserError(
                    f"{name} is {getattr(self, name)}, and it must be above 0. Change it with "
                    "--set."
                )
        if self.max_steps is not None and self.max_steps <= 0:
            raise UserError(
                f"max_steps is {self.max_steps}, so nothing would be trained. Set it above 0."
            )
        if not 0 <= self.warmup < 1:
            raise UserError(
                f"warmup is {self.warmup}, and it is a share of the steps. Set it from 0 to below "
                "1."
            )
        if self.schedule not in SCHEDULES:
            raise UserError(
                f"no schedule {self.schedule!r}. {choices_for(self.schedule, SCHEDULES)}"
            )

    def full_weights(self) -> Self:
        return replace(self, full=True, **self.full_rates)

    def accumulation(self, processes: int) -> int:
        """Forward passes to one step. The batch counts rows over all processes."""
        at_once = min(self.micro_batch, self.batch) * processes
        if self.batch % at_once:
            raise UserError(
                f"a batch of {self.batch} is not a multiple of {self.micro_batch} rows in each of "
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
            f.name: {"value": getattr(self, f.name), "source": _source(self, f.name)}
            for f in fields(self)
        }


def _source(recipe: Recipe, name: str) -> str:
    if getattr(recipe, name) != type(recipe).__dataclass_fields__[name].default:
        return "given for this run"
    sources = read_toml(__package__, "recipes.toml")
    tables = (sources.get(kind.__name__.strip("_"), {}) for kind in type(recipe).__mro__)
    return next(str(table[name]) for table in tables if name in table)


@dataclass(frozen=True, kw_only=True)
class SftRecipe(Recipe):
    """Supervised fine-tuning on the chosen answers (Figure 3: "Data of low bias is labeled and used
    for supervised fine-tuning"). Also the paper's baseline SFT."""

    full_rates: ClassVar[dict[str, Any]] = {"learning_rate": 2e-5}

    all_low: bool = False


@dataclass(frozen=True, kw_only=True)
class RewardRecipe(Recipe):
    """The reward model, with the loss of equation 3 and a margin in it, unless that is off."""

    learning_rate: float = 3e-5
    batch: int = 32
    margin: bool = True
    scale_samples: int = 64
    scale_tokens: int = 64


@dataclass(frozen=True, kw_only=True)
class DpoRecipe(Recipe):
    """Direct preference optimisation, which needs no reward model. Not in the paper."""

    full_rates: ClassVar[dict[str, Any]] = {"learning_rate": 5e-6}

    learning_rate: float = 5e-5
    beta: float = 0.1


@dataclass(frozen=True, kw_only=True)
class _OnPolicy(Recipe):
    """Answers sampled from the model, rewarded, and held near the model it started from."""

    learning_rate: float = 5e-6
    batch: int = 4
    max_prompt: int = 512
    max_new_tokens: int = 128
    temperature: float = 1.0
    beta: float = 0.05
    target_kl: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= 0:
            raise UserError(
                "beta is 0 or less, so KL is neither limited nor measured. Set it above 0."
            )


@dataclass(frozen=True, kw_only=True)
class RlooRecipe(_OnPolicy):
    """The paper's objective with a leave-one-out baseline in place of the critic."""

    generations: int = 2
    clip: float = 0.2
    vllm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.generations < 2 or self.batch % self.generations:
            raise UserError(
                f"a batch of {self.batch} answers is not a multiple of {self.generations} answers "
                "to a prompt (at least 2); change batch or generations (--set)"
            )


@dataclass(frozen=True, kw_only=True)
class PpoRecipe(_OnPolicy):
    """Proximal policy optimisation as the paper names it, with a critic."""

    full_rates: ClassVar[dict[str, Any]] = {"critic_learning_rate": 1e-5}

    inner_epochs: int = 2
    clip: float = 0.2
    value_clip: float | None = 0.2
    critic_learning_rate: float = 5e-5
    gamma: float = 1.0
    gae_lambda: float = 0.95
    whiten: bool = True
    max_grad_norm: float = 1.0
    missing_eos_penalty: float = 0.0
