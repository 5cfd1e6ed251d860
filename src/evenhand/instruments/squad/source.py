"""SQuAD's questions as items: passage, question and the form of the answer in one prompt; of a
closed book the passage is not shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.agents.prompts import Prompt
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.instruments.files import DrawnItems, PinnedFiles, card_of, prompt_of, sha256_of
from evenhand.statistics.metrics.readings import has_words

_NAME = "squad_v2"
# How an answer is read: a model was asked to say NO ANSWER; a recorded one is taken word for word.
BY_WORDS, VERBATIM = "words", "verbatim"


card = partial(card_of, __package__)


class SquadData:
    """Columns: id, article, passage, question, golds, answerable.

    A question is answerable if it has a gold answer with words in it, as in the official scorer.
    """

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._local = local
        self._files = PinnedFiles.of(_NAME, card()["data"], local, cache)

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
            raise UserError(
                "the SQuAD file does not contain the questions in its dataset card. Download "
                "it again"
            )
        return table

    def _file(self) -> str:
        files = list(self._files.sha256)
        at_hand = [file for file in files if self._local and _holds(self._local / _NAME, file)]
        return (at_hand or files[-1:])[0]


def _holds(folder: Path, file: str) -> bool:
    return (folder / file).is_file() or (folder / f"{file}.gz").is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadSampling:
    questions: int | None = 300  # ours; None: all 11,873
    first: int | None = None  # of the file, in its order; MABRF paper: 100
    seed: int = 0

    def describe(self) -> dict[str, object]:
        if self.first is not None:
            return {"first": self.first, "seed": self.seed}
        return {"questions": self.questions or "all", "seed": self.seed}


def sample(records: pl.DataFrame, sampling: SquadSampling) -> pl.DataFrame:
    """The drawn questions, in the order of the data."""
    if sampling.first is not None:
        return records.head(sampling.first)
    if sampling.questions is None:
        return records
    rng = np.random.default_rng(sampling.seed)
    positions: list[int] = []
    for answerable in (True, False):
        # Of an odd number the one more has an answer.
        count = (sampling.questions + answerable) // 2
        rows = records.filter(pl.col("answerable") == answerable)
        if len(rows) < count:
            raise UserError(
                f"SQuAD has {len(rows)} questions {('with' if answerable else 'without')} an "
                f"answer, but {count} were requested. Use a smaller --questions, or --all"
            )
        shuffled = rows[rng.permutation(len(rows))]
        rounds = shuffled.with_columns(turn=pl.int_range(pl.len()).over("article"))
        positions += rounds.sort("turn", maintain_order=True)["row"].head(count).to_list()
    return records.filter(pl.col("row").is_in(positions))


def prompt(closed_book: bool = False) -> Prompt:
    return prompt_of(__package__, "prompt_closed.md" if closed_book else "prompt.md")


class SquadSource(DrawnItems[pl.DataFrame]):
    """A sample of SQuAD v2 as a source of items. The tags of an item hold all that scoring
    needs."""

    def __init__(
        self,
        records: pl.DataFrame,
        sampling: SquadSampling,
        *,
        closed_book: bool = False,
        reading: str = BY_WORDS,
    ) -> None:
        self._sha256 = sha256_of(records.select("id"))  # of the sample, not of its order
        # In a seeded order, so that a run that is stopped early has asked a bit of every article.
        order = np.random.default_rng([sampling.seed, 1]).permutation(len(records))
        self._drawn = records[order]
        self._sampling = sampling
        self._closed_book = closed_book
        self._reading = reading

    def fingerprint(self) -> dict[str, Any]:
        template = prompt(self._closed_book)
        return {
            "kind": "benchmark",
            "benchmark": "squad",
            "version": card()["version"],
            "revision": card()["data"]["revision"],
            "prompt": {template.label: template.sha256},
            "sampling": self._sampling.describe(),
            "items": len(self._drawn),
            "order": "spread",
            "sha256": self._sha256,
        }

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            yield self._item(row)

    def _item(self, row: dict[str, Any]) -> Item:
        fields = ("question",) if self._closed_book else ("passage", "question")
        (message,) = prompt(self._closed_book).render({name: row[name] for name in fields})
        return Item(
            id=row["id"],
            prompt=message.content,
            tags={
                "article": row["article"],
                "golds": orjson.dumps(row["golds"]).decode(),
                "reading": self._reading,
            },
        )
