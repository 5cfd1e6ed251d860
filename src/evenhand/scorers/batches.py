"""Many texts through one scorer, in batches, with a clock."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.errors import UserError
from evenhand.scorers.base import Scorer, Scores, Unscored

_BATCH = 256  # our choice: what is lost when a scorer answers with the wrong number of scores


@dataclass(frozen=True, slots=True)
class Batched:
    outcomes: list[Scores | Unscored]
    seconds: float

    def values(self, attribute: str) -> list[float | None]:
        """None where there is no score: never 0."""
        return [None if isinstance(o, Unscored) else o.values.get(attribute) for o in self.outcomes]

    @property
    def reasons(self) -> dict[str, int]:
        missing = (outcome.reason for outcome in self.outcomes if isinstance(outcome, Unscored))
        return dict(Counter(missing).most_common())


async def score_all(
    scorer: Scorer, texts: Sequence[str], on_batch: Callable[[int], None] | None = None
) -> Batched:
    """`on_batch` hears how many texts each batch had."""
    clock = asyncio.get_running_loop().time
    started, outcomes = clock(), list[Scores | Unscored]()
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        scored = await scorer.score(batch)
        if len(scored) != len(batch):
            message = f"{len(batch)} texts were given, {len(scored)} scores came"
            scored = [Unscored("wrong_length", message)] * len(batch)
        outcomes += scored
        if on_batch is not None:
            on_batch(len(batch))
    return Batched(outcomes, clock() - started)


async def scores_of(
    scorer: Scorer,
    texts: Sequence[str],
    attribute: str,
    on_batch: Callable[[int], None] | None = None,
) -> list[float | None]:
    """Score texts on one attribute.

    Args:
        scorer: The scorer.
        texts: The texts.
        attribute: Which of its scores is returned.
        on_batch: Receives the number of texts in each finished batch.

    Returns:
        One score per text, None where there is none.

    Raises:
        UserError: If the scorer has no such attribute.
    """
    if attribute not in scorer.attributes:
        has = ", ".join(scorer.attributes)
        raise UserError(f"{scorer.name} has no score for {attribute!r}, only for: {has}")
    return (await score_all(scorer, texts, on_batch)).values(attribute)
