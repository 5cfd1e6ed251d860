"""The questions of SQuAD v2's development set, one row each."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.instruments.files import PinnedFiles, card_of
from evenhand.metrics.squad import has_words

_NAME = "squad_v2"


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


class SquadData:
    """Columns: id, article, passage, question, golds, answerable.

    A question is answerable if it has a gold answer with words in it, as in the official scorer.
    """

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        data = card()["data"]
        self._local = local
        self._files = PinnedFiles(
            _NAME, data["url"], data["revision"], data["sha256"], local=local, cache=cache
        )

    def records(self) -> pl.DataFrame:
        articles = orjson.loads(self._files.read(self._file()))["data"]
        rows = [
            (question["id"], article["title"], paragraph["context"], question["question"], golds)
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
            for golds in [has_words([answer["text"] for answer in question["answers"]])]
        ]
        schema: Any = {
            "id": pl.String,
            "article": pl.String,
            "passage": pl.String,
            "question": pl.String,
            "golds": pl.List(pl.String),
        }
        frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("row")
        table = frame.with_columns(answerable=pl.col("golds").list.len() > 0)
        if (len(table), table["answerable"].sum()) != (
            card()["data"]["items"],
            card()["data"]["answerable"],
        ):
            raise UserError("SQuAD's file does not hold the questions that its card names")
        return table

    def _file(self) -> str:
        files = list(self._files.sha256)
        at_hand = [file for file in files if self._local and _holds(self._local / _NAME, file)]
        return (at_hand or files[-1:])[0]


def _holds(folder: Path, file: str) -> bool:
    return (folder / file).is_file() or (folder / f"{file}.gz").is_file()
