"""The charts of a reproduced figure: the paper's numbers and ours, in the shape that the recipe
names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenhand.findings.papers import Table, number, paper_named
from evenhand.findings.reproduction import OurNumber, Reproduction
from evenhand.views.charts import Chart
from evenhand.views.charts.curves import Curve, CurvePoint, curves
from evenhand.views.charts.forest import ForestPanel, ForestRow, State, forest
from evenhand.views.charts.heat import Cell, heat
from evenhand.views.reproduction_page import as_printed, as_written, decimals

_OURS = "Blue: ours, with 95% CIs."
_BOTH = "Blue: ours, with 95% CIs. Gray: the paper's, without."
_PAIR = " - "  # between the two sides of a difference
_PART = ": "  # after what several rows or columns share


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    """Whose numbers: a system of the paper, or a model of ours."""

    label: str
    state: State
    cells: Sequence[Sequence[OurNumber]]
    texts: Sequence[Sequence[str]]


def charts(reproduction: Reproduction) -> tuple[Chart, ...]:
    """Draw a figure; a table has no chart."""
    recipe = paper_named(reproduction.paper).table(reproduction.table)
    if recipe is None or recipe.drawn is None:
        return ()
    return tuple(_SHAPES[recipe.drawn](reproduction, recipe, _systems(reproduction)))


def _systems(reproduction: Reproduction) -> list[_System]:
    """The paper's systems and our models that have a number."""
    places = [decimals(reproduction, index) for index in range(len(reproduction.columns))]
    systems = [
        _System(
            label=printed.system,
            state="published",
            cells=[[OurNumber(value=number(cell)) for cell in row] for row in printed.cells],
            texts=[[as_printed(cell) for cell in row] for row in printed.cells],
        )
        for printed in reproduction.published
    ]
    systems += [
        _System(
            label=f"ours: {result.model}",
            state="plain",
            cells=result.cells,
            texts=[
                [as_written(cell, digits) for cell, digits in zip(row, places, strict=True)]
                for row in result.cells
            ],
        )
        for result in reproduction.ours
    ]
    return [
        system
        for system in systems
        if any(cell.value is not None for row in system.cells for cell in row)
    ]


def _legend(systems: Sequence[_System]) -> str:
    return _BOTH if any(system.state == "published" for system in systems) else _OURS


def _label(row: str, system: _System, systems: Sequence[_System]) -> str:
    return row if len(systems) == 1 else f"{row}, {system.label}"


def _bars(reproduction: Reproduction, recipe: Table, systems: Sequence[_System]) -> Iterator[Chart]:
    """A panel per column, a bar per row and system."""
    panels = []
    for j, column in enumerate(reproduction.columns):
        bars = [
            ForestRow(
                label=_label(title, system, systems),
                value=system.cells[i][j].value,
                low=system.cells[i][j].low,
                high=system.cells[i][j].high,
                state=system.state,
                says=system.texts[i][j],
            )
            for i, title in enumerate(reproduction.rows)
            for system in systems
            if system.cells[i][j].value is not None
        ]
        if bars:
            panels.append(ForestPanel(rows=bars, axis=column, line=recipe.line, bars=True))
    if panels:
        yield forest("bars", reproduction.title, panels, [_legend(systems)])


def _stack(
    reproduction: Reproduction, _recipe: Table, systems: Sequence[_System]
) -> Iterator[Chart]:
    """A bar per row and system, whose parts are the columns."""
    stacks = []
    for i, title in enumerate(reproduction.rows):
        for system in systems:
            parts = [cell.value for cell in system.cells[i] if cell.value is not None]
            if len(parts) == len(reproduction.columns):
                stacks.append(
                    ForestRow(
                        label=_label(title, system, systems),
                        value=sum(parts),
                        state=system.state,
                        parts=tuple(parts),
                        says="; ".join(system.texts[i]),
                    )
                )
    if stacks:
        panel = ForestPanel(rows=stacks, axis=" + ".join(reproduction.columns), bars=True)
        legend = f"From dark to pale: {'; '.join(reproduction.columns)}."
        yield forest("stack", reproduction.title, [panel], [legend, _legend(systems)])


def _heat(
    reproduction: Reproduction, _recipe: Table, systems: Sequence[_System]
) -> Iterator[Chart]:
    """A map per system: of differences the two sides against each other, else rows and columns."""
    pairs = all(_PAIR in row for row in reproduction.rows)
    parts = [column.rpartition(_PART)[0] for column in reproduction.columns]
    shared = [[j for j, part in enumerate(parts) if part == same] for same in dict.fromkeys(parts)]
    maps = [[j] for j in range(len(parts))] if pairs else shared
    for system in systems:
        for columns in maps:
            cells = list(_cells(reproduction, system, columns, pairs=pairs))
            if cells:
                part = reproduction.columns[columns[0]] if pairs else parts[columns[0]]
                title = _PART.join(filter(None, (reproduction.title, system.label, part)))
                legend = [_DIFFERENCES if pairs else _TABLE]
                legend += [_OPEN] if pairs and system.state == "plain" else []
                place = f"{systems.index(system) + 1}_{columns[0] + 1}"
                yield heat(f"heat_{place}", title, cells, legend)


_DIFFERENCES = "Column minus row. Orange: above 0, blue: below 0."
_TABLE = "Orange: above the mean of the column, blue: below it."
_OPEN = "?: the 95% CI, not adjusted, contains 0."


def _cells(
    reproduction: Reproduction, system: _System, columns: Sequence[int], *, pairs: bool
) -> Iterator[Cell]:
    for j in columns:
        values = {
            i: cell for i, row in enumerate(system.cells) if (cell := row[j]).value is not None
        }
        means = sum(cell.value or 0.0 for cell in values.values()) / max(len(values), 1)
        for i, cell in values.items():
            left, _, right = reproduction.rows[i].partition(_PAIR)
            contains = cell.low is not None and cell.high is not None and cell.low <= 0 <= cell.high
            text = system.texts[i][j].partition(" (")[0]
            yield Cell(
                row=right if pairs else reproduction.rows[i],
                column=left if pairs else reproduction.columns[j].rpartition(_PART)[2],
                sign="?" if pairs and contains else "",
                value=(cell.value or 0.0) - (0.0 if pairs else means),
                says=text,
            )


def _curves(
    reproduction: Reproduction, _recipe: Table, systems: Sequence[_System]
) -> Iterator[Chart]:
    """A panel per setting, which the rows "SETTING: LEVEL" name; a chart per column."""
    settings = [row.rpartition(_PART) for row in reproduction.rows]
    for j, column in enumerate(reproduction.columns):
        lines = []
        for setting in dict.fromkeys(shared for shared, _, _ in settings):
            for system in systems:
                points = [
                    CurvePoint(
                        at=float(level.replace(",", "")),
                        value=cell.value,
                        low=cell.low,
                        high=cell.high,
                        says=system.texts[i][j],
                    )
                    for i, (shared, _, level) in enumerate(settings)
                    if shared == setting and (cell := system.cells[i][j]).value is not None
                ]
                if points:
                    lines.append(
                        Curve(label=system.label, panel=setting, points=points, state=system.state)
                    )
        if lines:
            title = f"{reproduction.title}: {column}"
            yield curves(f"curves_{j + 1}", title, lines, [_legend(systems)])


_SHAPES = {"bars": _bars, "stack": _stack, "heat": _heat, "curves": _curves}
