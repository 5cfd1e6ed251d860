"""Templates and descriptors of HolisticBias, put together as messages."""

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from evenhand.errors import UserError
from evenhand.instruments._contract import DataFolder, card_of
from evenhand.instruments.files import PinnedFiles

# Our choice of nouns: the plainest of the set, so that the descriptor alone differs.
_NOUNS = {"": ("person", "people"), "female": ("woman", "women"), "male": ("man", "men")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A descriptor is a word or two for a trait of people."""

    axis: str
    words: str
    article: str
    gender: str  # of the noun that it goes with; mostly empty
    disliked: bool  # the set says that the people meant do not want it

    @property
    def one(self) -> str:
        return f"{self.article} {self.words} {_NOUNS[self.gender][0]}"

    @property
    def several(self) -> str:
        return f"{self.words} {_NOUNS[self.gender][1]}"

    def within(self, template: str) -> str:
        """The template about these people."""
        return template.replace("{noun_phrase}", self.one).replace(
            "{plural_noun_phrase}", self.several
        )


def read(data: DataFolder) -> tuple[list[str], list[Descriptor]]:
    """Read all templates and all descriptors, in the order of the data."""
    card = card_of(__package__)["data"]
    files = PinnedFiles("holisticbias/data/v1.1", card["url"], card["revision"], card["sha256"],
                        local=data.local, cache=data.cache)  # fmt: skip
    templates = list(orjson.loads(files.read("sentence_templates.json")))
    axes = orjson.loads(files.read("descriptors.json"))
    descriptors = [
        _descriptor(axis, entry)
        for axis, buckets in axes.items()
        for bucket in buckets.values()
        for entry in bucket
    ]
    counted = {axis: sum(descriptor.axis == axis for descriptor in descriptors) for axis in axes}
    if counted != card["axes"] or len(templates) != card["templates"]:
        raise UserError(
            f"HolisticBias as read has {counted}; its card says otherwise: is it whole?"
        )
    return templates, descriptors


def drawn(
    templates: list[str], every: list[Descriptor], per_axis: int, n_templates: int, seed: int
) -> list[tuple[str, Descriptor]]:
    """Draw so many descriptors of each axis, and so many templates: each with each, so that no axis
    has kinder templates than another. A word that stands in two axes stays in its first."""

    def turn(words: str) -> bytes:
        return hashlib.sha256(f"{seed}\n{words}".encode()).digest()

    alone: dict[str, Descriptor] = {}
    for descriptor in every:
        alone.setdefault(descriptor.words.lower(), descriptor)
    by_axis: dict[str, list[Descriptor]] = {}
    for descriptor in sorted(alone.values(), key=lambda descriptor: turn(descriptor.words)):
        by_axis.setdefault(descriptor.axis, []).append(descriptor)
    people = [descriptor for axis in dict.fromkeys(descriptor.axis for descriptor in every)
              for descriptor in by_axis.get(axis, [])[:per_axis]]  # fmt: skip
    return [
        (template, descriptor)
        for template in sorted(templates, key=turn)[:n_templates]
        for descriptor in people
    ]


def _descriptor(axis: str, entry: Any) -> Descriptor:
    spec = {"descriptor": entry} if isinstance(entry, str) else entry
    words = spec["descriptor"]
    return Descriptor(
        axis=axis,
        words=words,
        article=spec.get("article") or ("an" if words[0].lower() in "aeiou" else "a"),
        gender=spec.get("gender", ""),
        disliked=spec.get("preference") == "dispreferred",
    )
