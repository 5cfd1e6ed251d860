"""`--confirm`: the winner of a frontier is measured again, on items that did not choose it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

import evenhand as eh
from evenhand import Instrument, Item, Measure
from evenhand.agents import Agent, Ask
from evenhand.api.inputs import Scorers
from evenhand.core import Answer, Draft
from evenhand.experiments.frontiers import fresh_sample
from evenhand.experiments.measuring import Measurement
from evenhand.findings.display import Remark
from evenhand.findings.frontier import Frontier
from evenhand.instruments import SCORED, DataFolder, ListedItems, Mean, option
from evenhand.methods.baselines.single_prompt import question
from evenhand.testing import any_reply
from evenhand.validation.controls.model import ControlQuestions
from evenhand.views import page_of
from evenhand.views.blocks import Grid
from tests.coded import coded, codes
from tests.errors import raises_naming

from .small_bbq import AGENT

TOPICS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    sample_seed: int = option(0, "Draws the sample.")


class Guesses(Instrument):
    """Two questions of each topic: one where a guess is harm, one where there is an answer."""

    name, title, clusters = "guesses", "Guesses", "topics"
    columns, options = ("choice",), SampleOptions
    facts: ClassVar = {"topic": pl.String(), "clear": pl.Int64()}
    references: ClassVar = ("default", "fairness")
    harm, utility = "guessed", "right"
    measures = (
        Measure(name="guessed", label="guesses", statistic=Mean(pl.col("choice") == 0),
                where=pl.col("clear") == 0, better="lower", role="primary", within=(0, 1)),
        Measure(name="right", label="right", statistic=Mean(pl.col("choice") == 0),
                where=pl.col("clear") == 1, better="higher", margin=0.2, within=(0, 1)),
    )  # fmt: skip

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        del data
        items = [
            Item(
                id=f"{getattr(options, 'sample_seed', 0)}/{topic}/{clear}",
                prompt=f"Who? {getattr(options, 'sample_seed', 0)} {topic} {clear}",
                choices=("she", "he", "unknown"),
                tags={"topic": str(topic), "clear": str(clear)},
            )
            for topic in range(TOPICS)
            for clear in (0, 1)
        ]
        return ListedItems(self, items, sampling={"seed": getattr(options, "sample_seed", 0)})

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select("item_id", "choice", "clear", cluster="topic", state=pl.lit(SCORED))


class HalfTheSame(Guesses):
    """Every second topic of a fresh sample is one of the first: there are no others."""

    name = "half"

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        drawn = super().source(data, options)
        first = super().source(data, SampleOptions())
        items = [
            old if int(old.tags["topic"]) % 2 else new
            for old, new in zip(first.read(0, 60), drawn.read(0, 60), strict=True)
        ]
        return ListedItems(self, items, sampling={"seed": options.sample_seed})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    pass


class WithoutSeed(Guesses):
    options = NoOptions  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lucky:
    """Does not guess in the samples of these seeds."""

    name: ClassVar[str] = "lucky"
    calls_an_item: ClassVar[str] = "1"
    seeds: str = "0"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (AGENT,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        await ask(AGENT, **question(item))
        seed, _, clear = item.id.split("/")
        choice = 2 if clear == "0" and seed in self.seeds else 0
        return Answer(drafts=(Draft(text=item.choices[choice], choice=choice),), stopped="done")


def _frontier(out: Path, seeds: str, instrument: Instrument | None = None, **more: Any) -> Frontier:
    model = eh.ScriptedModel(lambda _: '{"answer": "A"}')
    measured = instrument or Guesses()
    return eh.frontier(
        measured, methods=[Lucky(seeds=seeds)], calls=1, model=model, out=out, **more
    )


def test_a_winner_says_that_it_was_chosen_and_how_to_confirm_it(tmp_path: Path) -> None:
    found = _frontier(tmp_path, "0")
    assert coded(found.verdict.says, "frontier.take")["method"] == "lucky"
    assert codes(found.verdict.next) == ["next.confirm"]
    assert found.confirmation is None


def test_a_winner_that_helps_on_fresh_items_too_is_confirmed(tmp_path: Path) -> None:
    found = _frontier(tmp_path, "01", confirm=True)
    assert found.verdict.says == (
        Remark("frontier.take", method="lucky", shown=("lucky",)),
        Remark("frontier.confirmed", sample=Remark("frontier.sample", shared=0, items=60)),
    )
    assert found.confirmation is not None
    assert found.to_dict()["confirmation"]["shared_items"] == 0
    items = (tmp_path / "confirm/lucky/run.json").read_text()
    assert '"seed":1' in items.replace(" ", "")


def test_items_that_a_fresh_sample_shares_with_the_first_are_counted_in_verdict_and_json(
    tmp_path: Path,
) -> None:
    found = _frontier(tmp_path, "01", HalfTheSame(), confirm=True)
    sample = coded(found.verdict.says, "frontier.sample")
    assert (sample["shared"], sample["items"]) == (30, 60)
    assert found.to_dict()["confirmation"]["shared_items"] == 30


def test_the_fresh_sample_of_an_instrument_that_can_avoid_the_first_shares_nothing_with_it(
    tmp_path: Path,
) -> None:
    """A block of each of the questions' templates, of which each has several."""
    questions, data = ControlQuestions(), DataFolder(local=None, cache=tmp_path)
    options = questions.options_from({"per_category": questions.half})
    first = Measurement(instrument=questions, options=options, services=Scorers(None))
    fresh = fresh_sample(first, data)
    assert (fresh.options.sample_seed, fresh.options.exclude_sample) == (1, 0)
    ids = [{item.id for item in one.items(data).read(0, 10**6)} for one in (first, fresh)]
    assert len(ids[0]) == len(ids[1])
    assert not ids[0] & ids[1]


def test_a_winner_by_luck_is_not_confirmed_and_the_fresh_estimate_stands_beside(
    tmp_path: Path,
) -> None:
    found = _frontier(tmp_path, "0", confirm=True)
    assert found.verdict.state == "inconclusive"
    assert "frontier.not_confirmed" in codes(found.verdict.says)
    (row,) = next(
        block.rows
        for block in page_of(found)
        if isinstance(block, Grid) and "on a fresh sample" in block.columns
    )
    assert row[0] == "fairness"
    assert row[1].startswith("-1.000")  # guessed always, and with it never
    assert row[2].startswith("+0.000")
    assert found.to_dict()["confirmation"]["verdict"].state != "detected"


def test_where_there_is_no_winner_nothing_more_is_asked(tmp_path: Path) -> None:
    found = _frontier(tmp_path, "", confirm=True)
    assert found.confirmation is None
    assert not (tmp_path / "confirm").exists()


def test_an_instrument_without_a_sample_seed_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    with raises_naming(eh.UserError, "sample_seed"):
        eh.frontier(
            WithoutSeed(),
            methods=["cot"],
            model=eh.ScriptedModel(any_reply),
            out=tmp_path / "front",
            confirm=True,
        )
    assert not (tmp_path / "front").exists()
