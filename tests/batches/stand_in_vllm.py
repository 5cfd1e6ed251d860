"""Stands in for `vllm run-batch`: reads the requests, and writes all replies at its end."""

import json
import os
import sys
import time
from pathlib import Path

from batches.provider import Provider


def main() -> None:
    words = sys.argv[1:]
    assert words[0] == "run-batch"
    named = dict(zip(words[1::2], words[2::2], strict=True))
    assert named["--model"] == "logged"
    if os.environ.get("VLLM_FAILS"):
        sys.exit(9)
    server = Provider(os.devnull)
    lines = [json.loads(line) for line in Path(named["-i"]).read_text().splitlines()]
    time.sleep(float(os.environ.get("VLLM_SECONDS", "0.05")))
    rows, names = [], []
    for line in lines:
        status, body = server.reply(line["body"])
        # As vLLM writes it: the body of an error is beside the response.
        response = {"status_code": status, "request_id": "r", "body": None}
        error = body if status != 200 else None
        response["body"] = body if status == 200 else None
        row = {"id": "vllm-1", "custom_id": line["custom_id"], "response": response}
        rows.append({**row, "error": error})
        if status == 200:
            names.append(line["custom_id"].partition("_")[2])
    Path(named["-o"]).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with Path(os.environ["VLLM_LOG"]).open("a") as log:
        log.write("".join(f"{name}\n" for name in names))


main()
