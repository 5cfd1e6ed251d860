"""Many at once: no tenant reads another's words, and nobody who leaves stays behind.

`EVENHAND_CASES=10` is the whole size: 10,000 requests of 50 tenants, 1,000 clients that leave.
"""

import asyncio
import random

import aiohttp
from aiohttp import web

from evenhand.gateway.guardrail import PATH
from evenhand.gateway.keys import new_key
from evenhand.gateway.policy import CheckPolicy, Policy, Tenant
from tests.gateway.speaking import BAD, Served, Speaker, gateway, upstream
from tests.gateway.streams import TIMES

CHECK = CheckPolicy(set=("performance=false", "max_iterations=1"), deadline=30.0)
TENANTS = 50


class Echo(Speaker):
    """An upstream that says what it was asked, and a bad word with every third."""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = (await request.json())["messages"][-1]["content"]
        bad = f" {BAD}" if int(asked.split()[1]) % 3 == 0 else ""
        message = {"role": "assistant", "content": f"You said {asked}.{bad}"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"id": "c", "object": "chat.completion", "choices": [choice]})


async def ask(session: aiohttp.ClientSession, served: Served, key: str, mark: str) -> str:
    """Ask by one of two doors; give all that came back."""
    root, headers = served.url.removesuffix("/v1"), {"authorization": f"Bearer {key}"}
    messages = [{"role": "user", "content": mark}]
    if not mark.endswith("litellm"):
        body = {"model": "up", "messages": messages}
        url = f"{served.url}/chat/completions"
        async with session.post(url, json=body, headers=headers) as got:
            return await got.text()
    # Every tenant's proxy happens to use the same ids.
    call = {"litellm_call_id": mark.split()[1], "model": "up"}
    before = {**call, "input_type": "request", "structured_messages": messages, "texts": [mark]}
    behind = {**call, "input_type": "response", "texts": [f"You said {mark}. {BAD}"]}
    said = ""
    for asked in (before, behind):
        async with session.post(root + PATH, json=asked, headers={"x-api-key": key}) as got:
            said += await got.text()
    return said


async def test_of_interleaved_requests_of_50_tenants_none_reads_what_is_anothers() -> None:
    keys = [new_key() for _ in range(TENANTS)]
    tenants = {f"t{number}": Tenant(keys=[hashed]) for number, (_, hashed) in enumerate(keys)}
    wanted = [
        (number, f"t{number} {which}{' litellm' if which % 2 else ''}")
        for number in range(TENANTS)
        for which in range(20 * TIMES)
    ]
    random.Random(3).shuffle(wanted)
    policy, at_once = Policy(check=CHECK, tenants=tenants), asyncio.Semaphore(50)
    async with (
        upstream(Echo()) as address,
        gateway(address, policy) as served,
        aiohttp.ClientSession() as session,
    ):

        async def one(number: int, mark: str) -> None:
            async with at_once:
                said = await ask(session, served, keys[number][0], mark)
            assert "A kind answer." in said or f"You said {mark}." in said, said
            others = {f"t{other} " for other in range(TENANTS)} - {f"t{number} "}
            assert not any(other in said for other in others), mark

        await asyncio.gather(*(one(*each) for each in wanted))
    assert len(served.exchanges) == len(wanted)
    assert {(one.tenant, one.prompt) for one in served.exchanges} == {
        (f"t{number}", mark) for number, mark in wanted
    }
    for exchange in served.exchanges:
        for verdict in exchange.verdicts:
            assert f"You said {exchange.prompt}." in verdict.before
            for turn in verdict.turns:
                asked = " ".join(message.content for message in turn.messages)
                assert f"{exchange.prompt}" in asked


async def test_of_clients_that_leave_no_task_no_place_and_no_call_stays_behind() -> None:
    rng, speaker = random.Random(9), Speaker(fault="hang")
    async with upstream(speaker) as address, gateway(address) as served:
        quiet = len(asyncio.all_tasks())
        for _ in range(5 * TIMES):
            asking = [asyncio.create_task(served.ask(stream=rng.random() < 0.5)) for _ in range(20)]
            while served.parts.admission.under_way < 20:
                await asyncio.sleep(0.01)
            await asyncio.sleep(rng.random() / 10)
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            while served.parts.admission.under_way or speaker.gone < len(speaker.seen):
                await asyncio.sleep(0.01)
        while len(asyncio.all_tasks()) > quiet + 1:  # the test's own time-out is the bar
            await asyncio.sleep(0.05)
    assert len(served.exchanges) == 100 * TIMES
    assert {one.action for one in served.exchanges} == {"blocked"}
