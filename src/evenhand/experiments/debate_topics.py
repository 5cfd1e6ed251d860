"""What is to be debated: topics that a model lists, or a list of the user's, each once."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import orjson

from evenhand.core.errors import UserError
from evenhand.experiments.caps import left_for
from evenhand.experiments.request import Request
from evenhand.experiments.running import RunEnd, execute
from evenhand.experiments.watch import Watch
from evenhand.runs.runners import ItemList
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import LocalFolder
from evenhand.runs.store.spending import Spent, spent_on
from evenhand.training.debates.topics import (
    PER_BATCH,
    BiasType,
    Distinct,
    batch,
    debate_items,
    listed,
)

_TRIES = 3  # ours: how often topics are asked for where too many were the same
_SURPLUS = 1.25  # ours: about a fifth of what models list is a repetition


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics of each bias type, and how the runs ended that asked for them."""

    by_type: Mapping[str, Distinct]
    count: int | None = None  # of each type, as it was asked for
    ended: RunEnd = field(default_factory=RunEnd)

    def chosen(self) -> dict[str, list[str]]:
        """Return the topics of each type, at most as many as were asked for."""
        return {name: list(distinct.kept[: self.count]) for name, distinct in self.by_type.items()}

    def numbers(self) -> dict[str, dict[str, int | None]]:
        """Count, for each type, what was listed, repeated, and taken."""
        chosen = self.chosen()
        return {
            name: {
                "listed": distinct.seen,
                "duplicates": distinct.duplicates,
                "topics": len(chosen[name]),
                "wanted": self.count,
            }
            for name, distinct in self.by_type.items()
        }

    def short(self) -> list[str]:
        """Name the types that have too few topics."""
        count = self.count or 0
        return [name for name, topics in self.chosen().items() if len(topics) < count]

    def write(self, kinds: Mapping[str, BiasType], path: Path) -> None:
        """Write the topics as items of a debate, one a line."""
        chosen = self.chosen()
        lines = chain.from_iterable(debate_items(name, kinds[name], chosen[name]) for name in kinds)
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        LocalFolder(path.parent).replace(path.name, data)


def types_named(types: str | None, available: Mapping[str, BiasType]) -> dict[str, BiasType]:
    """Choose bias types by their names, with commas between; all without names."""
    if types is None:
        return dict(available)
    names = list(dict.fromkeys(name.strip() for name in types.split(",") if name.strip()))
    unknown = [name for name in names if name not in available]
    if unknown or not names:
        raise UserError(
            f"--types: {unknown[0] if unknown else 'nothing'} is none of {', '.join(available)}; "
            "others come from a file, with --roles"
        )
    return {name: available[name] for name in names}


def own_topics(path: Path, kinds: Iterable[str]) -> Topics:
    """Read a list of the user's, one topic a line, for each bias type."""
    try:
        topics = listed(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not topics:
        raise UserError(f"{path} holds no topic; write one a line")
    by_type = {name: Distinct() for name in kinds}
    for distinct in by_type.values():
        distinct.add(topics)
    return Topics(by_type=by_type)


async def ask_topics(
    request: Request, kinds: Mapping[str, BiasType], count: int, watch: Watch
) -> Topics:
    """Ask for topics until every bias type has enough.

    What is missing after a run is asked for by a next one with other batches, each in a folder of
    its own. A run that brings nothing is the last.

    Args:
        request: The request; its items are replaced by batches.
        kinds: The bias types.
        count: Topics of each type.
        watch: Receives progress events.

    Returns:
        The topics. `ended` says whether a cap or a signal stopped the runs.
    """
    by_type = {name: Distinct() for name in kinds}
    batch_counts = dict.fromkeys(kinds, 0)
    spent, ended = Spent(), RunEnd()
    for number in range(1, _TRIES + 1):
        items = []
        for name, kind in kinds.items():
            missing = max(0, count - len(by_type[name].kept))
            batches = math.ceil(missing * _SURPLUS / PER_BATCH)
            items += [batch(name, kind, batch_counts[name] + n) for n in range(batches)]
            batch_counts[name] += batches
        if not items:
            break
        attempt = _attempt(request, number, spent, ItemList(items))
        ended = await execute(attempt, watch)
        spent += spent_on(attempt.settings.out, attempt.settings.prices)
        if ended.early:
            return Topics(by_type=by_type, count=count, ended=replace(ended, calls=spent.calls))
        before = sum(len(distinct.kept) for distinct in by_type.values())
        _collect(RunReader(attempt.settings.out), by_type)
        if sum(len(distinct.kept) for distinct in by_type.values()) == before:
            break
    return Topics(by_type=by_type, count=count, ended=ended)


def _attempt(request: Request, number: int, spent: Spent, source: ItemList) -> Request:
    """The request of one attempt, with what the earlier ones left of the caps."""
    settings = replace(
        request.settings,
        out=f"{request.settings.out}/{number}",
        replay=request.settings.replay and f"{request.settings.replay}/{number}",
    )
    return left_for(replace(request, source=source, settings=settings), settings, spent)


def _collect(run: RunReader, by_type: Mapping[str, Distinct]) -> None:
    rows = run.results().select("status", "drafts", "tags").collect()
    for status, drafts, tags in rows.iter_rows():
        if status == "answered":
            name = next(tag["value"] for tag in tags if tag["name"] == "bias_type")
            by_type[name].add(draft["text"] for draft in drafts)
