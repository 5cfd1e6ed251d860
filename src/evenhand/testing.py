"""Test helpers for your code: models whose answers you write.

>>> evenhand.answer("Describe a nurse.", model=ScriptedModel(lambda request: "A nurse cares."))
"""

import hashlib
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from evenhand.core import Usage
from evenhand.models import ModelReply, ModelRequest, Sample, ScriptedModel, TokenLogprob
from evenhand.models.likelihood import LikelihoodFailure, TokenLogprobs

__all__ = ["ScriptedLikelihood", "ScriptedModel", "any_reply"]

_SENTENCES = (
    "People are as different in this as in everything else.",
    "It depends on the person, and on the day.",
    "Some do and some do not; nothing here says who.",
)


def any_reply(request: ModelRequest) -> str | ModelReply:
    """A reply that keeps to the form which a request asks for: the script of a model for trials.

    >>> ScriptedModel(any_reply)

    What it says is drawn from the words of the request: the same question has the same answer.
    """
    text = request.prompt or "\n".join(message.content for message in request.messages)
    digest = hashlib.sha256(f"{text}\n{request.occurrence}".encode()).digest()
    draw = random.Random(digest)
    if request.schema is not None:
        return orjson.dumps(_filled(request.schema.body, draw)).decode()
    return draw.choice(_SENTENCES) if request.logprobs is None else _one_token(text, draw)


def _one_token(text: str, draw: random.Random) -> ModelReply:
    """A word of the scale that the request names, or else a letter of its options, with the
    log-probability of each that it could have been."""
    words = "0123456789" if "one digit" in text else re.findall(r"^([A-Z])\. ", text, re.M)
    tokens = ("yes", "no") if "yes or no" in text else tuple(words) or ("Some", "It")
    weights = [draw.random() + 0.01 for _ in tokens]
    shares = [weight / math.fsum(weights) for weight in weights]
    top = tuple((token, math.log(share)) for token, share in zip(tokens, shares, strict=True))
    token, logprob = max(top, key=lambda candidate: candidate[1])
    sample = Sample(token, "length", (TokenLogprob(token, logprob, top),))
    return ModelReply(samples=(sample,), usage=Usage(len(text.split()), 1), served_by="scripted")


def _filled(schema: Mapping[str, Any], draw: random.Random) -> Any:
    """A value that follows the schema."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {name: _filled(part, draw) for name, part in parts.items()}
        case "array":
            return [_filled(schema["items"], draw) for _ in range(schema.get("minItems", 1))]
        case "integer" | "number":
            return draw.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 100)))
        case "boolean":
            return draw.random() < 0.5
        case _:
            return draw.choice(_SENTENCES)


class ScriptedLikelihood:
    """A model whose log-probability of a text is what `script` returns; None means that it fails.

    >>> ScriptedLikelihood(lambda text: -2.0 * len(text.split()))
    """

    def __init__(self, script: Callable[[str], float | None], *, name: str = "scripted") -> None:
        self._script = script
        self.name = name

    def describe(self) -> dict[str, Any]:
        return {"kind": "scripted", "model": self.name, "likelihood": "scripted"}

    async def log_likelihoods(
        self, texts: Sequence[str]
    ) -> list[TokenLogprobs | LikelihoodFailure]:
        return [self._one(text) for text in texts]

    async def close(self) -> None:
        return None

    def _one(self, text: str) -> TokenLogprobs | LikelihoodFailure:
        logprob = self._script(text)
        if logprob is None:
            return LikelihoodFailure(
                "scripted", "the script gives no log-probability for this text"
            )
        return TokenLogprobs((logprob,))
