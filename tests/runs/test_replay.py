"""Replay: the same run again from its tape, byte for byte, with no model asked."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import Cast, Conversation, Limits
from evenhand.core import Item, Message, Turn
from evenhand.core.errors import ModelBusy, ModelError, ModelRefused, TurnMissing
from evenhand.methods import StarDTox
from evenhand.methods.stardtox import WRITER
from evenhand.models import ModelRequest, ReplayModel, Sample, ScriptedModel, TokenLogprob
from evenhand.models.replay import reply_of
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.store import RunReader, RunTape
from evenhand.scorers import ScorerModel, WordList
from tests.errors import assert_names, raises_naming
from tests.stage import quality, words_of

KINDS = ("fine", "fool", "busy", "garbled", "refused")
ITEMS = [Item(id=f"i{number}", prompt=f"{KINDS[number % 5]} {number}") for number in range(15)]
METHOD = StarDTox(bias_brain="rule")


def _write(request: ModelRequest) -> str | ModelError:
    words = words_of(request)
    if "busy" in words:
        return ModelBusy("8 attempts failed; last: HTTP 503", attempts=8)
    if "refused" in words:
        return ModelRefused("HTTP 400", attempts=1)
    if "Write the improved answer" in words:
        return "You friend 😀\u2028."
    return "You idiot \x00." if "fool" in words else f"Well, {words}."


def _rate(request: ModelRequest) -> str:
    return "no JSON \ud800" if "garbled" in words_of(request) else quality(90, 90, 90)


def cast(*, slow: float = 0.0) -> Cast:
    return Cast(
        ScriptedModel(_write, name="writer"),
        {
            "scorer": ScorerModel(WordList()),
            "performance_evaluator": ScriptedModel(_rate, name="rater", seconds=slow),
        },
    )


def plan(players: Cast, items: list[Item] = ITEMS, concurrency: int = 1) -> RunPlan:
    return RunPlan(
        method=METHOD,
        cast=players,
        source=ItemList(items),
        limits=Limits(calls=20),
        seed=5,
        concurrency=concurrency,
    )


async def ran(folder: Path, planned: RunPlan) -> RunReader:
    await run(planned, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


def files(folder: Path, kind: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / kind).glob("*.parquet"))}


@pytest.mark.parametrize("kind", ["results", "turns"])
async def test_a_replayed_run_has_the_same_files_to_the_byte(tmp_path: Path, kind: str) -> None:
    await ran(tmp_path / "run", plan(cast()))
    await ran(tmp_path / "again", plan(replay_of(tmp_path / "run")))
    written = files(tmp_path / "run", kind)
    assert len(written) == 1
    assert files(tmp_path / "again", kind) == written


async def test_a_replay_of_a_replay_is_still_the_run(tmp_path: Path) -> None:
    first = await ran(tmp_path / "run", plan(cast()))
    await ran(tmp_path / "again", plan(replay_of(tmp_path / "run")))
    third = await ran(tmp_path / "third", plan(replay_of(tmp_path / "again")))
    assert third.turns().collect().equals(first.turns().collect())
    assert third.record.differences(first.record) == []


async def test_items_at_work_at_once_and_slow_evaluators_replay_to_the_same_rows(
    tmp_path: Path,
) -> None:
    """The rater answers after the scorer here and before it on the tape."""
    one = await ran(tmp_path / "run", plan(cast(slow=0.02), concurrency=8))
    two = await ran(tmp_path / "again", plan(replay_of(tmp_path / "run"), concurrency=3))
    assert two.results().collect().equals(one.results().collect())
    assert two.turns().collect().equals(one.turns().collect())


async def test_recorded_failures_fail_again_in_the_same_way(tmp_path: Path) -> None:
    await ran(tmp_path / "run", plan(cast()))
    again = await ran(tmp_path / "again", plan(replay_of(tmp_path / "run")))
    results = again.results().collect()
    assert results["status"].to_list() == ["answered", "answered", "failed", "failed", "failed"] * 3
    failed = results.filter(pl.col("status") == "failed")
    assert (
        failed["reason"].to_list()
        == [
            "model_busy",
            "unreadable_reply:not_json",
            "model_refused",
        ]
        * 3
    )
    assert_names(failed["message"][0], "8 attempts", "HTTP 503")
    turns = again.turns().filter(pl.col("error").is_not_null()).collect()
    assert turns["attempts"].to_list() == [8, 1] * 3
    assert again.totals().failed == {
        "model_busy": 3,
        "model_refused": 3,
        "unreadable_reply:not_json": 3,
    }


@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_an_item_that_was_late_is_late_again_though_a_replay_has_time(
    tmp_path: Path, seconds: float
) -> None:
    """Late before the first call, or within one that hangs."""
    leisurely = plan(cast(slow=60), ITEMS[:2])
    one = await ran(tmp_path / "run", replace(leisurely, limits=Limits(seconds=seconds)))
    two = await ran(tmp_path / "again", replace(leisurely, cast=replay_of(tmp_path / "run")))
    assert one.totals().failed == {"deadline_passed": 2}
    assert two.results().collect().equals(one.results().collect())
    assert two.turns().collect().equals(one.turns().collect())


async def test_a_turn_that_the_tape_lacks_is_named(tmp_path: Path) -> None:
    await ran(tmp_path / "run", plan(cast(), ITEMS[:2]))
    changed = [ITEMS[0], Item(id="i1", prompt="something else")]
    again = await ran(tmp_path / "again", plan(replay_of(tmp_path / "run"), changed))
    results = again.results().collect()
    assert results["reason"].to_list() == [None, "turn_missing"]
    asked = again.turns().filter(pl.col("position") == 1).collect()["request"][0]
    assert_names(results["message"][1], "item 1", asked[:12], "occurrence 0")


async def test_a_tape_hands_out_a_turn_once(tmp_path: Path) -> None:
    reader = await ran(tmp_path / "run", plan(cast(), ITEMS[:1]))
    turn = reader.turns().collect().row(0, named=True)
    key = (turn["position"], turn["request"], turn["occurrence"])
    tape = RunTape(reader)
    taken = tape.take(*key)
    assert taken is not None
    assert taken.texts == tuple(turn["texts"])
    assert tape.take(*key) is None


async def test_a_tape_played_in_order_holds_one_part_of_the_run_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.runs.store.tables.PART_ITEMS", 3)
    reader = await ran(tmp_path / "run", plan(cast()))
    turns = reader.turns().select("position", "request", "occurrence").collect().rows()
    assert len(files(tmp_path / "run", "turns")) == 5
    tape, held = RunTape(reader), []
    for key in turns:
        assert tape.take(*key) is not None
        held.append(len(tape._window))
    assert max(held) < len(turns) / 2
    assert held[-1] == 0


async def test_what_is_on_the_tape_is_played_and_the_rest_is_asked_of_the_model(
    tmp_path: Path,
) -> None:
    reader = await ran(tmp_path / "run", plan(cast(), ITEMS[:1]))
    live = ScriptedModel(lambda _: "live", name="writer")
    model = ReplayModel.before(live, RunTape(reader))
    assert model.describe() == live.describe()
    turns: list[Turn] = []
    ask = Conversation(
        Cast(model), turns.append, seed=5, item=Item(id="i0", prompt="i0"), limits=Limits(calls=20)
    )
    assert (await ask(WRITER, prompt=ITEMS[0].prompt)).text == "Well, fine 0."
    assert (await ask(WRITER, prompt=ITEMS[0].prompt)).text == "live"
    assert live.requests == 1


TURN = Turn(
    position=0,
    item_id="0",
    index=0,
    role="generator",
    prompt="p@1",
    prompt_sha256="0",
    request="r",
    occurrence=0,
    model="m",
    messages=(Message("user", "hello"),),
    settings="{}",
    started_us=12,
    seconds=0.5,
    attempts=3,
    texts=("a", "b"),
    finish=("stop", "length"),
    logprobs='[[{"token":"a","logprob":null,"top":[["a",-0.5]]}],null]',
    served_by="m-2",
)


def test_a_turn_becomes_the_reply_that_it_recorded() -> None:
    reply = reply_of(TURN)
    token = TokenLogprob("a", None, (("a", -0.5),))
    assert reply.samples == (Sample("a", "stop", (token,)), Sample("b", "length", None))
    assert (reply.usage, reply.served_by, reply.attempts) == (None, "m-2", 3)
    assert (reply.started_us, reply.seconds) == (12, 0.5)


def test_a_failed_turn_becomes_the_error_that_it_recorded() -> None:
    with raises_naming(ModelBusy, "full") as failed:
        reply_of(replace(TURN, error="model_busy", error_message="full"))
    assert failed.value.attempts == 3
    with pytest.raises(TurnMissing):
        reply_of(replace(TURN, error="turn_missing", error_message=""))
