"""How the screen reads a text: whole, each sentence alone, and decoded; the highest score counts.

A scorer takes something like the mean of what it reads at once, so that harmless sentences around
a hateful one would hide it. Tenants share the screen alike, by characters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenhand.core.errors import EvenhandError
from evenhand.gateway.policy import CheckPolicy
from evenhand.gateway.shares import FairQueue
from evenhand.gateway.wire.strict import readable
from evenhand.scorers.base import Scorer, Scores, Unscored, unscorable
from evenhand.scorers.passages import ending, is_another_language, is_english, passages, readings

SCREEN_FAILED = "screen_failed"
_BATCH = 4_000  # our choice, in characters: so long one tenant has the screen at a time
_CONTEXT = 1_000  # our choice, in characters: so much of what was sent is read with new words
_NO_WORDS = "no_words"  # what a scorer says of a text in which it knows no word

Known = dict[str, "Scores | Unscored"]  # what was scored of an answer, by the passage


class NoScore(EvenhandError):
    """The screen could not read a text."""

    reason = SCREEN_FAILED


@dataclass(frozen=True, slots=True)
class ScreenScore:
    """What the screen says of a text."""

    score: float  # the highest of its readings and passages
    english: bool  # False: the score says little, and must not let a text pass


class Screening:
    """The screen of one check."""

    def __init__(self, check: CheckPolicy, scorer: Scorer, shares: FairQueue) -> None:
        self._check = check
        self._scorer = scorer
        self._shares = shares

    @property
    def name(self) -> str:
        """Name and version of the scorer."""
        return self._scorer.name

    async def score(
        self, tenant: str, text: str, sent: str = "", cache: Known | None = None
    ) -> ScreenScore:
        """Score a text as a person would read it: JSON may spell a letter as an escape.

        Args:
            tenant: Whose share of the screen it takes.
            text: What has no verdict yet.
            sent: What went out before it, of the same answer.
            cache: What was scored of this answer already; new scores are added.

        Returns:
            The highest score over the whole text with the end of what was sent, its decoded form,
            and each new passage alone.

        Raises:
            NoScore: It is too long, or the scorer failed.
        """
        if len(sent) + len(text) > self._check.longest:
            raise NoScore(f"a text of more than {self._check.longest:,} characters")
        cache = {} if cache is None else cache
        before = ending(readable(sent), _CONTEXT)
        text = readable(text)
        if (problem := unscorable(text)) is not None:
            raise NoScore(problem.reason)
        variants = readings(before + text)
        parts = self._passages(before, text) if self._check.sentences else []
        await self._score(tenant, (*variants, *parts), cache)
        scores = [_score(cache[part]) for part in (*variants, *parts)]
        english = (
            scores[0] is not None
            and is_english(before + text) is not False
            and not any(map(is_another_language, parts))
        )
        return ScreenScore(
            max((score for score in scores if score is not None), default=0.0), english
        )

    def _passages(self, before: str, text: str) -> list[str]:
        """The passages that are not wholly in what was sent."""
        remaining = dict.fromkeys(
            passage for read in readings(before + text) for passage in passages(read)
        )
        if before:
            for passage in passages(before):
                remaining.pop(passage, None)
        return list(remaining)

    async def _score(self, tenant: str, texts: Sequence[str], cache: Known) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in cache]
        for batch in _batches(new):
            async with self._shares.turn(tenant, sum(map(len, batch))):
                outcomes = await self._scorer.score(batch)
            cache.update(zip(batch, outcomes, strict=True))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """As many texts as fit, at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _score(outcome: Scores | Unscored) -> float | None:
    """The score; None where a scorer knows no word of it. Raises `NoScore` for any failure."""
    if isinstance(outcome, Unscored):
        if outcome.reason == _NO_WORDS:
            return None
        raise NoScore(outcome.reason)
    if not 0 <= outcome.toxicity <= 1:  # what is not a number is not between them either
        raise NoScore("garbage")
    return outcome.toxicity
