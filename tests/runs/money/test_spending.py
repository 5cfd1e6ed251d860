"""What earlier processes spent is read from what they recorded, finished or not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.agents import Cast, Limits
from evenhand.agents.tools.search import SearchModel
from evenhand.agents.tools.search.base import Hit
from evenhand.core import Usage
from evenhand.core.errors import ModelBusy, ModelError, ModelRefused, SearchFailed
from evenhand.methods import Mabrf
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from evenhand.models.base import Sample
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.runners.local import run_pilot
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.store.spending import Spent, spent_on
from tests.loopback import replies
from tests.loopback.kernel import TimedStarDTox, texts
from tests.methods.test_mabrf_runs import ITEMS, team_says
from tests.runs.money.test_prices import PRICES

Said = ModelReply | ModelError


def model(usage: Usage | None) -> ScriptedModel:
    """Speaks as the loopback server does, so that drafts are objected to and revised."""

    def script(request: ModelRequest) -> Said:
        body = {"messages": [{"content": m.content} for m in request.messages]}
        if request.schema is not None:
            form = {"type": "json_schema", "json_schema": {"name": request.schema.name}}
            body["response_format"] = form  # type: ignore[assignment]
        return ModelReply(samples=(Sample(replies.said(body)),), usage=usage)

    return ScriptedModel(script, name="m")


def plan(player: ScriptedModel, items: int = 30) -> RunPlan:
    return RunPlan(
        method=TimedStarDTox(),
        cast=Cast(player),
        source=ItemList(texts(items)),
        limits=Limits(max_tokens=200),
        concurrency=8,
    )


async def spend(plan: RunPlan, out: Path, **caps: float) -> SpendingCap:
    before = spent_on(out, PRICES)
    purse = SpendingCap(prices=PRICES, spent_calls=before.calls, spent_cost=before.cost, **caps)  # type: ignore[arg-type]
    await run(plan, out, progress=Progress(), stop=StopSignal(), purse=purse)
    return purse


def test_a_run_that_is_not_there_has_spent_nothing(tmp_path: Path) -> None:
    assert spent_on(tmp_path / "none", PRICES) == Spent(0, 0.0)


@pytest.mark.parametrize("usage", [Usage(120, 30), None], ids=["counted", "not counted"])
async def test_a_capped_run_is_found_to_have_spent_what_its_purse_says(
    tmp_path: Path, usage: Usage | None
) -> None:
    purse = await spend(plan(model(usage)), tmp_path, max_calls=50)
    assert purse.exhausted == "--max-calls"
    found = spent_on(tmp_path, PRICES)
    assert found.calls == 50  # most of them in the journal, for items that are not finished
    assert found.cost == pytest.approx(purse.cost)
    assert spent_on(tmp_path, None) == Spent(50, 0.0)


async def test_a_run_in_steps_pays_as_often_as_a_run_in_one(tmp_path: Path) -> None:
    whole = model(Usage(120, 30))
    await spend(plan(whole), tmp_path / "whole")
    steps, cap, stops = model(Usage(120, 30)), 0, 0
    while True:
        cap += 17
        purse = await spend(plan(steps), tmp_path / "steps", max_calls=cap)
        assert steps.requests <= cap
        if purse.exhausted is None:
            break
        stops += 1
    assert stops > 3
    assert steps.requests == whole.requests
    assert spent_on(tmp_path / "steps", PRICES).cost == pytest.approx(whole.requests * 0.0006)


async def test_a_cap_in_money_holds_over_all_processes_of_a_run(tmp_path: Path) -> None:
    player, cap, stops = model(Usage(120, 30)), 0.0, 0
    while True:
        cap += 0.02
        purse = await spend(plan(player), tmp_path, max_cost=cap)
        assert player.requests * 0.0006 <= cap
        if purse.exhausted is None:
            break
        stops += 1
    assert stops > 2


@pytest.mark.parametrize(
    ("error", "is_free"),
    [
        (lambda: ModelRefused("no", attempts=1), True),
        (lambda: ModelBusy("no place", attempts=0), True),
        (lambda: ModelBusy("cut off", attempts=8), False),
    ],
    ids=["refused", "not sent", "may be billed"],
)
async def test_failed_calls_cost_what_the_purse_took_for_them(
    tmp_path: Path, error: Callable[[], ModelError], is_free: bool
) -> None:
    failing = ScriptedModel(lambda _: error(), name="m")
    purse = await spend(plan(failing, items=3), tmp_path)
    assert (purse.cost == 0.0) == is_free
    assert spent_on(tmp_path, PRICES).cost == pytest.approx(purse.cost)


async def test_a_pilot_keeps_the_paid_turns_of_items_that_are_not_in_it(tmp_path: Path) -> None:
    whole, steps = model(Usage(120, 30)), model(Usage(120, 30))
    await spend(plan(whole, items=120), tmp_path / "whole")
    await spend(plan(steps, items=120), tmp_path / "run", max_calls=40)
    where = str(tmp_path / "run")
    await run_pilot(plan(steps, items=120), where, progress=Progress(), stop=StopSignal())
    await spend(plan(steps, items=120), tmp_path / "run")
    assert steps.requests == whole.requests


class _Down:
    """A search engine that does not answer."""

    name = "down@1"
    gives_pages = True

    def describe(self) -> dict[str, str]:
        return {}

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:
        raise SearchFailed("3 tries failed", attempts=3)

    async def close(self) -> None:
        return None


async def test_a_search_that_failed_is_a_call_and_costs_nothing(tmp_path: Path) -> None:
    """The engine has no price, and none is asked for."""
    player = ScriptedModel(team_says, name="m")
    searched = RunPlan(
        method=Mabrf(search=True),
        cast=Cast(player, {"search": SearchModel(_Down())}),
        source=ItemList([ITEMS[1]]),
    )
    purse = await spend(searched, tmp_path)
    found = spent_on(tmp_path, PRICES)
    assert found.calls == 6  # solve, judge, plan, and three searches
    assert player.requests == 3
    assert found.cost == pytest.approx(purse.cost)
