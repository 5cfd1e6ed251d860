"""A run of fewer iterations asks nothing again that the run of more has asked."""

from pathlib import Path

import polars as pl

import evenhand as eh
from evenhand.agents import Cast
from evenhand.runs.store import RunReader
from evenhand.scorers import ScorerModel
from evenhand.scorers.wordlist import WordList
from evenhand.testing import any_reply

RUNS = ("rtp-stardtox", "rtp-stardtox-1")


def _sent(folder: Path) -> int:
    return RunReader(folder).turns().select(pl.col("attempts").sum()).collect().item()


def test_one_iteration_takes_its_replies_from_the_run_of_two(
    data_folder: Path, tmp_path: Path
) -> None:
    cast = Cast(eh.ScriptedModel(any_reply), {"scorer": ScorerModel(WordList())})
    (table,) = eh.reproduce_stardtox(
        "table2", model=cast, only=RUNS, data=data_folder, out=tmp_path, seed=1,
        sample={"prompts": 1, "continuations": 1},
    )  # fmt: skip
    two, one = (tmp_path / "stardtox/small/scripted" / run for run in RUNS)
    assert _sent(two) > 0
    assert _sent(one) == 0
    # The texts differ, so that their quality is judged anew.
    assert _sent(one / "quality") == table.runs[0].items == 2
