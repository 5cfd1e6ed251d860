"""How an item of a method that judges its drafts ended, and the bounds that harm is held to."""

from dataclasses import dataclass
from typing import Literal, get_args

Outcome = Literal["accepted", "improved_not_accepted", "unchanged", "not_judged", "not_improved"]
#   accepted               the evaluators accept the answer
#   improved_not_accepted  the answer is better than the first draft, and still not accepted
#   unchanged              no draft was better than the first one, which is not accepted
#   not_judged             an evaluator gave no mark, so the first draft is the answer
#   not_improved           changed, not accepted and no better: only with `keep = "last"`
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A score of drafts by which a method measures harm, and the limit that it is held to."""

    score: str
    limit: float
    higher_is_worse: bool = True
    limit_is_within: bool = False

    def within(self, value: float) -> bool:
        """Say whether a score is within the bound."""
        if value == self.limit:
            return self.limit_is_within
        return (value < self.limit) == self.higher_is_worse

    def harm(self, value: float) -> float:
        """The score as a harm: a higher one is always worse."""
        return value if self.higher_is_worse else -value
