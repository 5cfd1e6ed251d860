"""Every audit and every scorer that asks a model, against every behavior: nothing is lost that the
plain model does not lose, and no number differs."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core import Item, registry
from evenhand.instruments import DataFolder, instrument_named
from evenhand.instruments.harm.instrument import HarmAudit
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.instruments.political.slant_audit import planted
from evenhand.instruments.scorer.instrument import ScorerAudit, ScoreTexts
from evenhand.instruments.scorer.sets import AuditTexts
from evenhand.methods.judge_text import JudgeText, ScreenedJudge
from evenhand.methods.judging import Rate
from evenhand.methods.two_sides import CompareSides
from evenhand.models import Endpoint
from evenhand.models.base import ChatModel
from evenhand.scorers import Scorer, ScorerModel, Scores, Unscored
from evenhand.scorers.base import Canonicalised
from evenhand.scorers.harm import HarmJudge, HarmQuestion
from evenhand.scorers.judge import Guard, Judge
from evenhand.scorers.kinds import ChatScorerKind
from tests.instruments.harm.test_reading import harm_of, rows

from .matrix import ITEMS, NAMES, NO_LOGPROBS, Players, answered, lost, nothing_is_lost, said
from .server import TOXIC, Stub, listed, serving

# All at once, and a thought that has no room at first.
WORST: dict[str, Any] = {
    "refuses": [{"field": name, "unless": 1, "param": True, "message": f"{name} is not supported"}
                for name in ("temperature", "max_tokens", "seed", "top_p")],
    "ignores": ["response_format"],
    "system": ["system", "developer"],
    "thinks": "tags",
    "needs": 3000,
}  # fmt: skip
TEXTS = ("A kind word.", "Y0u are a f00l.", "A third.")
POLICY = HarmQuestion(name="x", policy="No refusals.")
BY_TOKEN = replace(POLICY, read="logprob", orders="both")
SCORERS: Mapping[str, Callable[[ChatModel], Scorer]] = {
    "judge": Judge,
    "judge_by_token": lambda model: Judge(model, read="logprob"),
    "judge_twice": lambda model: Canonicalised(Judge(model)),
    "guard": lambda model: Guard(model, form="llama_guard", system="Say safe or unsafe."),
    "granite": lambda model: Guard(model, form="granite_guardian", system="Say yes or no."),
    "harm": lambda model: HarmJudge(POLICY, model),
    "harm_by_token": lambda model: HarmJudge(BY_TOKEN, model),
}


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub(listed() | {"worst": WORST})


@pytest.fixture(scope="module")
def url(stub: Stub) -> Iterator[str]:
    with serving(stub) as address:
        yield address


def test_every_audit_and_every_kind_of_scorer_that_asks_a_model_is_here() -> None:
    """The reward model, the context-support classifier and stored decisions ask none."""
    assert set(registry.names("audits")) == {"judge", "slant", "harm", "scorer", "reward"}
    kinds = {name: registry.load("scorers", name) for name in registry.names("scorers")}
    assert {n for n, kind in kinds.items() if issubclass(kind, ChatScorerKind)} == {
        "judge",
        "guard",
    }
    assert instrument_named("reward").asks == "nobody"
    assert instrument_named("decisions").stores_answers(None)


# -- scorers ---------------------------------------------------------------------------------------


async def _scored(scorer: Scorer) -> list[Scores | Unscored]:
    try:
        return await scorer.score(TEXTS)
    finally:
        await scorer.close()


@pytest.mark.parametrize("kind", SCORERS)
async def test_no_scorer_loses_a_text_or_gives_another_score(kind: str, url: str) -> None:
    made = [SCORERS[kind](Endpoint(url, model=name)) for name in NAMES]
    ends = dict(zip(NAMES, await asyncio.gather(*map(_scored, made)), strict=True))
    plain = ends.pop("plain")
    assert all(isinstance(outcome, Scores) for outcome in plain)
    by_token, is_guard = kind.endswith("by_token"), kind in ("guard", "granite")
    if is_guard:  # a guard has no tools: a call instead of its word is no verdict
        assert {o.reason for o in ends.pop("toolcall") if isinstance(o, Unscored)} == {"garbage"}
    for name, outcomes in ends.items():
        if name not in NO_LOGPROBS or not (by_token or is_guard):
            assert outcomes == plain, name
        elif by_token:
            whys = [outcome.message for outcome in outcomes if isinstance(outcome, Unscored)]
            assert len(whys) == len(TEXTS), name
            assert all("log-probabilities" in why for why in whys), name
        else:  # a guard's word counts without them, as 0 or 1
            assert [_toxic(o) for o in outcomes] == [_toxic(o) for o in plain], name


def _toxic(outcome: Scores | Unscored) -> bool:
    assert isinstance(outcome, Scores), outcome
    return outcome.toxicity >= 0.5


# -- audits, item by item --------------------------------------------------------------------------


async def test_no_audit_of_a_judge_loses_an_item(url: str, tmp_path: Path) -> None:
    """One item of each kind that the audit has: alone, in pairs, with a request, and all others."""
    (tmp_path / "labels.jsonl").write_text(
        "".join(json.dumps({"task": "Greet.", "text": f"Hi {n}.", "label": True}) + "\n"
                for n in range(3))
    )  # fmt: skip
    audit = JudgeAudit()
    options = audit.options_from({"bases": 2, "derived": 1, "texts": 1, "pairs": 2, "injections": 1,
                                  "identities": "female,male", "other": "second",
                                  "labels": tmp_path / "labels.jsonl"})  # fmt: skip
    source = audit.source(DataFolder(local=None, cache=tmp_path), options)
    kinds: dict[tuple[str, ...], Item] = {}
    for item in (item for part in source.chunks() for item in source.read(*part)):
        kinds.setdefault((item.tags["phase"], item.tags["check"]), item)
    assert {phase for phase, _ in kinds} == {"single", "pair", "own"}
    assert {"injection", "human", "own"} < {check for _, check in kinds}
    await nothing_is_lost(Rate(counterfactual="mask"), url, (*kinds.values(),))


@pytest.mark.parametrize("question", [POLICY, BY_TOKEN], ids=["json", "by-token"])
async def test_no_audit_of_a_harm_loses_an_item(
    question: HarmQuestion, url: str, tmp_path: Path
) -> None:
    harm = harm_of(tmp_path, rows())
    audit = HarmAudit(harm)
    source = audit.source(DataFolder(local=None, cache=tmp_path), audit.options_from({}))
    items = {item.tags["part"]: item for item in source.read(0, len(source))}
    assert {"plain", "order"} <= items.keys()
    method = audit.worded(Rate(), None)
    by_token = question is BY_TOKEN
    await nothing_is_lost(
        method, url, (*items.values(),), _as_scorers(question), reads_tokens=by_token
    )


def _as_scorers(question: HarmQuestion) -> Players:
    def players(model: ChatModel) -> Mapping[str, ChatModel]:
        judges = {role: HarmJudge(question, model, swapped=role == "harm_swapped")
                  for role in ("harm", "harm_swapped", "judge", "screen")}  # fmt: skip
        return {role: ScorerModel(judge) for role, judge in judges.items()}

    return players


async def test_no_judge_of_a_text_that_exists_loses_an_item(url: str) -> None:
    items = tuple(replace(item, answer="A nurse is kind.") for item in ITEMS)
    await nothing_is_lost(JudgeText(), url, items)
    screened = ScreenedJudge(screen="x", low=0.2, high=None)
    await nothing_is_lost(screened, url, items, _as_scorers(POLICY))


async def test_no_audit_of_a_judge_of_political_answers_loses_an_item(url: str) -> None:
    items = tuple(item for item in planted() if item.tags["topic"] == "bail")
    assert len(items) == 6
    await nothing_is_lost(CompareSides(), url, items)


async def test_no_audit_of_a_scorer_loses_a_text(url: str) -> None:
    items = tuple(Item(id=str(n), prompt=text) for n, text in enumerate(TEXTS))

    async def audited(name: str) -> dict[str, object]:
        scorer = Judge(Endpoint(url, model=name))
        method = ScoreTexts.of(scorer, "toxicity")
        try:
            events, _ = await answered(method, url, name, items)
        finally:
            await scorer.close()
        assert lost(events) == {}, name
        return said(events)

    plain, *others = await asyncio.gather(*map(audited, NAMES))
    assert others == [plain] * len(others)


# -- audits, as users run them ---------------------------------------------------------------------


async def _judge(model: Endpoint, out: Path) -> Any:
    options = {"bases": 2, "derived": 1, "texts": 1, "pairs": 2, "identities": "female,male",
               "injections": 2}  # fmt: skip
    return await eh.aio.audit("judge", model=model, out=out, options=options)


async def _harm(model: Endpoint, out: Path) -> Any:
    out.mkdir()
    players = _as_scorers(POLICY)(model)
    cast = Cast(model, {role: players[role] for role in ("harm", "harm_swapped")})
    return await eh.aio.audit(HarmAudit(harm_of(out, rows())), model=cast, out=out / "run")


async def _scorer(model: Endpoint, out: Path) -> Any:
    texts = [f"Text {n}." for n in range(12)]
    table = pl.DataFrame({
        "text": texts, "label": [n % 2 == 0 for n in range(12)], "recorded": [None] * 12,
        "function": "", "group": "", "cluster": texts,
    }, schema_overrides={"recorded": pl.Float64})  # fmt: skip
    return await eh.aio.audit(
        ScorerAudit(AuditTexts({"rtp": table})), out=out, scorers={"it": Judge(model)},
        options={"scorer": "it"},
    )  # fmt: skip


@pytest.mark.parametrize("audit", [_judge, _harm, _scorer])
async def test_an_audit_shows_the_same_of_a_model_that_refuses_all_and_thinks_badly(
    audit: Callable[[Endpoint, Path], Any], stub: Stub, url: str, tmp_path: Path
) -> None:
    shown = {}
    stub.thought, mild = TOXIC, stub.thought
    try:
        for name in ("plain", "worst"):
            async with Endpoint(url, model=name) as model:
                found = await audit(model, tmp_path / name)
            assert found.coverage.scored == found.coverage.n > 0
            shown[name] = [(c.name, c.state, c.value, c.low, c.high, c.n) for c in found.checks]
    finally:
        stub.thought = mild
    assert shown["worst"] == shown["plain"]
    assert any(value is not None for _, _, value, *_ in shown["plain"])
