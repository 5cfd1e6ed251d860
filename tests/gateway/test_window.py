"""In `window` a sentence leaves behind its verdict, and no sign of one that has none."""

import asyncio
import json
import random
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from evenhand.gateway.keys import new_key
from evenhand.gateway.policy import CheckPolicy, Policy, Tenant
from evenhand.gateway.window import _ended
from evenhand.models.base import ModelReply, Sample
from tests.gateway.speaking import BAD, GOOD, Served, Speaker, gateway, team, upstream
from tests.gateway.streams import TIMES, parts

WINDOW: dict[str, Any] = {
    "mode": "window", "set": ("performance=false", "max_iterations=1"), "deadline": 5.0,
}  # fmt: skip
POLICY = Policy(check=CheckPolicy(**WINDOW))
FAULTS = ("cut", "no end", "noise", "drop", "500", "404")


def events(body: bytes) -> list[Any]:
    """The events of a stream, without its comments and its end."""
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n") if line[:1] == "d"]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def words(body: bytes) -> str:
    found = (choice["delta"].get("content") or "" for event in events(body)
             for choice in event.get("choices", []))  # fmt: skip
    return "".join(found)


def action(body: bytes) -> str:
    [said] = [line for line in body.decode().split("\n") if line.startswith(": evenhand-action")]
    return said.rpartition(": ")[2]


async def test_a_sentence_leaves_before_the_next_one_has_been_said() -> None:
    heard = asyncio.Event()

    class Slow(Speaker):
        async def _stream(self, request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await answer.prepare(request)
            for number, chunk in enumerate(self._chunks()):
                if number == 8:
                    await heard.wait()  # nobody goes on before the first sentence has arrived
                await answer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await answer.write(b"data: [DONE]\n\n")
            return answer

    sentences = "It rained. Then it stopped."
    speaker = Slow(texts=(sentences,))
    async with (
        upstream(speaker) as address,
        gateway(address, POLICY) as served,
        aiohttp.ClientSession() as session,
    ):
        asked = {"model": "up", "stream": True, "messages": [{"role": "user", "content": "Well?"}]}
        async with session.post(f"{served.url}/chat/completions", json=asked) as got:
            body = b""
            async for chunk in got.content.iter_any():
                body += chunk
                if "It rained. " in words(body[: body.rfind(b"\n\n") + 2]):
                    heard.set()
    assert words(body) == sentences
    assert action(body) == "passed"


async def test_a_bad_sentence_is_rewritten_and_those_around_it_stay() -> None:
    speaker = Speaker(texts=(f"They came late. They are {BAD}! Nobody knew why.",))
    async with upstream(speaker) as address, gateway(address, POLICY) as served:
        _, headers, body = await served.ask(stream=True)
    rewritten = f"They came late. A {GOOD} answer. Nobody knew why."
    assert words(body) == rewritten
    assert (headers["evenhand-action"], action(body)) == ("checking", "repaired")
    [exchange] = served.exchanges
    [verdict] = exchange.verdicts
    assert (exchange.action, verdict.text) == ("repaired", words(body))
    assert verdict.before == speaker.texts[0]
    assert verdict.answer is not None
    assert [event["choices"][0]["finish_reason"] for event in events(body)][-1] == "stop"


async def test_each_sentence_is_judged_alone_and_with_what_went_out_before_it() -> None:
    said = ("The first one is here. ", "The second one is too. ", "And the third one ends it.")
    async with upstream(Speaker(texts=("".join(said),))) as address:
        async with gateway(address, POLICY) as served:
            await served.ask(stream=True)
        one, two, three = (sentence.rstrip() for sentence in said)
        assert served.screen.seen == [one, f"{one} {two}", two, f"{one} {two} {three}", three]


async def test_words_of_one_letter_lines_are_judged_together_too() -> None:
    speaker = Speaker(texts=(f"{BAD[:2]}\n{BAD[2:]}\nand so on.",))
    async with upstream(speaker) as address, gateway(address, POLICY) as served:
        await served.ask(stream=True)
    assert f"{BAD[:2]} {BAD[2:]}" in served.screen.seen


async def test_no_sign_of_an_unchecked_window_leaves_however_it_is_cut_and_whatever_fails() -> None:
    rng = random.Random(7)
    speaker = Speaker(texts=(f"First this. Some are {BAD}, they say. Then that!\nAnd an end",))
    whole = f"First this. A {GOOD} answer. Then that!\nAnd an end"
    answered = failed = 0
    async with upstream(speaker) as address, gateway(address, POLICY) as served:
        for _ in range(150 * TIMES):
            served.parts.upstream.breakers._of.clear()  # what is tested here is not the breaker
            served.screen.seen.clear()
            speaker.fault = rng.choice(FAULTS) if rng.random() < 0.3 else ""
            speaker.cut = lambda body: list(parts(body, rng))
            status, _, body = await served.ask(stream=True)
            assert BAD.encode() not in body
            sent = words(body)
            assert sent.rstrip() in {"", *served.screen.seen}, "not one judged text"
            assert whole.startswith(sent)
            good = status == 200 and "error" not in events(body)[-1]
            assert good == (sent == whole and b"[DONE]" in body)
            assert good or speaker.fault
            answered, failed = answered + good, failed + (not good)
    assert answered > 90 * TIMES
    assert failed > 20 * TIMES


async def test_a_stream_that_comes_sign_by_sign_is_cut_at_sentences_alone() -> None:
    speaker = Speaker(
        texts=(f"About 3.5 of them. “Are they {BAD}?” No.",),
        cut=lambda body: [body[at : at + 1] for at in range(len(body))],
    )
    async with upstream(speaker) as address, gateway(address, POLICY) as served:
        _, _, body = await served.ask(stream=True)
    rewritten = f"About 3.5 of them. A {GOOD} answer. No."
    assert words(body) == rewritten


async def blocked(served: Served) -> tuple[str, str]:
    """What went out of a blocked answer, and the code of the error behind it."""
    _, _, body = await served.ask(stream=True)
    assert BAD.encode() not in body
    assert b"[DONE]" not in body
    [exchange] = served.exchanges
    assert exchange.action == "blocked"
    return words(body), events(body)[-1]["error"]["code"]


async def test_what_cannot_be_mended_ends_the_answer_in_an_error() -> None:
    def stubborn(request: Any) -> str:
        return f"Still {BAD}." if request.schema is None else '{"reason": "no", "harm": 99}'

    speaker = Speaker(texts=(f"First this. They are {BAD}. Then that.",))
    async with upstream(speaker) as address, gateway(address, POLICY, stubborn) as served:
        assert await blocked(served) == ("First this. ", "content_blocked")


@pytest.mark.parametrize("mood", ["hung", "killed", "failing", "garbage"])
async def test_a_window_that_cannot_be_screened_is_not_sent(mood: str) -> None:
    policy = Policy(check=CheckPolicy(**{**WINDOW, "deadline": 0.3}))
    async with upstream(Speaker(texts=("A. B.",))) as address, gateway(address, policy) as served:
        served.screen.mood = mood
        status, headers, body = await served.ask(stream=True)
    assert (status, headers["evenhand-action"]) == (503, "blocked")
    assert json.loads(body)["error"]["code"] == "not_checked"


async def test_an_open_policy_sends_unchecked_windows_and_says_that_nothing_ran() -> None:
    policy = Policy(check=CheckPolicy(**WINDOW, on_failure="pass_flagged"))
    async with upstream(Speaker(texts=("A. B.",))) as address, gateway(address, policy) as served:
        served.screen.mood = "killed"
        _, _, body = await served.ask(stream=True)
    assert (words(body), action(body)) == ("A. B.", "not_run")
    assert [one.action for one in served.exchanges] == ["not_run"]


async def test_a_stored_text_takes_the_place_of_all_that_comes() -> None:
    def stubborn(request: Any) -> str:
        return f"Still {BAD}." if request.schema is None else '{"reason": "no", "harm": 99}'

    check = CheckPolicy(**WINDOW, on_failure="stored_text", stored_text="Ask otherwise.")
    speaker = Speaker(texts=(f"First this. They are {BAD}. Then that. {BAD}!",))
    async with upstream(speaker) as address, gateway(address, Policy(check=check), stubborn) as s:
        _, _, body = await s.ask(stream=True)
    assert words(body) == f"First this. {check.stored_text}"
    assert action(body) == "blocked"


async def test_the_calls_of_a_request_are_shared_by_its_windows() -> None:
    policy = Policy(check=CheckPolicy(**WINDOW, calls=4))
    speaker = Speaker(texts=(f"{BAD} one. {BAD} two. {BAD} three. {BAD} four. {BAD} five.",))
    async with upstream(speaker) as address, gateway(address, policy) as served:
        await blocked(served)
    assert served.model.requests <= 4


@pytest.mark.parametrize(
    "asked", [{"n": 2}, {"response_format": {"type": "json_object"}}, {"stream": False}]
)
async def test_what_must_be_judged_as_a_whole_is_held(asked: dict[str, Any]) -> None:
    texts = ['{"a": "One. Two."}'] * asked.get("n", 1)
    async with upstream(Speaker(texts=texts)) as address, gateway(address, POLICY) as served:
        status, headers, _ = await served.ask(**{"stream": True, **asked})
    assert (status, headers["evenhand-action"]) == (200, "passed")
    assert '{"a": "One. Two."}' in served.screen.seen
    assert all(one[0] == "{" or one == 'Two."}' for one in served.screen.seen)  # never "One." alone


async def test_a_client_that_leaves_in_a_window_ends_the_call_to_the_upstream() -> None:
    speaker = Speaker(fault="hang")
    async with upstream(speaker) as address, gateway(address, POLICY) as served:
        asking = asyncio.create_task(served.ask(stream=True))
        while not speaker.seen:
            await asyncio.sleep(0.01)
        asking.cancel()
        while not (speaker.gone and served.exchanges):  # the test's own time-out is the bar
            await asyncio.sleep(0.01)
    assert [(one.action, one.reason) for one in served.exchanges] == [("blocked", "broken_off")]


async def test_a_client_that_leaves_in_a_later_window_has_spent_what_was_reserved() -> None:
    made: list[Served] = []

    def slow_from_the_second(request: Any) -> str:
        made[0].model._seconds = 3600 if made[0].model.requests >= 3 else 0
        return team(request)

    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], tokens_a_day=POLICY.check.tokens + 5_000)  # more than it said
    check = POLICY.check.otherwise({"deadline": 60.0})
    policy = Policy(check=check, tenants={"hr": tenant})
    speaker = Speaker(texts=(f"{BAD} one. {BAD} two. {BAD} three.",))
    async with (
        upstream(speaker) as address,
        gateway(address, policy, slow_from_the_second) as served,
    ):
        made.append(served)
        asking = asyncio.create_task(served.ask(stream=True, key=key))
        while served.model.requests < 4:
            await asyncio.sleep(0.01)
        asking.cancel()
        while served.parts.admission.under_way:
            await asyncio.sleep(0.01)
        status, _, body = await served.ask(key=key)
    assert (status, json.loads(body)["error"]["code"]) == (429, "budget_spent")
    assert [one.reason for one in served.exchanges] == ["broken_off"]


@given(st.text(alphabet='ab.!?… \n"”)3。', max_size=40), st.integers(0, 40))
def test_a_window_ends_behind_a_sentence_and_the_next_sign_never_changes_that(
    text: str, start: int
) -> None:
    end = _ended(text, min(start, len(text)))
    assert end == 0 or min(start, len(text)) < end <= len(text)
    for more in ("a", ".", '"', "3"):
        assert _ended(text + more, min(start, len(text))) >= end


async def test_an_endpoint_that_counts_no_tokens_gets_no_more_calls_by_it() -> None:
    def uncounted(request: Any) -> ModelReply:
        return ModelReply(
            samples=(Sample(team(request)),), usage=None, served_by="silent", started_us=0,
            seconds=0.0,
        )  # fmt: skip

    policy = Policy(check=CheckPolicy(**WINDOW, calls=6, tokens=6_000))
    speaker = Speaker(texts=(" ".join(f"{BAD} {number}." for number in range(9)),))
    async with upstream(speaker) as address, gateway(address, policy, uncounted) as served:
        await served.ask(stream=True)
    assert 0 < served.model.requests <= 6


async def test_a_judge_that_is_cut_off_again_and_again_gets_no_more_calls_by_it() -> None:
    check = CheckPolicy(**{**WINDOW, "deadline": 0.2}, calls=2, on_failure="pass_flagged")
    speaker = Speaker(texts=(" ".join(f"{BAD} {number}." for number in range(6)),))
    async with upstream(speaker) as address, gateway(address, Policy(check=check)) as served:
        served.model._seconds = 3600
        await served.ask(stream=True)
    assert 0 < served.model.requests <= 2


async def test_sentences_beyond_the_most_windows_are_one_window() -> None:
    text = "So. " * 1000 + f"They are {BAD}."
    async with upstream(Speaker(texts=(text,))) as address, gateway(address, POLICY) as served:
        _, _, body = await served.ask(stream=True)
    assert BAD.encode() not in body
    assert len(served.screen.seen) < 220


async def test_a_text_without_an_end_is_not_waited_for_beyond_what_can_be_screened() -> None:
    policy = Policy(check=CheckPolicy(**WINDOW, longest=100))
    speaker = Speaker(texts=("a " * 5000,))
    async with upstream(speaker) as address, gateway(address, policy) as served:
        status, _, body = await served.ask(stream=True)
    assert (status, json.loads(body)["error"]["code"]) == (503, "not_checked")
    [exchange] = served.exchanges
    assert exchange.reason == "screen_failed"
    assert served.screen.seen == []  # it is not even asked


def test_a_million_dots_are_looked_through_at_once() -> None:
    """The test's own time-out is the bar: before, some thousand took seconds."""
    assert _ended("." * 1_000_000, 0) == 0
    assert _ended("." * 1_000_000 + " a", 0) == 1_000_001
    assert _ended('."' * 500_000, 0) == 0


def test_numbers_and_dots_within_words_do_not_end_a_sentence() -> None:
    unended, quoted = "It costs 3.5 at example.org", 'He said "No." '
    assert _ended(unended, 0) == 0
    assert _ended(f"{quoted}Then", 0) == len(quoted)
    assert _ended("一。二", 0) == 2
