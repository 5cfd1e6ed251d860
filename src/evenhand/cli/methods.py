"""`evenhand methods`: what there is, what an item costs in calls, and what can be set."""

import inspect
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from evenhand import registry
from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json
from evenhand.errors import UserError
from evenhand.methods import named as method_named

# Those that do not answer the questions of a benchmark by themselves.
_EXAMPLES = {
    "stored": "evenhand measure bbq --answers answers.jsonl --out runs/stored",
    "rate": "evenhand judge-check --out runs/judge",
    "panel": "evenhand judge-check --panel --out runs/panel",
    "two_responses": "evenhand judge-scenarios --out runs/written",
    "averaged": "evenhand measure discrim_eval --questions 4 --method averaged --out runs/averaged",
    "blind": "evenhand measure discrim_eval --questions 4 --method blind --out runs/blind",
}


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one alone.")] = None,
    json: Json = False,
) -> None:
    """List the methods, or show one with its settings.

    Calls an item are those of the settings as they are when nothing is set.

    Example: evenhand methods stardtox
    """
    available = registry.names("methods")
    if name is not None and name not in available:
        raise UserError(f"there is no method {name!r}; there are: {', '.join(available)}")
    entries = {each: _described(each) for each in available if name in (None, each)}
    if json:
        print_json(entries[name] if name else entries)
    elif name:
        _show_one(name, entries[name])
    else:
        _show_all(entries)


def _show_all(entries: dict[str, dict[str, Any]]) -> None:
    table = Table("method", "calls an item", "what it does", box=None, pad_edge=False)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for name, described in entries.items():
        table.add_row(name, described["calls_an_item"], Text(described["about"]))
    out.print(table)
    out.print(Text("\nSettings and an example of one: evenhand methods stardtox"))


def _show_one(name: str, described: dict[str, Any]) -> None:
    out.print(Text(f"{name}: {described['about']}"))
    out.print(Text(f"\ncalls an item  {described['calls_an_item']}"))
    table = Table("setting", "default", box=None, pad_edge=False)
    for setting, default in described["settings"].items():
        table.add_row(setting, Text(str(default)))
    out.print(table if table.rows else Text("It has no settings."))
    out.print(Text(f"\nExample: {described['example']}"), soft_wrap=True)


def _described(name: str) -> dict[str, Any]:
    try:
        kind = method_named(name)
    except UserError as problem:  # with a method of another package; ours are listed all the same
        return {"about": str(problem), "calls_an_item": "", "settings": {}, "example": ""}
    settings = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return {
        "about": _about(kind),
        "calls_an_item": getattr(kind, "calls_an_item", "not said"),
        "settings": settings,
        "example": _EXAMPLES.get(kind.name) or _example(kind.name, settings),
    }


def _about(kind: type[Any]) -> str:
    """A file that is one method is its description; where a file has several, the class is."""
    modules = [path.partition(":")[0] for path in registry.OWN["methods"].values()]
    alone = modules.count(kind.__module__) == 1
    text = inspect.getdoc(inspect.getmodule(kind) if alone else kind) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def _example(name: str, settings: dict[str, Any]) -> str:
    first = next((f" --set {key}={value}" for key, value in settings.items()), "")
    return f"evenhand measure bbq --method {name}{first} --out runs/{name}"
