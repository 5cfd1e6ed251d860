"""The tables of papers as Markdown: the page of one paper, and the overview of all."""

import re
from dataclasses import replace
from pathlib import Path

from evenhand.findings.papers import PAPERS, Paper, Table, paper_named
from evenhand.findings.reproduction import Reproduction, catalogue, in_words, reproduction
from evenhand.views import markdown, page_of
from evenhand.views.blocks import GAP, Block, Grid


def paper_page(paper: Paper, tables: Path | None) -> str:
    """Give a paper's page as Markdown.

    Args:
        paper: The paper.
        tables: A folder with PAPER-TABLE.json of the tables that were run; None if there is none.
    """
    parts = [
        f"# {paper.called}: the paper's tables and ours",
        f"{paper.authors}: *{paper.title}*",
        f"Columns that begin with ours are ours; the others are copied from the paper. `evenhand "
        f"reproduce {paper.name} TABLE --dry-run` says what a table asks; without `--dry-run` the "
        "command runs it.",
    ]
    for name in paper.order:
        table = paper.table(name)
        parts += _figure(paper, name) if table is None else _table(paper, table, tables)
    parts += _weights(paper)
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def papers_page(tables: Path) -> str:
    """Give the part of the documentation on all papers as Markdown: one row per table or figure
    that holds results, and below it the tables with numbers of ours.

    Args:
        tables: A folder with PAPER-TABLE.json of the tables that were run.
    """
    parts = []
    for paper in map(paper_named, PAPERS):
        rows, shown, without = [], [], []
        for entry in catalogue([paper.name]).entries:
            if not entry.result:
                without.append(entry.where.partition(",")[0])
                continue
            ran = tables / f"{paper.name}-{entry.table}.json"
            status = "can be run; not run"
            if ran.is_file():
                reproduced = Reproduction.from_json(ran.read_bytes())
                shown.append(_our_rows(reproduced))
                status = "run, below"
            elif not entry.runnable:
                status = f"cannot be run: {entry.reason}"
            elif (table := paper.table(entry.table)) and table.elsewhere:
                status = "run with other settings: [results](results.md)"
            where = entry.where.partition(",")[0]
            rows.append(f"| {where} | {entry.title} | `{entry.table}` | {status} |")
        parts += [
            f"## {paper.called}",
            f"{paper.authors}: *{paper.title}*",
            "| in the paper | what it shows | recipe | status |\n| --- | --- | --- | --- |\n"
            + "\n".join(rows),
            f"No results to reproduce: {', '.join(without)}." if without else "",
            *shown,
        ]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def _our_rows(reproduced: Reproduction) -> str:
    """Give a table as Markdown, without the columns and rows that hold no number of ours."""
    shown: list[Block] = []
    for column, grid in enumerate(
        block for block in page_of(reproduced) if isinstance(block, Grid)
    ):
        cells = [[row[column] for row in ours.cells] for ours in reproduced.ours]
        rows = tuple(
            row
            for row, values in zip(grid.rows, zip(*cells, strict=True), strict=True)
            if any(cell.value is not None for cell in values)
        )
        shown += [replace(grid, rows=rows), GAP] if rows else []
    heading = f"### {reproduced.where.partition(',')[0]}: {reproduced.title}"
    differs = "\n".join(f"- {text}" for text in reproduced.differs)
    return f"{heading}\n\n{markdown.render(shown)}\n\nDifferences from the paper:\n\n{differs}"


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
    needs = f"`evenhand dev reproduce {paper.name} {table.name}` needs: {in_words(table.needs)}."
    if table.reason:
        needs = f"Cannot be run: {table.reason}"
    elsewhere = [table.elsewhere] if table.elsewhere else []
    return [f"## {table.where}: {table.title}", needs, *elsewhere, body]


def _ran(paper: Paper, table: Table, tables: Path | None) -> Reproduction:
    file = None if tables is None else tables / f"{paper.name}-{table.name}.json"
    if file is not None and file.is_file():
        return Reproduction.from_json(file.read_bytes())
    return reproduction(paper, table, "small", {}, {}, ())
