"""This module says what a run has spent so far, from its recorded turns: the committed ones and the
journal's.

A call that was on the wire when a process was killed is recorded nowhere, so it is not in here.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.prices import AROUND_THE_WORDS, ASKS, OWN_BATCH, Prices, billed_as
from evenhand.runs.store import ledger, tables
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.runs.store.journal import Recovered
from evenhand.runs.store.reader import RunReader

_SENT = pl.col("attempts") > 0
_SHARED = ~_SENT & pl.col("error").is_null()
# Turned away, or asked of what does not bill by the token.
_UNBILLED = ["model_refused", "search_failed", "scorer_failed"]


@dataclass(frozen=True, slots=True)
class Spent:
    calls: int = 0
    cost: float = 0.0  # 0 without prices

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.calls + other.calls, self.cost + other.cost)


def spent_on(location: str | Path, prices: Prices | None) -> Spent:
    """Count calls from the ledger's sums, and money from the turns, in one pass, by model. Replies
    that were shared between items, or taken from another run, were not sent: they are neither."""
    folder = open_folder(location)
    if not folder.exists("run.json"):
        return Spent()
    run, uncommitted = RunReader(location), _uncommitted_turns(folder)
    _, journal = tables.to_parquet(uncommitted, tables.TURNS)
    both = [run.turns(), pl.LazyFrame(journal)]
    shared = sum(turns.filter(_SHARED).select(pl.len()).collect().item() for turns in both)
    calls = run.totals().calls + len(uncommitted) - shared
    if prices is None:
        return Spent(calls)
    sums = (
        pl.concat(billed_tokens(turns, run.record.cast) for turns in both)
        .group_by("model", "batched")
        .agg(pl.col("prompt", "completion").sum())
        .collect()
    )
    return Spent(calls, sum(money_for(prices, *row) for row in sums.iter_rows()))


def money_for(prices: Prices, model: str, batched: bool, prompt: int, completion: int) -> float:
    """Compute the cost of the tokens counted by `billed_tokens`, in the order of its columns.

    Args:
        prices: Price table.
        model: Model id in the price table.
        batched: Whether batch prices apply.
        prompt: Number of prompt tokens.
        completion: Number of completion tokens.

    Returns:
        The cost in the currency of the price table.
    """
    return prices.cost(model, prompt, completion, batched=batched)


def billed_tokens(
    turns: pl.LazyFrame, cast: Mapping[str, Any], *, shared: bool = False
) -> pl.LazyFrame:
    """Yield position, model, whether a provider's batch answered, prompt and completion tokens of
    each turn that may have been billed.
    What a scorer asked a language model is billed under the name of that model, by the run's cast.
    Where the endpoint did not count, they are as many as there can have been, with the scorer's own
    prompt: unknown is never free. A text that a scorer rewrites is taken at its own length. Runs of
    earlier versions have 0 for what a scorer asked: not known either. With `shared`, calls whose
    reply came from an equal call count as if they had been sent."""
    words = pl.col("messages").list.eval(_message_bytes(turns))
    asks = {player["model"]: player[ASKS] for player in cast.values() if ASKS in player}
    readings = _asked(asks, "readings", pl.lit(1))
    tools = pl.col("settings").str.json_path_match("$.tools").str.len_bytes().fill_null(0)
    most_said = (words.list.sum() + tools) * readings
    most_said += _asked(asks, "prompt_tokens", pl.lit(AROUND_THE_WORDS))
    set_longest = _setting("max_tokens", 0) * _setting("n", 1)
    most_replied = _asked(asks, "reply_tokens", set_longest)
    billed = {player["model"]: billed_as(player["model"], player) for player in cast.values()}
    names = {name: billed_name for name, billed_name in billed.items() if billed_name is not None}
    scorers = [name for name, billed_name in names.items() if billed_name != name]
    unbilled = pl.col("error").is_in(_UNBILLED).fill_null(False)
    unbilled &= ~(pl.col("model").is_in(scorers) & (pl.col("error") == "scorer_failed"))
    counted = pl.col("prompt_tokens").is_not_null() | ~unbilled
    tokens = pl.col("prompt_tokens"), pl.col("completion_tokens")
    is_counted = ~(pl.col("model").is_in(scorers) & (tokens[0] + tokens[1] == 0)).fill_null(False)
    return turns.filter((_SENT | (_SHARED & shared)) & counted).select(
        "position",
        pl.col("model").replace(names),
        _by_batch().alias("batched"),
        pl.when(is_counted).then(tokens[0]).fill_null(most_said).alias("prompt"),
        pl.when(is_counted).then(tokens[1]).fill_null(most_replied).alias("completion"),
    )


def _message_bytes(turns: pl.LazyFrame) -> pl.Expr:
    """The bytes of a message, those of its tool calls among them."""
    message = pl.element().struct
    content = message.field("content").str.len_bytes()
    if "tool_calls" not in str(turns.collect_schema()["messages"]):
        return content
    called = pl.element().struct.field("function").struct
    sizes = called.field("name").str.len_bytes() + called.field("arguments").str.len_bytes()
    return content + message.field("tool_calls").list.eval(sizes).list.sum().fill_null(0)


def _by_batch() -> pl.Expr:
    batch = pl.col("batch").fill_null("")
    return (batch != "") & ~batch.str.starts_with(OWN_BATCH)


def _asked(asks: Mapping[str, Mapping[str, int]], name: str, default: pl.Expr) -> pl.Expr:
    """Give one of the numbers that scorers describe, and for other models the default."""
    numbers = {model: most[name] for model, most in asks.items()}
    return pl.col("model").replace_strict(numbers, default=default, return_dtype=pl.Int64)


def _setting(name: str, default: int) -> pl.Expr:
    setting = pl.col("settings").str.json_path_match(f"$.{name}")
    return setting.cast(pl.Int64).fill_null(default)


def _uncommitted_turns(folder: Folder) -> list[bytes]:
    journal = Recovered.read(folder, lambda _: True).turns
    positions = sorted(journal)  # few, where the ledger's ranges may be as long as they say
    for part in ledger.parts(folder):
        for start, stop in part.positions:
            del positions[bisect_left(positions, start) : bisect_left(positions, stop)]
    return [line for position in positions for line in journal[position].values()]
