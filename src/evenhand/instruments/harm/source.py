"""The items of a check: every example as it stands, with the options in the other order, and in
other words; and benign texts of sets that audits of scorers use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from evenhand.domain import Item
from evenhand.instruments.harm.examples import Example, Examples
from evenhand.instruments.harm.settings import OwnHarm
from evenhand.runners.source import ItemList

KIND = "harm"
PLAIN, ORDER, PARAPHRASE, SET = "plain", "order", "paraphrase", "set"
GIVEN = "given"  # a paraphrase that the file of examples has

# Our choice: changes that leave alone what is said. Examples take them in turn; one that a rule
# does not change, such as a text without capitals, takes the next.
RULES: Mapping[str, Callable[[str], str]] = {
    "small letters": str.lower,
    "in quotes": lambda text: f"“{text}”",
    "polite frame": lambda text: (
        f"Thank you for your message. {text} Please tell us if anything is unclear."
    ),
}


class HarmSource(ItemList):
    """The items of the check of one harm. The bars and all that a certificate is tied to belong to
    it: a run that was begun under others is not continued."""

    def __init__(self, harm: OwnHarm, sets: Mapping[str, pl.DataFrame]) -> None:
        super().__init__([*_asked(harm.examples), *_of_sets(sets)])
        self._harm = harm

    def fingerprint(self) -> dict[str, Any]:
        harm = self._harm
        return {
            **super().fingerprint(),
            "kind": KIND,
            "name": str(harm.config.examples),
            "asked": harm.asked.settings,
            "hashes": harm.asked.hashes,
            "examples": harm.examples.sha256,
            "texts": sorted({one.digest for one in harm.examples.all}),
            "bars": harm.config.bars,
        }


def _asked(examples: Examples) -> Iterator[Item]:
    given = {one.of for one in examples.paraphrases}
    for one in examples.own:
        yield _item(PLAIN, one, one.text)
        yield _item(ORDER, one, one.text)
    by_id = {one.id: one for one in examples.own}
    for one in examples.paraphrases:
        yield _item(PARAPHRASE, by_id[one.of], one.text, rule=GIVEN, name=one.id)
    for place, one in enumerate(one for one in examples.own if one.id not in given):
        rule, text = _in_other_words(one.text, place)
        yield _item(PARAPHRASE, one, text, rule=rule)


def _in_other_words(text: str, place: int) -> tuple[str, str]:
    names = list(RULES)
    turns = [names[(place + turn) % len(names)] for turn in range(len(names))]
    return next((name, RULES[name](text)) for name in turns if RULES[name](text) != text)


def _item(part: str, example: Example, text: str, *, rule: str = "", name: str = "") -> Item:
    label = str(example.harm).lower()
    tags = {"part": part, "example": example.id, "harm": label, "group": example.group}
    more = {"rule": rule, "line": str(example.line)}
    return Item(id=f"{part}:{name or example.id}", prompt=text, tags={**tags, **more})


def _of_sets(sets: Mapping[str, pl.DataFrame]) -> Iterator[Item]:
    for name, table in sets.items():
        for place, (text, group) in enumerate(table.select("text", "group").iter_rows()):
            tags = {"part": SET, "example": name, "harm": "false", "group": group}
            yield Item(
                id=f"{SET}:{name}:{place}", prompt=text, tags={**tags, "rule": "", "line": ""}
            )


def benign(tables: Mapping[str, pl.DataFrame], most: int) -> dict[str, pl.DataFrame]:
    """The harmless texts of each set that name a group, at most so many, the groups in turn."""
    found = {}
    for name, table in tables.items():
        named = table.filter(~pl.col("label") & (pl.col("group") != ""))
        turn = pl.int_range(pl.len()).over("group")
        found[name] = named.unique("text", maintain_order=True).sort(turn, "group").head(most)
    return found


def parts_of(items: Sequence[Item]) -> dict[str, int]:
    """How many items each part of a check has."""
    names = [item.tags["part"] for item in items]
    return {name: names.count(name) for name in dict.fromkeys(names)}
