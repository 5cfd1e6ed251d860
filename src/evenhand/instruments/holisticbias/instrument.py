"""HolisticBias as an instrument: do replies speak worse of people with some traits?"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.estimates import Section
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcomes_of
from evenhand.instruments import _spoken_of
from evenhand.instruments._contract import (
    DataFolder,
    Grouping,
    ListedItems,
    card_of,
    option,
    thinking_option,
)
from evenhand.instruments._spoken_of import (
    GAP_BY,
    NEGATIVE_REGARD,
    REFUSAL,
    SPOKEN,
    TOXICITY,
    SpokenOf,
    mean,
)
from evenhand.instruments.files import InstrumentWords, PinnedFiles
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.scorers.regard import WHO

_WORDS = InstrumentWords(__package__)

# Our choice of nouns: the plainest of the set, so that the descriptor alone differs.
_NOUNS = {"": ("person", "people"), "female": ("woman", "women"), "male": ("man", "men")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A descriptor is a word or two for a trait of people."""

    axis: str
    words: str
    article: str
    gender: str  # of the noun that it goes with; mostly empty

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
    files = PinnedFiles.of("holisticbias/data/v1.1", card, data.local, data.cache)
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
            f"HolisticBias has {counted}, which differs from its dataset card. Delete the "
            "files and download them again."
        )
    return templates, descriptors


def drawn(
    templates: list[str],
    every: list[Descriptor],
    per_axis: int | None,
    n_templates: int | None,
    seed: int,
) -> list[tuple[str, Descriptor]]:
    """Sample descriptors of each axis and templates, and combine each with each.

    All axes thus have the same templates. A word that appears in two axes counts in its first.

    Args:
        templates: All sentence templates.
        every: All descriptors.
        per_axis: Largest number of descriptors per axis. None: all.
        n_templates: Number of templates. None: all.
        seed: Seed for sampling.

    Returns:
        Pairs of template and descriptor, one template after the other.
    """

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
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HolisticBiasOptions:
    # Our choice of 6 and 6: 13 axes, 468 calls; the smallest axis has 8 descriptors.
    per_axis: int | None = option(6, "Maximum number of descriptors per axis (13 axes).", least=2)
    templates: int | None = option(
        6, "Number of templates, of 26. Each is combined with every descriptor.", least=1
    )
    sample_seed: int = option(0, "Random seed for sampling descriptors and templates.")
    thinking: str | None = thinking_option()


class HolisticBias(SpokenOf):
    """Measures how a model replies to somebody who names a trait of people, by 13 axes from ability
    to religion: negative regard and toxicity of the reply (Smith et al. 2022)."""

    name = "holisticbias"
    title = "HolisticBias"
    clusters = "descriptors"
    facts: ClassVar = {"axis": pl.String(), "descriptor": pl.String(), "template": pl.String()}
    options = HolisticBiasOptions
    every_item: ClassVar = {"per_axis": None, "templates": None}
    measures = (
        NEGATIVE_REGARD,
        TOXICITY,
        REFUSAL,
        mean("words", "words a reply", within=(0, float("inf")), unit="words"),
    )
    groups = (
        Grouping(column="axis", measures=(*SPOKEN, "refusal")),
        Grouping(column="template", measures=tuple(SPOKEN), says_whom=False, compared=False),
    )

    def source(self, data: DataFolder, options: HolisticBiasOptions) -> Source:
        pairs = drawn(*read(data), options.per_axis, options.templates, options.sample_seed)
        items = [
            Item(
                id=f"{descriptor.axis}:{descriptor.words}:{template}",
                prompt=descriptor.within(template),
                tags={
                    "axis": descriptor.axis,
                    "descriptor": descriptor.words,
                    "template": template,
                },
            )
            for template, descriptor in pairs
        ]
        sampling = {"per_axis": options.per_axis, "templates": options.templates,
                    "seed": options.sample_seed}  # fmt: skip
        return ListedItems(self, items, sampling=sampling, version=self.card()["version"])

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The scores of each reply; null where there is none."""
        replies = rows.select("text", "descriptor").iter_rows()
        return _spoken_of.scored(rows, [_read(*row) for row in replies]).select(
            "item_id",
            "axis",
            "template",
            *SPOKEN,
            "refused",
            "words",
            "state",
            cluster=pl.format("{}: {}", "axis", "descriptor"),
            of_all=pl.lit("axes"),
        )

    def says(self, report: Report) -> tuple[str, ...]:
        """The level, and the gaps that are shown."""
        return _spoken_of.said(report, "A reply")

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        return (*_spoken_of.DOUBTS, _WORDS("nonce"))

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """The largest gap between two axes."""
        floors = dict.fromkeys(GAP_BY, 0.0)
        gaps = _spoken_of.gaps(outcomes_of(self, run), "of_all", "axis", floors)
        return (_spoken_of.section(gaps, GAP_BY), _spoken_of.scored_by())


def _read(text: str | None, descriptor: str) -> _spoken_of.Read:
    """The reply, plain and without the descriptor."""
    reply = "" if text is None else text.strip()
    about = re.sub(rf"\b{re.escape(descriptor)}s?\b", WHO, reply, flags=re.IGNORECASE)
    return _spoken_of.read(reply, reply, about)
