"""A paper's page in the documentation: every table and figure, the published numbers beside
ours."""

import re
from pathlib import Path

from evenhand.findings.papers import Paper, Table
from evenhand.findings.reproduction import Reproduction, in_words, reproduction
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
    for name, weights in paper.trained.items():
        like = f", made as `{weights.like}` is" if weights.like else ":"
        parts.append(f"`{name}`: {weights.says}{like}" + ("." if weights.like else ""))
        if weights.commands:
            parts.append("```text\n" + "\n".join(weights.commands) + "\n```")
    return parts


def _figure(paper: Paper, name: str) -> list[str]:
    figure = next(figure for figure in paper.figures if figure.table == name)
    what = "Cannot be run" if figure.result else "No result to reproduce"
    return [f"## {figure.where}: {figure.title}", f"{what}: {figure.reason}"]


def _table(paper: Paper, table: Table, tables: Path | None) -> list[str]:
    reproduced = _ran(paper, table, tables)
    body = markdown.render(page_of(reproduced)[1:])  # its first line is the heading here
    needs = f"`evenhand reproduce {paper.name} {table.name}` needs: {in_words(table.needs)}."
    if table.reason:
        needs = f"Cannot be run: {table.reason}"
    elsewhere = [table.elsewhere] if table.elsewhere else []
    return [f"## {table.where}: {table.title}", needs, *elsewhere, body]


def _ran(paper: Paper, table: Table, tables: Path | None) -> Reproduction:
    file = None if tables is None else tables / f"{paper.name}-{table.name}.json"
    if file is not None and file.is_file():
        return Reproduction.from_json(file.read_bytes())
    return reproduction(paper, table, "small", {}, {}, ())
