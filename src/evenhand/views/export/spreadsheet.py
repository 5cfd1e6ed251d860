"""A run as CSV for spreadsheets: one row per item, in which no cell begins as a formula does."""

import unicodedata
from pathlib import Path

import polars as pl

from evenhand.findings.run import Run
from evenhand.views.export.exported import ExportedRun, without_addresses
from evenhand.views.visible import visible

_BEGINS = ("=", "+", "-", "@")  # a text with which a spreadsheet takes for a formula
_LONGEST = 32_767  # characters that a cell of Excel holds; longer text would spread over rows
_CUT = "… [cut]"


def write(of: ExportedRun, folder: Path) -> list[str]:
    """Write the results, their tags and scores, and the measures of each item. What is missing is
    an empty cell, and numbers stay numbers."""
    rows = (
        Run(of.run)
        .frame()
        .with_columns(pl.col("message").map_elements(without_addresses, return_dtype=pl.String))
    )
    if of.values is not None:
        new_names = {name: f"measure.{name}" for name in of.values.columns if name != "item_id"}
        rows = rows.join(of.values.rename(new_names), on="item_id", maintain_order="left")
        rows = rows.rename({"measure.state": "state"})
    safe = rows.with_columns(
        pl.col(pl.String).map_elements(cell, return_dtype=pl.String),
        pl.when(pl.col(pl.Float64).is_finite()).then(pl.col(pl.Float64)),
    ).rename(cell)
    # A mark at the beginning says to Excel that this is UTF-8; text is always in quotes.
    safe.write_csv(folder / "items.csv", quote_style="non_numeric", include_bom=True)
    return ["items.csv"]


def cell(text: str) -> str:
    """Give a text as a spreadsheet may hold it: without what cannot be seen, cut to what fits, and
    with an apostrophe before what would be a formula."""
    content = visible(text)
    # Of any kind of blank, and in any width of letters: NFKC makes ＝ and ﹦ the plain sign.
    begins = unicodedata.normalize("NFKC", content.lstrip()[:1])
    if begins.startswith(_BEGINS) or content[:1] in ("\t", "\r", "\n"):
        content = f"'{content}"
    return content if len(content) <= _LONGEST else content[: _LONGEST - len(_CUT)] + _CUT
