"""BBQ in other languages: each set has a reader, which gives the records that all else reads.

A set is an edition: its own data, its own authors and its own people. Its scores are compared with
those of another edition nowhere but in `compare`, and there only where two sets ask the same items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments._contract import DataFolder, Instrument
from evenhand.instruments.bbq.data import BbqData, card, completed
from evenhand.instruments.bbq.editions.readers import chinese, german, korean, spanish
from evenhand.instruments.files import PinnedFiles, card_of

Language = Literal["en", "es", "ca", "de", "ko", "zh"]
ENGLISH: Language = "en"
_CATEGORY = 1 << 20  # more blocks than a category has: keeps the rows of two categories apart
_READERS: Mapping[str, Callable[[PinnedFiles, Mapping[str, Any]], pl.DataFrame]] = {
    "es": spanish,
    "ca": spanish,
    "de": german,
    "ko": korean,
    "zh": chinese,
}


@dataclass(frozen=True, slots=True)
class Edition:
    """An edition is BBQ in one language, with what its card says of the data."""

    language: Language

    @property
    def card(self) -> dict[str, Any]:
        """Name, paper, licence and data of the set."""
        details: dict[str, Any] = (
            card() if self.language == ENGLISH else card_of(__package__)[self.language]
        )
        return details

    @property
    def drawn_of(self) -> str | None:
        """What a sample is drawn of, where it is not BBQ itself. Parallel sets have one name: the
        same seed draws the same items of both."""
        return None if self.language == ENGLISH else str(self.card.get("parallel", self.name))

    @property
    def name(self) -> str:
        return str(self.card["name"])

    def records(self, data: DataFolder) -> pl.DataFrame:
        """Give all records, of which a sample is drawn."""
        if self.language == ENGLISH:
            return BbqData(local=data.local, cache=data.cache).records()
        pinned = self.card["data"]
        files = PinnedFiles.of(pinned["folder"], pinned, data.local, data.cache)
        table = _numbered(_READERS[self.language](files, self.card))
        _refuse_other_counts(table, self.name, pinned)
        return _set_apart(completed(table, self.card["masked"]), self.card)


def edition_of(source: Mapping[str, Any]) -> Edition:
    """Give the edition that the items of a run are from, by what its record says of them."""
    return Edition(source.get("language", ENGLISH))


def in_edition(bbq: Instrument, edition: Edition) -> Instrument:
    """Give this BBQ under the name of another edition, with as many templates as that has."""
    kind: Any = type(bbq)

    class OfEdition(kind):  # type: ignore[misc]
        title = edition.name
        all_clusters = edition.card["data"]["templates"]

    instrument: Instrument = OfEdition()
    return instrument


def _numbered(records: pl.DataFrame) -> pl.DataFrame:
    """Number the records as BBQ's own are: four to a block, by what is asked and whether the text
    says who. A block that lacks a corner leaves a gap, and is never drawn without one."""
    corner = 2 * (pl.col("polarity") == "nonneg").cast(pl.Int64) + (
        pl.col("condition") == "disambig"
    ).cast(pl.Int64)
    category = pl.col("category").rank("dense").cast(pl.Int64)
    row = 4 * (_CATEGORY * category + pl.col("block")) + corner
    numbered = records.with_columns(row=row, example_id=4 * pl.col("block") + corner).drop("block")
    if numbered["row"].is_duplicated().any():
        raise UserError(
            "two records have the same position in a block. Check that this is the right dataset"
        )
    return numbered.sort("row")


def _refuse_other_counts(records: pl.DataFrame, name: str, expected: Mapping[str, Any]) -> None:
    """Refuse data whose counts differ from the card's, or in which "unknown" is not the right
    answer to exactly the ambiguous questions."""
    names = pl.when("names").then(pl.col("category") + " (names)").otherwise("category")
    counted = dict(records.group_by(names.alias("category")).len().iter_rows())
    templates = records.select("category", "question_index").n_unique()
    if counted != expected["records"] or templates != expected["templates"]:
        raise UserError(
            f"{name} has {len(records):,} records and {templates} templates, but its "
            f"dataset card lists {expected['items']:,} and {expected['templates']}. Check "
            "that the folder is complete"
        )
    biased, right = pl.col("biased"), pl.col("label") == pl.col("unknown")
    said_so = right == (pl.col("condition") == "ambig")
    sound = said_so & (biased.is_null() | ((biased != pl.col("unknown")) & biased.is_between(0, 2)))
    if not records.select(sound.fill_null(value=False).all()).item():
        raise UserError(
            f"{name} has records whose correct option is impossible. Check that this is the "
            "right dataset"
        )
    untargeted = records["biased"].null_count()
    if untargeted != expected["untargeted"]:
        raise UserError(
            f"{name} has {untargeted:,} records without a target, but its dataset card "
            f"lists {expected['untargeted']:,}. Check that this is the right dataset"
        )


def _set_apart(records: pl.DataFrame, card: Mapping[str, Any]) -> pl.DataFrame:
    """Draw whole blocks alone whose four targets are known, and none of the templates that two
    parallel sets do not have alike, so that the same seed asks the same in both; "all" asks all."""
    block = pl.col("row") // 4
    complete = (pl.col("biased").count().over(block) == 4) & (pl.len().over(block) == 4)
    apart = [f"{c}/{t}" for c, templates in card.get("apart", {}).items() for t in templates]
    shared = ~pl.format("{}/{}", "category", "question_index").is_in(apart)
    return records.with_columns(aligned=pl.when(shared & complete).then("aligned"))
