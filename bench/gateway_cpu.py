"""What CPU one answer costs the gateway, by its length: the figures of `evenhand gateway plan`.

    python -m bench.gateway_cpu          # prints src/evenhand/findings/gateway_measured.toml

The CPU time of the gateway's processes, for plain answers in `hold` of an upstream on loopback,
one request at a time, in rounds of which the median, least and greatest are taken. CPU time hardly
depends on what else the machine does; the memory bandwidth that it takes from us is in it.
"""

import json
import platform
import random
import sys
import tempfile
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

from bench.gateway import Served, middle
from bench.sentences import HARMLESS

LENGTHS = (50, 230, 1_000, 5_000)
ROUNDS, REQUESTS = 5, 40
SCREENS = ("offline", "wordlist")
_RNG = random.Random(1)


def text_of(length: int) -> str:
    """A harmless text of this length: no two sentences are equal, as exact repeats cost nothing."""
    words = ""
    while len(words) < length:
        sentence = _RNG.choice(HARMLESS)
        words += f"On day {_RNG.randrange(1_000_000)} {sentence[0].lower()}{sentence[1:]} "
    return words[:length]


class Upstream(BaseHTTPRequestHandler):
    """It answers with as many characters as `max_tokens` of the request says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": text_of(asked["max_tokens"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "m"}]})

    def _send(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def cpu_ms(gateway: Served, length: int) -> float:
    """The milliseconds of CPU for one answer of this length."""
    messages = [{"role": "user", "content": "Go on."}]
    body = json.dumps({"model": "m", "max_tokens": length, "messages": messages}).encode()
    before = gateway.cpu_seconds()
    for _ in range(REQUESTS):
        with urlopen(Request(gateway.chat, body, {"content-type": "application/json"})) as answer:
            answer.read()
    return 1000 * (gateway.cpu_seconds() - before) / REQUESTS


def main() -> None:
    """Measure all lengths under each screen, and print the file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        gateways = {}
        for screen in SCREENS:
            # Whatever the screen says of a text cut anywhere, no agent is asked.
            policy = f'screen = "{screen}"\nband = [1.0, 1.0]\nnot_english = "ignore"\n'
            address = f"http://127.0.0.1:{server.server_port}/v1"
            gateways[screen] = stack.enter_context(Served(Path(temporary), address, policy))
            cpu_ms(gateways[screen], 230)  # the first ones load the screen
        rounds = [
            {(screen, length): cpu_ms(gateway, length)
             for screen, gateway in gateways.items() for length in LENGTHS}
            for _ in range(ROUNDS)
        ]  # fmt: skip
    cpu = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    models = [line.partition(":")[2].strip() for line in cpu.splitlines() if "model name" in line]
    print("# What one answer costs the gateway: `python -m bench.gateway_cpu` printed it.")
    print(f'date = "{datetime.now(UTC):%Y-%m-%d}"')
    print(f'machine = "{models[0] if models else platform.machine()}, {len(models)} cores"')
    print("\n[to_agents]  # harmless held-out paragraphs within the default band: docs/gateway.md")
    print("events = 36\ntexts = 300\n")
    print("[cpu_ms]  # characters; median, least and greatest of the rounds")
    for screen in SCREENS:
        rows = [
            [length, *(round(value, 2) for value in middle([r[screen, length] for r in rounds]))]
            for length in LENGTHS
        ]
        print(f"{screen} = {rows}")


if __name__ == "__main__":
    main()
