"""What llama.cpp makes of a GGUF file: the next token's log-probabilities, over its own server."""

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any


def next_token(engine: Any, weights: Path, text: str, most: int, said: int) -> dict[int, float]:
    """Token id to log-probability, of the likeliest ones after `text`. The server says the token
    `said`, for it keeps back one that is half a character."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parameters = engine.CommonParams()
    parameters.model.path = str(weights)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = 1
    parameters.n_ctx = 512
    parameters.cpuparams.n_threads = 1
    parameters.ui = False
    parameters.verbosity = 0
    server = engine.Server(parameters)
    body: dict[str, Any] = {"prompt": text, "max_tokens": 1, "temperature": 0, "logprobs": most}
    body["logit_bias"] = {str(said): 100}
    request = urllib.request.Request(
        f"{server.listening_address}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        content = json.load(reply)["choices"][0]["logprobs"]["content"]
    return {entry["id"]: entry["logprob"] for entry in content[0]["top_logprobs"]}
