"""Stands in for `vllm run-batch`: reads the requests, and writes all replies at its end. What they
are it asks a server of the tests; it imports nothing large, so that it starts at once."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def replied(body: dict[str, Any]) -> tuple[int, Any]:
    asked = urllib.request.Request(
        f"{os.environ['VLLM_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"authorization": f"Bearer {os.environ['VLLM_KEY']}"},
    )
    try:
        with urllib.request.urlopen(asked) as answer:
            return 200, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def main() -> None:
    words = sys.argv[1:]
    assert words[0] == "run-batch"
    named = dict(zip(words[1::2], words[2::2], strict=True))
    assert named["--model"] == "logged"
    if os.environ.get("VLLM_FAILS"):
        sys.exit(9)
    lines = [json.loads(line) for line in Path(named["-i"]).read_text().splitlines()]
    time.sleep(float(os.environ.get("VLLM_SECONDS", "0")))
    rows, names = [], []
    for line in lines:
        status, body = replied(line["body"])
        # As vLLM writes it: the body of an error is beside the response.
        said = body if status == 200 else None
        response = {"status_code": status, "request_id": "r", "body": said}
        row = {"id": "vllm-1", "custom_id": line["custom_id"], "response": response}
        rows.append({**row, "error": None if status == 200 else body})
        if status == 200:
            names.append(line["custom_id"].partition("_")[2])
    Path(named["-o"]).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with Path(os.environ["VLLM_LOG"]).open("a") as log:
        log.write("".join(f"{name}\n" for name in names))


main()
