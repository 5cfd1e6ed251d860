"""The judges of the papers on planted texts: models whose next token is known by hand."""

import json
from collections import Counter
from collections.abc import Callable

import pytest

from evenhand.agents import Read
from evenhand.experiments.planted_judges import planted_judges
from evenhand.experiments.probe import PaperJudging, ProbeResult, Probing
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from tests.stage import told, untold, words_of

from .models import GIVEN, TELLS

KINDS = ("reasonings", "statements")
BIASED = [pair["biased"] for kind in KINDS for pair in GIVEN[kind]]
# The calls of each judge: a referee who writes JSON reads both texts of a pair at once.
ASKED = {
    (judge, read): 12 if (judge, read) == ("debates", "json") else 24
    for judge in ("mabrf", "debates", "statements")
    for read in ("json", "logprob")
}


def is_biased(request: ModelRequest) -> bool:
    return any(text in words_of(request) for text in BIASED)


def knows(request: ModelRequest) -> ModelReply:
    """Its next token tells the texts apart, and what it writes never does."""
    if request.logprobs is None:
        return ModelReply(samples=untold(_constant(request)).samples, usage=None)
    high = is_biased(request) != ("high digit is a good one" in words_of(request))
    return told({"0": 0.4, "9": 0.6} if high else {"0": 0.6, "9": 0.4})


def _constant(request: ModelRequest) -> str:
    assert request.schema is not None
    values = {"integer": 5, "string": "none", "array": [1, 2]}
    fields = request.schema.body["properties"]
    said = {name: values[field["type"]] for name, field in fields.items()}
    lists = {"reasons": ["none", "none"], "scores": [5, 5]}
    return json.dumps(said | {name: lists[name] for name in lists.keys() & said.keys()})


async def probed(
    script: Callable[[ModelRequest], ModelReply],
) -> tuple[dict[tuple[str, Read], PaperJudging], int]:
    probing = Probing(ScriptedModel(script))
    judged = {(line.judge, line.read): line async for line in probing.paper_judges()}
    return judged, probing.speed.calls


async def test_a_model_whose_next_token_alone_knows_is_a_judge_by_log_probabilities_alone() -> None:
    judged, calls = await probed(knows)
    assert judged.keys() == ASKED.keys()
    assert calls == sum(ASKED.values()) == 132
    for (_, read), line in judged.items():
        by_token = read == "logprob"
        assert line.result.verdict == (TELLS if by_token else "constant")
        assert line.result.auc == (1.0 if by_token else 0.5)
        assert (line.result.texts, line.result.unmarked) == (24, 0)


async def test_a_model_that_would_rather_say_no_digit_has_no_marks() -> None:
    judged, _ = await probed(
        lambda request: told({"The": 0.6, "0": 0.4}) if request.logprobs else untold("no JSON")
    )
    for line in judged.values():
        assert (line.result.auc, line.result.unmarked) == (None, 24)


async def test_without_log_probabilities_nothing_is_made_of_the_digit_that_was_said() -> None:
    judged, _ = await probed(lambda request: untold("9" if is_biased(request) else "0"))
    by_token = [line.result for (_, read), line in judged.items() if read == "logprob"]
    assert [result.unmarked for result in by_token] == [24] * 3


async def test_a_referee_that_likes_the_first_place_is_at_chance_where_the_order_turns() -> None:
    def first_is_worse(request: ModelRequest) -> ModelReply:
        if request.schema is None or "ranking" not in request.schema.body["properties"]:
            return untold("not asked here")
        return untold(json.dumps({"reasons": ["a", "b"], "ranking": [2, 1], "scores": [9, 1]}))

    judged, _ = await probed(first_is_worse)
    assert judged["debates", "json"].result.auc == 0.5


async def test_a_kept_probe_has_its_judges_again_and_an_unasked_one_none() -> None:
    probing = Probing(ScriptedModel(lambda _: "?"))
    await probing.reading()
    await probing.judging()
    assert probing.result.paper_judges == []
    judged = [line async for line in probing.paper_judges()]
    again = ProbeResult.model_validate(json.loads(probing.result.model_dump_json()))
    assert again.paper_judges == judged
    assert (again.speed.calls, len(judged)) == (48 + 132, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_planted_texts_differ_and_their_lengths_give_nothing_away(kind: str) -> None:
    pairs = GIVEN[kind]
    texts = [pair[side] for pair in pairs for side in ("biased", "fair")]
    assert len(pairs) == 12
    assert len(set(texts)) == 24
    shorter = Counter(len(pair["biased"]) < len(pair["fair"]) for pair in pairs)
    assert min(shorter.values()) >= 4


def test_each_judge_gets_every_pair() -> None:
    assert {
        (judge.name, judge.read): len(judge.pairs) * judge.calls for judge in planted_judges()
    } == ASKED
