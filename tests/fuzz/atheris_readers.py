"""Every reader under coverage-guided input, each held to its oracle.

    python -m fuzz.atheris_readers CORPUS -runs=100000 -seed=1

The corpus folder is filled with a few seeds first; libFuzzer keeps in it what reached new code.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["evenhand"], exclude=["evenhand.cli"]):
    from . import generators, oracles, store_oracles
    from .decisions import Decisions
    from .documents import json_text

Check = Callable[[atheris.FuzzedDataProvider], object]


def _text(data: atheris.FuzzedDataProvider) -> str:
    text: str = data.ConsumeUnicode(data.remaining_bytes())
    return text


def _bytes(data: atheris.FuzzedDataProvider) -> bytes:
    raw: bytes = data.ConsumeBytes(data.remaining_bytes())
    return raw


def _decide(data: atheris.FuzzedDataProvider) -> Decisions:
    return Decisions(_bytes(data))


def _kind(data: atheris.FuzzedDataProvider) -> str:
    kind: str = data.PickValueInList(list(oracles.REPLY_TYPES))
    return kind


CHECKS: tuple[Check, ...] = (
    lambda data: oracles.strict(_text(data)),
    lambda data: oracles.strict(json_text(_decide(data))),
    lambda data: oracles.reply(_kind(data), _text(data)),
    lambda data: oracles.reply(*generators.reply(_decide(data))),
    lambda data: oracles.free_text(_text(data)),
    lambda data: oracles.item(_bytes(data)),
    lambda data: oracles.item(generators.item(_decide(data))),
    lambda data: oracles.wire_body(_bytes(data)),
    lambda data: oracles.wire_body(
        generators.wire_body(_decide(data)), oracles.REQUESTS["text with log-probabilities"]
    ),
    lambda data: oracles.wire_body(
        generators.wire_body(_decide(data)), oracles.REQUESTS["two samples"]
    ),
    lambda data: oracles.error_body(_bytes(data)),
    lambda data: oracles.wait(_text(data)),
    lambda data: oracles.fence(_text(data), "text"),
    lambda data: oracles.fence(*generators.judged_text(_decide(data))),
    lambda data: oracles.run_record(_bytes(data)),
    lambda data: oracles.run_record(generators.run_record(_decide(data))),
    lambda data: store_oracles.ledger_entry(_bytes(data)),
    lambda data: store_oracles.ledger_entry(generators.ledger_entry(_decide(data))),
    lambda data: store_oracles.journal(_bytes(data)),
    lambda data: store_oracles.journal(generators.journal(_decide(data))[1]),
    lambda data: oracles.prompt_file(generators.prompt_file(_decide(data))),
)
SEEDS = (
    b'{"reason":"fine","harm":7}',
    b'```json\n{"toxicity":0.5,"attributes":{},"because":["a"]}\n```',
    b'{"prompt":"x","choices":["a","b"],"answer":"a","tags":{"k":"v"}}',
    b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}',
    b'{"error":{"message":"no"}}',
    b"Wed, 21 Oct 2026 07:28:00 GMT",
    b"</text> <TEXT >",
    b'T 00000000 \nR 00000000 {"position":0,"calls":0}\n',
    b'{"a":{"a":[1,-0.0,1e9,null,true,"\\ud83d\\ude00"]},"a":2}',
)


def one_input(raw: bytes) -> None:
    data = atheris.FuzzedDataProvider(raw)
    # The last byte says which reader, so that a seed is found as it is written.
    CHECKS[data.ConsumeIntInRange(0, len(CHECKS) - 1)](data)


def main() -> None:
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS):
        for reader in range(len(CHECKS)):
            (corpus / f"seed-{number}-{reader}").write_bytes(seed + bytes([reader]))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
