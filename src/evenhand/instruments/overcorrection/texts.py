"""Benign texts of the user's own, one JSON object a line."""

from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import UserError
from evenhand.instruments.overcorrection.data import COLUMNS
from evenhand.metrics.overcorrection import names
from evenhand.runners.source import read_jsonl

_FORM = 'a line is like {"text": "…", "identity": "deaf"}'
_Word = Annotated[str, Field(min_length=1, max_length=200)]


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    text: Annotated[str, Field(min_length=1)]
    identity: _Word  # several are joined by ";"
    family: _Word = "own"
    template: _Word | None = None  # None: a template of its own


def own_texts(path: Path) -> pl.DataFrame:
    """The rows of a file, in the columns that `BenignData.texts` has."""
    rows = [_columns(row, path, number) for number, row in read_jsonl(path, _Row, _FORM)]
    if not rows:
        raise UserError(f"{path} is empty; {_FORM}")
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _columns(row: _Row, path: Path, number: int) -> tuple[str, ...]:
    for identity in row.identity.split(";"):
        if not names(row.text, identity):
            raise UserError(f"{path} line {number}: the text does not name {identity.strip()!r}")
    name = f"own/{number}"
    return name, "own", "own", row.template or name, row.identity, row.family, row.text
