"""LiteLLM's proxy as a client: it asks before and behind a model, and does what it is told."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.gateway import guardrail
from evenhand.gateway.guardrail import PATH, Prompts, ProxyCall, read
from evenhand.gateway.keys import new_key
from evenhand.gateway.policy import CheckPolicy, Policy, Tenant
from evenhand.gateway.wire import Refused
from evenhand.models.base import ModelRequest
from tests.gateway.speaking import BAD, GOOD, Served, gateway, team

CHECK = CheckPolicy(set=("performance=false", "max_iterations=1"), deadline=5.0)
NOWHERE = "http://127.0.0.1:9/v1"  # this door asks no upstream


class Proxy:
    """What LiteLLM 1.108 sends, in its own fields."""

    def __init__(self, session: aiohttp.ClientSession, served: Served, key: str) -> None:
        self._session = session
        self._url = served.url.removesuffix("/v1") + PATH
        self._headers = {"x-api-key": key} if key else {}

    async def before(self, question: str, id: str = "call-1") -> Any:
        messages = [{"role": "system", "content": "Be brief."},
                    {"role": "user", "content": question}]  # fmt: skip
        return await self.send(
            input_type="request", litellm_call_id=id, structured_messages=messages,
            texts=["Be brief.", question],
        )  # fmt: skip

    async def behind(self, *texts: str, id: str = "call-1", **more: Any) -> Any:
        return await self.send(
            input_type="response", litellm_call_id=id, structured_messages=None, texts=texts, **more
        )

    async def send(self, **said: Any) -> Any:
        body = {"images": None, "tools": None, "tool_calls": None, "model": "m",
                "request_data": {}, "litellm_version": "1.108.4", "litellm_trace_id": "trace-1",
                "request_headers": {"host": "127.0.0.1:4000", "authorization": "[present]"},
                "additional_provider_specific_params": {}, **said}  # fmt: skip
        async with self._session.post(self._url, json=body, headers=self._headers) as got:
            assert got.status == 200, await got.text()
            return await got.json()


@contextlib.asynccontextmanager
async def proxied(
    policy: Policy | None = None, key: str = "", script: Any = team
) -> AsyncIterator[tuple[Served, Proxy]]:
    async with (
        gateway(NOWHERE, policy or Policy(check=CHECK), script) as served,
        aiohttp.ClientSession() as session,
    ):
        yield served, Proxy(session, served, key)


async def test_an_answer_is_repaired_with_the_question_that_was_asked_before() -> None:
    async with proxied() as (served, proxy):
        assert await proxy.before("Describe a nurse.") == {"action": "NONE"}
        told = await proxy.behind(f"They are {BAD}.", "A plain text.")
    assert told == {
        "action": "GUARDRAIL_INTERVENED",
        "texts": [f"A {GOOD} answer.", "A plain text."],
    }
    [exchange] = served.exchanges
    assert (exchange.route, exchange.action) == ("/litellm", "repaired")
    assert (exchange.prompt, exchange.context) == ("Describe a nurse.", "system: Be brief.")


async def test_texts_go_back_only_if_one_of_them_has_changed() -> None:
    async with proxied() as (served, proxy):
        await proxy.before("Describe a nurse.")
        assert await proxy.behind("A plain text.") == {"action": "NONE"}
    assert [one.action for one in served.exchanges] == ["passed"]


async def test_thinking_is_not_checked_and_does_not_go_back() -> None:
    async with proxied() as (served, proxy):
        await proxy.before("Describe a nurse.")
        assert await proxy.behind("A plain text.") == {"action": "NONE"}
        told = await proxy.behind(f"<think>They are {BAD}.</think>A plain text.")
    assert told == {"action": "GUARDRAIL_INTERVENED", "texts": ["A plain text."]}
    assert [one.action for one in served.exchanges] == ["passed", "passed"]


@pytest.mark.parametrize(
    "text", [f"<think>{BAD}", f"<think>A <think> ends at </think>. {BAD}", '{"a": "<think>b']
)
async def test_a_part_that_ends_within_a_thought_is_blocked(text: str) -> None:
    async with proxied() as (served, proxy):
        await proxy.before("Describe a nurse.")
        told = await proxy.behind(text, "A plain text.")
    assert told["action"] == "BLOCKED"
    assert [(one.route, one.action, one.reason) for one in served.exchanges] == [
        ("/litellm", "blocked", "cut_thinking")
    ]


@pytest.mark.parametrize(
    ("texts", "action"),
    [
        (["A plain text.", f"{BAD}</think>Another."], "BLOCKED"),
        (["So.</think>A plain text.", f"{BAD}</think>Another."], "GUARDRAIL_INTERVENED"),
        (["", f"{BAD}</think>Another."], "GUARDRAIL_INTERVENED"),
    ],
)
async def test_a_part_that_begins_within_a_thought_says_what_the_one_before_it_was(
    texts: list[str], action: str
) -> None:
    async with proxied() as (_, proxy):
        assert (await proxy.behind(*texts))["action"] == action


async def test_observe_does_not_block_what_ends_within_a_thought() -> None:
    async with proxied(Policy(check=CHECK.otherwise({"mode": "observe"}))) as (served, proxy):
        await proxy.before("Describe a nurse.")
        assert await proxy.behind(f"<think>{BAD}") == {"action": "NONE"}
        while not served.exchanges:
            await asyncio.sleep(0.01)
    assert [one.action for one in served.exchanges] == ["passed"]


async def test_an_answer_whose_question_was_not_seen_is_judged_alone_and_counted_apart() -> None:
    async with proxied() as (served, proxy):
        await proxy.before("Describe a nurse.")
        told = await proxy.behind(f"They are {BAD}.", id="another")
    assert told["texts"] == [f"A {GOOD} answer."]
    assert [(one.route, one.prompt) for one in served.exchanges] == [("/litellm/alone", "")]


@pytest.mark.parametrize("mood", ["killed", "hung", "failing", "garbage"])
async def test_what_cannot_be_checked_is_blocked_and_never_an_error_that_a_proxy_may_skip(
    mood: str,
) -> None:
    async with proxied(Policy(check=CHECK.otherwise({"deadline": 0.3}))) as (served, proxy):
        served.screen.mood = mood
        told = await proxy.behind("A plain text.")
    assert told["action"] == "BLOCKED"
    assert [(one.action, one.verdicts[0].ran) for one in served.exchanges] == [("blocked", False)]


async def test_who_may_ask_no_more_has_answers_blocked() -> None:
    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], requests_a_minute=1)
    async with proxied(Policy(check=CHECK, tenants={"hr": tenant}), key) as (_, proxy):
        assert (await proxy.behind("A plain text."))["action"] == "NONE"
        assert (await proxy.behind("A plain text."))["action"] == "BLOCKED"


async def test_observe_passes_and_records_what_it_would_have_done() -> None:
    async with proxied(Policy(check=CHECK.otherwise({"mode": "observe"}))) as (served, proxy):
        assert await proxy.behind(f"They are {BAD}.") == {"action": "NONE"}
        while not served.exchanges:  # the answer comes before the check
            await proxy.before("Anything.", id="other")
    assert [one.action for one in served.exchanges] == ["flagged"]


async def test_one_tenants_question_is_not_anothers() -> None:
    keys = {name: new_key() for name in ("hr", "search")}
    tenants = {name: Tenant(keys=[hashed]) for name, (_, hashed) in keys.items()}
    async with proxied(Policy(check=CHECK, tenants=tenants), keys["hr"][0]) as (served, proxy):
        await proxy.before("Describe a nurse.")
        async with aiohttp.ClientSession() as session:
            await Proxy(session, served, keys["search"][0]).behind("A plain text.")
    assert [(one.tenant, one.prompt) for one in served.exchanges] == [("search", "")]


async def test_the_key_is_wanted_where_the_proxy_puts_it() -> None:
    key, hashed = new_key()
    policy = Policy(check=CHECK, tenants={"hr": Tenant(keys=[hashed])})
    async with gateway(NOWHERE, policy) as served, aiohttp.ClientSession() as session:
        url = served.url.removesuffix("/v1") + PATH
        for headers in ({}, {"x-api-key": "wrong"}, {"authorization": f"Bearer {key}"}):
            async with session.post(url, json={}, headers=headers) as got:
                assert got.status == 401


@pytest.mark.parametrize("arguments", [{"a": BAD}, BAD, f'{{"note": "{BAD}"}}'])
async def test_a_tool_call_is_looked_at_in_whatever_shape_it_comes(arguments: Any) -> None:
    call = {"id": "1", "function": {"name": "reject", "arguments": arguments}}
    async with proxied() as (_, proxy):
        told = await proxy.behind("A plain text.", tool_calls=[call])
    assert told["action"] == "BLOCKED"


async def test_only_an_answer_that_is_nothing_but_a_canary_is_told_so() -> None:
    word, call = "evenhand-canary-0123456789abcdef", {"function": {"name": "a", "arguments": BAD}}
    async with proxied() as (served, proxy):
        told = await proxy.behind(f'"{word}."')
        assert told["texts"] == ["evenhand-repaired-0123456789abcdef"]
        assert not served.exchanges
        assert (await proxy.behind(f"{word} {BAD}"))["texts"] == [f"A {GOOD} answer."]
        assert (await proxy.behind(word, tool_calls=[call]))["action"] == "BLOCKED"
    assert [one.action for one in served.exchanges] == ["repaired", "blocked"]


@pytest.mark.parametrize(
    "call",
    [{"function": BAD}, {"function": {"name": "a", "arguments": "{}"}, "custom": {"input": BAD}},
     {"function": {"name": "a", "arguments": "{}", "note": BAD}}, BAD, [BAD], {BAD: 1},
     *({label: f"They are {BAD}.", "function": {"name": "a", "arguments": "{}"}}
       for label in ("id", "type", "index"))],
)  # fmt: skip
async def test_a_tool_call_of_any_shape_hides_nothing(call: Any) -> None:
    async with proxied() as (served, proxy):
        assert (await proxy.behind("A plain text.", tool_calls=[call]))["action"] == "BLOCKED"
    assert [one.action for one in served.exchanges] == ["blocked"]


@pytest.mark.parametrize("mode", ["hold", "observe"])
async def test_what_was_never_looked_at_is_on_record_and_not_as_passed(mode: str) -> None:
    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], requests_a_minute=3)
    policy = Policy(check=CHECK.otherwise({"mode": mode}), tenants={"hr": tenant})
    async with proxied(policy, key) as (served, proxy):
        await proxy.behind("A plain text.", images=["data:image/png;base64,AA"])
        await proxy.send(input_type="response", texts=["a"] * 129)
        await proxy.send(input_type="response", texts=[], tool_calls=[{}] * 129)
        await proxy.behind("A plain text.")  # one more than it may
        while len(served.exchanges) < 4:
            await asyncio.sleep(0.01)
    wanted = "not_run" if mode == "observe" else "blocked"
    assert [one.action for one in served.exchanges] == [wanted] * 4
    assert served.exchanges[-1].reason == "rate_limited"


async def test_requests_are_counted_before_they_are_read_too() -> None:
    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], requests_a_minute=2)
    async with proxied(Policy(check=CHECK, tenants={"hr": tenant}), key) as (_, proxy):
        told = [(await proxy.before("Describe a nurse."))["action"] for _ in range(3)]
    assert told == ["NONE", "NONE", "BLOCKED"]


async def test_a_check_that_is_cut_off_has_spent_what_was_reserved() -> None:
    key, hashed = new_key()
    tenant = Tenant(keys=[hashed], tokens_a_day=CHECK.tokens + 5_000)
    policy = Policy(check=CHECK.otherwise({"deadline": 0.3}), tenants={"hr": tenant})
    async with proxied(policy, key) as (served, proxy):
        served.model._seconds = 3600
        await proxy.behind(f"They are {BAD}.")
        assert (await proxy.behind("A plain text."))["action"] == "BLOCKED"
    assert [one.reason for one in served.exchanges] == ["deadline", "budget_spent"]


async def test_what_could_not_be_checked_is_checked_when_it_comes_again() -> None:
    policy = Policy(check=CHECK.otherwise({"on_failure": "pass_flagged"}))
    async with proxied(policy) as (served, proxy):
        await proxy.before("Describe a nurse.")
        served.screen.mood = "killed"
        await proxy.behind(f"They are {BAD}.")
        served.screen.mood = "well"
        assert (await proxy.behind(f"They are {BAD}."))["texts"] == [f"A {GOOD} answer."]
    assert [one.action for one in served.exchanges] == ["not_run", "repaired"]


def test_an_id_of_any_length_takes_as_little_room() -> None:
    assert len(asked("x" * 1_000_000, "Well?").id) == len(asked("y", "Well?").id)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{", b'{"input_type": "other"}', b'{"input_type": "response", "texts": [1]}',
     b'{"input_type": "response", "texts": "no list"}',
     b'{"input_type": "response", "input_type": "request"}'],
)  # fmt: skip
def test_a_question_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        read(body)


@pytest.mark.parametrize(
    "said",
    [{"input_type": "response", "texts": [1]}, {"input_type": "response", "texts": ["x"] * 129}],
)
async def test_what_cannot_be_read_is_blocked_too(said: dict[str, Any]) -> None:
    async with proxied() as (served, proxy):
        told = await proxy.send(**said)
    assert told["action"] == "BLOCKED"
    assert [(one.action, one.reason) for one in served.exchanges] == [("blocked", "bad_request")]


CALL = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"a": 1}'}}


async def test_the_same_words_of_the_same_answer_are_judged_once_and_told_alike() -> None:
    """As LiteLLM 1.108 asks about a streamed answer that has words and calls a tool: about the
    words with every piece of the call, about both at the end, then about the words once more."""
    written: list[str] = []

    def inventive(request: ModelRequest) -> str:
        if request.schema is not None:
            return team(request)
        written.append(f"A {GOOD} answer, written as number {len(written) + 1}.")
        return written[-1]

    words = f"They are {BAD}."
    async with proxied(script=inventive) as (served, proxy):
        await proxy.before("Describe a nurse.")
        told = [await proxy.behind(words) for _ in range(3)]
        with_call = await proxy.behind(words, tool_calls=[CALL])
        told.append(await proxy.behind(words))
        await proxy.before("Describe a nurse.")  # another question under the same id
        anew = await proxy.behind(words)
    assert [one["texts"] for one in (*told, with_call, anew)] == [
        *[[written[0]]] * 4, [written[1]], [written[2]],
    ]  # fmt: skip
    assert [one.action for one in served.exchanges] == ["repaired"] * 3


async def test_a_block_is_not_remembered_as_the_cause_may_pass() -> None:
    async with proxied() as (served, proxy):
        await proxy.before("Describe a nurse.")
        served.screen.mood = "failing"
        assert (await proxy.behind("A plain text."))["action"] == "BLOCKED"
        served.screen.mood = "well"
        assert await proxy.behind("A plain text.") == {"action": "NONE"}


async def test_observe_records_the_same_words_of_the_same_answer_once() -> None:
    async with proxied(Policy(check=CHECK.otherwise({"mode": "observe"}))) as (served, proxy):
        await proxy.before("Describe a nurse.")
        for words in (f"They are {BAD}.", f"They are {BAD}.", "Other words."):
            assert await proxy.behind(words) == {"action": "NONE"}
        while len(served.exchanges) < 2:
            await proxy.before("Anything.", id="other")
    assert sorted(one.action for one in served.exchanges) == ["flagged", "passed"]


def asked(id: str, prompt: str) -> ProxyCall:
    message = {"role": "user", "content": prompt}
    raw = {"input_type": "request", "litellm_call_id": id, "structured_messages": [message]}
    return read(json.dumps(raw).encode())


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 400)), max_size=60))
def test_kept_questions_are_bounded_and_the_newest_is_there(said: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guardrail, "_MOST_KEPT", 8)
        patch.setattr(guardrail, "_MOST_SIGNS", 1000)
        kept = Prompts(now=lambda: 0.0)
        for number, size in said:
            call = asked(f"id-{number}", "x" * size)
            kept.keep("hr", call)
            found = kept.found("hr", call)
            assert found is not None
            assert found.prompt == "x" * size
            for told in (b"x" * size, b"y", b"z"):
                kept.tell("hr", replace(call, texts=(told.decode(),)), found, told)
            inside = kept._kept["hr"].values()
            assert len(inside) <= 8
            held = [len(one.prompt) + sum(map(len, one.told.values())) for one in inside]
            assert sum(held) == kept._signs["hr"] <= 1000
            assert all(len(one.told) <= 2 for one in inside)


def test_a_question_is_forgotten_after_a_quarter_of_an_hour() -> None:
    time = 0.0
    kept, call = Prompts(now=lambda: time), asked("id", "Describe a nurse.")
    kept.keep("hr", call)
    time = 899.0
    assert kept.found("hr", call) is not None
    time = 901.0
    assert kept.found("hr", call) is None


def test_a_verdict_on_an_answer_is_not_told_of_another_that_took_its_id() -> None:
    kept, call = Prompts(), asked("id", "First?")
    kept.keep("hr", call)
    first = kept.found("hr", call)
    kept.keep("hr", asked("id", "Second?"))
    kept.tell("hr", call, first, b"told")
    second = kept.found("hr", call)
    assert second is not None
    assert not second.told
    assert kept._signs["hr"] == len("Second?")
