"""Samples of lm-evaluation-harness (`samples_TASK_TIME.jsonl` of `--log_samples`): a line for each
question, with the document, what was asked, and what came back."""

from datetime import UTC, datetime
from pathlib import Path

import orjson

from evenhand.core.errors import UserError
from evenhand.interop.log import Log, LoggedAnswer, Origin, made_by, sha256_of

_HAS = frozenset({"doc", "arguments", "resps", "filtered_resps"})
_LONGEST = 1 << 24  # our choice: bytes of a line


def is_lm_eval(file: Path) -> bool:
    """Say whether a file's first line is a sample of lm-evaluation-harness."""
    try:
        with file.open("rb") as opened:
            first = orjson.loads(opened.readline(_LONGEST))
    except (OSError, orjson.JSONDecodeError):
        return False
    return isinstance(first, dict) and first.keys() >= _HAS


def read_lm_eval(file: Path) -> Log:
    """Read the samples of one task. Which model answered is in another file of that tool, and in
    the name of the folder: the folder's name is taken."""
    answers = []
    with file.open("rb") as opened:
        ours = made_by(orjson.loads(opened.readline(_LONGEST)))
        opened.seek(0)
        for number, line in enumerate(opened, start=1):
            if line.strip():
                answers.append(_read(line, f"{file} line {number}"))
    task, _, when = file.stem.removeprefix("samples_").rpartition("_")
    tool, version = ours or ("lm-evaluation-harness", "")
    origin = Origin(
        tool=tool,
        version=version,
        task=task or file.stem,
        model=file.resolve().parent.name,
        created=_time(when),
        file=file.name,
        sha256=sha256_of(file),
    )
    return Log(origin=origin, answers=tuple(answers))


def _time(stamp: str) -> str:
    """The time in a file's name, 2026-11-17T18-20-00.123456; "" where there is none."""
    day, _, clock = stamp.partition("T")
    try:
        return datetime.fromisoformat(f"{day}T{clock.replace('-', ':')}").replace(
            tzinfo=UTC
        ).isoformat()  # fmt: skip
    except ValueError:
        return ""


def _read(line: bytes, where: str) -> LoggedAnswer:
    try:
        sample = orjson.loads(line)
        requests = [sample["arguments"][f"gen_args_{n}"] for n in range(len(sample["arguments"]))]
        came = sample["filtered_resps"]
        doc = sample["doc"]
        if not isinstance(doc, dict):
            raise TypeError
        if isinstance(came[0], str):  # words, and no likelihoods of options
            return LoggedAnswer(about=doc, options=(), answer=came[0] or None)
        likely = [float(response[0]) for response in came]
        options = tuple(str(request["arg_1"]).strip() for request in requests)
        if len(options) != len(likely):
            raise TypeError
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise UserError(f"{where}: not a sample as lm-evaluation-harness writes it") from None
    return LoggedAnswer(about=doc, options=options, answer=_most_likely(likely))


def _most_likely(likely: list[float]) -> int | None:
    """Return the position of the highest value; None where two have it, or where one is NaN."""
    best = [index for index, likelihood in enumerate(likely) if likelihood == max(likely)]
    return best[0] if len(best) == 1 and all(value == value for value in likely) else None  # noqa: PLR0124
