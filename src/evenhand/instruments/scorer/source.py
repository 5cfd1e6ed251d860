"""The texts of an audit of a scorer as items: samples of labelled sets, toxic texts as they are and
in disguise, and harmless ones with emoji. They are the same on every machine."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.instruments.scorer.draw import drawn, held_out
from evenhand.instruments.scorer.sets import ToxicitySets
from evenhand.instruments.scorer.tricks import HARMLESS_EMOJI, TRICKS

# Our choice: an AUC of 600 texts of as many templates is known to about ± 0.04. A number, and not
# what a machine does in a minute: findings must not hang on how busy it is.
SAMPLE = 600
FEWEST = 10  # our choice: kinds and groups with fewer texts would be shown by chance alone
OF_SET, DISGUISED, EMOJI = "set", "disguised", "emoji"
_MOST_TOXIC = 200  # texts that are tried in disguise
_PLAINLY_TOXIC = 0.8  # recorded: what a scorer should catch, so that a trick has something to hide
_LONGEST = 200  # characters
# What each item says of its text.
TAGS = ("part", "set", "label", "recorded", "kind", "group", "cluster", "plain", "trick")


@dataclass(frozen=True, slots=True)
class AuditTexts:
    """The texts that an audit scores."""

    tables: Mapping[str, pl.DataFrame]
    toxic: Sequence[str] = ()  # tried in disguise
    emoji: Sequence[str] = ()

    @classmethod
    def sampled(
        cls, tables: Mapping[str, pl.DataFrame], most: int, unseen: Collection[str] = ()
    ) -> "AuditTexts":
        """Sample the texts of each set; a smaller set is taken whole.

        Args:
            tables: The sets.
            most: Texts of each set.
            unseen: Sets of which only the fifth that was held out of training is taken.
        """
        parts = {
            name: table.filter(pl.Series([*map(held_out, table["text"])], dtype=pl.Boolean))
            if name in unseen
            else table
            for name, table in tables.items()
        }
        toxic = _toxic(tables)[: min(most, _MOST_TOXIC)]
        samples = {name: drawn(table, most) for name, table in parts.items()}
        return cls(samples, toxic, HARMLESS_EMOJI if toxic else ())

    def items(self) -> Iterator[Item]:
        """Yield the texts as items. The forms of a disguised text are one cluster."""
        for name, table in self.tables.items():
            yield from _of_set(name, table)
        for number, text in enumerate(self.toxic):
            yield _disguised(number, text, "")
        for trick, change in TRICKS.items():
            for number, text in enumerate(self.toxic):
                yield _disguised(number, change(text), trick)
        for number, text in enumerate(self.emoji):
            yield _item(f"emoji:{number}", text, part=EMOJI, cluster=f"emoji: {number}")


def gathered(
    sets: ToxicitySets, names: Sequence[str] | None
) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Return the named tables that are at hand, or all in English, and why others are not."""
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


def _of_set(name: str, table: pl.DataFrame) -> Iterator[Item]:
    counted = table.with_columns(
        pl.when(pl.len().over("label", part) >= FEWEST).then(part).otherwise(pl.lit("")).alias(part)
        for part in ("function", "group")
    )
    for number, row in enumerate(counted.iter_rows(named=True)):
        recorded = row["recorded"]
        yield _item(
            f"{name}:{number}",
            row["text"],
            part=OF_SET,
            set=name,
            label=str(row["label"]),
            recorded="" if recorded is None else str(recorded),
            kind=row["function"],
            group=row["group"],
            cluster=f"{name}: {row['cluster']}",
        )


def _disguised(number: int, text: str, trick: str) -> Item:
    return _item(
        f"{trick or 'plain'}:{number}", text, part=DISGUISED, trick=trick, plain=str(number),
        cluster=f"disguised: {number}",
    )  # fmt: skip


def _item(name: str, text: str, **tags: str) -> Item:
    return Item(id=name, prompt=text, tags={**dict.fromkeys(TAGS, ""), **tags})


def _toxic(tables: Mapping[str, pl.DataFrame]) -> list[str]:
    if "rtp" not in tables:
        return []
    short = pl.col("text").str.len_chars() <= _LONGEST
    table = tables["rtp"].filter((pl.col("recorded") >= _PLAINLY_TOXIC) & short)
    return drawn(table, _MOST_TOXIC)["text"].to_list()
