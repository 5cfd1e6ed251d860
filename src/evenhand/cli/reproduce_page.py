"""A paper's page in the documentation: every table and figure, the published numbers beside
ours."""

import re
from pathlib import Path

from evenhand.findings.reproduction import Reproduction, in_words, reproduction
from evenhand.papers import Paper, Table
from evenhand.views import markdown, page_of


def paper_page(paper: Paper, tables: Path | None) -> str:
    """The page as Markdown; `tables` is a folder with PAPER-TABLE.json of those that were run."""
    option = "" if tables is None else f" --tables {tables.as_posix()}"
    parts = [
        f"# {paper.called}: the paper's tables beside ours",
        f"{paper.authors}: *{paper.title}*",
        f"Made by `evenhand reproduce page {paper.name}{option}`. Columns that begin with ours are "
        "ours, the others are typed from the paper; not run: not run by this recipe. `evenhand "
        f"reproduce {paper.name} TABLE --dry-run` says what a table will ask, without it the "
        "table is run ([how](reproduce.md)).",
    ]
    for name in paper.order:
        table = paper.table(name)
        parts += _figure(paper, name) if table is None else _table(paper, table, tables)
    parts += _weights(paper)
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def _weights(paper: Paper) -> list[str]:
    """How the weights are made that some rows need."""
    if not paper.trained:
        return []
    parts = [
        "## Trained weights",
        "Rows of trained weights are run with `--trained NAME=MODEL`, once the weights are served "
        "([how](training.md)); `'*={model}-{name}'` names all of them.",
    ]
    for name, one in paper.trained.items():
        like = f", made as `{one.like}` is" if one.like else ":"
        parts.append(f"`{name}`: {one.says}{like}" + ("." if one.like else ""))
        if one.commands:
            parts.append("```text\n" + "\n".join(one.commands) + "\n```")
    return parts


def _figure(paper: Paper, name: str) -> list[str]:
    one = next(one for one in paper.figures if one.table == name)
    what = "Cannot be run" if one.result else "No result to reproduce"
    return [f"## {one.where}: {one.title}", f"{what}: {one.reason}"]


def _table(paper: Paper, table: Table, tables: Path | None) -> list[str]:
    found = _ran(paper, table, tables)
    shown = markdown.render(page_of(found)[1:])  # its first line is the heading here
    needs = f"`evenhand reproduce {paper.name} {table.name}` needs: {in_words(table.needs)}."
    if table.reason:
        needs = f"Cannot be run: {table.reason}"
    elsewhere = [table.elsewhere] if table.elsewhere else []
    return [f"## {table.where}: {table.title}", needs, *elsewhere, shown]


def _ran(paper: Paper, table: Table, tables: Path | None) -> Reproduction:
    file = None if tables is None else tables / f"{paper.name}-{table.name}.json"
    if file is not None and file.is_file():
        return Reproduction.from_json(file.read_bytes())
    return reproduction(paper, table, "small", {}, {}, ())
