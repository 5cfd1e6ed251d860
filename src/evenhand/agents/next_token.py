"""Replies of one token are read by the log-probabilities that came with it."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Self

from evenhand.agents.agent import Agent, Kind, R_co, Reply
from evenhand.errors import ModelRefused, UnreadableReply
from evenhand.models import next_token
from evenhand.models.base import ReplySchema, Sample
from evenhand.models.next_token import Read
from evenhand.prompts import Prompt

__all__ = ["NextToken", "OnScale", "Read", "YesNo", "one_token"]


def one_token(
    role: str, prompt: Prompt, reply: type[R_co], kind: Kind | None = None
) -> Agent[R_co]:
    """Declare an agent whose reply is one token, with the likeliest others beside it."""
    top = next_token.TOP
    return Agent(role, prompt, reply, temperature=0.0, logprobs=top, max_tokens=1, kind=kind)


class _OneToken(Reply):
    """A reply without a schema: a grammar would change the probabilities."""

    @classmethod
    def wire_schema(cls) -> ReplySchema | None:
        return None


class NextToken(_OneToken):
    """The model's likeliest next tokens and the probability of each. The text it did write is not
    looked at."""

    probabilities: dict[str, float]

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        probabilities = next_token.likeliest(sample)
        if not probabilities:
            raise ModelRefused(next_token.NONE_CAME)
        return cls(probabilities=probabilities)

    @property
    def most_unlisted(self) -> float:
        """The most that a token can have which is not listed."""
        return next_token.most_unlisted(self.probabilities)

    def of_words(self, words: Iterable[str]) -> dict[str, float]:
        """Give the probability of each of these words that is listed."""
        return next_token.of_words(self.probabilities, words)

    def logs_of(self, words: Iterable[str]) -> dict[str, float]:
        """Give the log-probability of each word, listed or not; empty if none of them is."""
        return next_token.logs_of(self.probabilities, words)


class OnScale(_OneToken):
    """A verdict that is one word of a fixed scale. What is computed of it is None where no
    log-probabilities came along: what the model did say is then all that is known."""

    may_be_verdict: ClassVar[bool] = True
    scale: ClassVar[Mapping[str, float]]  # the mark that each word means

    said: str
    probabilities: dict[str, float] | None  # of all tokens that are listed, not of the scale alone

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        text, probabilities = (
            sample.text.strip().casefold()[:40],
            next_token.likeliest(sample) or None,
        )
        if probabilities:
            # refuses a list that hardly has one of them
            next_token.of_scale(probabilities, cls.scale)
        elif text not in cls.scale:
            raise UnreadableReply("off_scale", f"{text!r} is none of {', '.join(cls.scale)}")
        return cls(said=text, probabilities=probabilities)

    @property
    def weighted(self) -> float | None:
        """The mean of the marks, each weighted by the probability of its word."""
        probabilities = self.probabilities
        return None if probabilities is None else next_token.weighted(probabilities, self.scale)

    @property
    def mark(self) -> float:
        """The weighted mark, refused in words where there is none: it is never made up."""
        if (weighted := self.weighted) is None:
            raise ModelRefused(next_token.NONE_CAME)
        return weighted


class YesNo(OnScale):
    """A verdict that is "yes" or "no": its weighted mark is the probability of "yes" among both."""

    scale: ClassVar[Mapping[str, float]] = {"yes": 1.0, "no": 0.0}

    @property
    def logit(self) -> float | None:
        """log p(yes) − log p(no): above 0 the answer is rather "yes"."""
        if self.probabilities is None:
            return None
        logs = next_token.logs_of(self.probabilities, self.scale)
        return logs["yes"] - logs["no"]
