"""`evenhand overcorrection`: what methods make of benign texts that needed no correction."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand import config as configuration
from evenhand.cli.execution import (
    Ended,
    InFlight,
    MaxCalls,
    MaxCost,
    Order,
    PriceFile,
    Seed,
    TakeOver,
    end,
    execute,
)
from evenhand.cli.options import BaseUrl, ConfigFile, Json, ModelName, ReplyTokens
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import err, out, print_json
from evenhand.errors import UserError
from evenhand.findings.sweep import outcomes, sweep
from evenhand.instruments.overcorrection import BenignSource, Sampling, own_texts, sample
from evenhand.instruments.overcorrection.instrument import (
    USUAL,
    OverCorrection,
    refuse_what_repairs_no_text,
)
from evenhand.methods import Method
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.store.spending import Spent, spent_on
from evenhand.views import terminal_of
from evenhand.views.files import plain, to_json, to_parquet

_INSTRUMENT = OverCorrection()
_REFERENCE = "default"  # the model as it is: what it spoils without any method


def overcorrection(
    out_: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="The folder of it all, new or to be resumed: a path or a URL."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="Names with commas; settings follow a colon, joined by a plus: "
            "default,stardtox:bias_brain=rule+performance=false. Without it: all that work on "
            "texts and need only a chat endpoint."
        ),
    ] = ",".join(USUAL),
    items: Annotated[int, typer.Option(min=3, help="Texts, a third from each set.")] = 500,
    texts: Annotated[
        Path | None,
        typer.Option(help="Your own texts instead: JSONL with text, identity, family, template."),
    ] = None,
    sample_seed: DrawSeed = 0,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    seed: Seed = None,
    in_flight: InFlight = 64,
    take_over: TakeOver = False,
    reply_tokens: ReplyTokens = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Count the benign texts that methods make worse.

    Worse is: refused, emptied, moralised about, or without the identity it spoke of.

    Each method gets a run folder of its own within --out; beside them stand overcorrection.json
    and overcorrection.parquet. Run it again to resume, or with more methods. Caps are for all runs
    together. Ends with code 2 if a method answered fewer than 95 %, with 3 at a cap.

    Example: evenhand overcorrection --method default,fairness,stardtox --out runs/benign
    """
    chosen = _listed(method)
    order = Order(
        source=_source(texts, Sampling(items=items, seed=sample_seed)),
        method=chosen[0].method,
        settings=configuration.load(
            config, base_url, model, reply_tokens=reply_tokens, prices=prices
        ),
        out=out_.rstrip("/"),
        seed=seed,
        in_flight=in_flight,
        take_over=take_over,
        max_cost=max_cost,
        max_calls=max_calls,
    )
    ended = _run(order, chosen)
    if ended.stopped or ended.capped_by:
        end(ended, below_floor=False)
    runs = {one.name: RunReader(one.place(order)) for one in chosen}
    found = sweep(_INSTRUMENT, runs, _REFERENCE, order.prices)
    folder = open_folder(order.out)
    folder.replace("overcorrection.json", to_json(found))
    folder.replace("overcorrection.parquet", to_parquet(outcomes(_INSTRUMENT, runs)))
    if json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found))
        out.print(f"{order.out}/overcorrection.json, overcorrection.parquet", style="dim")
    end(ended, below_floor=found.below_floor)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A method of the list, under the name it is written by."""

    name: str
    method: Method

    def place(self, order: Order) -> str:
        return f"{order.out}/{re.sub(r'[^A-Za-z0-9_.]+', '-', self.name)}"


def _listed(text: str) -> list[_Listed]:
    written = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    if not written:
        raise UserError("--method names no method")
    return [_built(one) for one in written]


def _built(written: str) -> _Listed:
    name, _, rest = written.partition(":")
    method = configuration.build_method(name, rest.split("+") if rest else [])
    refuse_what_repairs_no_text(method)
    return _Listed(written, method)


def _source(texts: Path | None, sampling: Sampling) -> BenignSource:
    if texts is not None:
        return BenignSource(own_texts(texts), {"texts": texts.name})
    drawn = sample(configuration.benign_data().texts(), sampling)
    return BenignSource(drawn, sampling.describe())


def _run(order: Order, chosen: Sequence[_Listed]) -> Ended:
    """One method after the other, until all are done, a signal comes or a cap is reached."""
    ended = Ended()
    for number, one in enumerate(chosen, 1):
        err.print(f"method {number} of {len(chosen)}: {one.name}", style="bold", soft_wrap=True)
        others = _spent(order, [other for other in chosen if other is not one])
        ended = execute(
            replace(
                order,
                method=one.method,
                out=one.place(order),
                max_calls=_left(order.max_calls, others.calls),
                max_cost=_left(order.max_cost, others.cost),
            )
        )
        if ended.stopped or ended.capped_by:
            return replace(ended, calls=_spent(order, chosen).calls)
    return ended


def _spent(order: Order, chosen: Sequence[_Listed]) -> Spent:
    if (order.max_calls, order.max_cost) == (None, None):
        return Spent()
    each = [spent_on(one.place(order), order.prices) for one in chosen]
    return Spent(sum(one.calls for one in each), sum(one.cost for one in each))


def _left(cap: Any, spent: Any) -> Any:
    return None if cap is None else max(0, cap - spent)
