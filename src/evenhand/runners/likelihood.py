"""Runs items through a model that knows how likely a text is, into an ordinary run folder.

An item's choices are whole texts, and its prompt is what stands before each of them and is not
itself counted. The result has one draft per choice with the scores "total" (log p(text | prompt),
natural logarithm) and "tokens"; the likeliest stands last.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from evenhand.domain import Answer, Answered, Draft, Event, Failed, Item
from evenhand.errors import StoreError
from evenhand.metrics.likelihood import Likelihood
from evenhand.models.likelihood import Failure, LikelihoodModel, TokenLogprobs
from evenhand.runners.progress import Progress, status_file
from evenhand.runners.source import Source, read_gaps
from evenhand.store import RunWriter
from evenhand.store.ledger import Positions
from evenhand.store.run_record import RunRecord, now, versions

METHOD = {"name": "likelihood", "settings": {}}  # no method: the model itself is measured
_BLOCK = 100  # our choice: items; small enough to lose little, large enough to sort by length
_Found = dict[str, TokenLogprobs | Failure]


async def run_likelihood(
    model: LikelihoodModel,
    source: Source,
    out: str | Path,
    *,
    progress: Progress,
    take_over: bool = False,
) -> None:
    """Ask for every text of every item that the folder does not have yet, block by block. A folder
    of another plan is refused."""
    writer = RunWriter.open(out, _record(model, source), take_over=take_over)
    try:
        progress.planned, progress.resumed = len(source), writer.committed
        async with status_file(writer.folder, progress):
            left = progress.starting(_left(source, writer.done))
            while block := list(islice(left, _BLOCK)):
                for event in await _answered(model, block):
                    writer.finish(event)
                    progress.count(event)
                await writer.commit_if_full()
    except StoreError:
        await writer.abandon()  # it could not write: the journal has what there is
        raise
    except BaseException:
        await writer.close()
        raise
    await writer.close()


def _record(model: LikelihoodModel, source: Source) -> RunRecord:
    described = model.describe()
    return RunRecord(
        method=METHOD,
        prompts={},
        cast={"default": {**described, "kind": "likelihood", "read_by": described["kind"]}},
        source=source.fingerprint(),
        limits={},
        seed=None,
        created=now(),
        versions=versions(),
    )


def _left(source: Source, done: Positions) -> Iterator[tuple[int, Item]]:
    for start, stop in source.chunks():
        yield from read_gaps(source, list(done.missing(start, stop)))


async def _answered(model: LikelihoodModel, items: Sequence[tuple[int, Item]]) -> list[Event]:
    texts = list(dict.fromkeys(text for _, item in items for text in _texts(item)))
    found = dict(zip(texts, await model.log_likelihoods(texts), strict=True))
    return [_event(position, item, found) for position, item in items]


def _texts(item: Item) -> list[str]:
    return [*([item.prompt] if item.prompt else []), *item.choices]


def _event(position: int, item: Item, found: _Found) -> Event:
    """The likelihood of each option, or why the item has none: an item is whole or missing."""
    texts = _texts(item)
    known = {text: one for text in texts if isinstance(one := found[text], TokenLogprobs)}
    spent = (len(texts), sum(len(one.logprobs) for one in known.values()), 0)
    failed = next((one for text in texts if isinstance(one := found[text], Failure)), None)
    failed = failed or _incomparable(item, known)
    if failed is not None:
        return Failed(position, item, failed.reason, failed.message, *spent)
    drafts = [_draft(place, item, known) for place in range(len(item.choices))]
    return Answered(position, item, Answer.likeliest(drafts), *spent)


def _draft(place: int, item: Item, known: dict[str, TokenLogprobs]) -> Draft:
    text = item.choices[place]
    found = _after(item, text, known)
    return Draft(text=text, choice=place, scores={"total": found.total, "tokens": found.tokens})


def _incomparable(item: Item, known: dict[str, TokenLogprobs]) -> Failure | None:
    # Where the first token has no probability, options are comparable only if they share it.
    if len({one.uncounted for one in known.values()}) > 1:
        said = "the options begin with different tokens, and the model says nothing about the first"
        return Failure("first_token_uncounted", said)
    if any(_after(item, text, known).tokens < 1 for text in item.choices):
        return Failure("no_token_counted", "an option has no token with a log-probability")
    return None


def _after(item: Item, text: str, known: dict[str, TokenLogprobs]) -> Likelihood:
    """The likelihood of a text given the item's prompt."""
    whole = _likelihood(known[text])
    return whole.after(_likelihood(known[item.prompt])) if item.prompt else whole


def _likelihood(one: TokenLogprobs) -> Likelihood:
    return Likelihood(one.total, len(one.logprobs))
