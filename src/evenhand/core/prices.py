"""What tokens cost. The numbers are the user's: prices change, so none are built in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import UserError

_MILLION = 1_000_000
BATCH_FACTOR = 0.5  # as OpenAI and Anthropic bill batches
NOBODY = "none"  # the name of the default model where no agent needs one
OWN_BATCH = "file:"  # how the id of a batch begins that no provider billed
# Our choice, in tokens: chat template and the reply's schema, which an endpoint adds to the words.
# The longest schema of a method has 722 bytes.
AROUND_THE_WORDS = 1280
# The key under which a scorer's description says how much its requests to a language model add to
# the text at most. It follows from the rest of the description; earlier records lack it.
ASKS = "asks"


def billed_as(name: str, described: Mapping[str, Any]) -> str | None:
    """The name under which the tokens of a model are billed, by its description: of a scorer that
    asks a language model, that model's; None where nothing is billed by the token."""
    if described.get("kind") != "scorer":
        unbilled = name == NOBODY or described.get("kind") in ("search", "borrowed")
        return None if unbilled else name
    scorer = described.get("scorer")
    model = scorer.get("model") if isinstance(scorer, Mapping) else None
    return str(model.get("model", "unknown")) if isinstance(model, Mapping) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of one model, for a million tokens of each kind."""

    per_million_prompt_tokens: float
    per_million_completion_tokens: float
    batch_factor: float = BATCH_FACTOR  # of the price, where a provider's batch answers


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by the name of the model, all in one currency."""

    models: Mapping[str, Price]
    currency: str = "USD"

    def cost(
        self, model: str, prompt_tokens: float, completion_tokens: float, *, batched: bool = False
    ) -> float:
        """Compute what tokens cost.

        Args:
            model: The name of the model in the price table.
            prompt_tokens: Tokens that the model read; an average may be a fraction.
            completion_tokens: Tokens that the model wrote.
            batched: Whether the call went through a batch API, which has its own price factor.

        Returns:
            The amount in the currency of the table; 0 without tokens, even for a model without a
            price.

        Raises:
            UserError: If the table has no price for the model.
        """
        if not prompt_tokens and not completion_tokens:  # a scorer on this machine
            return 0.0
        price = self._of(model)
        factor = price.batch_factor if batched else 1.0
        return (
            (
                prompt_tokens * price.per_million_prompt_tokens
                + completion_tokens * price.per_million_completion_tokens
            )
            * factor
            / _MILLION
        )

    def most(
        self, model: str, prompt_bytes: int, reply_tokens: int, *, batched: bool = False
    ) -> float:
        """Compute the most that a call can cost: no tokenizer makes more tokens of a text than its
        bytes.

        Args:
            model: The name of the model in the price table.
            prompt_bytes: The size of all messages in bytes.
            reply_tokens: The largest number of tokens that the reply may have.
            batched: Whether the call goes through a batch API, which has its own price factor.

        Returns:
            The amount in the currency of the table.

        Raises:
            UserError: If the table has no price for the model.
        """
        return self.cost(model, prompt_bytes + AROUND_THE_WORDS, reply_tokens, batched=batched)

    def require(self, models: Iterable[str]) -> None:
        """Refuse before anything is spent if one of these has no price."""
        for model in models:
            self._of(model)

    def _of(self, model: str) -> Price:
        if model not in self.models:
            raise UserError(
                f"the price file lacks the model {model!r}; add [models.{model!r}] to the price "
                f"file (it has: {', '.join(sorted(self.models)) or 'none'})"
            )
        return self.models[model]
