"""What the gateway costs: requests a second and added latency beside the bare upstream.

    python -m bench.gateway               # or `make bench-gateway`: speed, some three minutes
    python -m bench.gateway --memory      # does one process keep its memory over 30,000 requests?
    python -m bench.gateway --replicas    # two replicas that share quotas in a redis-server

All is on loopback: client, upstream and gateways are processes of their own, which share this
machine's cores. Rounds are interleaved, so that what disturbs one arm disturbs all; ratios are
taken within a round. In `observe` an answer leaves before its check, so that a rate is that of
requests whose check has ended too: the clock runs until nothing is under way any more.
EVENHAND_LITELLM may name the chat completions of two LiteLLM proxies, one before an upstream of 0
ms and one of 50 ms, with a blank between: they are then measured too.
"""

import argparse
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import orjson

from bench.gateway_ends import Child, Load, Seen
from bench.processes import family
from bench.sentences import HARMLESS
from evenhand.gateway.keys import new_key
from evenhand.scorers import Scores
from evenhand.scorers.offline import OfflineScorer

CONNECTIONS, TEXTS, SENTENCES = 64, 200, 5
LATENCIES = (0, 50)
BARE, OBSERVE, HOLD, LITELLM = "bare", "observe", "hold", "litellm"
UNSCREENED = "words"  # observe with a word list as its screen: what is left is the way through
POLICIES = {
    OBSERVE: 'mode = "observe"',
    HOLD: 'mode = "hold"',
    UNSCREENED: 'mode = "observe"\nscreen = "wordlist"',
}
WARM_UP, REQUESTS = 2_000, 30_000  # of --memory
QUOTA = 300  # requests a minute, of --replicas
CHAT = "/chat/completions"


# -- arithmetic ----------------------------------------------------------------------------------


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    below = next(at for at in range(1, len(ordered) + 1) if at >= share * len(ordered))
    return ordered[below - 1]


def middle(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, least and greatest."""
    return statistics.median(values), min(values), max(values)


def ratios(arm: Sequence[float], bare: Sequence[float]) -> list[float]:
    """Of each round, how much the arm did by what the bare upstream did in the same round."""
    return [one / other for one, other in zip(arm, bare, strict=True)]


# -- processes -----------------------------------------------------------------------------------


def harmless_texts(folder: Path) -> Path:
    """Write texts of some 230 signs, all different, that the screen lets pass."""
    rng, scorer, kept = random.Random(1), OfflineScorer(), dict[str, None]()
    while len(kept) < TEXTS:
        drawn = [" ".join(rng.sample(HARMLESS, SENTENCES)) for _ in range(TEXTS)]
        for text, found in zip(drawn, scorer.score_now(drawn), strict=True):
            if isinstance(found, Scores) and found.toxicity < 0.19:
                kept[text] = None
    path = folder / "texts.json"
    path.write_bytes(orjson.dumps(list(kept)[:TEXTS]))
    return path


class Served:
    """A gateway as users start it, with a policy of its own."""

    def __init__(self, folder: Path, upstream: str, policy: str, *arguments: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        file = folder / f"policy-{self._port}.toml"
        file.write_text(policy)
        main = "from evenhand.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", main, "gateway", "--upstream", upstream, "--policy", str(file),
             "--port", str(self._port), *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip
        self.chat = f"http://127.0.0.1:{self._port}/v1{CHAT}"

    def __enter__(self) -> "Served":
        while True:
            assert self._process.poll() is None, "the gateway did not start"
            try:
                urlopen(f"http://127.0.0.1:{self._port}/ready").close()
            except OSError:
                time.sleep(0.1)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def settle(self) -> None:
        """Wait until nothing is under way. What it asks here is no request of a tenant."""
        while self._under_way() > 0:
            time.sleep(0.02)

    def _under_way(self) -> float:
        with urlopen(f"http://127.0.0.1:{self._port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        [found] = [line for line in lines if line.startswith("evenhand_gateway_in_flight ")]
        return float(found.split()[1])

    def megabytes(self) -> float:
        """Resident memory of the process that serves: the greatest below that of the command."""
        below = [one for one in family(self._process.pid) if one.pid != self._process.pid]
        return float(max(one.memory_info().rss for one in below)) / 2**20

    def cpu_seconds(self) -> float:
        times = [one.cpu_times() for one in family(self._process.pid)]
        return float(sum(one.user + one.system for one in times))


@contextmanager
def both_ends() -> Iterator[tuple[Path, str, Child]]:
    """An upstream, told by its address, and a client."""
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        upstream = stack.enter_context(Child("upstream", str(harmless_texts(folder))))
        port = int(upstream.line())
        yield folder, f"http://127.0.0.1:{port}", stack.enter_context(Child("client"))


# -- speed ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What was seen of an arm in a round."""

    rate: float  # requests a second, their checks included
    sent: float  # requests a second as the client saw them
    p50: float
    p99: float
    refused: dict[str, int]
    cpu: float  # milliseconds of the gateway's processes for a request, its check included


def measured(client: Child, load: Load, gateway: Served | None) -> Cell:
    began, spent = time.perf_counter(), gateway.cpu_seconds() if gateway else 0.0
    seen = client.does(load)
    if gateway is not None:
        gateway.settle()
        spent = gateway.cpu_seconds() - spent
    return cell(seen, time.perf_counter() - began, spent)


def cell(seen: Seen, whole: float, cpu_seconds: float) -> Cell:
    """What a client saw, where the last check ended after so many seconds."""
    times = seen.milliseconds or [float("inf")]
    return Cell(
        rate=seen.answered / max(whole, seen.seconds),
        sent=seen.answered / seen.seconds,
        p50=percentile(times, 0.5),
        p99=percentile(times, 0.99),
        refused=seen.refused,
        cpu=1000 * cpu_seconds / max(1, seen.answered),
    )


def speed(rounds: int, seconds: float) -> None:
    found: dict[tuple[int, bool, str], list[Cell]] = {}
    with both_ends() as (folder, upstream, client), ExitStack() as stack:
        arms: dict[tuple[int, str], tuple[str, Served | None]] = {}
        for wait in LATENCIES:
            address = f"{upstream}/{wait}ms/v1"
            arms[wait, BARE] = address + CHAT, None
            for arm, policy in POLICIES.items():
                gateway = stack.enter_context(Served(folder, address, policy))
                arms[wait, arm] = gateway.chat, gateway
        proxies = os.environ.get("EVENHAND_LITELLM", "").split()
        for wait, proxy in zip(LATENCIES, proxies, strict=False):
            arms[wait, LITELLM] = proxy, None
        for url, _ in arms.values():
            client.does(Load([url], requests=100))
        for number in range(rounds):
            for stream in (False, True):
                order = list(arms.items())
                random.Random(number).shuffle(order)
                for (wait, arm), (url, served) in order:
                    load = Load([url], connections=CONNECTIONS, seconds=seconds, stream=stream)
                    seen = measured(client, load, served)
                    found.setdefault((wait, stream, arm), []).append(seen)
    _print_speed(found)


def _print_speed(found: dict[tuple[int, bool, str], list[Cell]]) -> None:
    print(f"{CONNECTIONS} connections, {os.cpu_count()} cores for all processes; medians over "
          "rounds, least and greatest in brackets")  # fmt: skip
    for (wait, stream, arm), cells in sorted(found.items()):
        bare = found[wait, stream, BARE]
        rate, least, most = middle([one.rate for one in cells])
        ratio, low, high = middle(ratios([one.rate for one in cells], [one.rate for one in bare]))
        added50, added99 = added(cells, bare)
        sent = statistics.median(one.sent for one in cells)
        refused = sum(sum(one.refused.values()) for one in cells)
        cpu = statistics.median(one.cpu for one in cells)
        print(f"{wait:2} ms {'streamed' if stream else 'plain':8} {arm:7} {rate:6.0f}/s "
              f"({least:.0f}–{most:.0f}), sent {sent:5.0f}/s, of bare {ratio:.2f} "
              f"({low:.2f}–{high:.2f}), added p50 {added50:.1f} p99 {added99:.1f} ms, "
              f"CPU {cpu:.1f} ms, refused {refused}")  # fmt: skip
    share = {wait: statistics.median(ratios([one.rate for one in found[wait, False, OBSERVE]],
                                            [one.rate for one in found[wait, False, BARE]]))
             for wait in LATENCIES}  # fmt: skip
    added99 = added(found[50, False, OBSERVE], found[50, False, BARE])[1]
    print(f"RESULT gateway_0ms={share[0]:.2f} gateway_50ms={share[50]:.2f} "
          f"added_p99_ms={added99:.1f}")  # fmt: skip


def added(cells: Sequence[Cell], bare: Sequence[Cell]) -> tuple[float, float]:
    """Milliseconds that an arm adds to the p50 and the p99: medians over rounds."""
    pairs = list(zip(cells, bare, strict=True))
    return (
        statistics.median(one.p50 - other.p50 for one, other in pairs),
        statistics.median(one.p99 - other.p99 for one, other in pairs),
    )


# -- memory --------------------------------------------------------------------------------------


def memory(requests: int, screen: str) -> None:
    """One process: half observed and half held, half of each streamed."""
    key_observe, hash_observe = new_key()
    key_hold, hash_hold = new_key()
    policy = (f'mode = "observe"\nscreen = "{screen}"\n[tenants.seen]\nkeys = ["{hash_observe}"]\n'
              f'[tenants.held]\nkeys = ["{hash_hold}"]\nmode = "hold"\n')  # fmt: skip
    kinds = [(key, stream) for key in (key_observe, key_hold) for stream in (False, True)]
    with (
        both_ends() as (folder, upstream, client),
        Served(folder, f"{upstream}/0ms/v1", policy) as gateway,
    ):
        done, sizes, began = 0, [], time.perf_counter()
        while done < requests:
            for key, stream in kinds:
                load = Load([gateway.chat], requests=250, stream=stream, key=key)
                seen = client.does(load)
                assert seen.answered == 250, seen.refused
            done += 1_000
            sizes.append((done, gateway.megabytes()))
            if done in (1_000, WARM_UP) or done % 5_000 == 0:
                print(f"{done:6} requests {sizes[-1][1]:7.1f} MB "
                      f"{time.perf_counter() - began:5.0f} s", flush=True)  # fmt: skip
        print(f"RESULT gateway_growth_mb={growth(sizes):.1f}")


def growth(sizes: Sequence[tuple[int, float]]) -> float:
    """The most memory after the warm-up, beyond what it was at its end."""
    warm = next(size for done, size in sizes if done >= WARM_UP)
    return max(size for done, size in sizes if done >= WARM_UP) - warm


# -- replicas ------------------------------------------------------------------------------------


def replicas(rounds: int, seconds: float) -> None:
    """Two replicas share quotas, and beside them one alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    key, hashed = new_key()
    free_key, free_hash = new_key()
    policy = (f'mode = "hold"\n[tenants.few]\nkeys = ["{hashed}"]\nrequests_a_minute = {QUOTA}\n'
              f'[tenants.many]\nkeys = ["{free_hash}"]\n')  # fmt: skip
    quotas = ("--quotas", f"redis://127.0.0.1:{port}/0")
    try:
        with both_ends() as (folder, upstream, client), ExitStack() as stack:
            address = f"{upstream}/0ms/v1"
            two = stack.enter_context(Served(folder, address, policy, "--replicas", "2", *quotas))
            one = stack.enter_context(Served(folder, address, policy, *quotas))
            for gateway in (one, two):
                client.does(Load([gateway.chat], requests=200, key=free_key))
            burst = Load([two.chat], requests=2 * QUOTA, connections=2 * QUOTA, key=key)
            seen = client.does(burst)
            print(f"{QUOTA} requests a minute, {2 * QUOTA} at once over two replicas: "
                  f"{seen.answered} answered, refused {seen.refused}")  # fmt: skip
            rates: dict[str, list[float]] = {"one": [], "two": []}
            for _ in range(rounds):
                for name, gateway in (("one", one), ("two", two)):
                    load = Load([gateway.chat], seconds=seconds, key=free_key)
                    got = client.does(load)
                    rates[name].append(got.answered / got.seconds)
    finally:
        store.terminate()
        store.wait()
    ratio, low, high = middle(ratios(rates["two"], rates["one"]))
    print(f"one {middle(rates['one'])[0]:.0f}/s, two {middle(rates['two'])[0]:.0f}/s")
    print(f"RESULT gateway_quota={seen.answered}/{QUOTA} gateway_two={ratio:.2f} "
          f"({low:.2f}–{high:.2f})")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--replicas", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.8, help="of an arm in a round")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of --memory")
    parser.add_argument("--screen", default="wordlist", help="of --memory; offline takes longer")
    given = parser.parse_args()
    if given.memory:
        memory(given.requests, given.screen)
    elif given.replicas:
        replicas(given.rounds, given.seconds)
    else:
        speed(given.rounds, given.seconds)


if __name__ == "__main__":
    main()
