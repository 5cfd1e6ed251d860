"""A model that a library asks is asked, counted and recorded as one at an endpoint."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import JsonValue

import evenhand as eh
from evenhand.core import Message, registry
from evenhand.core.errors import ModelBusy, ModelRefused, UserError
from evenhand.core.items import CalledFunction, Tool, ToolCall, ToolCalls, ToolResult
from evenhand.core.prices import Price, Prices
from evenhand.models import ModelReply, ModelRequest, open_by_name
from evenhand.models.libraries import library_of
from tests.errors import assert_names, raises_naming
from tests.models.providers.conftest import FAKE

MESSAGES = (Message("system", "Be brief."), Message("user", "How are people?"))
PLAIN = "litellm:openai/plain"


async def asked(name: str, **changes: Any) -> ModelReply:
    async with open_by_name(name) as model:
        return await model.complete(ModelRequest(messages=MESSAGES, **changes))


async def test_declared_tools_and_their_calls_go_through_a_library(litellm: ModuleType) -> None:
    call = ToolCall("c1", CalledFunction("rank", "{}"))
    turns = (*MESSAGES, ToolCalls("assistant", "", (call,)), ToolResult("tool", "7", "c1"))
    async with open_by_name(PLAIN) as model:
        await model.complete(ModelRequest(messages=turns, tools=(Tool({"name": "rank"}),)))
    sent = litellm.calls[-1]
    assert sent["tools"] == [{"function": {"name": "rank"}, "type": "function"}]
    called = {"id": "c1", "function": {"name": "rank", "arguments": "{}"}, "type": "function"}
    assert sent["messages"][2]["tool_calls"] == [called]
    assert sent["messages"][3] == {"role": "tool", "content": "7", "tool_call_id": "c1"}


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("litellm:openai/gpt-4o", "litellm"),
        ("inspect:anthropic/claude", "inspect"),
        ("qwen3:8b", ""),  # as Ollama names them
        ("openai/gpt-4o", ""),
        ("litellm", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_word_before_the_colon_says_who_asks(name: str | None, library: str) -> None:
    assert library_of(name) == library


@pytest.mark.parametrize("name", ["litellm:gpt-4o", "litellm:huggingface/https://example.org/x"])
def test_a_name_without_a_provider_or_with_an_address_is_refused(
    litellm: ModuleType, name: str
) -> None:
    """An address in a name would get the provider's key from the environment."""
    with raises_naming(UserError, "litellm:PROVIDER/MODEL"):
        open_by_name(name)


def test_a_name_of_no_library_is_told_of_the_endpoint() -> None:
    with raises_naming(UserError, "'gpt-4o'", "litellm:PROVIDER/MODEL", "evenhand.Endpoint"):
        open_by_name("gpt-4o")


@pytest.mark.parametrize(("library", "module"), [("litellm", "litellm"), ("inspect", "inspect_ai")])
def test_a_missing_package_is_named_with_what_to_install(library: str, module: str) -> None:
    code = (
        f"import sys\nsys.modules[{module!r}] = None\n"
        "from evenhand.models import open_by_name\nfrom evenhand import UserError\n"
        f"try:\n    open_by_name('{library}:openai/gpt-4o')\n"
        "except UserError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'evenhand[{library}]'" in ran.stdout, ran.stderr


def test_nothing_is_imported_before_a_library_is_named() -> None:
    code = (
        "import sys; import evenhand.experiments.config as c; c.load(None, None, 'qwen3:8b')\n"
        "assert not {'litellm', 'inspect_ai'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_says_where_a_key_goes_may_not_stand_among_the_params(litellm: ModuleType) -> None:
    with raises_naming(UserError, "api_base"):
        open_by_name(PLAIN, params={"api_base": "http://elsewhere.example"})


# -- one call ------------------------------------------------------------------------------------


async def test_a_call_gives_the_reply_its_tokens_and_who_served_it(litellm: ModuleType) -> None:
    reply = await asked(PLAIN, temperature=0.0, seed=3, max_tokens=50)
    assert reply.samples[0].text.startswith("People differ")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 20)
    assert (reply.served_by, reply.attempts) == ("plain", 1)
    (sent,) = litellm.calls
    assert sent["model"] == "openai/plain"
    assert (sent["temperature"], sent["seed"], sent["max_tokens"]) == (0.0, 3, 50)
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}


async def test_the_retries_of_the_library_are_off_and_ours_are_on(litellm: ModuleType) -> None:
    reply = await asked("litellm:openai/busy")
    assert (len(litellm.calls), reply.attempts) == (2, 2)
    assert all(call["max_retries"] == call["num_retries"] == 0 for call in litellm.calls)


async def test_a_lost_connection_is_tried_again(litellm: ModuleType) -> None:
    assert (await asked("litellm:openai/gone")).attempts == 2


async def test_a_wait_that_is_too_long_ends_the_call_as_busy(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(**_: Any) -> None:
        raise litellm.Refused(429, "quota", retry_after="3600")

    monkeypatch.setattr(litellm, "acompletion", refused)
    with raises_naming(ModelBusy, "3600 s"):
        await asked(PLAIN)


async def test_a_missing_key_and_a_mistake_within_the_package_end_at_once(
    litellm: ModuleType,
) -> None:
    with raises_naming(ModelRefused, "HTTP 401", "PROVIDER_API_KEY"):
        await asked("litellm:openai/keyless")
    with raises_naming(ModelRefused, "TypeError"):
        await asked("litellm:openai/broken")
    assert len(litellm.calls) == 2


async def test_what_a_model_refuses_is_learned_and_said_in_the_record(litellm: ModuleType) -> None:
    reply = await asked("litellm:anthropic/refuses", temperature=0.0, seed=3)
    assert reply.samples[0].text
    assert_names(reply.adapted, "temperature", "seed")
    assert not {"seed", "temperature"} & set(litellm.calls[-1])
    assert not any(call["drop_params"] for call in litellm.calls)


async def test_a_thought_is_apart_from_the_answer(litellm: ModuleType) -> None:
    (sample,) = (await asked("litellm:deepseek/thinks")).samples
    assert sample.thinking == "I might say she."
    assert "she" not in sample.text


async def test_a_text_to_be_continued_is_refused(litellm: ModuleType) -> None:
    async with open_by_name(PLAIN) as model:
        with raises_naming(ModelRefused, "messages"):
            await model.complete(ModelRequest(prompt="Once"))


# -- keys ----------------------------------------------------------------------------------------


async def test_a_key_of_the_environment_is_removed_from_what_comes_back(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-secret-of-mine")
    reply = await asked("litellm:openai/tells")
    assert reply.samples[0].text == "The key is [redacted]."


async def test_an_address_gets_the_key_that_was_named_for_it_and_no_other(
    litellm: ModuleType,
) -> None:
    for key in ("sk-of-this-host", None):
        model = open_by_name(PLAIN, base_url="http://127.0.0.1:9/v1", api_key=key)
        await model.complete(ModelRequest(messages=MESSAGES))
    given, none = (call["api_key"] for call in litellm.calls)
    assert given == "sk-of-this-host"
    assert none  # else LiteLLM would send the one of its provider
    await asked(PLAIN)
    assert not {"api_key", "api_base"} & set(litellm.calls[-1])


def test_the_env_file_of_a_folder_is_not_read(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LITELLM_MODE", raising=False)
    code = (
        "import os\nfrom evenhand.models import open_by_name\n"
        f"open_by_name({PLAIN!r})\nprint(os.environ['LITELLM_MODE'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join([str(FAKE), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "PRODUCTION"


# -- runs ----------------------------------------------------------------------------------------

PRICES = Prices({PLAIN: Price(per_million_prompt_tokens=10.0, per_million_completion_tokens=50.0)})


def test_a_run_is_recorded_resumed_and_replayed(litellm: ModuleType, tmp_path: Path) -> None:
    """The name is what a user wrote, in the record and in the prices."""
    prompts = [f"Describe neighbor {n}." for n in range(6)]
    out = str(tmp_path / "run")
    begun = eh.mitigate(
        prompts, model=PLAIN, method="stardtox", out=out, prices=PRICES, max_calls=9, concurrency=1
    )
    assert 0 < len(begun.results()) < len(prompts)
    whole = eh.mitigate(prompts, model=PLAIN, method="stardtox", out=out, prices=PRICES)
    turns = whole.turns()
    assert len(litellm.calls) == len(turns)  # nothing was asked twice
    assert set(turns["model"]) == {PLAIN}
    assert turns["prompt_tokens"].sum() == 100 * len(turns)
    asked_before = len(litellm.calls)
    again = eh.mitigate(prompts, method="stardtox", out=str(tmp_path / "again"), replay=out)
    assert len(litellm.calls) == asked_before
    columns = ["item_id", "text"]
    same = [run.results().sort("item_id").select(columns) for run in (whole, again)]
    assert same[0].equals(same[1])


def test_params_of_a_function_are_those_of_a_model_that_is_given_by_its_name(
    litellm: ModuleType, tmp_path: Path
) -> None:
    out = str(tmp_path / "run")
    params: dict[str, JsonValue] = {"top_k": 5, "extra_body": {"min_p": 0.1}}
    eh.mitigate(["Hello."], model=PLAIN, method="default", out=out, params=params)
    eh.answer("Hello.", model=PLAIN, method="default", params=params)
    assert [(call["top_k"], call["min_p"]) for call in litellm.calls] == [(5, 0.1)] * 2
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["cast"]["default"]["params"] == {"top_k": 5, "min_p": 0.1}
    for other in (None, {"top_k": 6}):
        with raises_naming(eh.UserError, "params"):
            eh.mitigate(["Hello."], model=PLAIN, method="default", out=out, params=other)
    with raises_naming(eh.UserError, "--param"):
        eh.mitigate(["Hello."], out=f"{out}-2", method="default", replay=out, params={"top_k": 6})
    assert len(litellm.calls) == 2


def test_params_of_a_function_do_not_change_a_model_that_is_an_object(litellm: ModuleType) -> None:
    with raises_naming(eh.UserError, "evenhand.Endpoint("):
        eh.answer("Hello.", model=open_by_name(PLAIN), params={"top_k": 5})
    with raises_naming(eh.UserError, "messages"):
        eh.answer("Hello.", model=PLAIN, params={"messages": []})
    assert not litellm.calls


def test_a_run_stops_at_its_cap(litellm: ModuleType, tmp_path: Path) -> None:
    prompts = [f"Describe neighbor {n}." for n in range(400)]
    eh.mitigate(
        prompts, model=PLAIN, method="default", out=str(tmp_path / "run"), prices=PRICES,
        max_cost=0.5,
    )  # fmt: skip
    assert 0 < len(litellm.calls) * 0.002 <= 0.5


def test_a_model_goes_to_another_process(litellm: ModuleType) -> None:
    model = pickle.loads(pickle.dumps(open_by_name(PLAIN)))
    assert model.describe() == {"kind": "litellm", "model": PLAIN}


def test_each_kind_of_model_is_a_part_by_name() -> None:
    apps = ["http", "https", "command", "python"]
    assert registry.names("models") == ["litellm", "inspect", *apps]
