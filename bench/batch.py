"""Does a large run by batches give the same rows as the direct run, at which price?

    python -m bench.batch            # 10,000 items of StarDTox

A server of our own answers both by the same script (tests/models/batches/provider.py), so what
differs would be ours. It misbehaves as the tests have it: results in another order and
twice, lines that fail, lines that are missing. `make bench-batch` kills some runs first.
"""

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from evenhand.core.prices import Price, Prices
from evenhand.runs.store.spending import spent_on
from tests.models.batches import provider, worker
from tests.models.batches.conftest import Rows, paid
from tests.models.batches.provider import Faults
from tests.models.batches.worker import Job

PRICES = Prices(
    {"logged": Price(per_million_prompt_tokens=2.5, per_million_completion_tokens=10.0)}
)
FAULTS = Faults(late=0.5, lines_failed=0.02, missing=0.01, twice=True, shuffled=True)


def in_own_process(folder: Path, items: int, batch: bool) -> tuple[Rows, float, Counter[str], str]:
    """Run the items against a server in a process of its own; rows, seconds and its bill."""
    log, port = folder / f"paid-{batch}", folder / f"port-{batch}"
    if (server := os.fork()) == 0:
        provider.serve(str(log), str(port), FAULTS if batch else Faults())
    while not port.exists():
        time.sleep(0.01)
    url = port.read_text()
    job = Job(out=str(folder / f"run-{batch}"), url=url, items=items, batch=batch)
    started = time.monotonic()
    asyncio.run(worker.work(job))
    seconds = time.monotonic() - started
    os.kill(server, 9)
    os.waitpid(server, 0)
    return Rows.of(job.out, url), seconds, paid(log), job.out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    items = parser.parse_args().items
    with tempfile.TemporaryDirectory() as name:
        by_batch, seconds, bill, out = in_own_process(Path(name), items, batch=True)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        direct, direct_seconds, _, direct_out = in_own_process(Path(name), items, batch=False)
        costs = [spent_on(place, PRICES).cost for place in (out, direct_out)]
    batches = sorted({name for name in by_batch.batches if name})
    print(f"{items:,} items, {len(by_batch.turns):,} turns, {len(batches)} batches")
    print(f"by batches {seconds:,.0f} s, {memory:,.0f} MB at most; direct {direct_seconds:,.0f} s")
    print(f"rows equal: {by_batch.results.equals(direct.results)}")
    print(f"turns equal: {by_batch.turns.equals(direct.turns)}")
    print(f"answered twice by the provider: {sum(count > 1 for count in bill.values())}")
    print(f"cost {costs[0]:.4f} by batches, {costs[1]:.4f} direct: {costs[0] / costs[1]:.4f}")
    if not by_batch.equals(direct) or set(bill.values()) != {1}:
        raise SystemExit("not the same")


if __name__ == "__main__":
    main()
