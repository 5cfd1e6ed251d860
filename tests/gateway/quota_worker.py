"""One of two replicas: it asks for its half of the requests, and says what it was allowed."""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from typing import Any

from evenhand.gateway.quotas import Allowance, OverQuota, SharedQuotas

# Names that look like another's keys, or like each other.
HOSTILE = ["a", "A", "a:times", "a}:times", "{a}", "", " ", "é", "e\u0301", "\ud800", "61", "a\n"]
TENANTS = [*HOSTILE, *(f"team-{number}" for number in range(50 - len(HOSTILE)))]
EACH = 100  # requests of a tenant to a replica: 10,000 of 50 tenants to both
TOKENS = 7
AT_ONCE = 3


def allowance(number: int) -> Allowance:
    """By turns: a bound of requests, of tokens, and of requests at once."""
    match number % 3:
        case 0:
            return Allowance(requests_a_minute=20 + number)
        case 1:
            return Allowance(tokens_a_day=TOKENS * (30 + number) + 3)
        case _:
            return Allowance(at_once=AT_ONCE)


async def main(url: str, seed: int) -> dict[str, Any]:
    luck = random.Random(seed)
    wanted = [number for number in range(50) for _ in range(EACH)]
    luck.shuffle(wanted)
    quotas = SharedQuotas(url, patience=30.0)
    admitted: Counter[int] = Counter()
    refused: Counter[str] = Counter()
    spans: list[tuple[int, float, float]] = []

    async def replica() -> None:
        while wanted:
            number = wanted.pop()
            try:
                lease = await quotas.take(TENANTS[number], allowance(number), TOKENS)
            except OverQuota as error:
                refused[f"{number} {error.bound}"] += 1
                continue
            began = time.monotonic()
            await asyncio.sleep(luck.random() * 0.02)
            spans.append((number, began, time.monotonic()))
            admitted[number] += 1
            await quotas.settle(lease, TOKENS)

    await asyncio.gather(*(replica() for _ in range(24)))
    await quotas.close()
    return {"admitted": admitted, "refused": refused, "spans": spans}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))
