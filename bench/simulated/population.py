"""A population of templates whose answers are known: what UnifiedQA said to six categories of BBQ.

A drawn run has G templates, with replacement, and of each a block whose gold answers fit the
stereotype and one whose do not. What is true of the population is then known without a draw.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.experiments.config import data_folder
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.totals import RunTotals
from evenhand.instruments import Instrument, instrument_named
from evenhand.instruments.bbq.data import BbqData

BBQ = instrument_named("bbq")
Ints = NDArray[np.int64]
_EACH = 120  # times that each template stands in the whole population, over its blocks in turn
_ROWS = 4  # of a block
_ALIKE = 2  # of them unclear, and as many clear: those that stand for all of their kind


@cache
def outcomes(kind: str, noise: float = 0.0, keep: float = 1.0) -> pl.DataFrame:
    """The outcomes of one of UnifiedQA's models ("race", "arc") as the instrument makes them.

    `noise` of its answers are drawn anew; of the guesses where the text does not say who, only
    `keep` are kept, and the others say "unknown".
    """
    rng = np.random.default_rng(7)
    rows = _answered(kind)
    anew, drawn = rng.random(len(rows)) < noise, rng.integers(3, size=len(rows))
    silent = rng.random(len(rows)) >= keep
    choice = (
        pl.when(pl.Series(silent) & (pl.col("condition") == "ambig"))
        .then(pl.col("unknown"))
        .when(pl.Series(anew))
        .then(pl.Series(drawn))
        .otherwise(pl.col("choice"))
    )
    return BBQ.outcomes(rows.with_columns(choice=choice))


@cache
def _answered(kind: str) -> pl.DataFrame:
    """BBQ's records with the chosen option, as the rows of a run."""
    local = data_folder().local
    assert local is not None, "set EVENHAND_DATA to a folder with BBQ and UnifiedQA's answers"
    files = sorted((local / "bbq/results_unifiedqa").glob("preds_*.jsonl.gz"))
    said = pl.concat(
        pl.read_ndjson(file.read_bytes()).select(
            "category", "example_id", said=f"unifiedqa-t5-11b_pred_{kind}"
        )
        for file in files
    )
    records = BbqData(local=local, cache=data_folder().cache).records()
    rows = records.join(said, on=["category", "example_id"], maintain_order="left")
    options = pl.col("options").list.eval(_plain(pl.element()))
    hits = [_plain(pl.col("said")) == options.list.get(place) for place in range(3)]
    choice = pl.coalesce(pl.when(hit).then(place) for place, hit in enumerate(hits))
    read = pl.col("choice").is_not_null()
    weight = pl.col("alike") / _ALIKE
    return rows.with_columns(choice=choice, stands_for=weight, group="against").with_columns(
        item_id=pl.concat_str("category", "example_id", separator="/"),
        template=pl.concat_str("category", "question_index", separator="/"),
        status=pl.when(read).then(pl.lit("answered")).otherwise(pl.lit("failed")),
        reason=pl.when(~read).then(pl.lit("unreadable_reply")),
        gold="label",
        masked=pl.col("masked").cast(pl.Int64),
        names=pl.col("names").cast(pl.Int64),
    )


def _plain(text: pl.Expr) -> pl.Expr:
    words = text.str.to_lowercase().str.replace_all(r"[^\w\s']", " ")
    return words.str.replace_all(r"\s+", " ").str.strip_chars()


@dataclass(frozen=True)
class Population:
    """The blocks of each template, by whether their gold answers fit the stereotype."""

    blocks: tuple[tuple[Ints, ...], ...]  # template -> kinds of block -> first rows

    @classmethod
    def of_bbq(cls) -> "Population":
        frame = outcomes("race").with_row_index("row").with_columns(block=pl.col("row") // _ROWS)
        sure = frame.filter(condition="disambig").unique("block", maintain_order=True)
        found = []
        for _, template in sure.group_by("cluster", maintain_order=True):
            kinds = template.group_by(pl.col("aligned").fill_null(False), maintain_order=True)
            firsts = [kind["block"].to_numpy().astype(np.int64) * _ROWS for _, kind in kinds]
            found.append(tuple(firsts))
        return cls(tuple(found))

    def draw(self, templates: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The rows of a drawn run, and the number of the template that each belongs to."""
        firsts, owners = [], []
        for number, place in enumerate(rng.integers(len(self.blocks), size=templates)):
            for kind in self.blocks[place]:
                firsts.append(int(rng.choice(kind)))
                owners.append(number)
        return _rows(np.array(firsts), np.array(owners))

    def whole(self) -> tuple[Ints, Ints]:
        """The rows of the whole population: every kind of block of a template equally often."""
        firsts, owners = [], []
        for number, template in enumerate(self.blocks):
            for kind in template:
                firsts += [int(kind[place * len(kind) // _EACH]) for place in range(_EACH)]
                owners += [number] * _EACH
        return _rows(np.array(firsts), np.array(owners))


def _rows(firsts: Ints, owners: Ints) -> tuple[Ints, Ints]:
    return (firsts[:, None] + np.arange(_ROWS)).ravel(), np.repeat(owners, _ROWS)


def run_of(frame: pl.DataFrame, drawn: tuple[Ints, Ints]) -> pl.DataFrame:
    """A drawn run: each row under an id of its own, each template under its number."""
    rows, owners = drawn
    number = pl.Series(np.arange(len(rows))).cast(pl.String)
    return frame[rows].with_columns(item_id=number, cluster=pl.Series(owners).cast(pl.String))


def totals_of(bbq: Instrument, runs: tuple[pl.DataFrame, ...]) -> RunTotals | PairTotals:
    """What is added up of one run, or of two that are compared."""
    if len(runs) == 1:
        return RunTotals.of(bbq, runs)
    return PairTotals.of(bbq, iter(runs[:1]), iter(runs[1:]))
