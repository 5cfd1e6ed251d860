"""A run as samples of lm-evaluation-harness: the lines that its `--log_samples` writes for a task
whose answers are words, in a folder named as the model."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evenhand.interop import ExternalItem
from evenhand.runs.store.folder import as_file_name
from evenhand.views.export.exported import ExportedRun, Row


def write(of: ExportedRun, folder: Path) -> list[str]:
    """Write a line for each item. The words are the option that was taken; a question without an
    answer has none, and no line has a metric: the numbers of evenhand are not that tool's."""
    assert of.asked is not None
    assert of.report is not None
    created = datetime.fromisoformat(of.run.record.created).astimezone(UTC)
    when = created.replace(tzinfo=None).isoformat(timespec="milliseconds").replace(":", "-")
    task = f"{of.report.instrument.name}_generate"
    name = f"{as_file_name(of.model)}/samples_{task}_{when}.jsonl"
    path = folder / name
    path.parent.mkdir(parents=True)
    with path.open("x", encoding="ascii", newline="\n") as file:
        for number, (row, turns) in enumerate(of.items()):
            line = _line(number, row, turns, of.asked[row["item_id"]], of.evenhand)
            file.write(json.dumps(line) + "\n")
    return [name]


def _line(
    number: int, row: Row, turns: list[Row], question: ExternalItem, version: str
) -> dict[str, Any]:
    options = {f"ans{index}": text for index, text in enumerate(question.own)}
    doc = {**question.about, "context": question.context, "question": question.question, **options}
    target = str(question.about["label"])
    prompt = _prompt(turns, question)
    words = row["text"] if row["status"] == "answered" else ""
    return {
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": []}}},
        "resps": [[words]],
        "filtered_resps": [words],
        "filter": "none",
        "metrics": [],
        "doc_hash": _sha256(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _sha256(prompt),
        "target_hash": _sha256(target),
        "made_by": f"evenhand {version}",
        "status": row["status"],
        "reason": row["reason"],
    }


def _prompt(turns: list[Row], question: ExternalItem) -> str:
    """What was asked first; of answers that were stored, the question."""
    if turns:
        return "\n\n".join(message["content"] for message in turns[0]["messages"])
    return f"{question.context}\n\n{question.question}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
