"""The tables and figures of four papers as recipes: what to run, what to print, what was published.

A paper is a folder: `paper.toml` has its runs, and the figures that hold no result; every other
file is one table. A recipe is data: a run is named once and may serve several tables.
"""

from evenhand.findings.papers.recipe import (
    NEEDS,
    NOT_PRINTED,
    OF_RUN,
    SIZES,
    Paper,
    PublishedRow,
    RecipeSample,
    RunSpec,
    Size,
    Table,
    TableLine,
    TrainedWeights,
    UncoveredFigure,
    number,
)
from evenhand.findings.papers.shelf import PAPERS, paper_named

__all__ = [
    "NEEDS",
    "NOT_PRINTED",
    "OF_RUN",
    "PAPERS",
    "SIZES",
    "Paper",
    "PublishedRow",
    "RecipeSample",
    "RunSpec",
    "Size",
    "Table",
    "TableLine",
    "TrainedWeights",
    "UncoveredFigure",
    "number",
    "paper_named",
]
