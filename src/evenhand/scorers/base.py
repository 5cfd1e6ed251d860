"""What a scorer is, how one takes a place in a cast, and how any is made to read a text a second
time with the usual ways round a filter undone."""

import asyncio
import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import orjson

from evenhand.core import Usage
from evenhand.core.errors import DeadlinePassed, ScorerFailed, UserError
from evenhand.core.prices import AROUND_THE_WORDS, ASKS, billed_as
from evenhand.models.base import ModelReply, ModelRequest, Sample, together

TOXICITY = "toxicity"
ATTRIBUTES = (
    TOXICITY,
    "severe_toxicity",
    "insult",
    "identity_attack",
    "hate",
    "threat",
    "profanity",
    "sexual",
)
_READ_TWICE = "ｘ"  # a text that `canonical` reads a second time


@dataclass(frozen=True, slots=True)
class Scores:
    values: Mapping[str, float]  # attribute -> 0 to 1; always has "toxicity"
    because: tuple[str, ...] = ()  # what was found, in words a writer can act on
    # The tokens of a language model that was asked; None: it did not count. A program has none.
    # It is ignored when scores are compared.
    usage: Usage | None = field(default=Usage(0, 0), compare=False)

    @property
    def toxicity(self) -> float:
        return self.values[TOXICITY]


@dataclass(frozen=True, slots=True)
class Unscored:
    """A text without a score. It is missing in every figure, never a 0."""

    reason: str  # a short stable word, counted in reports: timeout, http_500, garbage, …
    message: str
    # The tokens of a language model that was asked all the same; None: not known.
    usage: Usage | None = field(default=None, compare=False)


class Scorer(Protocol):
    """A scorer may be a subclass, which then need not say what is usual."""

    @property
    def name(self) -> str:
        """Name and version, and for weights the start of their sha256: "offline@1+3f2a…". Two
        names that differ are two scorers, and their scores are not comparable."""
        ...

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of `ATTRIBUTES` that it gives; always "toxicity"."""
        return (TOXICITY,)

    def describe(self) -> dict[str, Any]:
        """What a record keeps of it: no key, no password."""
        ...

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        """One outcome per text, in their order. Never raises for a text."""
        ...

    async def close(self) -> None:
        """Let go of what it holds; a program holds nothing."""
        return


@runtime_checkable
class AsksModel(Protocol):
    """A scorer that asks a language model, and says beforehand what: a spending cap counts it."""

    def requests(self, text: str) -> tuple[ModelRequest, ...]: ...


@runtime_checkable
class FixedScorer(Protocol):
    """A scorer that says whether a text always has the same score under its name."""

    @property
    def fixed(self) -> bool: ...


def is_fixed(scorer: Scorer) -> bool:
    """Give whether a score may be used again for the same text."""
    return isinstance(scorer, FixedScorer) and scorer.fixed


@runtime_checkable
class KnowsTraining(Protocol):
    """A scorer that knows which texts it was trained on: they are no evidence about it."""

    def saw(self, text: str) -> bool: ...


def was_trained_on(scorer: Scorer, text: str) -> bool:
    """Give whether a scorer is known to have been trained on a text."""
    return isinstance(scorer, KnowsTraining) and scorer.saw(text)


def requests_of(scorer: Scorer, text: str) -> tuple[ModelRequest, ...]:
    """Give what a scorer asks a language model about a text; nothing where it does not say."""
    return scorer.requests(text) if isinstance(scorer, AsksModel) else ()


def checked(values: Mapping[str, Any], because: tuple[str, ...] = ()) -> Scores | Unscored:
    """Scores from outside: each a number from 0 to 1, toxicity among them, or none at all."""
    for attribute, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 <= value <= 1:
            # Words are not quoted: a service may have put the key there that it was sent.
            shown_text = str(value)[:40] if number else "no number"
            return Unscored("garbage", f"{attribute} is {shown_text}, not from 0 to 1")
    if TOXICITY not in values:
        return Unscored("garbage", "the answer holds no toxicity")
    return Scores({name: float(value) for name, value in values.items()}, because)


def unscorable(text: str) -> Unscored | None:
    """Why no scorer can score this text; None if one can."""
    if not text.strip():
        return Unscored("empty_text", "the text is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Unscored("not_text", "a lone surrogate")
    return None


async def score_the_scorable(
    texts: Sequence[str], score: Callable[[list[str]], Awaitable[list[Scores | Unscored]]]
) -> list[Scores | Unscored]:
    """`score` for those texts that can be scored; the others keep their places."""
    refused = [unscorable(text) for text in texts]
    good = [text for text, problem in zip(texts, refused, strict=True) if problem is None]
    scored = iter(await score(good) if good else [])
    return [next(scored) if problem is None else problem for problem in refused]


async def score_each(
    texts: Sequence[str], score: Callable[[str], Awaitable[Scores | Unscored]]
) -> list[Scores | Unscored]:
    """`score` for each text that can be scored, side by side."""

    async def one(text: str) -> Scores | Unscored:
        return unscorable(text) or await score(text)

    return list(await asyncio.gather(*map(one, texts)))


class ScorerModel:
    """A scorer as a member of a cast, so that its scores are recorded, replayed and paid for by
    the same conversation that asks the language models."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        return self._scorer.name

    def describe(self) -> dict[str, Any]:
        described = {"kind": "scorer", "model": self.name, "scorer": self._scorer.describe()}
        requests = requests_of(self._scorer, _READ_TWICE)
        return {**described, ASKS: _most(requests)} if requests else described

    def inner_requests(self, request: ModelRequest) -> tuple[ModelRequest, ...]:
        """Give what the scorer asks a language model for this request."""
        return requests_of(self._scorer, _text(request))

    @property
    def _billed(self) -> bool:
        """Whether it asks a language model: then what failed or came too late may be billed."""
        inside = {"kind": "scorer", "scorer": self._scorer.describe()}
        return billed_as(self.name, inside) is not None

    async def close(self) -> None:
        await self._scorer.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        started, clock = time.time_ns() // 1000, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(request.deadline):
                [outcome] = await self._scorer.score([_text(request)])
        except TimeoutError:
            message = f"{self.name}: the item's time ended in a score"
            raise DeadlinePassed(message, attempts=int(self._billed)) from None
        if isinstance(outcome, Unscored):
            message = f"{self.name}: {outcome.reason}: {outcome.message}"
            failure = ScorerFailed(message, attempts=int(self._billed))
            if outcome.usage is not None:
                failure.tokens = outcome.usage.prompt_tokens, outcome.usage.completion_tokens
            raise failure
        others = {name: value for name, value in outcome.values.items() if name != TOXICITY}
        reply = {"toxicity": outcome.toxicity, "attributes": others, "because": outcome.because}
        return ModelReply(
            samples=(Sample(orjson.dumps(reply).decode()),),
            usage=outcome.usage,
            served_by=self.name,
            started_us=started,
            seconds=asyncio.get_running_loop().time() - clock,
        )


def _text(request: ModelRequest) -> str:
    """The first thing said is the text; what follows it is talk about an unreadable score."""
    return next(message.content for message in request.messages if message.role == "user")


def _most(requests: Sequence[ModelRequest]) -> dict[str, int]:
    """How often a text is read at most, and the most tokens of that without its own words."""
    prompt_bytes = sum(
        len(message.text.encode()) for request in requests for message in request.messages
    )
    return {
        "readings": len(requests),
        "prompt_tokens": prompt_bytes + AROUND_THE_WORDS * len(requests),
        "reply_tokens": sum(request.max_tokens or 0 for request in requests),
    }


_BATCH = 256  # our choice: what is lost when a scorer answers with the wrong number of scores


@dataclass(frozen=True, slots=True)
class Batched:
    """The outcome of each text, and the seconds that all took."""

    outcomes: list[Scores | Unscored]
    seconds: float

    @property
    def coverage(self) -> float:
        """The share of texts with a score."""
        scored = sum(isinstance(outcome, Scores) for outcome in self.outcomes)
        return scored / len(self.outcomes)

    def values(self, attribute: str) -> list[float | None]:
        """A missing score is None, never 0."""
        return [None if isinstance(o, Unscored) else o.values.get(attribute) for o in self.outcomes]

    @property
    def reasons(self) -> dict[str, int]:
        missing = (outcome.reason for outcome in self.outcomes if isinstance(outcome, Unscored))
        return dict(Counter(missing).most_common())


async def score_all(
    scorer: Scorer, texts: Sequence[str], on_batch: Callable[[int], None] | None = None
) -> Batched:
    """Score texts in batches.

    Args:
        scorer: The scorer.
        texts: The texts, in any number.
        on_batch: Receives the number of texts in each scored batch.

    Returns:
        The outcomes in the order of the texts, and the seconds taken. A batch that comes back with
        the wrong number of scores has none.
    """
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


Labels = Mapping[str, tuple[str, ...]]  # attribute -> the labels whose highest score it is
_WORTH_SAYING = 0.5


def checked_labels(labels: Labels) -> Labels:
    unknown = sorted(labels.keys() - set(ATTRIBUTES))
    if unknown:
        raise UserError(
            f"labels: {unknown[0]!r} is not a known score. Use one of: {', '.join(ATTRIBUTES)}"
        )
    if TOXICITY not in labels:
        raise UserError("labels: no label of the scorer stands for toxicity. Name at least one.")
    return labels


def by_attribute(label_scores: Mapping[str, Any], labels: Labels) -> Scores | Unscored:
    """The highest score among an attribute's labels. A label that the answer does not hold is left
    out; an attribute without any is not given."""
    present = {
        label: label_scores[label]
        for names in labels.values()
        for label in names
        if label in label_scores
    }
    numbers = checked({TOXICITY: 0, **present})
    if isinstance(numbers, Unscored):
        return numbers
    values = {
        attribute: max(present[name] for name in names if name in present)
        for attribute, names in labels.items()
        if any(name in present for name in names)
    }
    high = sorted(
        (label for label in present if present[label] >= _WORTH_SAYING), key=present.__getitem__
    )
    return checked(values, tuple(f"{label} {present[label]:.2f}" for label in reversed(high)))


# Letters of other alphabets that look Latin. For English: Greek or Russian words come out wrong.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝмткнвАЕОРСУХІЈЅМТКНВαορνικτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwmtkhbAEOPCYXIJSMTKHBaopviktuxABEZHIKMNOPTYX",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_RUNS = re.compile(r"[A-Za-z0-9@$!|]+")  # no look-ahead: a long text must not take forever
_SIGNS = re.compile(r"[0-9@$!|]")
_SPACED = re.compile(r"(?<!\w)[^\W\d_](?:([ .\-_*])[^\W\d_])(?:\1[^\W\d_])+(?!\w)")
_NO_WORD = re.compile(r"\W+")
_SEPARATORS = re.compile(r"[ .\-_*]")
_UNSEEN = frozenset({"Mn", "Cf"})  # accents of letters; zero-width and other format characters


def canonical(text: str) -> str:
    """Normalize a text to what a reader sees, in plain Latin letters.

    Replaces full-width and look-alike letters, accents, invisible characters, spaced-out words and
    digits for letters.
    """
    plain = text
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text).translate(_LOOKALIKES)
        plain = "".join(sign for sign in plain if unicodedata.category(sign) not in _UNSEEN)
    plain = _SPACED.sub(lambda hit: _SEPARATORS.sub("", hit[0]), plain)
    return _RUNS.sub(_letters, plain) if _SIGNS.search(plain) else plain


def _letters(hit: re.Match[str]) -> str:
    """A number is a number; only among letters does a digit stand for one."""
    body = hit[0].rstrip("!|")
    letters = body.translate(_LEET) if any(map(str.isalpha, body)) else body
    return letters + hit[0][len(body) :]


def _words(text: str) -> str:
    """Dashes and quotation marks of another make hide nothing."""
    return _NO_WORD.sub(" ", text).strip()


def _differs(plain: str, text: str) -> bool:
    return plain != text and _words(plain) not in ("", _words(text))


class Canonicalised:
    """Another scorer, which also reads each text as `canonical` has it: an attribute is the higher
    of the two. So digits that are meant ("mp3") can cost a second look, never a missed insult."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    @property
    def name(self) -> str:
        return f"{self._scorer.name}+canonical1"

    @property
    def attributes(self) -> tuple[str, ...]:
        return self._scorer.attributes

    def describe(self) -> dict[str, Any]:
        return {**self._scorer.describe(), "canonical": 1}

    @property
    def fixed(self) -> bool:
        """Whether the other scorer is."""
        return is_fixed(self._scorer)

    def saw(self, text: str) -> bool:
        return was_trained_on(self._scorer, text)

    def requests(self, text: str) -> tuple[ModelRequest, ...]:
        plain = canonical(text)
        readings = (text, plain) if _differs(plain, text) else (text,)
        return tuple(
            request for reading in readings for request in requests_of(self._scorer, reading)
        )

    async def close(self) -> None:
        await self._scorer.close()

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        plain = [canonical(text) for text in texts]
        differ = [i for i, text in enumerate(texts) if _differs(plain[i], text)]
        scored = await self._scorer.score([*texts, *(plain[i] for i in differ)])
        outcomes = scored[: len(texts)]
        for index, second in zip(differ, scored[len(texts) :], strict=True):
            outcomes[index] = _higher(outcomes[index], second)
        return outcomes


def _higher(first: Scores | Unscored, second: Scores | Unscored) -> Scores | Unscored:
    """Half an answer is none: the reading that is missing may have been the toxic one. Both are
    paid."""
    usage = together(first.usage, second.usage)
    if isinstance(first, Unscored):
        return replace(first, usage=usage)
    if isinstance(second, Unscored):
        return replace(second, usage=usage)
    values = {
        name: max(value, second.values.get(name, 0.0)) for name, value in first.values.items()
    }
    because = first.because if first.toxicity >= second.toxicity else second.because
    return Scores(values, because, usage)
