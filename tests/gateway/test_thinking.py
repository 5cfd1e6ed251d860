"""What the upstream thought is no part of the answer: it is not checked, and in `hold` and `window`
it never leaves."""

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from evenhand.gateway.policy import CheckPolicy, Policy
from evenhand.gateway.wire import ExchangeOutcome
from evenhand.gateway.wire.chat import Chat
from evenhand.gateway.wire.completions import Completions
from evenhand.gateway.wire.responses import Responses
from evenhand.models.base import ModelRequest
from evenhand.scorers.base import Scores, Unscored
from tests.gateway.answers import CITED
from tests.gateway.speaking import BAD, GOOD, Served, Speaker, gateway, team, upstream
from tests.gateway.streams import fed, parts, stream_of
from tests.gateway.test_hold import said
from tests.gateway.test_window import events, words

PASSED = ExchangeOutcome(action="passed")
QUICK: dict[str, Any] = {"set": ("performance=false", "max_iterations=1"), "deadline": 5.0}
ANSWER = "They came late. Nobody knew why."
THOUGHTS = {
    "closed": f"<think>\nThey are {BAD}.\n</think>\n\n{ANSWER}",
    "blanks before": f"\n\n<think>They are {BAD}.</think>{ANSWER}",
    "unclosed": f"{ANSWER}<think>They are {BAD}.",
    "mentioned": f"<think>A <think> is {BAD}.</think>{ANSWER}",
    "mistral": f"[THINK]They are {BAD}.[/THINK]{ANSWER}",
}
UNTAGGED = f"They are {BAD}. So be it.</think>{ANSWER}"


def policy(mode: str) -> Policy:
    return Policy(check=CheckPolicy(mode=mode, **QUICK))  # type: ignore[arg-type]


async def answered(served: Served, stream: bool) -> str:
    """The text of an answer that was checked without its thinking."""
    status, _, body = await served.ask(stream=stream)
    assert status == 200
    assert BAD.encode() not in body
    assert not any(BAD in text for text in served.screen.seen)
    assert served.exchanges[-1].action == "passed"
    return words(body) if stream else said(body, stream)[0]


@pytest.mark.parametrize("mode", ["hold", "window"])
async def test_thinking_is_not_checked_and_does_not_leave_however_it_is_cut(mode: str) -> None:
    rng, speaker = random.Random(3), Speaker()
    speaker.cut = lambda body: list(parts(body, rng))
    async with upstream(speaker) as address, gateway(address, policy(mode)) as served:
        for text in THOUGHTS.values():
            speaker.texts = (text,)
            assert [await answered(served, stream) for stream in (False, True)] == [ANSWER] * 2


async def test_thinking_whose_tag_was_in_the_prompt_is_not_checked_in_hold() -> None:
    async with upstream(Speaker(texts=(UNTAGGED,))) as address, gateway(address) as served:
        assert [await answered(served, stream) for stream in (False, True)] == [ANSWER] * 2


async def test_a_window_ends_in_an_error_when_what_it_sent_turns_out_to_be_thinking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screened = asyncio.Event()

    class Slow(Speaker):
        async def _stream(self, request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await answer.prepare(request)
            for number, chunk in enumerate(self._chunks()):
                if number == 8:
                    await screened.wait()
                await answer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await answer.write(b"data: [DONE]\n\n")
            return answer

    speaker = Slow(texts=("It is so. So be it.</think>They came.",))
    async with upstream(speaker) as address, gateway(address, policy("window")) as served:
        score = served.screen.score

        async def scored(texts: Sequence[str]) -> list[Scores | Unscored]:
            screened.set()
            return await score(texts)

        monkeypatch.setattr(served.screen, "score", scored)
        _, _, body = await served.ask(stream=True)
    assert "It is so. ".startswith(words(body))
    assert events(body)[-1]["error"]["code"] == "thinking_sent"
    assert (served.exchanges[0].action, served.exchanges[0].reason) == ("blocked", "thinking_sent")


async def test_a_bad_answer_behind_good_thinking_is_repaired_by_agents_that_read_it_alone() -> None:
    asked: list[str] = []

    def script(request: ModelRequest) -> str:
        asked.extend(message.content for message in request.messages)
        return team(request)

    speaker = Speaker(texts=(f"<think>They are people.</think>They are {BAD}.",))
    async with upstream(speaker) as address, gateway(address, script=script) as served:
        for stream in (False, True):
            _, headers, body = await served.ask(stream=stream)
            assert said(body, stream) == [f"A {GOOD} answer."]
            assert headers["evenhand-action"] == "repaired"
    assert any(f"They are {BAD}." in text for text in asked)
    assert not any("They are people." in text for text in asked)


async def test_an_answer_that_is_thinking_alone_is_empty() -> None:
    speaker = Speaker(texts=(f"<think>They are {BAD}.",))
    async with upstream(speaker) as address, gateway(address) as served:
        assert [await answered(served, stream) for stream in (False, True)] == ["", ""]


async def test_observe_sends_the_thinking_and_checks_the_answer() -> None:
    message = {"role": "assistant", "content": THOUGHTS["closed"], "reasoning_content": BAD}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    speaker = Speaker(more={"choices": choices})
    async with upstream(speaker) as address, gateway(address, policy("observe")) as served:
        _, _, body = await served.ask()
        while not served.exchanges:
            await asyncio.sleep(0.01)
    assert json.loads(body)["choices"][0]["message"] == message
    [verdict] = served.exchanges[0].verdicts
    assert (verdict.action, verdict.before) == ("passed", ANSWER)


async def test_reasoning_content_does_not_leave_and_is_counted() -> None:
    message = {"role": "assistant", "content": ANSWER, "reasoning_content": BAD}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    speaker = Speaker(more={"choices": choices})
    async with upstream(speaker) as address, gateway(address) as served:
        assert await answered(served, stream=False) == ANSWER


def test_log_probabilities_and_citations_of_a_text_with_thinking_are_left_out() -> None:
    text = f"<think>{BAD}</think>{ANSWER}"
    tokens = {"content": [{"token": text, "logprob": -0.5}]}
    message = {"content": text, "annotations": [CITED]}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": tokens}
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    reply = Chat().reply(Chat().asked(json.dumps(request).encode()))
    reply.read(json.dumps({"choices": [choice]}).encode())
    assert (reply.texts, reply.observed) == ((ANSWER,), ())
    [sent] = json.loads(reply.body(reply.texts, PASSED))["choices"]
    assert (sent["message"]["content"], sent["logprobs"]) == (ANSWER, None)
    assert "annotations" not in sent["message"]
    assert "choices.thinking" in reply.left_out


def test_thinking_is_left_out_of_completions() -> None:
    asked = Completions().asked(b'{"model": "m", "prompt": "Hello."}')
    reply = Completions().reply(asked)
    choice = {"index": 0, "text": THOUGHTS["closed"], "finish_reason": "stop"}
    reply.read(json.dumps({"choices": [choice]}).encode())
    assert reply.texts == (ANSWER,)
    assert BAD not in reply.body(reply.texts, PASSED).decode()


@pytest.mark.parametrize("text", [*THOUGHTS.values(), UNTAGGED])
@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_left_out_of_responses(text: str, stream: bool) -> None:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "m1", "status": "completed", "content": [part]}
    end = {"id": "r", "status": "completed", "output": [item]}
    spot = {"output_index": 0, "content_index": 0, "item_id": "m1"}
    streamed = [
        *({"type": "response.output_text.delta", **spot, "delta": piece} for piece in text),
        {"type": "response.output_text.done", **spot, "text": text},
        {"type": "response.output_item.done", **spot, "item": item},
        {"type": "response.completed", "response": end},
    ]
    reply = Responses().reply(Responses().asked(b'{"model": "m", "input": "Hello."}'))
    if stream:
        fed(reply, [stream_of(streamed)])
    else:
        reply.read(json.dumps(end).encode())
    assert (reply.texts, reply.observed) == ((ANSWER,), ())
    out = reply.body(reply.texts, PASSED) + b"".join(reply.events(reply.texts, PASSED))
    assert BAD.encode() not in out
    assert "output.content.thinking" in reply.left_out
