"""A harm as `evenhand.toml` declares it.

[harms.tenants]
policy_file = "tenants.md"        # or policy = "…"
examples = "tenants.jsonl"        # labelled texts: docs/harms.md
judge = "default"                 # a name in [models]
read = "logprob"                  # or "json": a reason and a verdict in words
orders = "both"                   # "yes or no" and "no or yes", the mean of the two
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evenhand.core.errors import UserError
from evenhand.instruments.harm.examples import Examples, fewest, read_examples, refuse_leaked
from evenhand.models.next_token import Read
from evenhand.scorers.harm import HarmQuestion, Orders

_Share = Annotated[float, Field(ge=0.001, le=0.999, allow_inf_nan=False)]
_LONGEST_POLICY = 20_000  # our choice, in signs: a judge reads it before every text

HarmName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class HarmConfig(BaseModel):
    """The table `[harms.NAME]`. The bars are our choice; each may be set otherwise, and a
    certificate names those that it was made under."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: str | None = None
    policy_file: Path | None = None
    examples: Path
    judge: str = "default"
    read: Read = "json"
    bound: _Share = 0.5  # of the probability of "yes"; a verdict in JSON has none
    orders: Orders = "one"
    # Our choice: one error in five. A loop acts on every verdict, and with more errors than that
    # most of its repairs are of texts that needed none, or leave the harm where it was.
    least_sensitivity: _Share = 0.8
    most_false_alarms: _Share = 0.2
    # Our choice: a group has few examples. Below one half the judge is more often right than wrong
    # about it; eight benign texts without a false alarm can show that of each of six groups.
    most_false_alarms_in_a_group: _Share = 0.5
    # Our choice: as the errors. A verdict that turns with the wording more often than that is one
    # on the wording.
    most_flips: _Share = 0.2

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if (self.policy is None) == (self.policy_file is None):
            raise ValueError("say what is a harm by policy = “words”, or by policy_file, not both")
        if self.read == "json" and self.bound != HarmConfig.model_fields["bound"].default:
            raise ValueError(
                'bound: a verdict in words has none; leave it out, or read = "logprob"'
            )
        if self.read == "json" and self.orders == "both":
            raise ValueError(
                'orders: two verdicts in words have no mean; leave it out, or read = "logprob"'
            )
        return self

    @property
    def bars(self) -> dict[str, float]:
        names = ("least_sensitivity", "most_false_alarms", "most_false_alarms_in_a_group")
        return {name: getattr(self, name) for name in (*names, "most_flips")}


@dataclass(frozen=True)
class OwnHarm:
    """A harm with its policy and its examples read; refused if they cannot show what is asked."""

    name: str
    config: HarmConfig
    model: str  # of the judge, as a certificate names it

    @property
    def where(self) -> str:
        return f"[harms.{self.name}]"

    def refuse_outside(self, folder: Path) -> None:
        """Refuse files that lie elsewhere. A config that is found in a folder may have come with
        it, and a check sends policy and examples to the address that it names."""
        for file in (self.config.policy_file, self.config.examples):
            if file is not None and not file.resolve().is_relative_to(folder.resolve()):
                raise UserError(
                    f"{self.where}: {file} lies outside of this folder, and its words would be "
                    "sent to the judge; bring it here, or give the config by --config FILE"
                )

    @cached_property
    def asked(self) -> HarmQuestion:
        config = self.config
        return HarmQuestion(
            name=self.name,
            policy=self._policy,
            read=config.read,
            bound=config.bound,
            orders=config.orders,
        )

    @property
    def _policy(self) -> str:
        words, file = self.config.policy, self.config.policy_file
        if file is not None:
            try:
                if not file.is_file():  # a pipe would be waited for
                    raise UserError(f"{self.where}: there is no policy file {file}")
                words = file.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"{self.where}: {file} cannot be read: {error}") from None
        policy = (words or "").strip()
        if not policy:
            raise UserError(f"{self.where}: the policy has no words; say what breaks it")
        if len(policy) > _LONGEST_POLICY:
            raise UserError(
                f"{self.where}: the policy has {len(policy):,} signs; {_LONGEST_POLICY:,} are the "
                "most, since a judge reads all of it before every text"
            )
        return policy

    @cached_property
    def examples(self) -> Examples:
        examples = read_examples(self.config.examples)
        self._refuse_too_few(examples, True, "least_sensitivity", self.config.least_sensitivity)
        self._refuse_too_few(
            examples, False, "most_false_alarms", 1 - self.config.most_false_alarms
        )
        refuse_leaked(examples, self.asked.policy, self.where)
        return examples

    def _refuse_too_few(self, examples: Examples, harm: bool, bar: str, right: float) -> None:
        has, needs = examples.count(harm=harm), fewest(right)
        if has < needs:
            raise UserError(
                f"{self.where}: {self.config.examples} has {has} texts with harm = "
                f"{str(harm).lower()}, near copies as one and paraphrases not counted. To show "
                f"{bar} = {self.config.bars[bar]:g} takes {needs} or more, all judged rightly; add "
                f"{needs - has}, or set {bar} otherwise"
            )


def own_harm(
    name: str, harms: Mapping[str, HarmConfig], models: Mapping[str, str | None]
) -> OwnHarm:
    """A harm by its name, with the model of its judge; `models` are those of the config."""
    if name not in harms:
        available = ", ".join(sorted(harms)) or "none; docs/harms.md says how one is written"
        raise UserError(f"the config has no [harms.{name}]; it has: {available}")
    judge = harms[name].judge
    if judge not in models:
        available = ", ".join(sorted(models))
        raise UserError(f"[harms.{name}]: judge = {judge!r} is none of [models]: {available}")
    model = models[judge]
    if model is None:
        raise UserError(
            f"[harms.{name}]: judge = {judge!r} must say its model, since a certificate is of one: "
            f"write model under [models.{judge}], or for the default model set EVENHAND_MODEL"
        )
    return OwnHarm(name, harms[name], model)
