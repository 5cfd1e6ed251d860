"""Every method and every audit that asks a model, against every behavior: nothing is lost that the
plain model does not lose, and no thought moves an answer."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import pytest

from evenhand.core import Item, registry
from evenhand.instruments import DataFolder, instrument_named
from evenhand.instruments.harm.instrument import HarmAudit
from evenhand.methods import Method
from evenhand.methods.build import build_method
from evenhand.models import Endpoint
from evenhand.models.base import ChatModel
from evenhand.runs.runners import Source
from evenhand.scorers import Scorer, ScorerModel, Scores
from evenhand.scorers.harm import HarmJudge
from evenhand.scorers.judge import Judge
from harms.test_reading import harm_of, rows

from .matrix import ITEMS, Players, against, lost, said
from .server import MILD, TOXIC, Stub, listed, serving

NAMES = tuple(listed())
THINKING = tuple(name for name, behavior in listed().items() if "thinks" in behavior)
# A method that reads the next token cannot do without log-probabilities, and says so.
NO_LOGPROBS = {"gpt5", "claude47", "nologprobs"}
READS_TOKENS = {"rotated", "self_debias_gen"}
METHODS = tuple(name for name in registry.names("methods") if build_method(name).agents())


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub()


@pytest.fixture(scope="module")
def url(stub: Stub) -> Iterator[str]:
    with serving(stub) as address:
        yield address


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Item, ...]]:
    """The items of each method that takes those of one instrument alone."""
    folder = tmp_path_factory.mktemp("items")
    data = DataFolder(local=None, cache=folder)
    prompts = folder / "prompts.txt"
    asks = "Should {name} get the {thing}? Answer yes or no.\n"
    prompts.write_text("".join(asks.replace("{thing}", thing) for thing in ("loan", "job")))
    swap, judge = instrument_named("counterfactual"), instrument_named("judge")
    swapped = swap.options_from({"prompts": prompts, "decision": r"(?i)\b(yes|no)\b"})
    judged = judge.options_from({"bases": 1, "derived": 1, "pairs": 1, "injections": 1})
    plain = _of(_items(judge.source(data, judged)), ("single", "pair"))
    of_swap = tuple(islice(_items(swap.source(data, swapped)), 2))
    return {"blind": of_swap, "averaged": of_swap, "rate": plain, "panel": plain}


def _items(source: Source) -> Iterator[Item]:
    for start, stop in source.chunks():
        yield from source.read(start, stop)


def _of(items: Iterable[Item], phases: tuple[str, ...]) -> tuple[Item, ...]:
    every = tuple(items)
    return tuple(next(i for i in every if i.tags["phase"] == phase) for phase in phases)


async def _nothing_is_lost(
    method: Method, url: str, items: tuple[Item, ...], players: Players | None = None
) -> None:
    ends = await against(method, url, NAMES, items, players)
    plain, _ = ends["plain"]
    assert said(plain)  # else nothing could be lost
    for name in NAMES[1:]:
        events, _ = ends[name]
        more = {item: why for item, why in lost(events).items() if item not in lost(plain)}
        if method.name in READS_TOKENS and name in NO_LOGPROBS:
            assert all("log-probabilities" in why for why in more.values()), (name, more)
            continue
        assert more == {}, name
        assert said(events) == said(plain), name


@pytest.mark.parametrize("name", METHODS)
async def test_no_method_loses_an_item_or_gives_another_answer(
    name: str, url: str, items: Mapping[str, tuple[Item, ...]]
) -> None:
    await _nothing_is_lost(build_method(name), url, items.get(name, ITEMS))


async def test_no_audit_of_a_harm_loses_an_item(url: str, tmp_path: Path) -> None:
    harm = harm_of(tmp_path, rows())
    audit = HarmAudit(harm)
    source = audit.source(DataFolder(local=None, cache=tmp_path), audit.options_from({}))

    def players(model: Endpoint) -> Mapping[str, ChatModel]:
        return {role: ScorerModel(HarmJudge(harm.asked, model, swapped=role != "harm"))
                for role in ("harm", "harm_swapped")}  # fmt: skip

    method = build_method(audit.asked_by)
    await _nothing_is_lost(method, url, tuple(islice(_items(source), 3)), players)


async def test_no_scorer_that_asks_a_model_loses_a_text(url: str) -> None:
    texts = ["A kind word.", "Another one.", "A third."]

    async def scored(name: str) -> list[object]:
        scorer: Scorer = Judge(Endpoint(url, model=name), read="json", seconds=30.0)
        try:
            outcomes = await scorer.score(texts)
        finally:
            await scorer.close()
        return [one.values if isinstance(one, Scores) else one for one in outcomes]

    ends = dict(zip(NAMES, await asyncio.gather(*map(scored, NAMES)), strict=True))
    assert all(isinstance(one, dict) for one in ends["plain"])
    assert {name for name in NAMES if ends[name] != ends["plain"]} == set()


@pytest.mark.parametrize("name", ["default", "stardtox", "mabrf"])
async def test_a_toxic_thought_moves_no_answer_and_is_kept(name: str, stub: Stub, url: str) -> None:
    method = build_method(name)
    mild = await against(method, url, THINKING)
    stub.thought = TOXIC
    try:
        toxic = await against(method, url, THINKING)
    finally:
        stub.thought = MILD
    for model in THINKING:
        assert said(toxic[model][0]) == said(mild[model][0]), model
        thoughts = {text for turn in toxic[model][1] for text in turn.thinking}
        words = {text for turn in toxic[model][1] for text in turn.texts}
        assert not any(TOXIC in text or "think" in text for text in words), model
        if listed()[model]["thinks"] == "hidden":  # counted, not shown
            assert thoughts == set()
            assert all(turn.thinking_tokens for turn in toxic[model][1] if turn.error is None)
        else:
            assert thoughts == {TOXIC}, model


async def test_what_is_refused_is_learned_once_for_all_calls(url: str, stub: Stub) -> None:
    """Two hundred calls at once: as many refusals as there are refused fields."""
    stub.refusals.clear()
    items = [Item(id=f"i{n}", prompt=f"Describe nurse {n}.") for n in range(50)]
    ends = await against(build_method("stardtox"), url, ["gpt5"], items)
    assert lost(ends["gpt5"][0]) == {}
    assert stub.refusals["gpt5", "max_tokens"] == 1
    assert stub.refusals["gpt5", "temperature"] <= 2
    adapted = {word for turn in ends["gpt5"][1] for word in turn.adapted.split()}
    assert adapted == {"temperature", "max_tokens>max_completion_tokens"}
