"""What a screen takes for each row on Ray, and what ten million rows cost beside judging all.

    EVENHAND_DATA=… python -m bench.screen                          # or `make bench-screen`
    EVENHAND_DATA=… python -m bench.screen --rows 1000 --actors 1

Labelled comments of Wikipedia talk pages that mention identities, which the scorer was not trained
on. Half give the cut-offs; the others, over and over, are the rows of a Parquet table that
`scorers screen apply` decides on a Ray cluster. The word list replaces the judge: what is
timed is the screen: how long a judge takes for what is sent to it depends on the judge.

The money is worked out, not measured: from the share that was sent, the rate that was seen, and two
prices that are given (`--judgement`, `--core-hour`).
"""

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import ray

from bench.processes import TreeCpu
from evenhand.agents import Cast
from evenhand.experiments.config import data_folder
from evenhand.experiments.request import Request, Watch
from evenhand.experiments.running import execute
from evenhand.experiments.settings import RunSettings
from evenhand.findings.screened import ScreenCounts, counted
from evenhand.instruments.scorer.sets import ToxicitySets
from evenhand.methods import Method
from evenhand.methods.judge_text import JUDGE, SCREEN, ScreenedJudge
from evenhand.runs.runners.prompt_files import ParquetTable
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer, ScorerModel, WordList
from evenhand.scorers.base import score_all
from evenhand.scorers.kinds import BUILT_IN
from evenhand.statistics.screening import calibrate

WHOLE = 10_000_000
SET = "wikipedia_talk"
_SHARDS = 8


@dataclass(frozen=True)
class Cuts:
    """The cut-offs, and the share of harmful texts that they miss among the others."""

    low: float
    high: float
    missed: float


def texts(most: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Labelled texts for the cut-offs, and as many others for the table."""
    folder = data_folder()
    rows = ToxicitySets(local=folder.local, cache=folder.cache).table(SET)
    rows = rows.sample(min(2 * most, len(rows)), seed=1, shuffle=True)
    half = len(rows) // 2
    return rows[:half], rows[half:]


def cut(
    labelled: pl.DataFrame, others: pl.DataFrame, share: float, scorer: Scorer
) -> tuple[Cuts, float]:
    """The cut-offs, and how many texts a second one process scores in batches."""
    both = [*labelled["text"], *others["text"]]
    done = asyncio.run(score_all(scorer, both))
    scores = np.array(done.values("toxicity"), dtype=float)
    mine, theirs = scores[: len(labelled)], scores[len(labelled) :]
    found = calibrate(mine, labelled["label"].to_numpy(), missed=share, false_alarms=share)
    missed = float((theirs[others["label"].to_numpy()] < found.low).mean())
    return Cuts(found.low, found.high, missed), len(both) / done.seconds


def write_table(others: pl.DataFrame, rows: int, folder: Path) -> None:
    places = np.arange(rows) % len(others)
    table = others.select("text")[places]
    folder.mkdir()
    size = -(-rows // _SHARDS)
    for number in range(_SHARDS):
        table.slice(number * size, size).write_parquet(folder / f"{number}.parquet")


def screened(
    cuts: Cuts, table: Path, out: Path, actors: int, scorer: Scorer
) -> tuple[ScreenCounts, float]:
    """What was decided, and how long the job took on a cluster that is up, its actors' start
    included."""
    low, high = (float(one) if np.isfinite(one) else None for one in (cuts.low, cuts.high))
    judge = ScorerModel(WordList())
    cast = Cast(judge, {SCREEN.role: ScorerModel(scorer), JUDGE.role: judge})

    async def opened(method: Method) -> Cast:
        del method
        return cast

    request = Request(
        source=ParquetTable(str(table), prompt_column="text"),
        method=ScreenedJudge(screen="0" * 64, low=low, high=high, text="prompt"),
        open_cast=opened,
        settings=RunSettings(out=str(out), engine="ray", actors=actors),
        is_audit=True,
    )
    started = time.perf_counter()
    asyncio.run(execute(request, Watch()))
    return counted(RunReader(out)), time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--labelled", type=int, default=2_000)
    parser.add_argument("--max-fnr", type=float, default=0.05)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--scorer", default="staged", choices=sorted(BUILT_IN))
    parser.add_argument("--judgement", type=float, default=0.0003, help="USD a text (our choice)")
    parser.add_argument("--core-hour", type=float, default=0.05, help="USD (our choice)")
    given = parser.parse_args()
    scorer = BUILT_IN[given.scorer]()
    labelled, others = texts(given.labelled)
    cuts, alone = cut(labelled, others, given.max_fnr, scorer)
    print(
        f"{len(labelled):,} labelled texts, {int(labelled['label'].sum()):,} harmful: clean below "
        f"{cuts.low:.3f}, harmful above {cuts.high:.3f}; among the others {cuts.missed:.3f} of the "
        f"harm is missed; in batches, one process: {alone:.0f} texts/s",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        write_table(others, given.rows, Path(folder) / "table")
        ray.init(address="local", num_cpus=given.actors, include_dashboard=False,
                 log_to_driver=False)  # fmt: skip
        try:
            with TreeCpu() as cpu:
                made, seconds = screened(
                    cuts, Path(folder) / "table", Path(folder) / "run", given.actors, scorer
                )
        finally:
            ray.shutdown()
    judged = made.judged_clean + made.judged_harmful
    assert not made.failed, made.failed
    rate, sent = given.rows / seconds, judged / given.rows
    core_hours = WHOLE / rate / 3600 * given.actors
    everything = WHOLE * given.judgement
    ours = sent * everything + core_hours * given.core_hour
    print(
        f"{given.rows:,} rows in {seconds:.1f} s with {given.actors} actors; called clean "
        f"{made.called_clean:,}, called harmful {made.called_harmful:,}, to the judge {judged:,}\n"
        f"10^7 rows at {given.judgement:g} USD a judgement and {given.core_hour:g} USD a core-hour:"
        f" {everything:,.0f} USD for judging all; {ours:,.0f} USD screened, of which "
        f"{core_hours:,.0f} core-hours are {core_hours * given.core_hour:,.2f} USD",
        flush=True,
    )
    print(
        f"RESULT rows_per_s={rate:.1f} actors={given.actors} sent={sent:.3f} "
        f"cpu_ms_a_row={cpu.seconds / given.rows * 1e3:.1f} "
        f"core_hours_1e7={core_hours:.1f} usd_screened={ours:.0f} usd_all={everything:.0f}"
    )


if __name__ == "__main__":
    main()
