"""What a model did not accept, what it was given beside, and what it thought: in the record, in the
report, in `doctor`, and in no number of an answer."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core import Item, Message
from evenhand.core.errors import ModelRefused, UserError
from evenhand.experiments.installation import DoctorCheck, EndpointCheck
from evenhand.findings.display import Remark
from evenhand.methods.build import build_method
from evenhand.models import Endpoint, ModelRequest
from evenhand.models.wire import USUAL, Dialect
from evenhand.runs.store import RunReader
from tests.errors import raises_naming

from .matrix import answered, lost
from .server import Stub, listed, serving

BEYOND: dict[str, Any] = {
    "lost": {"thinks": "reasoning_content", "needs": 10**6},
    "onlyone": {
        "refuses": [
            {"field": "temperature", "message": "`temperature` and `top_p` cannot both be set."}
        ]
    },
    "grumbling": {"refuses": [{"field": "n", "unless": 1, "status": 500, "message": "boom"}]},
}


@pytest.fixture(scope="module")
def stub() -> Stub:
    return Stub(listed() | BEYOND)


@pytest.fixture(scope="module")
def url(stub: Stub) -> Iterator[str]:
    with serving(stub) as address:
        yield address


async def _measured(url: str, name: str, out: Path, **options: Any) -> eh.Report:
    async with Endpoint(url, model=name) as model:
        found = await eh.aio.measure(
            "bbq", model=model, out=out, options={"per_category": 4, **options}
        )
    assert isinstance(found, eh.Report)
    return found


@pytest.fixture
def bbq(monkeypatch: pytest.MonkeyPatch, data_folder: Path) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))


@pytest.mark.usefixtures("bbq")
async def test_the_report_says_what_was_not_accepted(url: str, tmp_path: Path) -> None:
    items = [Item(id=f"{n}", prompt=f"Describe nurse {n}.") for n in range(3)]
    async with Endpoint(url, model="gpt5", params={"reasoning_effort": "low"}) as model:
        await eh.aio.mitigate(items, method="stardtox", model=model, out=tmp_path / "run")
    totals = RunReader(tmp_path / "run").totals()
    assert set(totals.adapted["gpt5"]) == {"max_tokens>max_completion_tokens", "temperature"}
    assert totals.adapted["gpt5"]["temperature"] < totals.calls  # drafts ask for none
    assert totals.thinking_tokens == 12 * totals.calls
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["cast"]["default"]["params"] == {"reasoning_effort": "low"}
    found = await _measured(url, "gpt5", tmp_path / "bbq")
    assert "max_tokens sent as max_completion_tokens" in found.side.asked


async def test_a_thought_that_no_limit_is_enough_for_says_what_helps(url: str) -> None:
    events, turns = await answered(build_method("default"), url, "lost")
    assert len(turns) == 2 * len(events)  # once more, and not again
    assert {json.loads(turn.settings)["max_tokens"] for turn in turns} == {1024, 4096}
    for why in lost(events).values():
        assert why.startswith("unreadable_reply:cut_off")
        assert "--max-tokens" in why
        assert "reasoning_effort=low" in why


@pytest.mark.usefixtures("bbq")
async def test_a_run_of_which_nothing_was_read_says_why(url: str, tmp_path: Path) -> None:
    found = await _measured(url, "lost", tmp_path / "run")
    assert found.failed_by_reason == {"unreadable_reply:cut_off": 44}
    assert [step.code for step in found.verdict.next if isinstance(step, Remark)] == [
        "next.failures", "next.max_tokens", "next.doctor",
    ]  # fmt: skip


async def test_a_judge_that_could_not_be_read_is_not_measured(url: str, tmp_path: Path) -> None:
    options = {"bases": 8, "derived": 1, "pairs": 6, "identities": "female,male", "injections": 6}
    async with Endpoint(url, model="lost") as model:
        found = await eh.aio.audit("judge", model=model, out=tmp_path / "run", options=options)
    assert found.state == "inconclusive"
    assert {check.state for check in found.checks if check.name != "coverage"} == {"not_measured"}
    assert any("--max-tokens" in step for step in found.next)


# -- the params of a model -------------------------------------------------------------------------


async def test_params_are_sent_and_null_leaves_a_field_out(url: str, stub: Stub) -> None:
    params = {"temperature": None, "top_k": 5, "extra_body": {"chat_template_kwargs": {"a": 1}}}
    async with Endpoint(url, model="plain", params=params) as model:
        await model.complete(ModelRequest(messages=(Message("user", "hi"),), temperature=0.0))
        described = model.describe()["params"]
    body = stub.bodies[-1]
    assert "temperature" not in body
    assert (body["top_k"], body["chat_template_kwargs"]) == (5, {"a": 1})
    assert described == {"temperature": None, "top_k": 5, "chat_template_kwargs": {"a": 1}}


@pytest.mark.parametrize("name", ["messages", "model", "n", "max_tokens"])
def test_params_do_not_say_what_is_asked(name: str) -> None:
    with raises_naming(UserError, name):
        Endpoint("http://127.0.0.1:1/v1", model="m", params={name: 1})


@pytest.mark.parametrize(
    ("name", "field", "params"),
    [
        ("gpt5", "temperature", {"temperature": 0.5}),
        ("gpt5", "logprobs", {"logprobs": True}),
        ("claude47", "top_p", {"extra_body": {"top_p": 0.9}}),
    ],
)
async def test_a_refused_param_of_the_user_is_an_error_and_never_left_out(
    name: str, field: str, params: dict[str, Any], url: str, stub: Stub
) -> None:
    async with Endpoint(url, model=name, params=params) as model:
        request = ModelRequest(messages=(Message("user", "hi"),), temperature=0.0)
        with raises_naming(ModelRefused, f"--param {field}"):
            await model.complete(request)
        assert field not in model.dialect.dropped
    assert stub.bodies[-1][field] == params.get("extra_body", params)[field]


@pytest.mark.parametrize(
    ("words", "field", "named"),
    [
        ("The user message is too long: the context length is 4096", None, ""),
        ("The maximum is 64 characters", "user", "user"),
        ("The last user message has no content", None, ""),
        ('Bad input: [{"role": "user", "content": "x"}]', None, ""),
        ("Unknown parameter: 'user'", None, "user"),
        ("The field user is not known", None, "user"),
        ("user: Extra inputs are not permitted", None, "user"),
        ("Extra inputs are not permitted: user", None, "user"),
        ("This model takes no top_k", None, "top_k"),
    ],
)
def test_a_param_of_the_user_is_blamed_only_where_the_error_names_it(
    words: str, field: str | None, named: str
) -> None:
    model = Endpoint("http://127.0.0.1:1/v1", model="m", params={"user": "me", "top_k": 5})
    error = json.dumps({"error": {"message": words, "param": field}}).encode()
    with pytest.raises(ModelRefused) as refused:
        model.read_in_batch(400, error, ModelRequest(messages=(Message("user", "hi"),)), USUAL)
    assert re.findall(r"--param (\w+),", str(refused.value)) == [named] * bool(named)


async def test_a_default_of_ours_gives_way_to_a_param_of_the_user(url: str, stub: Stub) -> None:
    async with Endpoint(url, model="onlyone", params={"top_p": 0.9}) as model:
        request = ModelRequest(messages=(Message("user", "hi"),), temperature=0.0, seed=3)
        reply = await model.complete(request)
    assert reply.adapted == "temperature"
    assert (stub.bodies[-1]["top_p"], stub.bodies[-1]["seed"]) == (0.9, 3)


# -- what was learned ------------------------------------------------------------------------------


def test_what_was_learned_is_read_back_from_the_record() -> None:
    words = ("logprobs", "temperature", "max_tokens>max_completion_tokens",
             "response_format>object", "response_format>told", "system>user", "stream")  # fmt: skip
    assert Dialect.knowing(words).learned() == words
    assert Dialect.knowing(["of another version"]) == Dialect()


async def test_a_resumed_run_knows_what_was_refused(url: str, stub: Stub, tmp_path: Path) -> None:
    items = [Item(id=f"{n}", prompt=f"Describe cook {n}.") for n in range(6)]
    refusals = []
    for cap in (9, 1000):
        stub.refusals.clear()
        async with Endpoint(url, model="gpt5") as model:
            await eh.aio.mitigate(
                items, method="stardtox", model=model, out=tmp_path / "run", max_calls=cap,
                concurrency=1,
            )  # fmt: skip
        refusals.append(stub.refusals.total())
    assert RunReader(tmp_path / "run").totals().answered == 6
    assert refusals == [2, 0]


async def test_a_named_limit_of_calls_at_once_is_kept() -> None:
    model = Endpoint("http://127.0.0.1:1/v1", model="m")
    model._take_named_limit("You may have 3 concurrent requests at most.")
    assert model.limit.size == 3


# -- doctor ----------------------------------------------------------------------------------------


async def _doctor(url: str, name: str) -> dict[str, DoctorCheck]:
    check = EndpointCheck(
        address=url, client=lambda model: Endpoint(url, model=model), choose=lambda _: name
    )
    return {found.what: found async for found in check.run()}


async def test_doctor_says_what_was_learned_and_what_to_set(url: str) -> None:
    found = await _doctor(url, "gpt5")
    assert "temperature not accepted" in str(found["parameters"].said)
    assert "read=json" in str(found["log-probabilities"].said)
    assert "--max-tokens" in str(found["thinking"].said)
    assert "max_completion_tokens" in str(found["learned"].said)
    plain = await _doctor(url, "plain")
    assert "learned" not in plain
    assert "none is returned" in str(plain["thinking"].said)


async def test_doctor_says_no_of_a_model_whose_thinking_leaves_no_room(url: str) -> None:
    found = await _doctor(url, "lost")
    assert found["chat"].good is False
    assert "reasoning_effort" in str(found["chat"].said)


async def test_doctor_spends_few_calls_on_several_samples(url: str, stub: Stub) -> None:
    before = stub.calls["grumbling"]
    found = await _doctor(url, "grumbling")
    assert str(found["several samples"].said).startswith("no: ")
    assert stub.calls["grumbling"] - before <= 5 + 3
