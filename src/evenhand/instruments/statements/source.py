"""Topics as items: each role of a topic's bias type speaks about it once."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents.prompts import Prompt, parse
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text, read_toml
from evenhand.runs.runners import ItemList, JsonlFile
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import roles_of
from evenhand.training.debates.splits import draw, spelling
from evenhand.training.debates.topics import bias_types, debate_items
from evenhand.training.rating import rubric


@cache
def prompt() -> Prompt:
    return parse(read_text(__package__, "prompt.md"))


def topics(file: Path | None) -> list[Item]:
    """The topics of a file of `evenhand debate topics`, or those of ours: each has its bias type
    and its roles as tags."""
    if file is not None:
        source = JsonlFile(file)
        return list(source.read(0, len(source)))
    content = read_toml(__package__, "topics.toml")
    kinds = bias_types()
    return [
        Item(**line)
        for name, entries in content.items()
        for line in debate_items(name, kinds[name], entries)
    ]


def sample(
    every: Sequence[Item], types: str | None, per_type: int, seed: int, excluded: Collection[str]
) -> list[Item]:
    """So many topics of each type, by a number drawn from their words: a topic keeps it whatever
    other topics there are."""
    excluded_spellings = {spelling(topic) for topic in excluded}
    by_type: defaultdict[str, list[Item]] = defaultdict(list)
    for topic in every:
        roles_of(topic)  # refuses what was not made for this
        if spelling(topic.prompt) not in excluded_spellings:
            by_type[topic.tags["bias_type"]].append(topic)
    names = [name.strip() for name in types.split(",")] if types else list(by_type)
    if missing := [name for name in names if name not in by_type]:
        raise UserError(
            f"there is no topic of the bias type {missing[0]!r} that is not left out; there are "
            f"some of: {', '.join(by_type) or 'none'}"
        )
    return [topic for name in names for topic in _drawn(name, by_type[name], per_type, seed)]


def _drawn(name: str, topics: Sequence[Item], per_type: int, seed: int) -> list[Item]:
    if len(topics) < per_type:
        raise UserError(f"{name} has {len(topics)} topics: ask for --per-type {len(topics)}")
    order = sorted(topics, key=lambda topic: draw(seed, "statements", name, spelling(topic.prompt)))
    return order[:per_type]


def spoken(topics: Sequence[Item]) -> Iterator[Item]:
    """An item for each role of each topic."""
    for topic in topics:
        for number, role in enumerate(roles_of(topic)):
            (message,) = prompt().render({"persona": role, "topic": topic.prompt})
            tags = {"bias_type": topic.tags["bias_type"], "topic": topic.prompt, "role": role}
            yield Item(id=f"{topic.id}:{number}", prompt=message.content, tags=tags)


class WrittenTexts(ItemList):
    """What a run wrote, to be rated: the task and, as its answer, the text."""

    def fingerprint(self) -> dict[str, Any]:
        return {**super().fingerprint(), "kind": "texts", "rubric": rubric.sha256()}


def written(run: RunReader) -> WrittenTexts:
    """The texts of a run, in the order of its items."""
    answered = run.results().filter(pl.col("text").is_not_null()).collect()
    rows = answered.select("item_id", "prompt", "text").iter_rows()
    return WrittenTexts(
        [Item(id=id_, prompt=question, answer=text) for id_, question, text in rows]
    )
