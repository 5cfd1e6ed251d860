"""Reuse: equal calls of another run are not sent again, the others are."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import evenhand as eh
from evenhand.agents import Cast, Limits
from evenhand.core import Item
from evenhand.core.errors import ModelBusy, UserError
from evenhand.core.prices import Price, Prices
from evenhand.experiments.request import within
from evenhand.experiments.settings import RunSettings
from evenhand.methods import StarDTox, named
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, SpendingCap, StopSignal, run
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import billed_tokens, spent_on
from evenhand.scorers import ScorerModel, WordList
from evenhand.testing import any_reply
from tests.errors import raises_naming
from tests.stage import words_of

ITEMS = [Item(id=f"i{number}", prompt=f"question {number}") for number in range(7)]
PRICE = Price(per_million_prompt_tokens=1e6, per_million_completion_tokens=1e6)
PRICES = Prices({"writer": PRICE})


class Writer(ScriptedModel):
    """Fails on question 3 until it is well; a busy endpoint."""

    def __init__(self, *, well: bool = True, name: str = "writer") -> None:
        super().__init__(self._say, name=name)
        self.well = well
        self.asked: list[str] = []

    def _say(self, request: ModelRequest) -> str | ModelBusy:
        words = words_of(request)
        self.asked.append(words)
        return ModelBusy("HTTP 503", attempts=1) if "3" in words and not self.well else "Fine."


def plan(model: ScriptedModel, **changed: object) -> RunPlan:
    settled = RunPlan(
        method=named("default")(),
        cast=Cast(model),
        source=ItemList(ITEMS),
        limits=Limits(calls=20),
        seed=5,
        concurrency=2,
    )
    return replace(settled, **changed)  # type: ignore[arg-type]


async def ran(folder: Path, planned: RunPlan, purse: SpendingCap | None = None) -> RunReader:
    await run(planned, folder, progress=Progress(), stop=StopSignal(), purse=purse)
    return RunReader(folder)


async def test_only_what_the_other_run_has_no_answer_for_is_sent(tmp_path: Path) -> None:
    first = await ran(tmp_path / "first", plan(Writer(well=False)))
    assert first.totals().failed == {"model_busy": 1}
    again = Writer()
    second = await ran(tmp_path / "second", plan(again, reuse=(tmp_path / "first",)))
    assert again.requests == 1
    assert "question 3" in again.asked[0]
    assert second.totals().answered == 7
    attempts = second.turns().select("position", "attempts").collect()
    assert attempts.rows() == [(at, int(at == 3)) for at in range(7)]
    one, two = (reader.results().select("position", "text").collect() for reader in (first, second))
    assert one.filter(pl.col("position") != 3).equals(two.filter(pl.col("position") != 3))


async def test_a_method_with_other_settings_sends_none_of_its_equal_calls(
    tmp_path: Path,
) -> None:
    method = StarDTox(bias_brain="rule", performance=False)
    scorer = {"scorer": ScorerModel(WordList())}
    judged = plan(Writer(), method=method, cast=Cast(Writer(), scorer))
    alone = await ran(tmp_path / "alone", judged)
    asked = Writer()
    await ran(
        tmp_path / "one",
        replace(
            judged,
            method=replace(method, max_iterations=1),
            cast=Cast(asked, scorer),
            reuse=(tmp_path / "alone",),
        ),
    )
    assert alone.totals().calls == 14  # a draft and a score each
    assert asked.requests == 0


async def test_reused_calls_are_not_spent_but_are_part_of_the_cost_of_an_answer(
    tmp_path: Path,
) -> None:
    first = await ran(tmp_path / "first", plan(Writer(well=False)))
    second = await ran(tmp_path / "second", plan(Writer(), reuse=(tmp_path / "first",)))
    assert spent_on(tmp_path / "second", None).calls == 1
    sent = spent_on(tmp_path / "second", PRICES).cost
    rows = second.turns().filter(pl.col("position") == 3).collect().row(0, named=True)
    assert sent == rows["prompt_tokens"] + rows["completion_tokens"]
    as_if_sent = billed_tokens(second.turns(), second.record.cast, shared=True).collect()
    assert len(as_if_sent) == 7
    assert len(billed_tokens(first.turns(), first.record.cast).collect()) == 7


async def test_a_cap_counts_what_is_sent(tmp_path: Path) -> None:
    await ran(tmp_path / "first", plan(Writer(well=False)))
    purse = SpendingCap(max_calls=1)
    second = await ran(tmp_path / "second", plan(Writer(), reuse=(tmp_path / "first",)), purse)
    assert second.totals().answered == 7
    assert purse.calls == 1


@pytest.mark.parametrize(
    ("changed", "named_field"),
    [({"seed": 6}, "seed"), ({"source": ItemList(ITEMS[:3])}, "source")],
    ids=["seed", "items"],
)
async def test_a_run_of_other_items_or_another_seed_is_refused(
    tmp_path: Path, changed: dict[str, object], named_field: str
) -> None:
    await ran(tmp_path / "first", plan(Writer()))
    with raises_naming(UserError, named_field, "--reuse"):
        await ran(tmp_path / "second", plan(Writer(), reuse=(tmp_path / "first",), **changed))


async def test_another_model_is_asked_itself(tmp_path: Path) -> None:
    await ran(tmp_path / "first", plan(Writer()))
    other = Writer(name="another")
    await ran(tmp_path / "second", plan(other, reuse=(tmp_path / "first",)))
    assert other.requests == 7


async def test_the_same_name_with_other_fields_is_asked_itself(tmp_path: Path) -> None:
    class Deep(Writer):
        def describe(self) -> dict[str, object]:
            return {**super().describe(), "params": {"reasoning_effort": "high"}}

    await ran(tmp_path / "first", plan(Writer()))
    deep = Deep()
    await ran(tmp_path / "second", plan(deep, reuse=(tmp_path / "first",)))
    assert deep.requests == 7
    deeper = Deep()
    await ran(tmp_path / "third", plan(deeper, reuse=(tmp_path / "first", tmp_path / "second")))
    assert deeper.requests == 0


def test_a_run_within_takes_replies_from_the_same_folder_within_others(tmp_path: Path) -> None:
    (tmp_path / "b" / "ratings").mkdir(parents=True)
    (tmp_path / "b" / "ratings" / "run.json").write_text("{}")
    settings = RunSettings(out="o/", replay="r/", reuse=(tmp_path / "a", tmp_path / "b"))
    inner = within(settings, "ratings")
    assert (inner.out, inner.replay) == ("o/ratings", "r/ratings")
    assert inner.reuse == (f"{tmp_path}/b/ratings",)
    assert within(RunSettings(out="o"), "ratings").replay is None


def test_the_ratings_of_other_texts_are_asked_for_anew(tmp_path: Path) -> None:
    options = {"types": "age", "per_type": 1}
    model = ScriptedModel(any_reply)
    folders = tmp_path / "before", tmp_path / "after"
    eh.measure("statements", model=model, options=options, out=folders[0], seed=1)
    eh.measure(
        "statements", model=model, options=options, out=folders[1], seed=1,
        method="self_refine", reuse=[folders[0]],
    )  # fmt: skip
    ratings = RunReader(folders[1] / "ratings").turns()
    assert ratings.select(pl.col("attempts").sum()).collect().item() > 0
