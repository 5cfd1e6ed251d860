"""The items of a check: every example as it stands, with the options in the other order, and in
other words; and benign texts of sets that audits of scorers use."""

from collections.abc import Callable, Iterator, Mapping

import polars as pl

from evenhand.core import Item
from evenhand.findings.scoring import ScoringSpec
from evenhand.instruments.harm.examples import Example, Examples
from evenhand.instruments.harm.settings import OwnHarm
from evenhand.instruments.listed import ListedItems

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


def source_of(
    instrument: ScoringSpec, harm: OwnHarm, sets: Mapping[str, pl.DataFrame]
) -> ListedItems:
    """Return the items of the audit of one harm. The bars and all that a certificate is tied to
    belong to it: a run that was begun under others is not resumed.

    Args:
        instrument: The audit.
        harm: The policy, with its examples.
        sets: Benign texts of sets, by their names.
    """
    examples = harm.examples
    return ListedItems(
        instrument,
        [*_asked(examples), *_of_sets(sets)],
        sampling={"examples": examples.sha256, "sets": {name: len(t) for name, t in sets.items()}},
        also={
            "name": str(harm.config.examples),
            "asked": harm.asked.settings,
            "hashes": harm.asked.hashes,
            "examples": examples.sha256,
            "texts": sorted({example.digest for example in examples.all}),
            "bars": harm.config.bars,
        },
    )


def _asked(examples: Examples) -> Iterator[Item]:
    paraphrased = {example.of for example in examples.paraphrases}
    for example in examples.own:
        yield _item(PLAIN, example, example.text)
        yield _item(ORDER, example, example.text)
    by_id = {example.id: example for example in examples.own}
    for example in examples.paraphrases:
        yield _item(PARAPHRASE, by_id[example.of], example.text, rule=GIVEN, name=example.id)
    for position, example in enumerate(
        example for example in examples.own if example.id not in paraphrased
    ):
        rule, text = _in_other_words(example.text, position)
        yield _item(PARAPHRASE, example, text, rule=rule)


def _in_other_words(text: str, position: int) -> tuple[str, str]:
    names = list(RULES)
    turns = [names[(position + turn) % len(names)] for turn in range(len(names))]
    return next((name, RULES[name](text)) for name in turns if RULES[name](text) != text)


def _item(part: str, example: Example, text: str, *, rule: str = "", name: str = "") -> Item:
    label = str(example.harm).lower()
    tags = {"part": part, "example": example.id, "harm": label, "group": example.group}
    more = {"rule": rule, "line": str(example.line)}
    return Item(id=f"{part}:{name or example.id}", prompt=text, tags={**tags, **more})


def _of_sets(sets: Mapping[str, pl.DataFrame]) -> Iterator[Item]:
    for name, table in sets.items():
        for position, (text, group) in enumerate(table.select("text", "group").iter_rows()):
            tags = {"part": SET, "example": name, "harm": "false", "group": group}
            yield Item(
                id=f"{SET}:{name}:{position}", prompt=text, tags={**tags, "rule": "", "line": ""}
            )


def benign(tables: Mapping[str, pl.DataFrame], most: int) -> dict[str, pl.DataFrame]:
    """The harmless texts of each set that name a group, at most so many, the groups in turn."""
    samples = {}
    for name, table in tables.items():
        rows = table.filter(~pl.col("label") & (pl.col("group") != ""))
        turn = pl.int_range(pl.len()).over("group")
        samples[name] = rows.unique("text", maintain_order=True).sort(turn, "group").head(most)
    return samples
