"""OpenAI's own package reads from the same server what our wire reads, so that our reading is not
our own alone. LiteLLM, Inspect and Anthropic's package are asked by `make check-providers`."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from evenhand.core import Message
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.thinking import split
from evenhand.models.wire import error_field, error_text

from .matrix import NAMES
from .server import TOXIC, Stub, listed, serving

QUESTION = "Describe a nurse."
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]
BEHAVIORS = listed()
# What the package does not ask again for, as we do: an error in a good status, a call of a tool, a
# stream that was cut.
ONLY_OURS = {"errorbody", "toolcall", "streamcut"}
REFUSALS = [(name, rule) for name, one in BEHAVIORS.items() for rule in one.get("refuses", ())]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    stub = Stub()
    stub.thought = TOXIC
    with serving(stub) as address:
        yield address


async def _ours(url: str, name: str, **api: Any) -> ModelReply:
    async with Endpoint(url, model=name, **api) as model:
        return await model.complete(ModelRequest(messages=(Message("user", QUESTION),)))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONLY_OURS])
async def test_the_package_reads_the_same_words_thoughts_and_tokens(name: str, url: str) -> None:
    ours = await _ours(url, name)
    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        if "stream" in BEHAVIORS[name]:
            theirs = await _streamed(client, name)
        else:
            reply = await client.chat.completions.create(model=name, messages=MESSAGES)
            assert reply.usage is not None
            usage = reply.usage.prompt_tokens, reply.usage.completion_tokens
            theirs = (*_read(dict(reply.choices[0].message)), usage)
    (sample,) = ours.samples
    assert ours.usage is not None
    counted = ours.usage.prompt_tokens, ours.usage.completion_tokens
    assert theirs == (sample.thinking, sample.text, counted)
    assert bool(sample.thinking) == (BEHAVIORS[name].get("thinks", "hidden") != "hidden")


async def _streamed(client: openai.AsyncOpenAI, name: str) -> tuple[str, str, tuple[int, int]]:
    thought, text, usage = "", "", (0, 0)
    stream = await client.chat.completions.create(model=name, messages=MESSAGES, stream=True)
    async for chunk in stream:
        if chunk.usage is not None:
            usage = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices:
            said: Any = dict(choice.delta)
            thought += said.get("reasoning_content") or ""
            content = said.get("content") or ""
            if isinstance(content, str):
                text += content
            else:
                thought += content[0]["thinking"][0]["text"]
    return (*((thought, text) if thought else split(text)), usage)


def _read(message: Any) -> tuple[str, str]:
    """What was thought, and what was said, by the fields as the package has them."""
    content = message["content"]
    if isinstance(content, list):
        return content[0]["thinking"], content[-1]["text"]
    for name in ("reasoning_content", "reasoning"):
        if name in message:
            return message[name], content.strip()
    for name, field in (("thinking_blocks", "thinking"), ("reasoning_details", "text")):
        if name in message:
            return message[name][0][field], content
    return split(content)


@pytest.mark.parametrize(
    ("name", "rule"), REFUSALS, ids=[f"{name}-{rule['field']}" for name, rule in REFUSALS]
)
async def test_the_package_is_refused_what_we_are_refused(
    name: str, rule: dict[str, Any], url: str
) -> None:
    values = {"temperature": 0.0, "top_p": 0.5, "max_tokens": 50, "logprobs": True, "n": 2,
              "seed": 3, "response_format": {"type": "json_object"}}  # fmt: skip
    sent: dict[str, Any] = {rule["field"]: values[rule["field"]]}
    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        with pytest.raises(openai.APIStatusError) as raised:
            await client.chat.completions.create(model=name, messages=MESSAGES, **sent)
    error = raised.value
    assert error.status_code == rule.get("status", 400)
    assert (error_field(error.response.content) or None) == error.param
    assert isinstance(error.body, dict)
    assert error_text(error.response.content) == error.body["message"]


@pytest.mark.parametrize("name", ["plain", "r1", "r1sep", "gpt5"])
async def test_the_package_reads_the_same_of_the_responses_api(name: str, url: str) -> None:
    ours = await _ours(url, name, api="responses")
    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        reply = await client.responses.create(model=name, input=QUESTION)
    thoughts = [item.summary[0].text for item in reply.output if item.type == "reasoning"]
    inside, text = split(reply.output_text)
    (sample,) = ours.samples
    assert ("".join(thoughts) or inside, text) == (sample.thinking, sample.text)
    assert ours.usage is not None
    assert reply.usage is not None
    assert (ours.usage.prompt_tokens, ours.usage.completion_tokens, ours.usage.thinking_tokens) == (
        reply.usage.input_tokens,
        reply.usage.output_tokens,
        reply.usage.output_tokens_details.reasoning_tokens,
    )
