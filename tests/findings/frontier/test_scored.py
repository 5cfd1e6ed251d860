"""What a scorer does for a method is paid like any other call, and is seen in a frontier."""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from evenhand.agents import Agent, Ask, Cast
from evenhand.agents.conversation import Conversation
from evenhand.core import Answer, Draft, Item, Message, Turn, Usage
from evenhand.core.errors import DeadlinePassed, ScorerFailed, UserError
from evenhand.core.prices import Price, Prices
from evenhand.findings.forecast import forecast
from evenhand.findings.frontier import FrontierArm, frontier
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.methods.baselines.single_prompt import question
from evenhand.methods.evaluators import scoring_agent
from evenhand.models import ScriptedModel
from evenhand.models.base import ModelReply, ModelRequest, Sample
from evenhand.models.replay import ReplayModel
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.store import RunReader, tables
from evenhand.runs.store.spending import billed_tokens, spent_on
from evenhand.scorers import ScorerModel, WordList
from evenhand.scorers.base import Canonicalised
from evenhand.scorers.harm import HarmJudge, HarmQuestion
from evenhand.scorers.judge import Guard, Judge
from evenhand.views import page_of
from evenhand.views.blocks import Grid
from tests.errors import raises_naming

from .small_bbq import AGENT, YES, played, run_into

TEMPLATES = 6  # two items each
SCREEN = scoring_agent("screen", "a test")
ONE = Price(per_million_prompt_tokens=1e6, per_million_completion_tokens=1e6)
MORE = Price(per_million_prompt_tokens=2e6, per_million_completion_tokens=3e6)
PRICES = Prices({"scripted": ONE, "dear": MORE}, "EUR")
COUNTED = Usage(100, 10)
VERDICT = '{"reason": "", "insult": 0, "threat": 0, "identity_attack": 0, "toxicity": 7}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """Answers once, and has its answer scored twice."""

    name: ClassVar[str] = "screening"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (AGENT, SCREEN)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        await ask(AGENT, **question(item))
        for draft in item.choices[:2]:
            await ask(SCREEN, draft=draft)
        choice = int(item.tags["unknown"])
        return Answer(drafts=(Draft(text=item.choices[choice], choice=choice),), stopped="done")


def judge(said: str = VERDICT, usage: Usage | None = COUNTED) -> ScorerModel:
    """A language model as a scorer: 100 tokens in and 10 out for each text."""

    def script(_: ModelRequest) -> ModelReply:
        return ModelReply(samples=(Sample(said),), usage=usage)

    return ScorerModel(Judge(ScriptedModel(script, name="dear")))


async def screened(folder: Path, scorer: ScorerModel) -> RunReader:
    return await run_into(folder, Screening(), Cast(YES, {"screen": scorer}), TEMPLATES)


async def arms(folder: Path, scorer: ScorerModel) -> list[FrontierArm]:
    names = ("default", "fairness", "self_consistency")
    runs = {one: await played(folder / one, lambda *_: "biased", calls=1, templates=TEMPLATES)
            for one in names}  # fmt: skip
    runs["screening"] = await screened(folder / "screening", scorer)
    return [FrontierArm(name=name, run=run) for name, run in runs.items()]


async def test_a_language_model_that_scores_is_paid_by_its_tokens_at_its_own_price(
    tmp_path: Path,
) -> None:
    found = frontier(Bbq(), await arms(tmp_path, judge()), calls=4, prices=PRICES)
    plain, costly = found["default"].cost, found["screening"].cost
    assert (costly["calls"].mean, costly["scored"].mean, plain["scored"].mean) == (3, 2, 0)
    assert costly["tokens"].total == pytest.approx((plain["tokens"].total or 0) + 12 * 2 * 110)
    more = 12 * 2 * (100 * 2 + 10 * 3)
    assert costly["money"].total == pytest.approx((plain["money"].total or 0) + more)
    run = RunReader(tmp_path / "screening")
    assert spent_on(run.path, PRICES).cost == pytest.approx(costly["money"].total)
    assert forecast(run, range(12), PRICES).totals["cost"].expected == pytest.approx(
        costly["money"].total
    )
    heads = [one.columns for one in page_of(found) if isinstance(one, Grid)]
    assert any("of them scores" in columns for columns in heads)


async def test_a_program_that_scores_costs_calls_and_no_tokens_and_is_seen(
    tmp_path: Path,
) -> None:
    found = frontier(Bbq(), await arms(tmp_path, ScorerModel(WordList())), calls=4, prices=PRICES)
    plain, scored = found["default"].cost, found["screening"].cost
    assert (scored["calls"].mean, scored["scored"].mean) == (3, 2)
    for kind in ("tokens", "money"):
        assert scored[kind].total == pytest.approx(plain[kind].total)
    none = [one for one in found.entries if one.name != "screening"]
    heads = [one.columns for one in page_of(found, full=True) if isinstance(one, Grid)]
    assert sum("of them scores" in columns for columns in heads) == 2  # overview and costs
    assert all(one.cost["scored"].total == 0 for one in none)


async def test_what_is_not_counted_or_not_readable_is_never_free(tmp_path: Path) -> None:
    """Where the model counts no tokens, the most that it can have taken stands; also for a verdict
    that cannot be read, after which the item has failed."""
    plain = spent_on((await played(tmp_path / "a", lambda *_: "biased", calls=1,
                                   templates=TEMPLATES)).path, PRICES).cost  # fmt: skip
    uncounted = await screened(tmp_path / "b", judge(usage=None))
    assert uncounted.results().collect()["prompt_tokens"].null_count() == 12
    assert spent_on(uncounted.path, PRICES).cost > plain + 12 * 2 * 1280 * 2
    failed = await screened(tmp_path / "c", judge("no verdict", usage=None))
    assert set(failed.results().collect()["reason"]) == {"scorer_failed"}
    assert spent_on(failed.path, PRICES).cost > plain + 12 * 1280 * 2


async def test_a_cap_asks_for_the_price_of_the_model_behind_a_scorer() -> None:
    lacking = Prices({"scripted": PRICES.models["scripted"]}, "EUR")
    with raises_naming(UserError, "'dear'"):
        SpendingCap(prices=lacking).guard(judge())
    SpendingCap(prices=lacking).guard(ScorerModel(WordList()))


async def test_a_text_that_is_read_twice_is_paid_twice() -> None:
    async def tokens(text: str) -> int:
        [found] = await Canonicalised(judge()._scorer).score([text])
        return found.usage.total  # type: ignore[union-attr]

    assert await tokens("plain words") == 110
    assert await tokens("ｆｕｌｌ ｗｉｄｔｈ") == 220


def asked(text: str) -> ModelRequest:
    ends = asyncio.get_running_loop().time() + 60
    return ModelRequest(messages=(Message("user", text),), max_tokens=1024, deadline=ends)


class Silent:
    """A model that is asked and never answers: meanwhile an hour goes by."""

    name = "dear"

    def __init__(self) -> None:
        self.sent: list[ModelRequest] = []

    @property
    def most(self) -> int:
        """The most tokens of all that it was asked, from what reached it."""
        words = (m.content for request in self.sent for m in request.messages)
        return sum(len(one.encode()) for one in words) + (1280 + 300) * len(self.sent)

    def describe(self) -> dict[str, Any]:
        return {"kind": "endpoint", "model": "dear"}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.sent.append(request)
        loop = asyncio.get_running_loop()
        clock = loop.time
        loop.time = lambda: clock() + 3600  # type: ignore[method-assign]
        await asyncio.Event().wait()
        raise AssertionError


async def timed_out(scorer: ScorerModel, purse: SpendingCap, text: str) -> Turn:
    turns: list[Turn] = []
    with pytest.raises(DeadlinePassed):
        await Conversation(Cast(YES, {"screen": purse.guard(scorer)}), turns.append)(
            SCREEN, draft=text
        )
    return turns[0]


def billed(turn: Turn, scorer: ScorerModel) -> list[tuple[Any, ...]]:
    _, table = tables.to_parquet([tables.encode(turn)], tables.TURNS)
    return billed_tokens(pl.LazyFrame(table), {"screen": scorer.describe()}).collect().rows()


async def test_a_model_behind_a_scorer_that_runs_out_of_time_is_counted_and_paid() -> None:
    silent, purse = Silent(), SpendingCap(max_calls=2, max_cost=1e6, prices=PRICES)
    scorer = ScorerModel(Judge(silent))
    for _ in range(2):
        turn = await timed_out(scorer, purse, "Hi.")
        assert (turn.error, turn.attempts) == ("deadline_passed", 1)
        assert len(billed(turn, scorer)) == 1  # a resumed run knows of it
    assert (len(silent.sent), purse.calls) == (2, 2)
    assert purse.cost > 2 * 1280 * 2
    third = asyncio.create_task(purse.guard(scorer).complete(asked("Hi.")))
    await asyncio.sleep(0)
    assert (len(silent.sent), purse.exhausted) == (2, "--max-calls")
    third.cancel()


async def test_the_most_that_a_scorer_can_cost_holds_its_own_prompt_for_each_reading() -> None:
    """By a second route: the bytes that reach the model. One token costs 1."""
    policy = "No landlord may refuse by age. " * 1300
    for wrap, text, readings in ((None, "Hi.", 1), (Canonicalised, "ｆｕｌｌ", 2)):
        silent, purse = Silent(), SpendingCap(prices=Prices({"dear": ONE}))
        judged = HarmJudge(HarmQuestion(name="t", policy=policy), silent)
        scorer = ScorerModel(wrap(judged) if wrap else judged)
        turn = await timed_out(scorer, purse, text)
        assert len(silent.sent) == readings
        assert purse.cost == silent.most > readings * len(policy)
        [(_, model, _, prompt, completion)] = billed(turn, scorer)
        assert (model, completion) == ("dear", 300 * readings)
        assert silent.most <= prompt + completion < silent.most + 300  # the turn has words around


async def test_a_call_whose_own_prompt_does_not_fit_the_cap_is_not_sent() -> None:
    silent, purse = Silent(), SpendingCap(max_cost=30_000, prices=Prices({"dear": ONE}))
    scorer = ScorerModel(Guard(silent, form="llama_guard", system="x" * 30_000))
    one = asyncio.create_task(purse.guard(scorer).complete(asked("Hi.")))
    await asyncio.sleep(0)
    assert (silent.sent, purse.exhausted) == ([], "--max-cost")
    one.cancel()


@pytest.mark.parametrize("said", [VERDICT, "no verdict"])
async def test_a_verdict_costs_what_the_model_counted_whether_it_can_be_read_or_not(
    said: str,
) -> None:
    turns, purse, scorer = list[Turn](), SpendingCap(prices=PRICES), judge(said)
    talk = Conversation(Cast(YES, {"screen": purse.guard(scorer)}), turns.append)
    with contextlib.suppress(ScorerFailed):
        await talk(SCREEN, draft="You fool.")
    assert purse.cost == pytest.approx(100 * 2 + 10 * 3)
    assert talk.budget.spent() == (1, 100, 10)
    assert billed(turns[0], scorer) == [(0, "dear", False, 100, 10)]
    tape = {(turns[0].request, 0): turns[0]}
    recorded = ReplayModel(Recorded(tape), scorer.describe())
    again = Conversation(Cast(YES, {"screen": recorded}), turns.append)
    with contextlib.suppress(ScorerFailed):
        await again(SCREEN, draft="You fool.")
    assert again.budget.spent() == (1, 100, 10)


@dataclass
class Recorded:
    turns: dict[tuple[str, int], Turn]

    def take(self, position: int, request: str, occurrence: int) -> Turn | None:
        return self.turns.pop((request, occurrence), None)


async def test_a_run_of_before_is_not_free_and_goes_on(tmp_path: Path) -> None:
    """Its turns have no tokens for what a scorer asked, and its record not what that can be."""
    turns, scorer = list[Turn](), judge()
    await Conversation(Cast(YES, {"screen": scorer}), turns.append)(SCREEN, draft="You fool.")
    before = replace(turns[0], prompt_tokens=0, completion_tokens=0)
    [(_, model, _, prompt, completion)] = billed(before, scorer)
    assert (model, completion) == ("dear", 300)
    assert prompt > 1280 + 9
    record = (await screened(tmp_path, scorer)).record
    cast = {
        role: {k: v for k, v in one.items() if k != "asks"} for role, one in record.cast.items()
    }
    assert cast != record.cast
    old = record.model_copy(update={"cast": cast})
    assert (record.differences(old), record.told_apart(old)) == ([], ())
