"""A run in counts: how much was answered, what failed and why, what it took."""

from dataclasses import dataclass, field
from typing import Any

from evenhand.core.prices import Prices
from evenhand.findings import cost as costs
from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Coverage
from evenhand.findings.remedy import RemedySummary, counted
from evenhand.findings.report import adapted_in
from evenhand.findings.sequential import KEY
from evenhand.runs.store import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Displayable):
    """A summary says what a run of any kind did, whatever it measured."""

    run: str
    method: dict[str, Any]
    cast: dict[str, Any]
    seed: int | None
    created: str
    planned: int
    open: bool = False  # it has no number of items beforehand, and its writer has not ended it
    may_stop: bool = False  # it ends when its question is decided: what it did not ask is not lost
    answered: int
    failed_by_reason: dict[str, int]
    changed: int  # answers that the method changed
    outcomes: dict[str, int] = field(default_factory=dict)  # empty: no draft was judged
    remedy: RemedySummary | None = (
        None  # what it did by its own evaluators, where that was looked at
    )
    calls: int
    prompt_tokens: int
    completion_tokens: int
    items_without_token_count: int
    tags_taken_off: int  # tags of our prompts that a model had copied into what it said
    thinking_tokens: int = 0  # of the completion tokens, where endpoints count them
    adapted: tuple[str, ...] = ()  # what the models did not accept, and what was done instead
    money: costs.Money

    @property
    def failed(self) -> int:
        return sum(self.failed_by_reason.values())

    @property
    def not_run(self) -> int:
        return self.planned - self.answered - self.failed

    @property
    def coverage(self) -> Coverage:
        """The answered items among all that were planned: what is not run yet is missing too."""
        if self.may_stop:
            total = self.answered + self.failed
            return Coverage(n=total, scored=self.answered, by_reason=self.failed_by_reason)
        lost = {**self.failed_by_reason, **({"not_run": self.not_run} if self.not_run else {})}
        return Coverage(n=self.planned, scored=self.answered, by_reason=lost)

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "method": self.method,
            "cast": self.cast,
            "seed": self.seed,
            "created": self.created,
            "planned": self.planned,
            "open": self.open,
            **({"may_stop": True} if self.may_stop else {}),
            "answered": self.answered,
            "failed": self.failed,
            "failed_by_reason": self.failed_by_reason,
            "not_run": self.not_run,
            "coverage": self.coverage.coverage,
            "changed": self.changed,
            "outcomes": self.outcomes,
            **({"remedy": self.remedy.to_dict()} if self.remedy else {}),
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "items_without_token_count": self.items_without_token_count,
            "tags_taken_off": self.tags_taken_off,
            "thinking_tokens": self.thinking_tokens,
            "adapted": self.adapted,
            "money": self.money,
        }


def summary(
    run: RunReader, prices: Prices | None = None, remedy: RemedySummary | None = None
) -> Summary:
    """Count a run from the sums that its ledger keeps: no result is read.

    Args:
        run: The run.
        prices: What calls cost.
        remedy: What its method did to the answers, where that is known.
    """
    totals, record = run.totals(), run.record
    return Summary(
        run=str(run.path),
        method=record.method,
        cast=record.cast,
        seed=record.seed,
        created=record.created,
        planned=run.planned,
        open=run.open,
        may_stop=KEY in record.source,
        answered=totals.answered,
        failed_by_reason=totals.failed,
        changed=totals.changed,
        outcomes=counted(totals.outcomes) if totals.outcomes else {},
        remedy=remedy,
        calls=totals.calls,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        items_without_token_count=totals.tokens_unknown,
        tags_taken_off=totals.tags_taken_off,
        thinking_tokens=totals.thinking_tokens,
        adapted=adapted_in(run),
        money=costs.money(run, prices),
    )
