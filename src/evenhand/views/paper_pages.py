"""The tables of papers as Markdown: the page of one paper, and the overview of all."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.findings.papers import PAPERS, Paper, Table, paper_named
from evenhand.findings.reproduction import Reproduction, catalogue, in_words, reproduction
from evenhand.views import markdown, page_of
from evenhand.views.blocks import GAP, Block, Grid

# Of a table on the page of all papers, our choice; a paper's own page has the larger ones.
_MOST_ROWS, _MOST_COLUMNS = 5, 4


def paper_page(paper: Paper, tables: Path | None) -> str:
    """Give a paper's page as Markdown.

    Args:
        paper: The paper.
        tables: A folder with PAPER-TABLE.json of the tables that were run; None if there is none.
    """
    parts = [
        f"# {paper.called}: the paper's tables and ours",
        f"{paper.authors}: *{paper.title}*",
        "Columns that begin with ours are ours; the others are copied from the paper. "
        f"`evenhand dev reproduce {paper.name} TABLE --dry-run` says what a table asks; without "
        "`--dry-run` the command runs it.",
    ]
    for name in paper.order:
        table = paper.table(name)
        parts += _figure(paper, name) if table is None else _table(paper, table, tables)
    parts += _weights(paper)
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def papers_page(tables: Path) -> str:
    """Give the part of the documentation on all papers as Markdown: which tables and figures were
    run, which can be run and which cannot, and the short tables with numbers of ours.

    Args:
        tables: A folder with PAPER-TABLE.json of the tables that were run.
    """
    parts = [part for name in PAPERS for part in _overview(paper_named(name), tables)]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip() for part in parts)) + "\n"


def _overview(paper: Paper, tables: Path) -> list[str]:
    """Give a paper's part of the page on all papers."""
    rows, reproductions, without_result = [], [], []
    impossible: dict[str, list[str]] = {}
    not_run: dict[str, list[str]] = {}
    for entry in catalogue([paper.name]).entries:
        where = entry.where.partition(",")[0]
        reproduced = _recorded(tables, paper.name, entry.table)
        table = paper.table(entry.table)
        if not entry.result:
            without_result.append(where)
        elif reproduced is not None:
            status = _status(reproduced)
            rows.append(f"| {where} | {entry.title} | `{entry.table}` | {status} |")
            reproductions.append(reproduced)
        elif not entry.runnable:
            impossible.setdefault(entry.reason, []).append(where)
        elif table and table.elsewhere:
            rows.append(
                f"| {where} | {entry.title} | `{entry.table}` | partly: {table.elsewhere} |"
            )
        else:
            not_run.setdefault(in_words(entry.needs), []).append(f"{where} (`{entry.table}`)")
    head = "| in the paper | what it shows | recipe | status |\n| --- | --- | --- | --- |\n"
    notes = {table.elsewhere for table in paper.tables if _recorded(tables, paper.name, table.name)}
    return [
        f"## {paper.called}",
        f"{paper.authors}: *{paper.title}*",
        head + "\n".join(rows) if rows else "",
        *sorted(notes),
        *(f"Not run: {', '.join(where)}. Needed: {needs}." for needs, where in not_run.items()),
        *(f"Cannot be run: {', '.join(where)}. {why}" for why, where in impossible.items()),
        f"No results to reproduce: {', '.join(without_result)}." if without_result else "",
        *_short_tables(reproductions),
    ]


def _status(reproduced: Reproduction) -> str:
    """Say whether all rows and columns of a table have a number of ours, or which ones."""
    cells = [
        [any(ours.cells[i][j].value is not None for ours in reproduced.ours)
         for j in range(len(reproduced.columns))]
        for i in range(len(reproduced.rows))
    ]  # fmt: skip
    rows = _listed("rows", reproduced.rows, [any(row) for row in cells])
    columns = _listed(
        "columns", reproduced.columns, [any(column) for column in zip(*cells, strict=True)]
    )
    return f"partly: {'; '.join(filter(None, (rows, columns)))}" if rows or columns else "run"


def _listed(what: str, titles: Sequence[str], ran: Sequence[bool]) -> str:
    """Name the lines of a table that were run, or those that were not if they are fewer; nothing
    where all were."""
    run = [title for title, has in zip(titles, ran, strict=True) if has]
    others = [title for title, has in zip(titles, ran, strict=True) if not has]
    if not others:
        return ""
    listed = run if len(run) <= len(others) else others
    return f"{'' if listed is run else 'without '}{what} {' / '.join(listed)}"


def _short_tables(reproductions: Sequence[Reproduction]) -> list[str]:
    """Give the short tables of a paper, each with the differences that no table before it has."""
    parts: list[str] = []
    stated: set[str] = set()
    for reproduced in reproductions:
        if table := _our_rows(reproduced):
            label = "Further differences:" if stated else "Differences from the paper:"
            differences = [f"- {text}" for text in reproduced.differs if text not in stated]
            stated.update(reproduced.differs)
            parts += [table, _picture(reproduced), label if differences else ""]
            parts.append("\n".join(differences))
    return parts


def _picture(reproduced: Reproduction) -> str:
    """Give a figure's picture, which `scripts/docs_charts.py` draws."""
    recipe = paper_named(reproduced.paper).table(reproduced.table)
    if recipe is None or recipe.drawn is None:
        return ""
    return f"![{reproduced.title}](images/{reproduced.paper}-{reproduced.table}.svg)"


def _recorded(tables: Path, paper: str, table: str) -> Reproduction | None:
    file = tables / f"{paper}-{table}.json"
    if not file.is_file():
        return None
    try:
        return Reproduction.from_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read as a reproduced table: {error}") from None


def _our_rows(reproduced: Reproduction) -> str:
    """Give a table as Markdown, without the columns and rows that hold no number of ours; an empty
    text if it is large."""
    if len(reproduced.columns) > _MOST_COLUMNS:
        return ""
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
        if len(rows) > _MOST_ROWS:
            return ""
        shown += [replace(grid, rows=rows), GAP] if rows else []
    heading = f"### {reproduced.where.partition(',')[0]}: {reproduced.title}"
    return f"{heading}\n\n{markdown.render(shown)}"


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
    recorded = None if tables is None else _recorded(tables, paper.name, table.name)
    return recorded or reproduction(paper, table, "small", {}, {}, ())
