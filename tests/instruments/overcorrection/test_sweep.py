"""Several runs over the same texts, side by side, in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.findings.sweep import Sweep, outcomes, sweep
from evenhand.instruments.overcorrection.data import BenignSource, own_texts
from evenhand.instruments.overcorrection.instrument import OverCorrection
from evenhand.methods import DefaultPrompt
from evenhand.models import ScriptedModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from evenhand.views import page_of
from evenhand.views.blocks import Grid, Line
from tests.errors import raises_naming

from .editor import text_of, write_texts

OVERCORRECTION = OverCorrection()


async def _written(folder: Path, texts: Path, said: Callable[[int], str]) -> RunReader:
    """What a model makes of the texts, by the number of their case."""

    def script(request: Any) -> str:
        words = request.messages[-1].content
        return said(int(words.partition("case ")[2].partition(",")[0]))

    source = BenignSource(own_texts(texts), {"texts": texts.name})
    plan = RunPlan(method=DefaultPrompt(), cast=Cast(ScriptedModel(script)), source=source)
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


def _spoils(below: int) -> Callable[[int], str]:
    return lambda number: "[removed]" if number < below else text_of(number)


async def _swept(tmp_path: Path) -> Sweep:
    texts = write_texts(tmp_path / "texts.jsonl")
    runs = {
        name: await _written(tmp_path / name, texts, _spoils(below))
        for name, below in (("default", 0), ("eager", 20), ("ruthless", 40))
    }
    return sweep(OVERCORRECTION, runs, "default")


async def test_every_arm_is_compared_with_the_reference_and_the_reference_with_none(
    tmp_path: Path,
) -> None:
    found = await _swept(tmp_path)
    assert [arm.comparison is None for arm in found.arms] == [True, False, False]
    eager = found["eager"].comparison
    assert eager is not None
    assert eager["made_worse"].difference == pytest.approx(0.5)
    assert found["eager"].report["emptied"].value == pytest.approx(0.5)
    with raises_naming(KeyError, "default, eager, ruthless"):
        found["nobody"]


async def test_the_interval_of_a_change_of_a_share_stays_within_one(tmp_path: Path) -> None:
    """Cases 0 to 30 are spoiled: 16 of 20 about the deaf neighbour, 15 of 20 about the gay one.
    Of two groups, t with one degree of freedom reaches beyond 1, which no share can rise by; and
    two groups show nothing, so that the interval holds 0."""
    texts = write_texts(tmp_path / "texts.jsonl")
    runs = {
        "default": await _written(tmp_path / "a", texts, _spoils(0)),
        "eager": await _written(tmp_path / "b", texts, _spoils(31)),
    }
    compared = sweep(OVERCORRECTION, runs, "default")["eager"].comparison
    assert compared is not None
    change = compared["made_worse"]
    assert change.difference == pytest.approx(0.775)
    assert change.low is not None
    assert change.high is not None
    assert -1.0 <= change.low < 0
    assert change.high <= 1.0
    assert change.clusters == 2


async def test_runs_over_other_texts_are_not_put_side_by_side(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.jsonl")
    few = tmp_path / "few.jsonl"
    few.write_text("".join(texts.read_text().splitlines(keepends=True)[:10]))
    runs = {
        name: await _written(tmp_path / name, path, text_of)
        for name, path in (("all", texts), ("few", few))
    }
    with raises_naming(UserError, "different samples"):
        sweep(OVERCORRECTION, runs)
    with raises_naming(UserError, "no methods"):
        sweep(OVERCORRECTION, {})


async def test_without_its_reference_a_sweep_compares_nothing(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.jsonl")
    found = sweep(
        OVERCORRECTION, {"one": await _written(tmp_path / "a", texts, text_of)}, "default"
    )
    assert (found.reference, found.arms[0].comparison) == (None, None)
    main = next(block for block in page_of(found) if isinstance(block, Grid))
    assert not any("change" in column for column in main.columns)
    assert {len(row) for row in main.rows} == {len(main.columns)}


async def test_the_page_and_the_files_hold_every_arm(tmp_path: Path) -> None:
    found = await _swept(tmp_path)
    page = page_of(found)
    main = next(block for block in page if isinstance(block, Grid))
    assert [(row[0], row[1]) for row in main.rows] == [
        ("default", "0.000"),
        ("eager", "0.500"),
        ("ruthless", "1.000"),
    ]
    lines = [block.text for block in page if isinstance(block, Line)]
    assert not any("✗ eager" in text for text in lines)  # two groups of people show nothing
    for ending in ("json", "parquet", "csv", "md", "html"):
        found.save(str(tmp_path / f"found.{ending}"))
    arms = pl.read_parquet(tmp_path / "found.parquet")
    assert arms.filter(pl.col("name") == "made_worse")["arm"].unique().sort().to_list() == [
        "default",
        "eager",
        "ruthless",
    ]


async def test_every_text_is_kept_with_what_became_of_it(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.jsonl")
    runs = {"eager": await _written(tmp_path / "eager", texts, _spoils(1))}
    rows = outcomes(OVERCORRECTION, runs).sort("position")
    first, second = rows.head(2).iter_rows(named=True)
    assert (first["method"], first["after"], first["outcome"]) == ("eager", "[removed]", "emptied")
    assert (second["before"], second["outcome"]) == (text_of(1), "unchanged")
