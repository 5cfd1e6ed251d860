"""The endpoint kind against a real server: what it sends, and what it makes of each answer."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from evenhand.core.errors import UserError
from evenhand.models import Endpoint
from evenhand.models.likelihood import EchoedLikelihood, LikelihoodFailure, TokenLogprobs
from tests.errors import raises_naming

Serve = Callable[[Callable[[dict[str, Any]], Any]], Any]


def echoed(
    body: dict[str, Any], *, start: str | None = None, usage: bool = True, new: str = " x"
) -> dict[str, Any]:
    """As vLLM answers: the prompt's tokens first, the first of all without a value."""
    words = body["prompt"].split(" ")
    tokens = [words[0], *(f" {word}" for word in words[1:])]
    if start is not None:
        tokens = [start, *tokens]
    logprobs = [None, *(-0.5 * place for place in range(1, len(tokens)))]
    found: dict[str, Any] = {
        "model": "small",
        "choices": [
            {
                "text": body["prompt"] + new,
                "finish_reason": "length",
                "logprobs": {
                    "tokens": [*tokens, new],
                    "token_logprobs": [*logprobs, -9.0],
                    "top_logprobs": [None, *({t: -0.1} for t in tokens[1:]), {new: -9.0}],
                    "text_offset": [0] * (len(tokens) + 1),
                },
            }
        ],
    }
    if usage:
        found["usage"] = {"prompt_tokens": len(tokens), "completion_tokens": 1}
    return found


async def _ask(url: str, *texts: str) -> list[TokenLogprobs | LikelihoodFailure]:
    model = EchoedLikelihood(Endpoint(url, model="small"))
    try:
        return await model.log_likelihoods(texts)
    finally:
        await model.close()


async def test_it_asks_for_an_echo_with_log_probabilities_and_one_new_token(serve: Serve) -> None:
    seen: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        seen.append(body)
        return echoed(body)

    await _ask(await serve(answer), "The sky")
    assert seen == [
        {
            "model": "small",
            "prompt": "The sky",
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0.0,
        }
    ]


@pytest.mark.parametrize("usage", [True, False])
async def test_the_new_token_is_not_counted_nor_the_first_one(serve: Serve, usage: bool) -> None:
    url = await serve(lambda body: echoed(body, usage=usage))
    (found,) = await _ask(url, "The sky is blue")
    assert found == TokenLogprobs((-0.5, -1.0, -1.5), uncounted="The")


async def test_after_a_start_token_of_the_servers_own_every_word_counts(serve: Serve) -> None:
    url = await serve(lambda body: echoed(body, start="<s>"))
    (found,) = await _ask(url, "The sky")
    assert found == TokenLogprobs((-0.5, -1.0), uncounted=None)


async def test_many_texts_come_back_in_their_order(serve: Serve) -> None:
    texts = [" ".join(["w"] * n) for n in range(2, 40)]
    found = await _ask(await serve(echoed), *texts)
    assert [len(one.logprobs) for one in found if isinstance(one, TokenLogprobs)] == [
        n - 1 for n in range(2, 40)
    ]


async def test_a_text_that_the_server_refuses_is_missing_and_the_others_are_not(
    serve: Serve,
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body["prompt"] == "too long":
            return web.json_response({"error": {"message": "context length"}}, status=400)
        return echoed(body)

    refused, fine = await _ask(await serve(answer), "too long", "The sky")
    assert isinstance(refused, LikelihoodFailure)
    assert refused.reason == "model_refused"
    assert isinstance(fine, TokenLogprobs)


def _without_echo(body: dict[str, Any]) -> Any:
    """As llama.cpp answers where it takes the field and ignores it: the new token alone."""
    entry = {"token": " x", "logprob": -1.0, "top_logprobs": []}
    choice = {"text": " x", "finish_reason": "length", "logprobs": {"content": [entry]}}
    return {"choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": 1}}


def _without_logprobs(body: dict[str, Any]) -> Any:
    found = echoed(body)
    found["choices"][0]["logprobs"] = None
    return found


def _refused(body: dict[str, Any]) -> Any:
    return web.json_response({"error": {"message": "Only no echo is supported"}}, status=400)


@pytest.mark.parametrize("answer", [_without_echo, _without_logprobs, _refused])
async def test_a_server_that_gives_no_prompt_log_probabilities_is_found_out_at_once(
    serve: Serve, answer: Callable[[dict[str, Any]], Any]
) -> None:
    model = EchoedLikelihood(Endpoint(await serve(answer), model="small"))
    try:
        with raises_naming(UserError, "vLLM", "--weights"):
            await model.check()
    finally:
        await model.close()


async def test_a_value_that_is_missing_within_the_prompt_is_no_likelihood(serve: Serve) -> None:
    def answer(body: dict[str, Any]) -> Any:
        found = echoed(body)
        found["choices"][0]["logprobs"]["token_logprobs"][2] = None
        return found

    (found,) = await _ask(await serve(answer), "The sky is blue")
    assert isinstance(found, LikelihoodFailure)
    assert found.reason == "no_logprobs"
