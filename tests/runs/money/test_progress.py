"""What a run says of itself while it goes on, on the screen and in its folder."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.agents import Cast
from evenhand.cli.screen import status_line, status_view
from evenhand.core import Answer, Answered, Draft, Failed, Item
from evenhand.core.errors import DiskFull
from evenhand.models import Endpoint
from evenhand.runs.runners import Progress, SpendingCap, progress
from evenhand.runs.runners.progress import local_gauges, status_file
from evenhand.runs.store.folder import LocalFolder
from evenhand.scorers import ScorerModel, WordList
from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.runs.money.test_prices import PRICES

__all__ = ["endpoint", "evenhand"]  # the fixtures

ITEM = Item(id="0", prompt="p")
DONE = Answered(0, ITEM, Answer(drafts=(Draft(text="t"),), stopped="x"), 4, 100, 10)
LOST = Failed(0, ITEM, "model_busy", "no", 2, None, None)


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def started(planned: int, clock: Clock) -> Progress:
    return Progress(planned=planned, _started=clock.now)


def test_the_rate_is_that_of_the_last_half_minute_and_the_forecast_that_of_five(
    clock: Clock,
) -> None:
    seen = started(1000, clock)
    for _ in range(200):  # one item of four calls a second
        clock.now += 1
        seen.count(DONE)
        seen.snapshot()
    for _ in range(30):  # then twice as fast
        clock.now += 1
        seen.count(DONE)
        seen.count(DONE)
        last = seen.snapshot()
    assert last["calls_per_second"] == pytest.approx(8.0)
    assert last["eta_seconds"] == pytest.approx((1000 - 260) / (260 / 230))
    assert last["done"] == 260


def test_a_run_of_days_keeps_five_minutes_of_marks(clock: Clock) -> None:
    seen = started(10**8, clock)
    for _ in range(2000):
        clock.now += 1
        seen.count(DONE)
        seen.snapshot()
    assert len(seen._marks) <= 302
    assert seen.snapshot()["eta_seconds"] == pytest.approx(10**8, rel=1e-3)


def test_items_of_an_earlier_process_are_done_but_not_in_the_rate(clock: Clock) -> None:
    seen = started(100, clock)
    seen.resumed = 90
    clock.now += 10
    seen.count(DONE)
    assert (seen.snapshot()["done"], seen.snapshot()["eta_seconds"]) == (91, 90.0)


def test_before_anything_has_ended_there_is_no_forecast(clock: Clock) -> None:
    assert started(100, clock).snapshot()["eta_seconds"] is None


async def test_gauges_read_the_cost_and_each_endpoints_places() -> None:
    one = Endpoint("http://127.0.0.1:9/v1", model="m")
    other = Endpoint("http://127.0.0.1:9/v1", model="judge")
    cast = Cast(one, {"judge": other, "scorer": ScorerModel(WordList())})
    seen = Progress()
    seen.look = local_gauges(cast, SpendingCap(prices=PRICES, spent_cost=1.5))
    await one.limit.acquire()
    shot = seen.snapshot()
    assert shot["endpoints"] == {
        "m at http://127.0.0.1:9/v1": {"in_flight": 1, "limit": 16},
        "judge at http://127.0.0.1:9/v1": {"in_flight": 0, "limit": 16},
    }
    assert (shot["cost"], shot["currency"]) == (1.5, "EUR")
    seen.look = local_gauges(cast, SpendingCap(max_calls=3))
    assert Progress(look=seen.look).snapshot()["cost"] is None  # no prices, no number


def shot(**changes: Any) -> dict[str, Any]:
    seen = Progress(planned=100_000_000, answered=41_234_567, changed=12_345_678)
    seen.calls, seen.tokens, seen.in_flight = 205_172_835, 91_234_567_890, 16_384
    seen.endpoints = {"a-model at https://gateway.example/v1": (512, 600)}
    return {**seen.snapshot(), "eta_seconds": 412_345.0, "calls_per_second": 1234.5, **changes}


def shown(seen: dict[str, Any]) -> list[str]:
    sink = StringIO()
    Console(file=sink, width=100).print(status_view(seen))
    return [line.rstrip() for line in sink.getvalue().splitlines()]


def test_a_large_run_fits_into_a_hundred_columns_and_failures_come_first() -> None:
    lines = shown(shot(failed=1_234, cost=12_345.678, currency="USD"))
    assert max(map(len, lines)) <= 100
    amount = "41,234,567 of 100,000,000 items"
    assert lines[0].startswith(amount)
    assert lines[0].endswith("4.8 days left")
    assert_names(lines[0], "41.2%")
    assert_names(lines[1], "1,234 FAILED", "16,384 in flight", "1,234.5 calls/s")
    assert "12,345.68 USD" in lines[1]
    assert_names(lines[-1], "a-model", "https://gateway.example/v1:", "512 of 600")


def test_a_line_for_a_log_holds_the_same() -> None:
    line = status_line(shot(failed=7))
    assert_names(line, "41,234,567 of 100,000,000", "7 FAILED", "41.2%", "4.8 days")
    assert "\n" not in line
    assert "USD" not in line


class Kept(LocalFolder):
    """A folder that keeps what it is given, or cannot."""

    def __init__(self, *, broken: bool = False) -> None:
        self.written: list[dict[str, Any]] = []
        self.broken = broken

    def replace(self, name: str, data: bytes) -> None:
        assert name == "status.json"
        if self.broken:
            raise DiskFull("no room")
        self.written.append(json.loads(data))


async def test_the_status_is_written_at_once_again_and_again_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "_STATUS_SECONDS", 0.02)
    folder, seen = Kept(), Progress(planned=2)
    async with status_file(folder, seen):
        await asyncio.sleep(0.2)
        assert len(folder.written) >= 3
        assert {written["state"] for written in folder.written} == {"running"}
        seen.count(DONE)
        seen.count(LOST)
    last = folder.written[-1]
    assert (last["state"], last["done"], last["failed"], last["in_flight"]) == ("ended", 2, 1, 0)
    assert last["failed_by_reason"] == {"model_busy": 1}
    assert datetime.fromisoformat(last["updated"]).tzinfo is not None


async def test_a_run_that_leaves_items_is_stopped_and_one_that_breaks_has_failed() -> None:
    folder, seen = Kept(), Progress(planned=2)
    async with status_file(folder, seen):
        seen.count(DONE)
    assert folder.written[-1]["state"] == "stopped"
    with pytest.raises(DiskFull):
        async with status_file(folder, Progress(planned=2)):
            raise DiskFull("no room")
    assert folder.written[-1]["state"] == "failed"


async def test_a_status_that_cannot_be_written_does_not_stop_the_run() -> None:
    folder, seen = Kept(broken=True), Progress(planned=1)
    async with status_file(folder, seen):
        await asyncio.sleep(0.01)
        seen.count(DONE)
    assert (folder.written, seen.state) == ([], "ended")


def _finished(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    assert evenhand("mitigate", "p.jsonl", "--out", "run").returncode == 0


def test_runs_status_shows_a_run_that_ended(evenhand: Run, tmp_path: Path) -> None:
    _finished(evenhand, tmp_path)
    ran = evenhand("runs", "status", "run")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("ended · process ")
    assert_names(ran.stdout, "2 of 2")
    assert "may be gone" not in ran.stdout
    told = json.loads(evenhand("runs", "status", "run", "--json").stdout)
    assert (told["state"], told["done"], told["stale"]) == ("ended", 2, False)


def test_runs_status_says_if_the_process_may_be_gone(evenhand: Run, tmp_path: Path) -> None:
    _finished(evenhand, tmp_path)
    file = tmp_path / "run" / "status.json"
    seen = json.loads(file.read_text())
    then = datetime.now(UTC) - timedelta(minutes=5)
    file.write_text(json.dumps({**seen, "state": "running", "updated": then.isoformat()}))
    ran = evenhand("runs", "status", "run")
    assert_names(ran.stdout, "5 min")
    assert json.loads(evenhand("runs", "status", "run", "--json").stdout)["stale"] is True


def test_runs_status_without_a_status_says_where_else_to_look(
    evenhand: Run, tmp_path: Path
) -> None:
    ran = evenhand("runs", "status", str(tmp_path))
    assert ran.returncode == 1
    assert "evenhand runs show" in " ".join(ran.stderr.split())
