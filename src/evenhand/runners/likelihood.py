"""This runner takes option sets through a model that gives log-probabilities of texts.

    RUN/
      likelihood.json               what was planned; written before the first text, never edited
      likelihood/<set>-<n>.parquet  one row per option of a block of items

A block that is there is not asked again, so a run that was stopped goes on where it was.
"""

import io
from collections.abc import Iterator, Sequence

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.instruments.likelihood_sets import DrawnSet
from evenhand.instruments.option_sets import OptionItem
from evenhand.metrics.likelihood import Likelihood
from evenhand.models.likelihood import Failure, LikelihoodModel, TokenLogprobs
from evenhand.runners.progress import Progress
from evenhand.store.differences import refuse
from evenhand.store.folder import Folder, open_folder
from evenhand.store.likelihood import RECORD, SCHEMA, LikelihoodRecord

_BLOCK = 100  # our choice: items; small enough to lose little, large enough to sort by length


async def run_likelihood(
    model: LikelihoodModel, sets: Sequence[DrawnSet], out: str, *, progress: Progress
) -> None:
    """Run every item of every set, block by block; a folder of another plan is refused."""
    folder = open_folder(out)
    lock = folder.lock()
    try:
        _agree(
            folder, LikelihoodRecord.planned(model.describe(), {s.name: s.describe() for s in sets})
        )
        progress.planned = sum(len(one.items) for one in sets)
        for one in sets:
            for number, items in _blocks(one.items):
                name = f"likelihood/{one.name}-{number:05}.parquet"
                if folder.exists(name):
                    progress.resumed += len(items)
                    continue
                await _block(model, one.name, items, folder, name, progress)
        progress.state = "ended"
    finally:
        lock.release()


async def _block(
    model: LikelihoodModel,
    set_name: str,
    items: Sequence[OptionItem],
    folder: Folder,
    name: str,
    progress: Progress,
) -> None:
    progress.in_flight += len(items)
    texts = list(dict.fromkeys(text for item in items for text in _texts(item)))
    found = dict(zip(texts, await model.log_likelihoods(texts), strict=True))
    rows = [row for item in items for row in _rows(set_name, item, found)]
    table = io.BytesIO()
    pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(table)
    folder.replace(name, table.getvalue())
    lost = {row[1] for row in rows if row[-1] is not None}
    progress.in_flight -= len(items)
    progress.failed += len(lost)
    progress.answered += len(items) - len(lost)
    progress.calls += len(texts)
    progress.tokens += sum(len(f.logprobs) for f in found.values() if isinstance(f, TokenLogprobs))


def _texts(item: OptionItem) -> Iterator[str]:
    if item.given:
        yield item.given
    yield from item.options.values()


def _rows(
    set_name: str, item: OptionItem, found: dict[str, TokenLogprobs | Failure]
) -> list[tuple[object, ...]]:
    tags = orjson.dumps(dict(item.tags)).decode()
    head = (set_name, item.id, item.group, item.cluster, tags)
    scored = _scored(item, found)
    rows: list[tuple[object, ...]] = []
    for option, text in item.options.items():
        if isinstance(scored, str):
            rows.append((*head, option, text, None, None, scored))
        else:
            rows.append((*head, option, text, scored[option].total, scored[option].tokens, None))
    return rows


def _scored(
    item: OptionItem, found: dict[str, TokenLogprobs | Failure]
) -> dict[str, Likelihood] | str:
    """Give the likelihood of each option, or why the item has none: an item is whole or missing."""
    texts = {text: found[text] for text in _texts(item)}
    failed = [one.reason for one in texts.values() if isinstance(one, Failure)]
    if failed:
        return failed[0]
    known = {text: one for text, one in texts.items() if isinstance(one, TokenLogprobs)}
    # Where the first token has no probability, options are comparable only if they share it.
    if len({one.uncounted for one in known.values()}) > 1:
        return "first_token_uncounted"
    likelihoods = {text: Likelihood(one.total, len(one.logprobs)) for text, one in known.items()}
    given = likelihoods.get(item.given, Likelihood(0.0, 0))
    scored = {option: likelihoods[text].after(given) for option, text in item.options.items()}
    return scored if all(one.tokens > 0 for one in scored.values()) else "no_token_counted"


def _blocks(items: Sequence[OptionItem]) -> Iterator[tuple[int, Sequence[OptionItem]]]:
    for start in range(0, len(items), _BLOCK):
        yield start // _BLOCK, items[start : start + _BLOCK]


def _agree(folder: Folder, planned: LikelihoodRecord) -> None:
    """Write the record, or check that the one that is there has the same plan."""
    if folder.exists("run.json"):
        raise UserError(f"{folder.root} holds a run of another kind; give --out a new folder")
    try:
        folder.create(RECORD, planned.to_bytes())
    except FileExistsError:
        there = LikelihoodRecord.read(folder)
        refuse(
            {"model": there.model, "sets": there.sets},
            {"model": planned.model, "sets": planned.sets},
            folder.root,
        )
