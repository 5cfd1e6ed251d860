"""A pilot says what the rest will cost, how sure that is, and is not paid for twice."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from evenhand.cli.execution import two_digits_up
from evenhand.core import Usage
from evenhand.core.errors import UserError
from evenhand.findings.forecast import Forecast, Total, extrapolated, forecast
from evenhand.runs.runners import Progress, StopSignal, run
from evenhand.runs.runners.local import pilot_positions, run_pilot
from evenhand.runs.store import RunReader
from evenhand.views import markdown, page_of
from evenhand.views.numbers import duration, money
from tests.errors import assert_names, raises_naming
from tests.runs.money.test_prices import PRICES
from tests.runs.money.test_spending import model, plan


@pytest.mark.parametrize("items", [51, 60, 99, 100, 1372, 100_000_000])
def test_the_pilot_is_spread_evenly_over_the_source(items: int) -> None:
    positions = pilot_positions(items)
    assert len(set(positions)) == 50
    gaps = [b - a for a, b in pairwise(positions)]
    assert max(gaps) - min(gaps) <= 1
    assert positions[0] <= items / 50
    assert items - positions[-1] <= items / 50 + 1


@pytest.mark.parametrize("items", [0, 1, 49, 50])
def test_a_small_source_is_its_own_pilot(items: int) -> None:
    assert pilot_positions(items) == tuple(range(items))


def test_the_interval_of_a_total_is_that_of_a_mean_drawn_without_putting_back() -> None:
    # mean 2.5, s = 1.29099, t(3) = 3.18245: 2.5 ± 2.05426; times 80; times √(1 − 4/80) = 0.974679
    found = extrapolated([1, 2, 3, 4], 80)
    assert found.expected == 200
    assert found.high == pytest.approx(200 + 160.1792, abs=1e-3)
    assert found.low == pytest.approx(200 - 160.1792, abs=1e-3)
    assert found.so_far == 10


def test_a_total_is_never_said_to_be_less_than_what_was_spent_already() -> None:
    assert extrapolated([1, 2, 3, 4], 8).low == 10


def test_a_pilot_of_everything_leaves_nothing_to_guess() -> None:
    found = extrapolated([1, 2, 3, 4], 4)
    assert (found.low, found.expected, found.high) == (10, 10, 10)


def test_one_item_says_nothing_about_another_and_none_says_nothing_at_all() -> None:
    assert extrapolated([3], 10) == Total(expected=30, low=None, high=None, so_far=3)
    assert extrapolated([], 10).expected is None


async def test_the_run_after_a_pilot_pays_for_none_of_it_again(tmp_path: Path) -> None:
    whole, two_steps = model(Usage(120, 30)), model(Usage(120, 30))
    for_all = plan(whole, items=120)
    await run(for_all, tmp_path / "whole", progress=Progress(), stop=StopSignal())
    planned = plan(two_steps, items=120)
    out = str(tmp_path / "two")
    positions = await run_pilot(planned, out, progress=Progress(), stop=StopSignal())
    done = RunReader(out).results().select("position").collect().to_series().to_list()
    assert tuple(done) == positions
    assert 0 < two_steps.requests < whole.requests
    await run(planned, out, progress=Progress(), stop=StopSignal())
    assert two_steps.requests == whole.requests


async def _pilot(tmp_path: Path, usage: Usage | None, items: int = 120) -> RunReader:
    await run_pilot(
        plan(model(usage), items=items), str(tmp_path), progress=Progress(), stop=StopSignal()
    )
    return RunReader(str(tmp_path))


async def test_a_forecast_is_the_pilots_mean_times_the_items(tmp_path: Path) -> None:
    reader = await _pilot(tmp_path, Usage(120, 30))
    found = forecast(reader, pilot_positions(120), PRICES)
    calls = reader.results().select(pl.col("calls").sum()).collect().item()
    assert found.totals["calls"].expected == pytest.approx(calls / 50 * 120)
    assert found.totals["prompt_tokens"].so_far == calls * 120
    cost = found.totals["cost"]
    assert cost.so_far == pytest.approx(calls * (120 * 2.5e-6 + 30 * 10e-6))
    assert None not in (cost.low, cost.expected, cost.high)
    assert cost.low < cost.expected < cost.high  # type: ignore[operator]
    assert found.pilot.failed == 0


async def test_a_forecast_without_prices_names_no_cost(tmp_path: Path) -> None:
    found = forecast(await _pilot(tmp_path, Usage(120, 30)), pilot_positions(120), None)
    assert "cost" not in found.totals
    assert "no price file" in _shown(found)


async def test_an_endpoint_that_does_not_count_tokens_is_said_to_be_one(tmp_path: Path) -> None:
    found = forecast(await _pilot(tmp_path, None), pilot_positions(120), PRICES)
    assert found.totals["prompt_tokens"].expected is None
    assert (found.totals["cost"].expected or 0) > 0  # the most that it can have been
    shown = _shown(found)
    assert "not counted" in shown
    assert_names(shown, "50 items")


async def test_a_forecast_looks_at_the_pilot_alone_though_more_is_done(tmp_path: Path) -> None:
    reader = await _pilot(tmp_path, Usage(120, 30), items=60)
    before = forecast(reader, pilot_positions(60), PRICES)
    await run(
        plan(model(Usage(120, 30)), items=60), tmp_path, progress=Progress(), stop=StopSignal()
    )
    after = forecast(RunReader(tmp_path), pilot_positions(60), PRICES)
    assert after.totals == before.totals


async def test_a_pilot_of_which_nothing_ended_gives_no_forecast(tmp_path: Path) -> None:
    reader = await _pilot(tmp_path, Usage(120, 30))
    with raises_naming(UserError, "pilot"):
        forecast(reader, [0], PRICES)


def _shown(found: Forecast) -> str:
    return markdown.render(page_of(replace(found, concurrency=64, next="evenhand …")))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0.0, "0.00 X"), (0.0014, "0.001400 X"), (0.5, "0.5000 X"), (1234.5, "1,234.50 X")],
)
def test_money_shows_the_digits_that_matter(amount: float, shown: str) -> None:
    assert money(amount, "X") == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(5, "5 s"), (119, "119 s"), (600, "10 min"), (9000, "2.5 h"), (200_000, "2.3 days")],
)
def test_a_duration_is_in_the_unit_a_person_would_use(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize("amount", [0.00123, 0.0999, 1.9, 1.901, 99.5, 12345])
def test_a_suggested_cap_is_never_below_the_forecast(amount: float) -> None:
    suggested = float(f"{two_digits_up(amount):g}")
    assert amount <= suggested <= amount * 1.1
