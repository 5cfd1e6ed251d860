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
class _Source:
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
    return tuple(_SHAPES[recipe.drawn](reproduction, recipe, _sources(reproduction)))


def _sources(reproduction: Reproduction) -> list[_Source]:
    """The paper's systems and our models that have a number."""
    places = [decimals(reproduction, index) for index in range(len(reproduction.columns))]
    sources = [
        _Source(
            label=printed.system,
            state="beside",
            cells=[[OurNumber(value=number(cell)) for cell in row] for row in printed.cells],
            texts=[[as_printed(cell) for cell in row] for row in printed.cells],
        )
        for printed in reproduction.published
    ]
    sources += [
        _Source(
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
        source
        for source in sources
        if any(cell.value is not None for row in source.cells for cell in row)
    ]


def _legend(sources: Sequence[_Source]) -> str:
    return _BOTH if any(source.state == "beside" for source in sources) else _OURS


def _label(row: str, source: _Source, sources: Sequence[_Source]) -> str:
    return row if len(sources) == 1 else f"{row}, {source.label}"


def _bars(reproduction: Reproduction, recipe: Table, sources: Sequence[_Source]) -> Iterator[Chart]:
    """A panel per column, a bar per row and source."""
    panels = []
    for j, column in enumerate(reproduction.columns):
        bars = [
            ForestRow(
                label=_label(title, source, sources),
                value=source.cells[i][j].value,
                low=source.cells[i][j].low,
                high=source.cells[i][j].high,
                state=source.state,
                says=source.texts[i][j],
            )
            for i, title in enumerate(reproduction.rows)
            for source in sources
            if source.cells[i][j].value is not None
        ]
        if bars:
            panels.append(ForestPanel(rows=bars, axis=column, line=recipe.line, bars=True))
    if panels:
        yield forest("bars", reproduction.title, panels, [_legend(sources)])


def _stack(
    reproduction: Reproduction, _recipe: Table, sources: Sequence[_Source]
) -> Iterator[Chart]:
    """A bar per row and source, whose parts are the columns."""
    stacks = []
    for i, title in enumerate(reproduction.rows):
        for source in sources:
            parts = [cell.value for cell in source.cells[i] if cell.value is not None]
            if len(parts) == len(reproduction.columns):
                stacks.append(
                    ForestRow(
                        label=_label(title, source, sources),
                        value=sum(parts),
                        state=source.state,
                        parts=tuple(parts),
                        says="; ".join(source.texts[i]),
                    )
                )
    if stacks:
        panel = ForestPanel(rows=stacks, axis=" + ".join(reproduction.columns), bars=True)
        legend = f"From dark to pale: {'; '.join(reproduction.columns)}."
        yield forest("stack", reproduction.title, [panel], [legend, _legend(sources)])


def _heat(
    reproduction: Reproduction, _recipe: Table, sources: Sequence[_Source]
) -> Iterator[Chart]:
    """A map per source: of differences the two sides against each other, else rows and columns."""
    pairs = all(_PAIR in row for row in reproduction.rows)
    parts = [column.rpartition(_PART)[0] for column in reproduction.columns]
    shared = [[j for j, part in enumerate(parts) if part == same] for same in dict.fromkeys(parts)]
    maps = [[j] for j in range(len(parts))] if pairs else shared
    for source in sources:
        for columns in maps:
            cells = list(_cells(reproduction, source, columns, pairs=pairs))
            if cells:
                part = reproduction.columns[columns[0]] if pairs else parts[columns[0]]
                title = _PART.join(filter(None, (reproduction.title, source.label, part)))
                legend = [_DIFFERENCES if pairs else _TABLE]
                legend += [_OPEN] if pairs and source.state == "plain" else []
                place = f"{sources.index(source) + 1}_{columns[0] + 1}"
                yield heat(f"heat_{place}", title, cells, legend)


_DIFFERENCES = "Column minus row. Orange: above 0, blue: below 0."
_TABLE = "Orange: above the mean of the column, blue: below it."
_OPEN = "?: the 95% CI, not adjusted, contains 0."


def _cells(
    reproduction: Reproduction, source: _Source, columns: Sequence[int], *, pairs: bool
) -> Iterator[Cell]:
    for j in columns:
        values = {
            i: cell for i, row in enumerate(source.cells) if (cell := row[j]).value is not None
        }
        means = sum(cell.value or 0.0 for cell in values.values()) / max(len(values), 1)
        for i, cell in values.items():
            left, _, right = reproduction.rows[i].partition(_PAIR)
            contains = cell.low is not None and cell.high is not None and cell.low <= 0 <= cell.high
            text = source.texts[i][j].partition(" (")[0]
            yield Cell(
                row=right if pairs else reproduction.rows[i],
                column=left if pairs else reproduction.columns[j].rpartition(_PART)[2],
                sign="?" if pairs and contains else "",
                value=(cell.value or 0.0) - (0.0 if pairs else means),
                says=text,
            )


def _curves(
    reproduction: Reproduction, _recipe: Table, sources: Sequence[_Source]
) -> Iterator[Chart]:
    """A panel per setting, which the rows "SETTING: LEVEL" name; a chart per column."""
    settings = [row.rpartition(_PART) for row in reproduction.rows]
    for j, column in enumerate(reproduction.columns):
        lines = []
        for setting in dict.fromkeys(shared for shared, _, _ in settings):
            for source in sources:
                points = [
                    CurvePoint(
                        at=float(level.replace(",", "")),
                        value=cell.value,
                        low=cell.low,
                        high=cell.high,
                        says=source.texts[i][j],
                    )
                    for i, (shared, _, level) in enumerate(settings)
                    if shared == setting and (cell := source.cells[i][j]).value is not None
                ]
                if points:
                    lines.append(
                        Curve(label=source.label, panel=setting, points=points, state=source.state)
                    )
        if lines:
            title = f"{reproduction.title}: {column}"
            yield curves(f"curves_{j + 1}", title, lines, [_legend(sources)])


_SHAPES = {"bars": _bars, "stack": _stack, "heat": _heat, "curves": _curves}
