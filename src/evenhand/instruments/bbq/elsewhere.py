"""Answers that another tool holds in memory, scored as the log that it will write of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand import interop
from evenhand.core.errors import UnreadableReply
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import estimates_over_all
from evenhand.findings.scoring import with_facts
from evenhand.findings.totals import RunTotals
from evenhand.instruments._contract import DataFolder, Instrument
from evenhand.instruments.bbq.answers import covered, with_answers_of
from evenhand.instruments.bbq.editions import ENGLISH, Edition, Language, in_edition
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling
from evenhand.instruments.bbq.source import BbqSource
from evenhand.methods.baselines.stored_answer import which

_ROWS: dict[str, Any] = {
    "item_id": pl.String,
    "status": pl.String,
    "reason": pl.String,
    "choice": pl.Int64,
    "tags": pl.List(pl.Struct({"name": pl.String, "value": pl.String})),
}


@dataclass(frozen=True, slots=True)
class ExternalAnswers:
    """It scores answers to records of BBQ that were given elsewhere."""

    edition: Edition
    records: pl.DataFrame

    @classmethod
    def of(cls, language: Language, data: DataFolder) -> "ExternalAnswers":
        """Read the records of a language."""
        edition = Edition(language)
        return cls(edition, edition.records(data))

    @property
    def instrument(self) -> Instrument:
        return Bbq() if self.edition.language == ENGLISH else in_edition(Bbq(), self.edition)

    def outcomes(self, answers: Sequence[interop.LoggedAnswer]) -> pl.DataFrame:
        """Give the outcome of each answer, as the instrument has them."""
        joined = with_answers_of(self.records, answers, "the task", self.edition.name)
        sampling = BbqSampling(stored=covered(joined, self.edition), of=self.edition.drawn_of)
        source = BbqSource(joined, sampling, edition=self.edition)
        rows = pl.DataFrame(list(_rows(source)), schema=_ROWS, orient="row")
        return self.instrument.outcomes(with_facts(rows, self.instrument))

    def estimates(
        self, answers: Sequence[interop.LoggedAnswer], names: Sequence[str]
    ) -> dict[str, Estimate]:
        """Estimate the named measures over all answers, as a report does."""
        bbq = self.instrument
        totals = RunTotals.of(bbq, [self.outcomes(answers)])
        by_name = {estimate.name: estimate for estimate in estimates_over_all(bbq, totals)}
        return {name: by_name[name] for name in names}


def _rows(source: BbqSource) -> Iterator[tuple[Any, ...]]:
    for item in source.read(0, len(source)):
        tags = [{"name": name, "value": value} for name, value in sorted(item.tags.items())]
        try:
            yield item.id, "answered", None, which(item.answer, item.choices), tags
        except UnreadableReply as lost:
            yield item.id, "failed", f"{lost.reason}:{lost.kind}", None, tags
