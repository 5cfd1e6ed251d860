"""This is every error that evenhand raises on purpose.

EvenhandError
├── UserError            the command, the config or the input is wrong; nothing was called
│   └── Unsuited         a method cannot answer this item, such as one without choices
├── ModelError           a call to a model or scorer gave no usable answer
│   ├── ModelBusy        every attempt failed in a way that may pass; a later run can help
│   ├── ModelRefused     the endpoint said no (key, model name, request); change it first
│   ├── DeadlinePassed   the item's total time is used up
│   ├── BudgetSpent      the item's calls or tokens are used up
│   ├── TurnMissing      a replay was asked something that was not recorded
│   ├── ScorerFailed     a scorer gave no score for this text; never read as "harmless"
│   └── SearchFailed     a search engine gave no answer; never read as "nothing found"
├── NoAnswer             the recorded answer to an item is known to be missing
├── UnreadableReply      the model answered, not in the declared form
├── BatchFailed          a provider's batch cannot be submitted or fetched; the run ends, whole
├── Undefined            a formula has no value on this data; never read as 0
└── StoreError           a run folder cannot be written or trusted
    ├── RunLocked        another process is writing this run
    ├── Fenced           another process took this run over; this one must stop
    ├── CorruptRun       bytes do not match their checksum
    ├── UnknownFormat    written by a version of evenhand that this one cannot read
    ├── CorruptArchive   a pack is not what it should be, or could do harm when it is unpacked
    └── DiskFull         no room; free some and resume

Each has a `reason`, a short stable word that is stored with a failed item and counted in reports.
"""

import difflib
from collections.abc import Iterable
from typing import ClassVar


class EvenhandError(Exception):
    """The root: catch it to catch everything that evenhand raises on purpose."""

    reason: ClassVar[str] = "error"


class UserError(EvenhandError):
    """Says what is wrong with what was asked for, and what to write instead."""

    reason = "user_error"


class Unsuited(UserError):
    """Ends the item, not the run: one unsuitable line must not cost results already paid for."""

    reason = "unsuited"


class NoAnswer(EvenhandError):
    """Ends the item, not the run: its recorded answer is known to be missing."""

    reason = "no_answer"


class ModelError(EvenhandError):
    """A call that gave no usable answer, after `attempts` attempts."""

    reason = "model_error"

    def __init__(self, message: str, *, attempts: int = 0) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.recorded: tuple[int, float] | None = None  # when and how long, if it was recorded
        # Of the prompt and the reply, where a model behind a scorer counted them all the same.
        self.tokens: tuple[int, int] | None = None


class ModelBusy(ModelError):
    reason = "model_busy"


class ModelRefused(ModelError):
    reason = "model_refused"


class DeadlinePassed(ModelError):
    reason = "deadline_passed"


class BudgetSpent(ModelError):
    reason = "budget_spent"


class TurnMissing(ModelError):
    reason = "turn_missing"


class ScorerFailed(ModelError):
    reason = "scorer_failed"


class SearchFailed(ModelError):
    reason = "search_failed"


REFUSAL = "refusal"  # the kind of an unreadable reply in which the model declines to answer


class UnreadableReply(EvenhandError):
    """`kind` names the rule that refused it: duplicate_key, too_deep, wrong_shape, …"""

    reason = "unreadable_reply"

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class BatchFailed(EvenhandError):
    """Ends the run, not the item: what was submitted is on record, and the next run goes on."""

    reason = "batch_failed"


class Undefined(EvenhandError):
    """A formula has no value on this data (0/0, one cluster, no rows); the message says why."""

    reason = "undefined"


class StoreError(EvenhandError):
    """Ends the run, not the item: what is committed stays, what is not is asked again."""

    reason = "store_error"


class RunLocked(StoreError):
    reason = "run_locked"


class Fenced(StoreError):
    reason = "fenced"


class CorruptRun(StoreError):
    reason = "corrupt_run"


class UnknownFormat(StoreError):
    reason = "unknown_format"


class CorruptArchive(StoreError):
    reason = "corrupt_archive"


class DiskFull(StoreError):
    reason = "disk_full"


def model_error(reason: str, message: str, attempts: int) -> ModelError:
    """Return the error that a recorded call ended in, so that a replay can raise it again.

    Args:
        reason: The recorded `reason` of a `ModelError` class; an unknown one gives a plain
            `ModelError`.
        message: The recorded message.
        attempts: How many requests the call made before it failed.
    """
    kinds = {kind.reason: kind for kind in ModelError.__subclasses__()}
    return kinds.get(reason, ModelError)(message, attempts=attempts)


def choices_for(name: str, choices: Iterable[str]) -> str:
    """Say which names there are after one that is unknown, the closest first.

    Args:
        name: The unknown name.
        choices: The names that exist.

    Returns:
        Such as "Did you mean 'stardtox'? Available: cot, default, stardtox".
    """
    names = list(choices)
    closest = difflib.get_close_matches(name, names, n=1)
    question = f"Did you mean {closest[0]!r}? " if closest else ""
    return f"{question}Available: {', '.join(names) or 'none'}"
