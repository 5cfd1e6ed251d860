"""OpenAI's Responses API: asked in its form, and read into the same reply as the chat API's."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from evenhand.core import Message
from evenhand.core.errors import ModelBusy, ModelRefused, UserError
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.base import ReplySchema
from evenhand.models.batch_apis import OpenAIBatches
from tests.errors import assert_names, raises_naming
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

MESSAGES = (Message("system", "Be brief."), Message("user", "How are people?"))
FORM = ReplySchema("mark", {"type": "object", "properties": {"mark": {"type": "integer"}}})
TEXT = {"type": "output_text", "text": "They differ.", "annotations": [], "logprobs": []}


def message(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def answer(*items: Any, **fields: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 9,
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    return {"object": "response", "model": "o3-pro-2026", "status": "completed", "error": None,
            "output": list(items), "usage": usage} | fields  # fmt: skip


@dataclass
class Responses:
    """Gives this answer, and keeps what it was asked."""

    body: Mapping[str, Any] = field(default_factory=lambda: answer(message(TEXT)))
    asked: list[Call] = field(default_factory=list)

    async def __call__(self, call: Call, line: Line) -> str:
        self.asked.append(call)
        await line.send_json(self.body)
        return "good"


@asynccontextmanager
async def opened(behaviour: Any) -> AsyncIterator[Endpoint]:
    async with LoopbackServer(behaviour) as server:
        model = Endpoint(server.url, model="o3-pro", api="responses", params={"verbosity": "low"})
        async with model:
            yield model


async def asked(server: Responses, **changes: Any) -> ModelReply:
    async with opened(server) as model:
        return await model.complete(ModelRequest(messages=MESSAGES, **changes))


async def test_a_request_is_put_in_its_form() -> None:
    server = Responses()
    await asked(server, temperature=0.0, max_tokens=50, schema=FORM)
    sent = server.asked[-1].body
    assert server.asked[-1].path.endswith("/responses")
    assert sent["input"][0] == {"role": "system", "content": "Be brief."}
    assert (sent["max_output_tokens"], sent["temperature"], sent["store"]) == (50, 0.0, False)
    assert sent["text"]["format"]["type"] == "json_schema"
    assert sent["text"]["format"]["schema"] == FORM.body
    assert sent["text"]["verbosity"] == "low"
    assert not {"messages", "response_format", "max_tokens"} & set(sent)


async def test_an_answer_is_read_with_its_tokens_and_its_thoughts_apart() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Say she?"}]}
    reply = await asked(Responses(answer(thought, message(TEXT))))
    (sample,) = reply.samples
    assert (sample.text, sample.thinking, sample.finish) == ("They differ.", "Say she?", "stop")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (9, 7)
    assert reply.usage.thinking_tokens == 4
    assert reply.served_by == "o3-pro-2026"


async def test_open_models_give_their_thoughts_as_content() -> None:
    inside = [{"type": "reasoning_text", "text": "Say he?"}]
    thought = {"type": "reasoning", "summary": [], "content": inside}
    (sample,) = (await asked(Responses(answer(thought, message(TEXT))))).samples
    assert (sample.text, sample.thinking) == ("They differ.", "Say he?")


async def test_a_refusal_is_an_answer_in_words() -> None:
    refused = message({"type": "refusal", "refusal": "I will not."})
    (sample,) = (await asked(Responses(answer(refused)))).samples
    assert sample.text == "I will not."


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
async def test_an_answer_that_was_cut_says_so(reason: str, finish: str) -> None:
    fields = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    (sample,) = (await asked(Responses(answer(message(TEXT), **fields)))).samples
    assert sample.finish == finish


async def test_what_the_api_has_no_field_for_is_left_out_and_said() -> None:
    """Nothing is sent to learn it, and several samples are asked one by one."""
    server = Responses()
    reply = await asked(server, seed=3, stop=("\n",), n=2)
    assert [sample.text for sample in reply.samples] == ["They differ."] * 2
    assert len(server.asked) == 2
    assert not {"seed", "stop", "n"} & set(server.asked[-1].body)
    assert_names(reply.adapted, "seed", "stop", "n")


async def test_log_probabilities_are_asked_for_and_read() -> None:
    token = {"token": "They", "logprob": -0.1, "top_logprobs": [{"token": "All", "logprob": -3.0}]}
    server = Responses(answer(message({**TEXT, "logprobs": [token]})))
    (sample,) = (await asked(server, logprobs=1)).samples
    assert server.asked[-1].body["include"] == ["message.output_text.logprobs"]
    assert server.asked[-1].body["top_logprobs"] == 1
    assert sample.logprobs is not None
    assert (sample.logprobs[0].token, sample.logprobs[0].top) == ("They", (("All", -3.0),))


async def test_a_failure_in_a_good_status_is_a_failure() -> None:
    error = {"code": "invalid_request_error", "message": "No such thing."}
    with raises_naming(ModelRefused, "No such thing"):
        await asked(Responses(answer(status="failed", error=error)))


@pytest.mark.parametrize("body", [{"output": 7}, {"output": [7]}, {}, {"choices": []}])
async def test_what_is_no_answer_is_tried_again_and_then_given_up(body: Any) -> None:
    server = Responses(body)
    async with opened(server) as model:
        with pytest.raises(ModelBusy) as raised:
            await model.complete(ModelRequest(messages=MESSAGES))
    assert raised.value.attempts == len(server.asked) > 1


async def test_the_record_says_by_which_api() -> None:
    model = Endpoint("http://127.0.0.1:9/v1", model="m", api="responses")
    assert model.describe()["api"] == "responses"
    assert "api" not in Endpoint("http://127.0.0.1:9/v1", model="m").describe()
    with raises_naming(UserError, "'soap'", "chat", "responses"):
        Endpoint("http://127.0.0.1:9/v1", model="m", api="soap")  # type: ignore[arg-type]


async def test_a_text_to_be_continued_goes_to_completions() -> None:
    @dataclass
    class Completions:
        paths: list[str] = field(default_factory=list)

        async def __call__(self, call: Call, line: Line) -> str:
            self.paths.append(call.path)
            body = {"choices": [{"text": " a time", "finish_reason": "stop"}]}
            await line.send(json.dumps(body).encode())
            return "good"

    server = Completions()
    async with opened(server) as model:
        reply = await model.complete(ModelRequest(prompt="Once upon"))
    assert reply.samples[0].text == " a time"
    assert server.paths[0].endswith("/completions")


async def test_a_batch_sends_the_same_body_and_reads_the_same_answer() -> None:
    server = Responses()
    asking = ModelRequest(messages=MESSAGES, max_tokens=50, seed=7, schema=FORM)
    marked = message({**TEXT, "text": '{"mark": 3}'})
    server.body = answer(marked)
    async with opened(server) as model:
        direct = await model.complete(asking)
    url = "https://api.anthropic.com/v1"  # the API says the form of its batches, not the address
    named = Endpoint(url, model="o3-pro", api="responses", params={"verbosity": "low"})
    assert not named.has_message_batches
    form = OpenAIBatches(named)
    line = json.loads(form.line("a_1", asking))
    assert line["url"] == form.route(asking) == "/v1/responses"
    assert line["body"] == server.asked[-1].body
    response = {"status_code": 200, "body": server.body}
    read = form.read({"custom_id": "a_1", "response": response}, asking, form.spoken())
    assert isinstance(read, ModelReply)
    assert (read.samples, read.usage, read.adapted) == (
        direct.samples,
        direct.usage,
        direct.adapted,
    )
    assert "seed" in read.adapted
    await form.close()
