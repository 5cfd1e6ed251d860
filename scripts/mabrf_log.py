"""Read the answers of real models from the notebooks of MABRF's authors, without a model call.

    git clone https://github.com/Mughees2001/Multi-Agent-Debiasing-Framework mabrf
    python scripts/mabrf_log.py "mabrf/BBQ without WebSearch.ipynb" runs/mabrf
    evenhand measure bbq --answers runs/mabrf/gpt-4-first.jsonl --out runs/gpt-4
    evenhand measure bbq --answers runs/gpt-4 --method detect_first --set choice_brain=rule \
        --out runs/gpt-4-repaired
    evenhand compare runs/gpt-4 runs/gpt-4-repaired

Each cell that was run over the 110 questions gives two files: the first answers, and the last ones
after the loop. An answer that is no number of an option is missing. The repository has no license,
so its logs are not copied here.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

_ITEM = re.compile(r"^Processed (\d+)/(\d+) rows", re.MULTILINE)
_FIRST = re.compile(r"^Init\b.*?Pred=\s*(\S+?),\s*True=", re.MULTILINE | re.DOTALL)
_LAST = re.compile(r"^(?:Final Answer|Terminator Output):\s*(\S+)", re.MULTILINE)
_MODEL = re.compile(r"model(?:_name)?\s*=\s*[\"']([\w.:/-]+)[\"']")


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One question of a log: the first and the last answer, None where it is not an option."""

    first: int | None
    last: int | None


def questions() -> Iterator[dict[str, Any]]:
    """Yield category and id of the paper's 110 questions, in its order."""
    text = resources.files("evenhand.instruments.bbq").joinpath("mabrf110.csv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines()):
        yield {"category": row["category"], "example_id": int(row["example_id"])}


def logs(notebook: Path) -> Iterator[tuple[str, list[LoggedAnswer]]]:
    """Yield model and answers of each cell that was run over the questions."""
    model = ""
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        named = _MODEL.search("".join(cell["source"]))
        model = named[1] if named else model
        text = "".join("".join(output.get("text", ())) for output in cell["outputs"])
        if _ITEM.search(text):
            yield model, list(_answers(model, text))


def _answers(model: str, text: str) -> Iterator[LoggedAnswer]:
    start = 0
    for number, end in enumerate(_ITEM.finditer(text), 1):
        entry, start = text[start : end.start()], end.end()
        if int(end[1]) != number:
            raise SystemExit(f"{model}: question {number} is missing from the log")
        first, last = _FIRST.search(entry), _LAST.search(entry)
        if first is None:
            raise SystemExit(f"{model}: question {number} has no first answer in the log")
        yield LoggedAnswer(_option(first[1]), last and _option(last[1]))


def _option(written: str) -> int | None:
    return int(written) if written in ("0", "1", "2") else None


def main(notebook: str, out: str) -> None:
    """Write the answers of each model as lines for `evenhand measure bbq --answers`."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for model, answers in logs(Path(notebook)):
        for when in ("first", "last"):
            lines: list[dict[str, Any]] = [
                {**question, "answer": getattr(answer, when)}
                for question, answer in zip(questions(), answers, strict=True)
            ]
            file = folder / f"{model.replace('/', '-')}-{when}.jsonl"
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            missing = sum(line["answer"] is None for line in lines)
            sys.stdout.write(f"{file}: {len(lines)} answers, {missing} missing\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
