"""Runs items through a model that knows how likely a text is, into an ordinary run folder.

An item's choices are whole texts, and its prompt is what stands before each of them and is not
itself counted. The result has one draft per choice with the scores "total" (log p(text | prompt),
natural logarithm) and "tokens"; the likeliest stands last.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from evenhand.core import Answer, Answered, Draft, Event, Failed, Item
from evenhand.models.likelihood import LikelihoodFailure, LikelihoodModel, TokenLogprobs
from evenhand.runs.runners.local import left
from evenhand.runs.runners.progress import Progress, status_file
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunWriter
from evenhand.runs.store.run_record import RunRecord, now, versions
from evenhand.statistics.metrics.likelihood import Likelihood

METHOD = {"name": "likelihood", "settings": {}}  # no method: the model itself is measured
_BLOCK = 100  # our choice: items; small enough to lose little, large enough to sort by length
_Found = dict[str, TokenLogprobs | LikelihoodFailure]


async def run_likelihood(
    model: LikelihoodModel,
    source: Source,
    out: str | Path,
    *,
    progress: Progress,
    steal_lock: bool = False,
) -> None:
    """Score every text of every item that the run folder does not have yet, block by block.

    Args:
        model: Model that returns log-probabilities.
        source: Items with one text per option.
        out: Run folder, as a path or URL.
        progress: Counters to update.
        steal_lock: Take over the lock of another process.

    Raises:
        UserError: The directory holds a run of another plan.
    """
    async with RunWriter.holding(out, _record(model, source), steal_lock=steal_lock) as writer:
        progress.planned, progress.resumed = len(source), writer.committed
        async with status_file(writer.folder, progress):
            items = progress.starting(left(source, writer.done))
            while block := list(islice(items, _BLOCK)):
                for event in await _answered(model, block):
                    writer.finish(event)
                    progress.count(event)
                await writer.commit_if_full()


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


async def _answered(model: LikelihoodModel, items: Sequence[tuple[int, Item]]) -> list[Event]:
    texts = list(dict.fromkeys(text for _, item in items for text in _texts(item)))
    results = dict(zip(texts, await model.log_likelihoods(texts), strict=True))
    return [_event(position, item, results) for position, item in items]


def _texts(item: Item) -> list[str]:
    return [*([item.prompt] if item.prompt else []), *item.choices]


def _event(position: int, item: Item, results: _Found) -> Event:
    """The likelihood of each option, or why the item has none: an item is whole or missing."""
    texts = _texts(item)
    token_logprobs = {
        text: result for text in texts if isinstance(result := results[text], TokenLogprobs)
    }
    spent = (len(texts), sum(len(entry.logprobs) for entry in token_logprobs.values()), 0)
    failed = next(
        (result for text in texts if isinstance(result := results[text], LikelihoodFailure)), None
    )
    failed = failed or _incomparable(item, token_logprobs)
    if failed is not None:
        return Failed(position, item, failed.reason, failed.message, *spent)
    drafts = [_draft(index, item, token_logprobs) for index in range(len(item.choices))]
    return Answered(position, item, Answer.likeliest(drafts), *spent)


def _draft(index: int, item: Item, token_logprobs: dict[str, TokenLogprobs]) -> Draft:
    text = item.choices[index]
    likelihood = _after(item, text, token_logprobs)
    return Draft(
        text=text, choice=index, scores={"total": likelihood.total, "tokens": likelihood.tokens}
    )


def _incomparable(item: Item, token_logprobs: dict[str, TokenLogprobs]) -> LikelihoodFailure | None:
    # Where the first token has no probability, options are comparable only if they share it.
    if len({entry.uncounted for entry in token_logprobs.values()}) > 1:
        message = (
            "the options begin with different tokens, and the model says nothing about the first"
        )
        return LikelihoodFailure("first_token_uncounted", message)
    if any(_after(item, text, token_logprobs).tokens < 1 for text in item.choices):
        return LikelihoodFailure(
            "no_token_counted", "an option has no token with a log-probability"
        )
    return None


def _after(item: Item, text: str, token_logprobs: dict[str, TokenLogprobs]) -> Likelihood:
    """The likelihood of a text given the item's prompt."""
    full = _likelihood(token_logprobs[text])
    return full.after(_likelihood(token_logprobs[item.prompt])) if item.prompt else full


def _likelihood(token_logprobs: TokenLogprobs) -> Likelihood:
    return Likelihood(token_logprobs.total, len(token_logprobs.logprobs))
