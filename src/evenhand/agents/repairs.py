"""A method that repairs drafts declares this of itself, so that others can learn from its runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand import registry
from evenhand.metrics.bias_scale import BiasScale


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """The declaration names who refuses a draft, who mends it, and which scores say how biased it
    is. Preference pairs and the control `critique=other` are made of runs whose method has this as
    `repairs`."""

    scales: Mapping[str, BiasScale]  # by the name of the score in a draft
    writer: str  # the role whose first request is the question as it was put
    reviser: str  # the role that acts on a critique
    # Roles that judge bias, each with the field of the reply that says in words what is wrong; None
    # where the words are not one text.
    critics: Mapping[str, str | None]


def repairs_of(method: str) -> Repairs | None:
    """Give what a method by that name declares; None where it repairs nothing, or is not
    installed."""
    if method not in registry.names("methods"):
        return None
    repairs = getattr(registry.load("methods", method), "repairs", None)
    return repairs if isinstance(repairs, Repairs) else None
