"""T12: no reply ends a run, whatever stands in whichever of its fields."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evenhand.agents import Cast, Limits
from evenhand.core import Item
from evenhand.methods.build import build_method
from evenhand.models import Endpoint
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

_MOST = 12  # replies of one run
_ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20).filter(lambda text: text.isprintable())
    | st.sampled_from(["A", "stop", "\x00", "\u202e", "sk\x1b[2J"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("token", max_size=5), inner)
    ),
    max_leaves=6,
)


@st.composite
def _replies(draw: st.DrawFn) -> bytes:
    """A good reply with anything at all in up to three of its fields, some of it 300 deep."""
    top: dict[str, Any] = {"token": "A", "logprob": -0.1}
    entry: dict[str, Any] = {"token": "A", "logprob": -0.1, "top_logprobs": [top, {**top}]}
    lists: dict[str, Any] = {"tokens": ["A"], "token_logprobs": [-1.0], "top_logprobs": [{"A": -1}]}
    logprobs: dict[str, Any] = draw(st.sampled_from([{"content": [entry, entry]}, lists]))
    message: dict[str, Any] = {"role": "assistant", "content": "A"}
    choice: dict[str, Any] = {"message": message, "text": "A", "logprobs": logprobs}
    usage: dict[str, Any] = {"prompt_tokens": 1, "completion_tokens": 1}
    reply: dict[str, Any] = {"model": "m", "choices": [choice], "usage": usage}
    for _ in range(draw(st.integers(0, 3))):
        held = draw(st.sampled_from([top, entry, logprobs, message, choice, usage, reply]))
        held[draw(st.sampled_from(sorted(held)))] = draw(_ODD | st.just("DEEP"))
    return _written(reply)


def _deep(place: str) -> bytes:
    top = {"token": "A", "logprob": -1, place: "DEEP"}
    logprobs = {"content": [{"token": "A", "logprob": -1, "top_logprobs": [top]}]}
    reply = {"choices": [{"message": {"content": "A"}, "text": "A", "logprobs": logprobs}]}
    return _written(reply)


def _written(reply: Any) -> bytes:
    return json.dumps(reply).replace('"DEEP"', "[" * 300 + "]" * 300).encode()


@example(bodies=[_deep("token")] * 2)
@example(bodies=[_deep("logprob")] * 2)
@given(bodies=st.lists(_replies(), min_size=_MOST // 2, max_size=_MOST))
@settings(
    max_examples=20,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_a_run_outlives_every_reply(bodies: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand.models.http_client._FIRST_PAUSE", 0.0001)
        patch.setattr("evenhand.models.endpoint.MAX_ATTEMPTS", 2)
        assert asyncio.run(_ended(bodies, Path(folder) / "run")) == len(bodies)


async def _ended(bodies: list[bytes], out: Path) -> int:
    """How many items a run has answered, or failed by name."""

    async def behave(call: Call, line: Line) -> str:
        item = next(n for n in range(_MOST) if f"neighbour {n}." in call.raw.decode())
        await line.send(bodies[item])
        return "sent"

    items = [Item(id=str(n), prompt=f"Describe neighbour {n}.") for n in range(len(bodies))]
    async with LoopbackServer(behave) as server, Endpoint(server.url, model="m") as model:
        plan = RunPlan(
            method=build_method("self_debias_gen", ()),
            cast=Cast(model),
            source=ItemList(items),
            limits=Limits(seconds=20, calls=3),
            seed=None,
            concurrency=4,
        )
        await run(plan, out, progress=Progress(), stop=StopSignal())
    return len(RunReader(out).results().collect())
