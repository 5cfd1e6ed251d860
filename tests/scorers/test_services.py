"""The kinds that speak HTTP, against loopback servers: what is sent, and how each failure ends."""

import json
from datetime import date
from typing import Any

import pytest

from evenhand.core.errors import UserError
from evenhand.scorers import Scores, Unscored, services
from evenhand.scorers.services import HttpGuardrail, JsonService, OpenAIModeration, Perspective

from .services import HANG, Answer, good, serving

KEY = "sk-loopback-0123456789abcdef"


def moderated(body: dict[str, Any]) -> Answer:
    scores = [
        {"harassment": 0.9 if "fool" in text else 0.1, "hate": 0.2, "sexual": 0.05, "violence": 1.0}
        for text in body["input"]
    ]
    results = [{"flagged": True, "category_scores": row} for row in scores]
    return good({"id": "m-1", "model": "omni-2024", "results": results})


async def test_moderation_sends_texts_in_batches_and_keeps_their_order() -> None:
    texts = [f"text {n}" + (" fool" if n == 33 else "") for n in range(40)]
    async with serving(moderated) as service:
        scorer = OpenAIModeration(service.url, key=KEY)
        scored = await scorer.score([*texts, "  "])
        await scorer.close()
    assert [len(call.body["input"]) for call in service.asked] == [32, 8]
    assert {call.path for call in service.asked} == {"/v1/moderations"}
    assert service.asked[0].headers["authorization"] == f"Bearer {KEY}"
    toxic = [place for place, one in enumerate(scored) if getattr(one, "toxicity", 0) == 0.9]
    assert toxic == [33]
    worst = scored[33]
    assert isinstance(worst, Scores)
    assert dict(worst.values) == {
        "toxicity": 0.9,
        "insult": 0.9,
        "identity_attack": 0.2,
        "sexual": 0.05,
    }
    assert worst.because == ("harassment 0.90",)
    assert scored[40] == Unscored("empty_text", "the text is empty")
    assert scorer.describe()["served"] == ["omni-2024"]
    assert KEY not in json.dumps(scorer.describe())


async def test_a_text_that_the_server_refuses_does_not_take_its_batch_along() -> None:
    def picky(body: dict[str, Any]) -> Answer:
        if any("too long" in text for text in body["input"]):
            return 400, b'{"error": {"message": "too long"}}'
        return moderated(body)

    async with serving(picky) as service:
        scorer = OpenAIModeration(service.url)
        scored = await scorer.score(["fine", "too long", "fool"])
        await scorer.close()
    assert [type(one) for one in scored] == [Scores, Unscored, Scores]
    assert scored[1] == Unscored("http_400", "HTTP 400: too long")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(good({"results": []}), "wrong_length", id="no results for two texts"),
        pytest.param(good({"results": [{}, {}, {}]}), "wrong_length", id="one too many"),
        pytest.param(good({"results": [{}, {}]}), "garbage", id="results without scores"),
        pytest.param(
            good({"results": [{"category_scores": {"hate": 7}}] * 2}), "garbage", id="beyond 1"
        ),
        pytest.param(
            good({"results": [{"category_scores": {"hate": None}}] * 2}), "garbage", id="null"
        ),
        pytest.param(
            good({"results": [{"category_scores": {"spam": 0.5}}] * 2}), "garbage", id="no label"
        ),
        pytest.param((200, b"<html>"), "garbage", id="a web page"),
        pytest.param((200, b"[]"), "garbage", id="no object"),
        pytest.param((500, b"{}"), "http_500", id="500"),
        pytest.param((401, b'{"error": "key"}'), "http_401", id="401"),
        pytest.param((410, b"gone"), "service_closed", id="gone"),
        pytest.param(HANG, "timeout", id="it hangs"),
    ],
)
async def test_every_failure_is_a_reason_and_never_a_score(answer: Answer, reason: str) -> None:
    async with serving(lambda body: answer) as service:
        scorer = OpenAIModeration(service.url, seconds=0.6 if answer == HANG else 60.0)
        scored = await scorer.score(["one", "two"])
        await scorer.close()
    assert [one.reason for one in scored if isinstance(one, Unscored)] == [reason, reason]


async def test_nobody_at_the_address_is_unreachable() -> None:
    scorer = HttpGuardrail("http://127.0.0.1:9/score", seconds=2.0)
    [one] = await scorer.score(["text"])
    await scorer.close()
    assert isinstance(one, Unscored)
    assert one.reason == "unreachable"


async def test_a_fault_that_passes_costs_a_try_and_no_score() -> None:
    tries = iter([(503, b"{}"), (200, b"{"), good({"score": 0.25})])
    async with serving(lambda body: next(tries)) as service:
        scorer = HttpGuardrail(service.url)
        [one] = await scorer.score(["text"])
        await scorer.close()
    assert one == Scores({"toxicity": 0.25})
    assert len(service.asked) == 3


async def test_a_key_that_a_server_echoes_is_not_repeated() -> None:
    async with serving(lambda body: (403, f"no such key: {KEY}".encode())) as service:
        scorer = OpenAIModeration(service.url, key=KEY)
        [one] = await scorer.score(["text"])
        await scorer.close()
    assert isinstance(one, Unscored)
    assert KEY not in one.message
    assert "[redacted]" in one.message


async def test_perspective_is_read_by_attribute_and_its_key_is_not_in_the_address() -> None:
    scores = {"TOXICITY": 0.75, "INSULT": 0.5, "SEXUALLY_EXPLICIT": 0.125}
    answer = {"attributeScores": {n: {"summaryScore": {"value": v}} for n, v in scores.items()}}
    async with serving(lambda body: good(answer)) as service:
        scorer = Perspective(f"{service.url}/comments:analyze", key=KEY)
        [one] = await scorer.score(["You fool."])
        await scorer.close()
    [call] = service.asked
    assert (call.path, call.headers["x-goog-api-key"]) == ("/v1/comments:analyze", KEY)
    assert call.body["comment"] == {"text": "You fool."}
    assert one == Scores({"toxicity": 0.75, "insult": 0.5, "sexual": 0.125})


def test_perspective_at_google_says_when_it_ends_and_another_server_is_another_scorer() -> None:
    googles = Perspective("https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze")
    assert googles.describe()["ends"] == "2026-12-31"
    assert googles.name == "perspective@1"
    own = Perspective("http://127.0.0.1:8080/comments:analyze")
    assert "ends" not in own.describe()
    assert own.name != googles.name
    assert date(2026, 12, 31) == services.ENDS


async def test_what_fails_after_a_service_has_ended_is_a_closed_service() -> None:
    async with serving(lambda body: (404, b"not found")) as service:
        over = JsonService(service.url, ends=date(2020, 12, 31))
        going = JsonService(service.url, ends=date(9999, 12, 31))
        ended, failed = await over.post({}), await going.post({})
        await over.close()
        await going.close()
    assert isinstance(ended, Unscored)
    assert isinstance(failed, Unscored)
    assert (ended.reason, failed.reason) == ("service_closed", "http_404")
    assert "2020-12-31" in ended.message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": {"toxic": True}}, Scores({"toxicity": 1.0})),
        ({"result": {"toxic": False}}, Scores({"toxicity": 0.0})),
        ({"result": {"toxic": 0.5}}, Scores({"toxicity": 0.5})),
        ({"result": None}, Unscored("garbage", "the answer holds no result.toxic")),
        (
            {"result": {"toxic": "no"}},
            Unscored("garbage", "toxicity is no number, not from 0 to 1"),
        ),
    ],
)
async def test_any_guardrail_that_answers_in_json_is_a_scorer(
    answer: Any, expected: Scores | Unscored
) -> None:
    async with serving(lambda body: good(answer)) as service:
        scorer = HttpGuardrail(service.url, text_field="input", score_field="result.toxic")
        [one] = await scorer.score(["text"])
        await scorer.close()
    assert one == expected
    assert service.asked[0].body == {"input": "text"}


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "https://user:pass@x.example/",
        "https://x.example/?key=secret",
        "not a url",
        "http://x:99999",
    ],
)
def test_an_address_that_could_leak_a_key_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError) as refused:
        HttpGuardrail(url)
    assert "secret" not in str(refused.value)
    assert "pass@" not in str(refused.value)


async def test_a_text_with_half_a_character_is_missing_and_takes_no_other_along() -> None:
    async with serving(moderated) as service:
        scorer = OpenAIModeration(service.url)
        scored = await scorer.score(["fine", "\ud800", "fool"])
        await scorer.close()
    assert [getattr(one, "reason", "") for one in scored] == ["", "not_text", ""]
