"""`evenhand overcorrection`: what methods make of benign texts that needed no correction."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.execution import (
    Concurrency,
    MaxCalls,
    MaxCost,
    Order,
    PriceFile,
    Seed,
    StealLock,
    end,
)
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MaxTokens,
    ModelName,
    SystemPrompt,
    system_prompt,
)
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import out, print_json
from evenhand.cli.services import ConfigServices
from evenhand.cli.watching import Terminal
from evenhand.errors import UserError
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.sweep import Listed, Series
from evenhand.findings.sweep import outcomes, sweep
from evenhand.instruments.overcorrection.instrument import (
    USUAL,
    OverCorrection,
    OverCorrectionOptions,
    refuse_what_repairs_no_text,
)
from evenhand.methods.build import build_method
from evenhand.store.folder import open_folder
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
    concurrency: Concurrency = 64,
    steal_lock: StealLock = False,
    max_tokens: MaxTokens = None,
    system: SystemPrompt = None,
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
    options = OverCorrectionOptions(items=items, texts=texts, sample_seed=sample_seed)
    order = Order(
        source=_INSTRUMENT.source(configuration.data_folder(), options),
        method=chosen[0].method,
        settings=configuration.load(
            config,
            base_url,
            model,
            max_tokens=max_tokens,
            prices=prices,
            system=system_prompt(system),
        ),
        system=system_prompt(system),
        out=out_.rstrip("/"),
        seed=seed,
        concurrency=concurrency,
        steal_lock=steal_lock,
        max_cost=max_cost,
        max_calls=max_calls,
    )
    series = Series(
        request=order.request(),
        measurement=Measurement(
            instrument=_INSTRUMENT, options=options,
            services=ConfigServices(order.settings),
        ),
        watch=Terminal(order.settings),
    )  # fmt: skip
    ended = asyncio.run(series.run(chosen))
    if ended.early:
        end(ended, below_floor=False)
    runs = series.runs(chosen)
    result = sweep(_INSTRUMENT, runs, _REFERENCE, order.prices)
    folder = open_folder(order.out)
    folder.replace("overcorrection.json", to_json(result))
    folder.replace("overcorrection.parquet", to_parquet(outcomes(_INSTRUMENT, runs)))
    if json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
        out.print(f"{order.out}/overcorrection.json, overcorrection.parquet", style="dim")
    end(ended, below_floor=result.below_floor)


def _listed(text: str) -> list[Listed]:
    written = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    if not written:
        raise UserError("--method names no method")
    return [_built(name) for name in written]


def _built(written: str) -> Listed:
    name, _, rest = written.partition(":")
    method = build_method(name, rest.split("+") if rest else [])
    refuse_what_repairs_no_text(method)
    return Listed(name=written, method=method)
