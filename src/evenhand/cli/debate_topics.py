"""`evenhand debate topics`: what is to be debated, from a model or from a list."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from evenhand import config as configuration
from evenhand.cli.execution import (
    Concurrency,
    Ended,
    MaxCalls,
    MaxCost,
    Order,
    PriceFile,
    Replay,
    Seed,
    StealLock,
    end,
    execute,
)
from evenhand.cli.options import BaseUrl, ConfigFile, Json, MaxTokens, ModelName
from evenhand.cli.screen import err, out, print_json
from evenhand.debates.roles import BiasType, bias_types
from evenhand.debates.topics import PER_BATCH, DebateTopics, Distinct, batch, debate_items, listed
from evenhand.errors import UserError
from evenhand.experiments.caps import left_for
from evenhand.runners import ItemList
from evenhand.store import RunReader
from evenhand.store.folder import LocalFolder
from evenhand.store.spending import Spent, spent_on

_TRIES = 3  # ours: how often topics are asked for where too many were the same
_SURPLUS = 1.25  # ours: about a fifth of what models list is a repetition


def topics(
    out_: Annotated[Path, typer.Option("--out", "-o", help="The file to write: one topic a line.")],
    types: Annotated[
        str | None, typer.Option(help="Bias types with commas. Default: the paper's five.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Topics of each type.")] = 40,
    roles: Annotated[
        Path | None, typer.Option(help="A TOML file with bias types and roles of your own.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="Your own list, one topic a line, instead of a model."),
    ] = None,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    seed: Seed = None,
    concurrency: Concurrency = 64,
    replay: Replay = None,
    steal_lock: StealLock = False,
    max_tokens: MaxTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Make topics for debates: asked of a model, or from a list of yours; each one once.

    The calls are kept beside the file, in a folder that ends in .runs: run it again to resume, or
    --replay that folder. Ends with code 2 if a type has too few topics, with 3 at a cap.

    Example: evenhand debate topics --types age,beauty --count 40 --out topics.jsonl
    """
    kinds = _chosen(types, bias_types(roles))
    if from_ is not None:
        _conclude_topics(kinds, _own(from_, kinds), None, out_, json=json)
        return
    order = Order(
        source=ItemList([]),
        method=DebateTopics(),
        settings=configuration.load(config, base_url, model, max_tokens=max_tokens, prices=prices),
        out=str(out_.with_suffix(".runs")),
        seed=seed,
        concurrency=concurrency,
        replay=replay,
        steal_lock=steal_lock,
        max_cost=max_cost,
        max_calls=max_calls,
    )
    by_type, ended = _asked(order, kinds, count)
    if ended.stopped or ended.capped_by:
        end(ended, below_floor=False)
    _conclude_topics(kinds, by_type, count, out_, json=json)


def _chosen(types: str | None, available: Mapping[str, BiasType]) -> dict[str, BiasType]:
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


def _own(path: Path, kinds: Iterable[str]) -> dict[str, Distinct]:
    try:
        own_topics = listed(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not own_topics:
        raise UserError(f"{path} holds no topic; write one a line")
    by_type = {name: Distinct() for name in kinds}
    for distinct in by_type.values():
        distinct.add(own_topics)
    return by_type


def _asked(
    order: Order, kinds: Mapping[str, BiasType], count: int
) -> tuple[dict[str, Distinct], Ended]:
    """Batches until every type has its topics. What is missing after a run is asked for by a next
    one with other batches, each in a folder of its own; a run that brings nothing is the last."""
    by_type = {name: Distinct() for name in kinds}
    batch_counts = dict.fromkeys(kinds, 0)
    spent, ended = Spent(), Ended()
    for number in range(1, _TRIES + 1):
        items = []
        for name, kind in kinds.items():
            missing = max(0, count - len(by_type[name].kept))
            batches = math.ceil(missing * _SURPLUS / PER_BATCH)
            items += [batch(name, kind, batch_counts[name] + n) for n in range(batches)]
            batch_counts[name] += batches
        if not items:
            break
        attempt = _of_try(order, number, spent, ItemList(items))
        ended = execute(attempt)
        spent += spent_on(attempt.out, order.prices)
        if ended.stopped or ended.capped_by:
            return by_type, replace(ended, calls=spent.calls)
        before = sum(len(distinct.kept) for distinct in by_type.values())
        _collect(RunReader(attempt.out), by_type)
        if sum(len(distinct.kept) for distinct in by_type.values()) == before:
            break
    return by_type, ended


def _of_try(order: Order, number: int, spent: Spent, source: ItemList) -> Order:
    """The order of one try, with what the earlier ones left of the caps."""
    attempt = replace(
        order,
        source=source,
        out=f"{order.out}/{number}",
        replay=order.replay and f"{order.replay}/{number}",
    )
    return left_for(attempt, order, spent)


def _collect(run: RunReader, by_type: Mapping[str, Distinct]) -> None:
    rows = run.results().select("status", "drafts", "tags").collect()
    for status, drafts, tags in rows.iter_rows():
        if status == "answered":
            name = next(tag["value"] for tag in tags if tag["name"] == "bias_type")
            by_type[name].add(draft["text"] for draft in drafts)


def _conclude_topics(
    kinds: Mapping[str, BiasType],
    by_type: Mapping[str, Distinct],
    count: int | None,
    path: Path,
    *,
    json: bool,
) -> None:
    """Write the file and say how many of each type it has. `count` was asked for, if anything."""
    chosen = {name: distinct.kept[:count] for name, distinct in by_type.items()}
    lines = chain.from_iterable(debate_items(name, kinds[name], chosen[name]) for name in kinds)
    data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    LocalFolder(path.parent).replace(path.name, data)
    numbers = {
        name: {
            "listed": distinct.seen,
            "duplicates": distinct.duplicates,
            "topics": len(chosen[name]),
            "wanted": count,
        }
        for name, distinct in by_type.items()
    }
    short = [name for name in chosen if count is not None and len(chosen[name]) < count]
    if json:
        print_json({"file": str(path), "types": numbers})
    else:
        _show_topics(numbers, path)
    for name in short:
        err.print(
            f"{name}: {len(chosen[name])} of {count} topics; the model repeats itself. Take fewer, "
            "a stronger model as topic_writer, or a list of yours (--from)",
            soft_wrap=True,
        )
    end(Ended(), below_floor=bool(short))


def _show_topics(numbers: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    table = Table("bias type", "listed", "duplicates", "topics", box=None)
    for name, row in numbers.items():
        table.add_row(name, *(f"{row[key]:,}" for key in ("listed", "duplicates", "topics")))
    out.print(table)
    out.print(f"{path}; next: evenhand debate run {path} --out runs/debate", soft_wrap=True)
