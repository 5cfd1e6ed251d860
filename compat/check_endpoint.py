"""Our door against a real server: chat, JSON schema, log-probabilities of the reply and of the
prompt, several samples, seeds, refusals, and many requests in flight.

    python compat/check_endpoint.py http://127.0.0.1:8100/v1 smollm2-135m-instruct [--json]

Each line is what was seen. Ends with code 1 if something that every server must do failed.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from evenhand.core import Message
from evenhand.core.errors import ModelError, UnreadableReply
from evenhand.methods.stardtox import Harm, Quality
from evenhand.models import Endpoint, ModelReply, ModelRequest
from evenhand.models.limiter import AdaptiveLimit

QUESTION = ModelRequest(
    messages=(
        Message("system", "You rate texts."),
        Message("user", "Rate this text for harm: 'Nurses are kind.' Reply as JSON."),
    ),
    max_tokens=120,
    temperature=1.0,
    seed=1,
)
SCORED = "The nurse said that she was tired"


class Check:
    def __init__(self, url: str, model: str) -> None:
        self._model = Endpoint(url, model=model, limit=AdaptiveLimit(start=256))
        self._other = Endpoint(url, model="no-such-model")

    async def _ask(self, request: ModelRequest) -> ModelReply:
        deadline = asyncio.get_running_loop().time() + 300
        return await self._model.complete(replace(request, deadline=deadline))

    async def models(self) -> str:
        return f"{await self._model.list_models()}"

    async def chat(self) -> str:
        reply = await self._ask(QUESTION)
        assert reply.samples[0].text
        assert reply.usage
        return f"{reply.usage.prompt_tokens}+{reply.usage.completion_tokens} tokens"

    async def typed(self) -> str:
        """A grammar allows blank lines without end, so a small model may not get to the end."""
        read, said = 0, ""
        for reply_type in (Harm, Quality):
            for seed in range(5):
                asked = replace(QUESTION, schema=reply_type.wire_schema(), seed=seed)
                reply = await self._ask(asked)
                try:
                    said = str(reply_type.read(reply.samples[0].text))
                    read += 1
                except UnreadableReply:
                    assert reply.samples[0].finish == "length"  # cut off, not out of shape
        assert read
        return f"{self._model.dialect.form}; {read} of 10 whole within 120 tokens; {said}"

    async def logprobs(self) -> str:
        reply = await self._ask(replace(QUESTION, logprobs=3, max_tokens=5))
        tokens = reply.samples[0].logprobs
        assert tokens
        assert all(token.logprob is not None and token.logprob <= 0 for token in tokens)
        return f"{tokens[0].token!r} {tokens[0].logprob:.3f}, {len(tokens[0].top)} alternatives"

    async def completion(self) -> str:
        reply = await self._ask(ModelRequest(prompt=SCORED, max_tokens=5, logprobs=3, seed=1))
        assert reply.samples[0].logprobs
        return repr(reply.samples[0].text)

    async def prompt_logprobs(self) -> str:
        request = ModelRequest(prompt=SCORED, max_tokens=1, logprobs=1, echo=True)
        reply = await self._ask(request)
        if not reply.samples[0].text.startswith(SCORED):
            return "NOT SUPPORTED: echo is ignored"
        tokens = reply.samples[0].logprobs
        assert tokens
        total = sum(token.logprob for token in tokens[1:-1] if token.logprob is not None)
        return f"log p of the prompt after its first token: {total:.3f}"

    async def samples(self) -> str:
        reply = await self._ask(replace(QUESTION, n=4, max_tokens=8))
        texts = {sample.text for sample in reply.samples}
        assert len(reply.samples) == 4
        counted = reply.usage.completion_tokens if reply.usage else None
        return f"4 samples, {len(texts)} different, {counted} tokens counted"

    async def same_seed(self) -> str:
        texts = [(await self._ask(QUESTION)).samples[0].text for _ in range(2)]
        return "reproduces" if texts[0] == texts[1] else "does NOT reproduce"

    async def wrong_model(self) -> str:
        deadline = asyncio.get_running_loop().time() + 60
        try:
            reply = await self._other.complete(replace(QUESTION, max_tokens=4, deadline=deadline))
        except ModelError as error:
            return f"{error.reason}: {error}"
        return f"ANSWERED all the same, as {reply.served_by!r}"

    async def concurrency(self) -> str:
        began = time.monotonic()
        # Without a seed: vLLM's CPU build dies of a seeded request that it reads in two steps.
        asks = (self._ask(replace(QUESTION, max_tokens=16, seed=None)) for _ in range(200))
        replies = await asyncio.gather(*asks)
        attempts = max(reply.attempts for reply in replies)
        assert all(reply.samples[0].text for reply in replies)
        return f"200 of 200 in {time.monotonic() - began:.0f} s, at most {attempts} attempts"

    async def close(self) -> None:
        await self._model.close()
        await self._other.close()


async def main(url: str, model: str, *, as_json: bool) -> int:
    check = Check(url, model)
    steps: dict[str, Callable[[], Awaitable[str]]] = {
        "models": check.models,
        "chat": check.chat,
        "JSON schema": check.typed,
        "log-probabilities": check.logprobs,
        "completions": check.completion,
        "prompt log-probabilities": check.prompt_logprobs,
        "n = 4": check.samples,
        "same seed": check.same_seed,
        "wrong model name": check.wrong_model,
        "200 in flight": check.concurrency,
    }
    seen, failed = {}, 0
    for name, step in steps.items():
        try:
            seen[name] = await step()
        except (AssertionError, ModelError) as error:
            seen[name], failed = f"FAILED: {error!r}", failed + 1
        if not as_json:
            print(f"{name:26} {seen[name]}", flush=True)
    await check.close()
    if as_json:
        print(json.dumps(seen, indent=2))
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    raise SystemExit(asyncio.run(main(given.url, given.model, as_json=given.json)))
