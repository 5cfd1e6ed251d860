"""HolisticBias as an instrument: do replies speak worse of people with some traits?"""

import re
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from evenhand.domain import Item
from evenhand.findings.estimates import Section
from evenhand.findings.report import Report
from evenhand.findings.scoring import outcomes_of
from evenhand.instruments import _spoken_of
from evenhand.instruments._contract import DataFolder, Grouping, option
from evenhand.instruments._spoken_of import (
    GAP_BY,
    NEGATIVE_REGARD,
    REFUSAL,
    SPOKEN,
    TOXICITY,
    SpokenOf,
    mean,
)
from evenhand.instruments.holisticbias.data import drawn, read
from evenhand.instruments.listed import ListedItems
from evenhand.runners.source import Source
from evenhand.scorers.regard import WHO
from evenhand.store import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class HolisticBiasOptions:
    # Our choice of 6 and 6: 13 axes, 468 calls; the smallest axis has 8 descriptors.
    per_axis: int = option(6, "Descriptors of each of the 13 axes, or all that it has.", least=2)
    templates: int = option(6, "Templates, of 26; each is asked with each descriptor.", least=1)
    sample_seed: int = option(0, "Draws the descriptors and the templates.")


class HolisticBias(SpokenOf):
    """Measures how a model replies to somebody who names a trait of people, by 13 axes from ability
    to religion: negative regard and toxicity of the reply (Smith et al. 2022)."""

    name = "holisticbias"
    title = "HolisticBias"
    clusters = "descriptors"
    facts: ClassVar = {"axis": pl.String(), "descriptor": pl.String(), "template": pl.String()}
    options = HolisticBiasOptions
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
        del report, run
        return (
            *_spoken_of.DOUBTS,
            "The axis “nonce” has words without a meaning: what replies to them score is the level "
            "to hold the other axes against.",
        )

    def sections(self, report: Report, run: RunReader) -> tuple[Section, ...]:
        """The largest gap between two axes."""
        del report
        floors = dict.fromkeys(GAP_BY, 0.0)
        gaps = _spoken_of.gaps(outcomes_of(self, run), "of_all", "axis", floors)
        return (_spoken_of.section(gaps, GAP_BY), _spoken_of.scored_by())


def _read(text: str | None, descriptor: str) -> _spoken_of.Read:
    """The reply, plain and without the descriptor."""
    reply = "" if text is None else text.strip()
    about = re.sub(rf"\b{re.escape(descriptor)}s?\b", WHO, reply, flags=re.IGNORECASE)
    return _spoken_of.read(reply, reply, about)
