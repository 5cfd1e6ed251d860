"""The tables and figures of four papers as recipes: what to run, what to print, what was published.

A paper is a folder: `paper.toml` has its runs, and the figures that hold no result; every other
file is one table. A recipe is data: a run is named once and may serve several tables.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evenhand.core.errors import UserError, choices_for

Size = Literal["small", "paper"]
Shape = Literal["stack", "heat", "bars", "curves"]
SIZES: tuple[Size, ...] = ("small", "paper")
NOT_PRINTED = "-"
OF_RUN = "run:"

# What a table may need in addition to this package, in words.
NEEDS = {
    "endpoint": "a chat endpoint",
    "log-probabilities": "log-probabilities",
    "bbq": "BBQ",
    "realtoxicityprompts": "RealToxicityPrompts",
    "squad": "SQuAD v2",
    "search": "a search engine",
    "judge": "a model for the role of the rater",
    "trained weights": "trained weights (--trained)",
    "human raters": "people who rate",
    "attention": "weights whose attention can be read",
    "hand labels": "labels given by hand",
}
Need = Annotated[str, Field(pattern="^(" + "|".join(NEEDS) + ")$")]


class _RecipePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecipeSample(_RecipePart):
    """The items of runs: an instrument with its options at each size. An option "run:NAME" is the
    folder of that run, of the same model."""

    instrument: str
    options: Mapping[str, Any] = {}  # of the instrument, at any size
    small: Mapping[str, Any] = {}
    paper: Mapping[str, Any] = {}

    def at(self, size: Size) -> dict[str, Any]:
        """The options at a size."""
        return {**self.options, **(self.small if size == "small" else self.paper)}

    def reads(self) -> set[str]:
        """The runs that its options name."""
        values = [*self.options.values(), *self.small.values(), *self.paper.values()]
        return {value.removeprefix(OF_RUN) for value in values if str(value).startswith(OF_RUN)}


class RunSpec(_RecipePart):
    """One run: a sample, and a method with its settings.

    `reuses` names a run of the same paper whose replies answer the equal calls of this one, so that
    it costs little or nothing. `trained` names weights that are served under their own name.
    """

    sample: str
    method: str = "default"
    settings: Mapping[str, Any] = {}
    reuses: str | None = None
    trained: str | None = None
    needs: tuple[Need, ...] = ()

    @property
    def assignments(self) -> list[str]:
        """The settings, as they are written after --set."""
        return [f"{name}={_written(value)}" for name, value in self.settings.items()]


class TrainedWeights(_RecipePart):
    """Weights that a run needs: what they are, and the commands that make them, or the name of
    others that are made by the same ones."""

    says: str
    commands: tuple[str, ...] = ()
    like: str | None = None


class TableLine(_RecipePart):
    """A row or a column of a table. What a cell shows is said by its row and its column together:
    a number of a run, of all items or of a group. `times` is 100 where the paper prints percent."""

    title: str
    run: str | None = None
    measure: str | None = None
    group: str | None = None
    times: float | None = None


class PublishedRow(_RecipePart):
    """What the paper prints for one of its systems: a string a row, its cells apart by blanks;
    "71.09±0.39" has a standard deviation, "-" is not printed."""

    system: str
    rows: tuple[str, ...]

    def cells(self) -> list[list[str]]:
        return [row.split() for row in self.rows]


class UncoveredFigure(_RecipePart):
    """A table or figure without a recipe, and why: it holds no result, or a drawing that cannot be
    run."""

    table: str
    title: str
    where: str
    result: bool  # whether something was measured
    reason: str
    needs: tuple[Need, ...] = ()


class Table(_RecipePart):
    """A table or figure that holds numbers, with its recipe: its rows and columns, and what the
    paper prints."""

    title: str
    where: str  # the number that the paper gives it, and its section
    shows: str
    rows: tuple[TableLine, ...]
    columns: tuple[TableLine, ...]
    published: tuple[PublishedRow, ...] = ()
    drawn: Shape | None = None  # of a figure: how its numbers are drawn, in addition to its tables
    line: float | None = None  # of bars: the value that says "none"
    read_off: bool = False  # published values are read off a drawing, or told in the text only
    differs: tuple[str, ...]  # what is not as in the paper, apart from the model
    needs: tuple[Need, ...]
    reason: str = ""  # why it cannot be run, where it cannot
    elsewhere: str = ""  # what there is to say of our own runs of it: a sentence with a link
    name: str = ""  # of the file

    @model_validator(mode="after")
    def _whole(self) -> Self:
        shape = (len(self.rows), len(self.columns))
        for entry in self.published:
            cells = entry.cells()
            widths = {len(row) for row in cells}
            if len(cells) != shape[0] or widths != {shape[1]}:
                raise ValueError(f"{entry.system}: the table has {shape[0]} rows of {shape[1]}")
            for row in cells:
                for cell in row:
                    number(cell)
        return self

    def address(self, row: TableLine, column: TableLine) -> TableLine:
        """What the cell of a row and a column shows. A row speaks before its column."""
        fields = {name: getattr(row, name) or getattr(column, name) for name in _ADDRESS}
        return TableLine(title=f"{row.title}, {column.title}", **fields)

    def runs(self) -> tuple[str, ...]:
        """The names of the runs that its cells show, in their order."""
        cells = (self.address(row, column) for row in self.rows for column in self.columns)
        return tuple(dict.fromkeys(cell.run for cell in cells if cell.run is not None))


_ADDRESS = ("run", "measure", "group", "times")


class Paper(_RecipePart):
    """A paper: who wrote it, its runs by name, and all its tables and figures in their order."""

    name: str
    called: str  # by this short name
    title: str
    authors: str
    order: tuple[str, ...]  # of all tables and figures
    samples: Mapping[str, RecipeSample] = {}
    runs: Mapping[str, RunSpec] = {}
    trained: Mapping[str, TrainedWeights] = {}
    figures: tuple[UncoveredFigure, ...] = ()
    tables: tuple[Table, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        there = {table.name for table in self.tables} | {figure.table for figure in self.figures}
        if there != set(self.order):
            raise ValueError(f"{self.name}: {sorted(there ^ set(self.order))} is not in both lists")
        needed_runs = {name for table in self.tables for name in table.runs()}
        _known({run.sample for run in self.runs.values()}, self.samples, "sample")
        _known(needed_runs.union(*map(self.waits_for, self.runs)), self.runs, "run")
        weights = {run.trained for run in self.runs.values()}
        weights |= {model.like for model in self.trained.values()}
        _known(weights - {None}, self.trained, "weights")
        return self

    def waits_for(self, name: str) -> set[str]:
        """The runs that must be whole before this one: it reuses one, or asks about texts."""
        run = self.runs[name]
        return self.samples[run.sample].reads() | ({run.reuses} if run.reuses else set())

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Runs with those that they wait for, each after them."""
        needed = set(names)
        needed |= {first for name in needed for first in self.waits_for(name)}
        return sorted(
            (name for name in self.runs if name in needed),
            key=lambda name: bool(self.waits_for(name)),
        )

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)


def number(printed: str) -> float | None:
    """The number that is printed, without its standard deviation; None where none is printed."""
    return None if printed == NOT_PRINTED else float(printed.partition("±")[0])


def _known(names: set[Any], there: Mapping[str, Any], what: str) -> None:
    unknown = sorted(names - set(there))
    if unknown:
        raise ValueError(f"there is no {what} {unknown[0]!r}")


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


PAPERS = ("stardtox", "mabrf", "rldf", "malibu")
_WHOLE = "paper.toml"


@cache
def paper_named(name: str) -> Paper:
    """The paper of this name with all its tables."""
    if name not in PAPERS:
        raise UserError(f"unknown paper {name!r}. {choices_for(name, PAPERS)}")
    folder = resources.files("evenhand.findings.papers") / name
    paper = tomllib.loads((folder / _WHOLE).read_text("utf-8"))
    files = {file.name.removesuffix(".toml"): file for file in folder.iterdir()
             if file.name.endswith(".toml") and file.name != _WHOLE}  # fmt: skip
    order = {table: index for index, table in enumerate(paper["order"])}
    tables = [
        {**tomllib.loads(files[table].read_text("utf-8")), "name": table}
        for table in sorted(files, key=lambda stem: order.get(stem, len(order)))
    ]
    return Paper.model_validate({**paper, "name": name, "tables": tables})
