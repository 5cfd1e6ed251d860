"""`evenhand debate topics`: what is to be debated, from a model or from a list."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from evenhand.cli.execution import RunEnd, end
from evenhand.cli.run_options import RunCommand
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.watching import Terminal
from evenhand.experiments.debating import Topics, ask_topics, own_topics, types_named
from evenhand.runs.runners import ItemList
from evenhand.training.debates.topics import BiasType, DebateTopics, bias_types


def topics(
    options: RunCommand,
    file: Annotated[Path, typer.Option("--out", "-o", help="The file to write: one topic a line.")],
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
) -> None:
    """Make topics for debates: asked of a model, or from a list of yours; each one once.

    The calls are kept beside the file, in a folder that ends in .runs: run it again to resume, or
    --replay that folder. Ends with code 2 if a type has too few topics, with 3 at a cap.

    Example: evenhand debate topics --types age,beauty --count 40 --out topics.jsonl
    """
    kinds = types_named(types, bias_types(roles))
    if from_ is not None:
        _conclude(kinds, own_topics(from_, kinds), file, json=options.json)
        return
    config = options.load()
    command = options.into(str(file.with_suffix(".runs")))
    request = command.request(ItemList([]), DebateTopics(), config)
    result = asyncio.run(ask_topics(request, kinds, count, Terminal(config)))
    if result.ended.early:
        end(result.ended, below_floor=False)
    _conclude(kinds, result, file, json=options.json)


def _conclude(kinds: Mapping[str, BiasType], result: Topics, path: Path, *, json: bool) -> None:
    """Write the file and show how many of each type it has."""
    result.write(kinds, path)
    numbers, short = result.numbers(), result.short()
    if json:
        print_json({"file": str(path), "types": numbers})
    else:
        _show_topics(numbers, path)
    for name in short:
        err.print(
            f"{name}: {numbers[name]['topics']} of {result.count} topics; the model repeats "
            "itself. Take fewer, a stronger model as topic_writer, or a list of yours (--from)",
            soft_wrap=True,
        )
    end(RunEnd(), below_floor=bool(short))


def _show_topics(numbers: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    table = Table("bias type", "listed", "duplicates", "topics", box=None)
    for name, row in numbers.items():
        table.add_row(name, *(f"{row[key]:,}" for key in ("listed", "duplicates", "topics")))
    out.print(table)
    out.print(f"{path}; next: evenhand debate run {path} --out runs/debate", soft_wrap=True)
