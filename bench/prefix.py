"""How much of a run's prompts an endpoint's prefix cache really takes over.

The recorded requests of some items are sent once more, in their order and one at a time, each for a
single token; the endpoint says how many tokens of the prompt it had already. Needs one that says so
in `usage.prompt_tokens_details.cached_tokens`, such as llama.cpp:

    evenhand serve-local --slots 1
    python bench/prefix.py runs/front/mabrf runs/front/stardtox
"""

import argparse
import asyncio
from typing import Any

import aiohttp
import polars as pl

from evenhand.runs.store import RunReader


async def cached(session: aiohttp.ClientSession, url: str, run: RunReader, items: int) -> str:
    model = run.record.cast["default"]["model"]
    turns = run.turns().filter(pl.col("position") < items).sort("position", "index")
    had = total = 0
    asked = turns.select("messages").collect()["messages"].to_list()
    for messages in asked:
        body = {"model": model, "messages": messages, "max_tokens": 1}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            response.raise_for_status()
            usage: dict[str, Any] = (await response.json())["usage"]
        had += usage["prompt_tokens_details"]["cached_tokens"]
        total += usage["prompt_tokens"]
    return f"{len(asked)} calls, {total:,} prompt tokens, {had / total:.0%} from the cache"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--base-url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--items", type=int, default=12)
    chosen = parser.parse_args()
    async with aiohttp.ClientSession() as session:
        for place in chosen.runs:
            said = await cached(session, chosen.base_url, RunReader(place), chosen.items)
            print(f"{place}: {said}")


if __name__ == "__main__":
    asyncio.run(main())
