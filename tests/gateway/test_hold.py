"""Nothing of an answer leaves before its verdict, however it comes in and whatever goes wrong."""

import json
import random
from typing import Any

import pytest

from evenhand.gateway.policy import CheckPolicy, Policy
from tests.gateway.speaking import BAD, GOOD, Speaker, gateway, upstream
from tests.gateway.streams import DONE, TIMES, parts, read_simply

QUICK: dict[str, Any] = {"set": ("performance=false", "max_iterations=1"), "deadline": 5.0}


def said(body: bytes, stream: bool) -> list[str]:
    """The texts of an answer, by its choices."""
    if not stream:
        return [choice["message"]["content"] for choice in json.loads(body)["choices"]]
    texts: dict[int, str] = {}
    for event in read_simply(body):
        for choice in [] if event == DONE else event["choices"]:
            text = choice["delta"].get("content") or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + text
    return [texts[place] for place in sorted(texts)]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_bad_answer_is_repaired_and_a_good_one_goes_out_as_it_is(stream: bool) -> None:
    speaker = Speaker(texts=(f"They are {BAD}.", "They are people."))
    async with upstream(speaker) as address, gateway(address) as served:
        status, headers, body = await served.ask(stream=stream, n=2)
    assert status == 200
    assert said(body, stream) == [f"A {GOOD} answer.", "They are people."]
    assert headers["evenhand-action"] == "repaired"
    [exchange] = served.exchanges
    assert [one.action for one in exchange.verdicts] == ["repaired", "passed"]
    assert exchange.verdicts[0].before == f"They are {BAD}."


async def test_a_part_that_did_not_happen_took_no_time_rather_than_0_seconds() -> None:
    speaker = Speaker(texts=("They are people.",))
    async with upstream(speaker) as address, gateway(address) as served:
        await served.ask()
        speaker.texts = (f"They are {BAD}.",)
        await served.ask()
        speaker.fault = "404"
        await served.ask()
    asked = [set(one.seconds) for one in served.exchanges]
    screened = {"all", "upstream", "screen"}
    assert asked == [screened, screened | {"agents"}, {"all", "upstream"}]


async def test_no_byte_of_a_bad_stream_leaves_however_it_is_cut_and_whatever_fails() -> None:
    rng = random.Random(5)
    faults = ("cut", "no end", "noise", "drop", "500", "404")
    speaker = Speaker(texts=(f"Some say that all of them are {BAD}, and so on.",))
    answered = failed = 0
    async with upstream(speaker) as address, gateway(address) as served:
        for _ in range(150 * TIMES):
            served.parts.upstream.breakers._of.clear()  # what is tested here is not the breaker
            speaker.fault = rng.choice(faults) if rng.random() < 0.3 else ""
            speaker.cut = lambda whole: list(parts(whole, rng))
            stream = rng.random() < 0.8
            status, _, body = await served.ask(stream=stream)
            assert BAD.encode() not in body
            if status == 200:
                assert said(body, stream) == [f"A {GOOD} answer."]
                answered += 1
            else:
                failed += 1
                assert speaker.fault
    assert answered > 90 * TIMES
    assert failed > 20 * TIMES


@pytest.mark.parametrize("mood", ["hung", "killed", "failing", "garbage"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_cannot_be_screened_is_blocked(mood: str, stream: bool) -> None:
    policy = Policy(check=CheckPolicy(**{**QUICK, "deadline": 0.3}))
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        served.screen.mood = mood
        status, headers, body = await served.ask(stream=stream)
    assert status == 503
    assert headers["evenhand-action"] == "blocked"
    assert BAD.encode() not in body
    assert not served.exchanges[0].verdicts[0].ran


@pytest.mark.parametrize("mood", ["hung", "killed", "failing", "garbage"])
async def test_an_open_policy_sends_what_could_not_be_checked_and_says_so(mood: str) -> None:
    check = CheckPolicy(**{**QUICK, "deadline": 0.3, "on_failure": "pass_flagged"})
    async with upstream(Speaker()) as address, gateway(address, Policy(check=check)) as served:
        served.screen.mood = mood
        status, headers, body = await served.ask()
    assert (status, headers["evenhand-action"]) == (200, "not_run")
    assert BAD in said(body, False)[0]
    assert served.exchanges[0].action == "not_run"


@pytest.mark.parametrize("judge", ["slow", "garbage", "dead", "never satisfied"])
async def test_a_team_that_fails_blocks_the_answer(judge: str) -> None:
    def script(request: Any) -> str:
        if judge == "dead":
            raise RuntimeError("a fault in the model's own code")
        if judge == "garbage":
            return "%%"
        if request.schema is None:
            return f"Still {BAD}."
        return json.dumps({"reason": "no", "harm": 99})

    policy = Policy(check=CheckPolicy(**QUICK))
    async with upstream(Speaker()) as address, gateway(address, policy, script) as served:
        served.model._seconds = 3600 if judge == "slow" else 0
        status, headers, body = await served.ask(stream=True)
    assert status == (400 if judge == "never satisfied" else 503)
    assert headers["evenhand-action"] == "blocked"
    assert BAD.encode() not in body
    assert served.model.requests <= policy.check.calls


async def test_a_repair_that_the_screen_still_objects_to_does_not_go_out() -> None:
    def flatters_itself(request: Any) -> str:
        if request.schema is None:
            return f"Another {BAD} one."
        text = request.messages[-1].content
        return json.dumps({"reason": "fine", "harm": 0 if "Another" in text else 99})

    policy = Policy(check=CheckPolicy(**QUICK))
    async with upstream(Speaker()) as address, gateway(address, policy, flatters_itself) as served:
        status, _, body = await served.ask()
    assert status == 400
    assert BAD.encode() not in body
    assert served.exchanges[0].reason == "unrepaired"


@pytest.mark.parametrize("screen", ["well", "failing"])
async def test_no_text_of_a_refused_answer_is_on_record_as_sent(screen: str) -> None:
    def helpless(request: Any) -> str:
        return BAD if request.schema is None else json.dumps({"reason": "no", "harm": 99})

    speaker = Speaker(texts=("A plain text.", f"They are {BAD}."))
    policy = Policy(check=CheckPolicy(**QUICK))
    async with upstream(speaker) as address, gateway(address, policy, helpless) as served:
        served.screen.mood = screen
        status, _, body = await served.ask(n=2)
    reason = "unrepaired" if screen == "well" else "screen_failed"
    assert (status, b"plain" in body) == (400 if screen == "well" else 503, False)
    [exchange] = served.exchanges
    assert (exchange.action, exchange.reason) == ("blocked", reason)
    assert [(one.action, one.text) for one in exchange.verdicts] == [("blocked", "")] * 2
    first = "held_back" if screen == "well" else reason
    assert [one.reason for one in exchange.verdicts] == [first, reason]


class Caller(Speaker):
    """Its stream calls two tools before its end, of which the second is called with the word."""

    def _chunks(self) -> list[dict[str, Any]]:
        chunks = super()._chunks()
        calls = [
            {"index": index, "id": f"c{index}", "function": {"name": "send", "arguments": words}}
            for index, words in enumerate(('{"a": 1}', json.dumps({"note": BAD})))
        ]
        chunks[-2]["choices"][0]["delta"]["tool_calls"] = calls
        return chunks


@pytest.mark.parametrize(
    ("mode", "actions"), [("hold", ["blocked"] * 5), ("window", ["passed"] + ["blocked"] * 4)]
)
async def test_a_tool_call_that_is_blocked_holds_back_what_has_not_left(
    mode: Any, actions: list[str]
) -> None:
    policy = Policy(check=CheckPolicy(**QUICK, mode=mode))
    async with (
        upstream(Caller(texts=("A plain text.",))) as address,
        gateway(address, policy) as served,
    ):
        await served.ask(stream=True)
    [exchange] = served.exchanges
    assert (exchange.action, exchange.reason) == ("blocked", "cannot_be_rewritten")
    assert [one.action for one in exchange.verdicts] == actions


async def test_a_stored_text_stands_in_for_what_is_blocked() -> None:
    check = CheckPolicy(**QUICK, on_failure="stored_text", stored_text="Please ask otherwise.")
    async with upstream(Speaker()) as address, gateway(address, Policy(check=check)) as served:
        served.screen.mood = "killed"
        status, headers, body = await served.ask(stream=True)
    assert (status, headers["evenhand-action"]) == (200, "blocked")
    assert said(body, True) == ["Please ask otherwise."]


async def test_an_error_never_quotes_what_was_found() -> None:
    def quotes(request: Any) -> str:
        return BAD if request.schema is None else json.dumps({"reason": f"{BAD}!", "harm": 99})

    policy = Policy(check=CheckPolicy(**QUICK))
    async with upstream(Speaker()) as address, gateway(address, policy, quotes) as served:
        status, _, body = await served.ask()
    assert status == 400
    assert json.loads(body)["error"]["code"] == "content_blocked"
    assert BAD.encode() not in body


async def test_a_refusal_of_the_upstream_has_its_status_and_not_its_words() -> None:
    async with upstream(Speaker(fault="404")) as address, gateway(address) as served:
        status, headers, body = await served.ask()
    assert (status, json.loads(body)["error"]["code"]) == (404, "model_not_found")
    assert headers["evenhand-action"] == "blocked"
    assert BAD.encode() not in body


@pytest.mark.parametrize("on_failure", ["block", "stored_text"])
@pytest.mark.parametrize("mood", ["well", "killed"])
async def test_what_cannot_be_rewritten_does_not_go_out_in_the_place_of_a_stored_text(
    on_failure: Any, mood: str
) -> None:
    check = CheckPolicy(**QUICK, on_failure=on_failure, stored_text="Please ask otherwise.")
    speaker = Speaker(texts=("Fine.",), arguments=json.dumps({"body": f"they are {BAD}"}))
    async with upstream(speaker) as address, gateway(address, Policy(check=check)) as served:
        served.screen.mood = mood
        status, headers, body = await served.ask()
    assert status in (400, 503)
    assert headers["evenhand-action"] == "blocked"
    assert BAD.encode() not in body


async def test_a_text_that_is_too_long_to_be_screened_is_not_sent() -> None:
    check = CheckPolicy(**QUICK, longest=100)
    async with (
        upstream(Speaker(texts=("a " * 60,))) as address,
        gateway(address, Policy(check=check)) as served,
    ):
        status, _, _ = await served.ask()
    assert status == 503
    assert not served.exchanges[0].verdicts[0].ran


async def test_more_texts_than_calls_are_not_judged_by_more_calls() -> None:
    check = CheckPolicy(**QUICK, calls=3)
    speaker = Speaker(texts=[f"{BAD} {number}" for number in range(8)])
    async with upstream(speaker) as address, gateway(address, Policy(check=check)) as served:
        status, _, _ = await served.ask(n=8)
    assert status == 503
    assert served.model.requests == 0


async def test_a_stream_is_kept_alive_by_comments_and_a_late_block_is_an_error_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evenhand.gateway.sending.QUIET_SECONDS", 0.05)
    policy = Policy(check=CheckPolicy(**{**QUICK, "deadline": 0.5}))
    async with upstream(Speaker()) as address, gateway(address, policy) as served:
        served.screen.mood = "hung"
        status, headers, body = await served.ask(stream=True)
    assert (status, headers["evenhand-action"]) == (200, "checking")
    *comments, error = body.decode().strip().split("\n\n")
    (comment,) = set(comments)
    assert comment.startswith(": evenhand")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "not_checked"
