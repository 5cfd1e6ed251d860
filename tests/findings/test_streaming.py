"""Findings are computed while a run is read: they equal those from rows that are all in memory, and
memory does not grow with the run."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bench.findings_rows import write_run
from evenhand.findings import cost as costs
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.report import report
from evenhand.findings.scoring import outcomes_of
from evenhand.findings.summed_statistics import Share
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader, reader
from evenhand.statistics.bounded import p_mean_above
from evenhand.statistics.clusters import Interval, cluster_sums
from evenhand.statistics.proportions import clustered_balance, clustered_share

BBQ = instrument_named("bbq")
ROWS = 20_000
SHARES = [measure for measure in BBQ.measures if isinstance(measure.statistic, Share)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunReader, RunReader]:
    """Two runs over the same items, in parts of other sizes that were committed in other orders."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "before", ROWS, seed=1, biased=0.5, part=701)
    write_run(folder / "after", ROWS, seed=2, biased=0.4, part=450, shuffled=True)
    return RunReader(folder / "before"), RunReader(folder / "after")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all rows of such small runs are one batch."""
    monkeypatch.setattr(reader, "_BATCH", 1_000)


def values(outcomes: pl.DataFrame, measure: Measure) -> pl.DataFrame:
    """Item, cluster and the numbers of a measure, of all rows at once."""
    return outcomes.select("item_id", "cluster", **measure.columns())


def plain_estimate(outcomes: pl.DataFrame, measure: Measure) -> Interval:
    rows = values(outcomes, measure).drop_nulls()
    clusters = rows["cluster"].to_list()
    numbers = rows[f"{measure.name}.value"].to_numpy()
    return plain_share(numbers, clusters, signed=measure.within[0] < 0)


def plain_share(values: np.ndarray, clusters: list[str], *, signed: bool) -> Interval:
    one = np.ones_like(values)
    sums = cluster_sums(clusters, one, values, one, np.abs(values), one)
    return clustered_balance(sums) if signed else clustered_share(sums)


@pytest.mark.usefixtures("small_batches")
def test_a_streamed_report_equals_the_one_from_all_rows_at_once(
    runs: tuple[RunReader, RunReader],
) -> None:
    for run in runs:
        streamed, outcomes = report(BBQ, run), outcomes_of(BBQ, run)
        scores = [streamed[name] for name in ("s_amb", "s_dis")]
        levels = {one.name: 0.025 * (one.p or 0.0) / (one.p_holm or 1.0) for one in scores}
        for measure in SHARES:
            found, plain = streamed[measure.name], plain_estimate(outcomes, measure)
            assert found.value == pytest.approx(plain.estimate, rel=1e-12)
            assert (found.n, found.clusters) == (plain.n, plain.clusters)
            if measure.null is None:
                assert (found.low, found.high) == pytest.approx((plain.low, plain.high), rel=1e-9)
            else:
                _same_test(found, values(outcomes, measure), levels)
        assert streamed.coverage.scored == outcomes["answer"].count()


def _same_test(found: Estimate, rows: pl.DataFrame, levels: dict[str, float]) -> None:
    """At the ends of the interval the test of all rows at once has a p-value of half its level."""
    value, rows = pl.col(f"{found.name}.value"), asked(rows, f"{found.name}.value")
    for sign, end in ((1, found.low), (-1, found.high)):
        assert end is not None
        y, n = sums_of(rows, value.fill_null(-sign))
        p = p_mean_above(sign * (y - end * n), n.max() * (-1 - sign * end))
        assert p == pytest.approx(levels[found.name], rel=1e-3)


def asked(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows of a measure, missing answers too: conditions take turns."""
    condition = rows["item_id"].cast(pl.Int64) % 4
    return rows.filter(
        condition.is_in(condition.filter(rows[name].is_not_null()).unique().to_list())
    )


def sums_of(rows: pl.DataFrame, value: pl.Expr) -> tuple[np.ndarray, np.ndarray]:
    """The sum of a value and the number of rows, by cluster."""
    table = rows.group_by("cluster").agg(value.sum().alias("y"), n=pl.len().cast(pl.Float64))
    return table["y"].to_numpy(), table["n"].to_numpy()


@pytest.mark.usefixtures("small_batches")
def test_a_streamed_comparison_equals_the_one_from_joined_rows(
    runs: tuple[RunReader, RunReader],
) -> None:
    """Whichever of the two is read in another order."""
    for before, after in (runs, runs[::-1]):
        found = compare(BBQ, before, after)
        old, new = (outcomes_of(BBQ, run) for run in (before, after))
        for measure in SHARES:
            _same_change(found, measure, old, new)
        assert found.items == ROWS


def _same_change(found: Comparison, measure: Measure, old: pl.DataFrame, new: pl.DataFrame) -> None:
    name = f"{measure.name}.value"
    both = values(old, measure).join(values(new, measure), on="item_id", suffix="_after")
    known = both.drop_nulls([name, f"{name}_after"])
    change = (known[f"{name}_after"] - known[name]).to_numpy()
    reach = measure.within[1] - measure.within[0]
    plain = plain_share(change / reach, known["cluster"].to_list(), signed=True)
    plain = replace(plain, **{n: reach * getattr(plain, n) for n in ("estimate", "low", "high")})
    streamed = found[measure.name]
    assert streamed.difference == pytest.approx(plain.estimate, rel=1e-12)
    assert (streamed.n, streamed.clusters) == (plain.n, plain.clusters)
    assert streamed.limits is not None
    if measure.null is None:
        least, most = measure.within
        pairs, before, after = asked(both, name), pl.col(name), pl.col(f"{name}_after")
        for sign, end in zip((1, -1), streamed.limits, strict=True):
            worst = (least, most) if sign > 0 else (most, least)
            y, n = sums_of(pairs, after.fill_null(worst[0]) - before.fill_null(worst[1]))
            p = p_mean_above(sign * (y - end * n), n.mean() * (-reach - sign * end))
            assert p == pytest.approx(0.025, rel=1e-3), (measure.name, sign, end)


def test_the_cost_from_counts_equals_the_one_from_all_rows(
    runs: tuple[RunReader, RunReader],
) -> None:
    for run in runs:
        found = costs.cost(run)
        rows, turns = run.results().collect(), run.turns().collect()
        tokens = rows["prompt_tokens"] + rows["completion_tokens"]
        assert found.calls == costs.spread(rows["calls"])
        assert found.tokens == costs.spread(tokens)
        seconds = turns.group_by("position").agg(pl.col("seconds").sum())["seconds"]
        assert found.seconds.p95 == costs.spread(seconds).p95
        assert found.seconds.total == pytest.approx(costs.spread(seconds).total)


@pytest.mark.parametrize("numbers", [[7], [1, 2], [3, 1, 1, 2, 2, 9, 2], list(range(100, 0, -1))])
def test_a_spread_of_counts_is_that_of_the_numbers_themselves(numbers: list[int]) -> None:
    seen = {value: numbers.count(value) for value in numbers}
    assert costs.spread_of_counts(seen) == costs.spread(pl.Series(numbers))
    assert costs.spread_of_counts({}) == costs.spread(pl.Series([], dtype=pl.Int64))


# The most memory that a process ever had, after each pair of runs: the first loads what is loaded
# once, and if nothing of a run is kept, a run four times as long needs no more than the one before.
MEASURING = """
import json, resource, sys
from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader, reader
reader._BATCH = 4_096
bbq, most = instrument_named("bbq"), []
for folder in sys.argv[1:]:
    before, after = (RunReader(f"{folder}/{name}") for name in ("before", "after"))
    report(bbq, before)
    compare(bbq, before, after)
    most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(json.dumps(most))
"""


def test_memory_does_not_grow_with_the_rows_of_a_run(tmp_path: Path) -> None:
    sizes = (10_000, 30_000, 100_000)
    for rows in sizes:
        for seed, name in enumerate(("before", "after")):
            write_run(tmp_path / str(rows) / name, rows, seed=seed, biased=0.5)
    folders = [str(tmp_path / str(rows)) for rows in sizes]
    command = [sys.executable, "-c", MEASURING, *folders]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    _, shorter, longer = json.loads(told.stdout)
    # Holding the numbers of 70,000 more pairs takes 28 MB and more; 8 bytes a row are allowed for
    # the seconds of each item, and the rest is what an allocator keeps.
    assert longer - shorter < 20, np.round((shorter, longer))
