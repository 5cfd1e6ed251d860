"""What the upstream thought is no part of the answer: it is not checked, and in `hold` and `window`
it never leaves."""

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from evenhand.gateway.policy import CheckPolicy, Policy
from evenhand.gateway.wire import ExchangeOutcome
from evenhand.gateway.wire.chat import Chat, ChatReply
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


class Slow(Speaker):
    """It says the rest of a stream once the screen has seen the first words."""

    def __init__(self, text: str, chunks: int) -> None:
        super().__init__(texts=(text,))
        self.screened, self.ended = asyncio.Event(), asyncio.Event()
        self.chunks = chunks

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for number, chunk in enumerate(self._chunks()):
            if number == self.chunks:
                await self.screened.wait()
            await answer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await answer.write(b"data: [DONE]\n\n")
        await answer.write_eof()
        self.ended.set()
        return answer

    async def says_the_rest(self) -> None:
        """Let it, and wait until the gateway has read it."""
        self.screened.set()
        await self.ended.wait()
        await asyncio.sleep(0.3)


async def test_a_window_ends_in_an_error_when_what_it_sent_turns_out_to_be_thinking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speaker = Slow("It is so. So be it. No.</think>They came.", 8)
    async with upstream(speaker) as address, gateway(address, policy("window")) as served:
        score = served.screen.score

        async def scored(texts: Sequence[str]) -> list[Scores | Unscored]:
            if any("So be it." in text for text in texts):
                await speaker.says_the_rest()  # the first sentence is sent
            return await score(texts)

        monkeypatch.setattr(served.screen, "score", scored)
        _, _, body = await served.ask(stream=True)
    assert words(body) == "It is so. "
    assert events(body)[-1]["error"]["code"] == "thinking_sent"
    [exchange] = served.exchanges
    assert (exchange.action, exchange.reason) == ("blocked", "thinking_sent")
    assert [verdict.text for verdict in exchange.verdicts] == ["It is so. "]


async def test_a_stored_text_that_took_the_place_of_thinking_is_no_thinking_that_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speaker = Slow(f"They are {BAD}. So be it.</think>They came.", 8)
    check = policy("window").check.otherwise({
        "on_failure": "stored_text", "stored_text": "Please ask otherwise.", "calls": 1,
    })  # fmt: skip
    async with upstream(speaker) as address, gateway(address, Policy(check=check)) as served:
        write = ChatReply.window

        def written(reply: ChatReply, text: str) -> Iterator[bytes]:
            speaker.screened.set()
            return write(reply, text)

        monkeypatch.setattr(ChatReply, "window", written)
        _, _, body = await served.ask(stream=True)
    assert words(body) == "Please ask otherwise."
    assert b"error" not in body
    assert [(one.action, one.text) for one in served.exchanges[0].verdicts] == [
        ("blocked", "Please ask otherwise.")
    ]


@pytest.mark.parametrize("thought", ["It is so. ", f"They are {BAD}. "])
async def test_thinking_that_is_found_before_it_was_sent_is_dropped_from_a_window(
    monkeypatch: pytest.MonkeyPatch, thought: str
) -> None:
    speaker = Slow(f"{thought}So be it.</think>They came.", 8)
    async with upstream(speaker) as address, gateway(address, policy("window")) as served:
        score = served.screen.score

        async def scored(texts: Sequence[str]) -> list[Scores | Unscored]:
            await speaker.says_the_rest()
            return await score(texts)

        monkeypatch.setattr(served.screen, "score", scored)
        _, _, body = await served.ask(stream=True)
    assert words(body) == "They came."
    [exchange] = served.exchanges
    assert (exchange.action, exchange.reason) == ("passed", "clean")
    [verdict] = exchange.verdicts
    assert (verdict.before, verdict.text) == ("They came.",) * 2
    assert bool(verdict.turns) == (BAD in thought)


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


MENTIONED = f"<think>A <think> ends at </think>, and they are {BAD}."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_thought_that_mentions_a_tag_and_is_cut_is_no_answer(stream: bool, finish: str) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    reply = Chat().reply(Chat().asked(json.dumps(request).encode()))
    kind = "delta" if stream else "message"
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish, kind: {"content": MENTIONED}}
    if stream:
        fed(reply, [stream_of([{"choices": [choice]}, "[DONE]"])])
    else:
        reply.read(json.dumps({"choices": [choice]}).encode())
    assert reply.texts == ()
    assert BAD.encode() not in b"".join(reply.events((), PASSED))


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_in_a_refusal_is_left_out(stream: bool) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    reply = Chat().reply(Chat().asked(json.dumps(request).encode()))
    pieces = [f"<think>{BAD}</th", "ink>No."]
    if stream:
        chunks: list[dict[str, Any]] = [
            {"delta": {"refusal": piece}, "finish_reason": None} for piece in pieces
        ]
        chunks.append({"delta": {}, "finish_reason": "stop"})
        fed(reply, [stream_of([*({"choices": [chunk]} for chunk in chunks), "[DONE]"])])
    else:
        choice = {"message": {"refusal": "".join(pieces)}, "finish_reason": "stop"}
        reply.read(json.dumps({"choices": [choice]}).encode())
    assert (reply.texts, reply.observed) == ((), ("No.",))
    out = reply.body((), PASSED) + b"".join(reply.events((), PASSED))
    assert BAD.encode() not in out
    assert "choices.thinking" in reply.left_out


PARTS = {
    **{name: ([text], [ANSWER]) for name, text in THOUGHTS.items()},
    "untagged": ([UNTAGGED], [ANSWER]),
    "in three parts": ([f"<think>{BAD}", f"{BAD}. ", f"{BAD}</think>{ANSWER}"], ["", "", ANSWER]),
    "untagged in two": ([f"They are {BAD}.", f"So.</think>{ANSWER}"], ["", ANSWER]),
    "never closed": ([ANSWER, f"<think>{BAD}", BAD], [ANSWER, "", ""]),
    "a tag in two": (["<thi", f"nk>{BAD}</think>{ANSWER}"], ["", ANSWER]),
    "refusals": ([f"refusal:<think>{BAD}", f"refusal:{BAD}</think>No."], ["", "No."]),
}


def part_of(text: str) -> dict[str, Any]:
    if text.startswith("refusal:"):
        return {"type": "refusal", "refusal": text.removeprefix("refusal:")}
    return {"type": "output_text", "text": text, "annotations": []}


@pytest.mark.parametrize(("texts", "answers"), PARTS.values(), ids=PARTS.keys())
@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_left_out_of_responses(
    texts: list[str], answers: list[str], stream: bool
) -> None:
    parts = list(map(part_of, texts))
    item = {"type": "message", "id": "m1", "status": "completed", "content": parts}
    end = {"id": "r", "status": "completed", "output": [item]}
    streamed: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        key = "text" if part["type"] == "output_text" else "refusal"
        spot = {"output_index": 0, "content_index": index, "item_id": "m1"}
        kind = f"response.{part['type']}"
        streamed += ({"type": f"{kind}.delta", **spot, "delta": piece} for piece in part[key])
        streamed.append({"type": f"{kind}.done", **spot, key: part[key]})
    streamed.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    streamed.append({"type": "response.completed", "response": end})
    reply = Responses().reply(Responses().asked(b'{"model": "m", "input": "Hello."}'))
    if stream:
        fed(reply, [stream_of(streamed)])
    else:
        reply.read(json.dumps(end).encode())
    refusals = any(part["type"] == "refusal" for part in parts)
    said = tuple(filter(None, answers))
    assert (reply.texts, reply.observed) == (((), said) if refusals else (said, ()))
    written = json.loads(reply.body(reply.texts, PASSED))["output"][0]["content"]
    assert [part.get("text", part.get("refusal")) for part in written] == answers
    out = reply.body(reply.texts, PASSED) + b"".join(reply.events(reply.texts, PASSED))
    assert BAD.encode() not in out
    assert "output.content.thinking" in reply.left_out
