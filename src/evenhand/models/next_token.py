"""What a model would have said next: the likeliest tokens of a reply, as an endpoint lists them.

An endpoint tells the 20 likeliest tokens, not all. A token that the list lacks has at most the
smallest probability on that list, or what the list leaves over, if that is less.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from evenhand.core.errors import ModelRefused, UnreadableReply
from evenhand.models.base import Sample

TOP = 20  # our choice: the most that OpenAI's API gives, and vLLM unless told otherwise
NONE_CAME = (
    "the endpoint gave no log-probabilities: it must honour top_logprobs in a chat and logprobs in "
    "a completion, as llama.cpp does and vLLM up to its --max-logprobs. `evenhand doctor` says "
    "whether yours does; without them take a method that reads words, and read=json for a judge"
)
# How servers that name it write the end of a text; llama.cpp writes nothing at all.
_END_TOKENS = frozenset({"</s>", "<eos>", "<|endoftext|>", "<|im_end|>", "<|eot_id|>"})
_LONGEST_TOKEN = 1_000  # our choice, in characters: no vocabulary has a longer one
_NEVER = 1e-30  # below it a probability is no more than a server's way to say: none
_ROUNDED = 1e-6  # our choice: servers round, so what a list leaves over is not known more exactly
_ON_SCALE = 0.5  # our choice: below it the model would more likely have said something else

Listed = Mapping[str, float]  # the probability of each token on a list

# How a verdict is read: from the JSON that a judge writes, a reason and a mark; or from the
# log-probabilities of the one word that it is asked for, without a reason.
Read = Literal["json", "logprob"]


def likeliest(sample: Sample) -> dict[str, float]:
    """Read the probabilities of the first token and its alternatives; none if the endpoint gave
    none. The empty token is the end of the text; half a character, which no text can hold, is left
    out."""
    ended = sample.finish == "stop" and not sample.text  # its one token was the end
    if ended and sample.logprobs == ():
        return {"": 1.0}
    probabilities: dict[str, float] = {}
    for first in (sample.logprobs or ())[:1]:
        ends = {*_END_TOKENS, str(first.token)} if ended else _END_TOKENS
        for token, logprob in first.top:
            probability = _probability(token, logprob)
            name = "" if token in ends else token
            if probability > _NEVER and "\N{REPLACEMENT CHARACTER}" not in name:
                probabilities[name] = probabilities.get(name, 0.0) + probability
    return probabilities


def _probability(token: Any, logprob: Any) -> float:
    """Read the probability of a token on a list that nobody has checked yet."""
    if not isinstance(token, str) or len(token) > _LONGEST_TOKEN:
        raise ModelRefused(f"the endpoint gave {str(token)[:40]!r} as a token")
    if not isinstance(logprob, int | float) or not logprob <= 0.01:  # some round to above 0
        raise ModelRefused(f"the endpoint gave {str(logprob)[:40]!r} as a log-probability")
    return min(1.0, math.exp(max(logprob, -1000.0)))


def of_words(token_probs: Listed, words: Iterable[str]) -> dict[str, float]:
    """Give the probability of each of these words that is listed, with and without blanks around
    it. A word in small letters is found in any case; "A" is not found in "a", an article."""
    targets, matched = frozenset(words), dict[str, float]()
    for token, probability in token_probs.items():
        bare = token.strip()
        word = bare if bare in targets else bare.casefold()
        if word in targets:
            matched[word] = matched.get(word, 0.0) + probability
    return matched


def most_unlisted(token_probs: Listed) -> float:
    """Give the most that a token can have which is not listed."""
    return min(*token_probs.values(), max(0.0, 1.0 - math.fsum(token_probs.values())))


def logs_of(token_probs: Listed, words: Iterable[str]) -> dict[str, float]:
    """Give the logarithm of the probability of each word; the most that it can be of one that is
    not listed. Empty if none of them is."""
    targets = tuple(words)
    matched = of_words(token_probs, targets)
    if not matched:
        return {}
    bound = max(most_unlisted(token_probs), min(_ROUNDED, *token_probs.values()))
    return {word: math.log(matched.get(word, bound)) for word in targets}


def of_scale(token_probs: Listed, scale: Mapping[str, float]) -> dict[str, float]:
    """Give the probability of each word of a scale that is listed, refused if the model would
    rather have said something else than a word of it."""
    matched = of_words(token_probs, scale)
    total = math.fsum(matched.values())
    if total < _ON_SCALE:
        first = ", ".join(repr(token) for token in list(token_probs)[:3])
        raise UnreadableReply(
            "off_scale",
            f"{total:.2f} of the probability is on {', '.join(scale)}; the likeliest are {first}",
        )
    return matched


def weighted(token_probs: Listed, scale: Mapping[str, float]) -> float:
    """Give the mean of the marks of a scale, each weighted by the probability of its word. A word
    that is not listed has no weight."""
    matched = of_scale(token_probs, scale)
    marks = math.fsum(scale[word] * share for word, share in matched.items())
    mean = marks / math.fsum(matched.values())
    return min(max(mean, min(scale.values())), max(scale.values()))  # 9 * p / p may exceed 9
