"""`evenhand mitigate`: a file of prompts through a method into a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.codes import NOT_ACCEPTED
from evenhand.cli.execution import (
    Actors,
    Concurrency,
    Dedupe,
    DryRun,
    Engine,
    EngineName,
    MaxCalls,
    MaxCost,
    Order,
    Out,
    Pilot,
    PriceFile,
    Replay,
    RequireCertified,
    Seed,
    StealLock,
    end,
    execute,
)
from evenhand.cli.forecast import show_forecast
from evenhand.cli.options import (
    BaseUrl,
    ConfigFile,
    Json,
    MaxTokens,
    MethodName,
    ModelName,
    Settings,
    SystemPrompt,
    WordingName,
    system_prompt,
)
from evenhand.cli.screen import err, out, print_json
from evenhand.errors import UserError
from evenhand.experiments.remedies import remedy_of
from evenhand.findings.remedy import MIN_ACCEPTED
from evenhand.findings.summary import summary
from evenhand.methods.build import build_method
from evenhand.runners import JsonlFile, Source
from evenhand.runners.parquet_table import ParquetTable
from evenhand.store import RunReader
from evenhand.views import terminal_of

_PROMPT = "prompt"
_UNREAD = (".csv", ".tsv", ".txt", ".xlsx")


def mitigate(
    prompts: Annotated[
        str,
        typer.Argument(
            help='A file of lines like {"prompt": "…"}, or Parquet: a file, a folder, a URL.'
        ),
    ],
    out_: Out,
    method: MethodName = "stardtox",
    dry_run: DryRun = False,
    pilot: Pilot = None,
    prices: PriceFile = None,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    prompt_column: Annotated[str, typer.Option(help="Of Parquet: what to answer.")] = _PROMPT,
    answer_column: Annotated[
        str | None, typer.Option(help="Of Parquet: an answer that is to be repaired.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Of Parquet: the item's id.")] = None,
    context_column: Annotated[
        str | None, typer.Option(help="Of Parquet: what the question is about.")
    ] = None,
    wording: WordingName = None,
    set_: Settings = None,
    seed: Seed = None,
    concurrency: Concurrency = 64,
    dedupe: Dedupe = False,
    engine: EngineName = Engine.LOCAL,
    actors: Actors = None,
    replay: Replay = None,
    steal_lock: StealLock = False,
    require_certified_judges: RequireCertified = False,
    min_accepted: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of answers that the evaluators must accept."),
    ] = MIN_ACCEPTED,
    max_tokens: MaxTokens = None,
    system: SystemPrompt = None,
    base_url: BaseUrl = None,
    model: ModelName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Answer every prompt of a file with a method.

    The answer is the best draft by the method's own evaluators; a stored answer within the bounds
    of harm is not changed. Run it again to resume. Ends with code 2 if fewer than 95 % were
    answered, with 3 at a cap, with 4 if fewer than --min-accepted were accepted.

    Example: evenhand mitigate prompts.jsonl --method stardtox --out runs/first
    """
    columns = {
        "prompt_column": prompt_column,
        "answer_column": answer_column,
        "id_column": id_column,
        "context_column": context_column,
    }
    order = Order(
        source=source_of(prompts, columns),
        method=build_method(method, set_ or (), wording),
        settings=configuration.load(
            config,
            base_url,
            model,
            max_tokens=max_tokens,
            prices=prices,
            system=system_prompt(system),
        ),
        system=system_prompt(system),
        out=out_,
        seed=seed,
        concurrency=concurrency,
        replay=replay,
        steal_lock=steal_lock,
        engine=engine,
        actors=actors,
        max_cost=max_cost,
        max_calls=max_calls,
        dry_run=dry_run,
        pilot=pilot,
        json=json,
        dedupe=dedupe,
        require_certified=require_certified_judges,
    )
    ended = execute(order)
    if ended.pilot is not None:
        show_forecast(order, ended, json=json)
        return
    run = RunReader(out_)
    remedy = remedy_of(run, order.settings.certificates)
    run_summary = summary(run, order.prices, remedy)
    if json:
        print_json(run_summary.to_dict())
    else:
        out.print(terminal_of(run_summary))
    end(ended, below_floor=run_summary.coverage.below_floor)
    if remedy is not None and remedy.accepted is not None and remedy.accepted < min_accepted:
        err.print(
            f"{remedy.accepted:.1%} of the answers were accepted, fewer than {min_accepted:.0%} "
            "(--min-accepted)"
        )
        raise typer.Exit(NOT_ACCEPTED)


def is_table(location: str) -> bool:
    """Parquet by its name, a folder, or anything behind a URL; else it is lines of JSON."""
    return "://" in location or location.endswith(".parquet") or Path(location).is_dir()


def source_of(location: str, columns: dict[str, str | None]) -> Source:
    """The items of a file of prompts; `columns` are those of Parquet."""
    if "://" in location and location.endswith((".jsonl", ".json")):
        raise UserError(f"{location}: JSON lines are read from this machine; copy the file here")
    if is_table(location):
        return ParquetTable(location, prompt_column=columns.pop("prompt_column") or "", **columns)
    if location.endswith(_UNREAD):
        raise UserError(
            f"{location}: {Path(location).suffix} files are not read. Give JSON lines "
            f'({{"prompt": "…"}}) or Parquet; docs/tables.md shows how to convert'
        )
    if any(column not in (None, _PROMPT) for column in columns.values()):
        raise UserError(
            f"{location} is not Parquet, so it has no columns; the fields of a JSON line are "
            "prompt, id, context, choices, answer, tags"
        )
    return JsonlFile(Path(location))
