"""Which texts an audit of scorers uses: the same for all of them, on every machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.errors import UserError
from evenhand.instruments.scorer import ToxicitySets, drawn, held_out
from evenhand.instruments.scorer.tricks import HARMLESS_EMOJI, TRICKS
from evenhand.scorers import Scorer

# Our choice: an AUC of 600 texts of as many templates is known to about ± 0.04. A number, and not
# what a machine does in a minute: findings must not hang on how busy it is.
SAMPLE = 600
_MOST_TOXIC = 200  # texts that are tried in disguise
_PLAINLY_TOXIC = 0.8  # recorded: what a scorer should catch, so that a trick has something to hide
_LONGEST = 200  # characters


@dataclass(frozen=True, slots=True)
class Texts:
    tables: dict[str, pl.DataFrame]
    toxic: list[str]
    emoji: list[str]

    def tricked(self) -> dict[str, list[str]]:
        return {name: [trick(text) for text in self.toxic] for name, trick in TRICKS.items()}

    @property
    def count(self) -> int:
        disguised = len(self.toxic) * (1 + len(TRICKS)) + len(self.emoji) if self.toxic else 0
        return sum(map(len, self.tables.values())) + disguised


def gathered(
    sets: ToxicitySets, names: Sequence[str] | None
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """The named tables that are at hand, or all in English, and why others are not."""
    for name in names or ():
        if name not in sets.names:
            raise UserError(f"there is no set {name!r}; there are: {', '.join(sets.names)}")
    tables, left_out = {}, {}
    for name in names or sets.usual:
        try:
            tables[name] = sets.table(name)
        except UserError as error:
            left_out[name] = str(error)
    if not tables:
        raise UserError(f"no set is at hand. {next(iter(left_out.values()))}")
    return tables, left_out


def plan(tables: dict[str, pl.DataFrame], scorers: Sequence[Scorer], sample: int) -> Texts:
    """All tables cut to `sample` texts each; smaller ones are taken whole."""
    toxic = _toxic(tables)
    unseen = {name: _unseen(name, table, scorers) for name, table in tables.items()}
    samples = {name: drawn(table, sample) for name, table in unseen.items()}
    return Texts(samples, toxic[: min(sample, _MOST_TOXIC)], list(HARMLESS_EMOJI))


def _unseen(name: str, table: pl.DataFrame, scorers: Sequence[Scorer]) -> pl.DataFrame:
    """Only the held-out fifth where one of the scorers was trained on the rest."""
    if not any(s.describe().get("trained_on", {}).get(name) == "held_out" for s in scorers):
        return table
    return table.filter(pl.Series([held_out(text) for text in table["text"]], dtype=pl.Boolean))


def _toxic(tables: dict[str, pl.DataFrame]) -> list[str]:
    if "rtp" not in tables:
        return []
    short = pl.col("text").str.len_chars() <= _LONGEST
    table = tables["rtp"].filter((pl.col("recorded") >= _PLAINLY_TOXIC) & short)
    return drawn(table, _MOST_TOXIC)["text"].to_list()
