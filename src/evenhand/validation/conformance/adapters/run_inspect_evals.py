"""Scores the cases with inspect_evals: `python run_inspect_evals.py FOLDER OUT`.

Its task `bbq` runs as it is, with its own prompt, solver, scorer and metrics. Only two things are
put in its place: the records, and the model, which gives the answers of the case.
"""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_evals.bbq import bbq as module  # the package exports its function by this name

task: Any = sys.modules["inspect_evals.bbq.bbq"]


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def scored(items: list[Any], answers: list[Any]) -> dict[str, Any]:
    samples = [task.record_to_sample(item) for item in items]
    for index, sample in enumerate(samples):
        sample.id = index
    task.combine_subsets = lambda _: MemoryDataset(samples)
    reply_by_item = {}
    for item, answer in zip(items, answers, strict=False):
        letter = "ABC"[answer["answer"]] if isinstance(answer["answer"], int) else None
        text = f"ANSWER: {letter}" if letter else answer["answer"]
        reply_by_item[item["context"], item["question"]] = text

    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        text = messages[-1].text
        reply_text = next(
            r for (c, q), r in reply_by_item.items() if f"Context: {c}\n\nQuestion: {q}\n" in text
        )
        output = ModelOutput.from_content("mockllm", reply_text)
        output.usage = ModelUsage()  # else it is counted, with a file from the network
        return output

    with tempfile.TemporaryDirectory() as logs:
        log = evaluate(
            module(),
            model=get_model("mockllm/model", custom_outputs=reply),
            limit=len(answers),
            display="none",
            log_dir=logs,
        )[0]
    if log.error is not None:
        raise SystemExit(log.error.traceback)
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    error = 1.96 * metrics["stderr"]
    value = metrics["accuracy"]
    number = {"value": value, "low": value - error, "high": value + error}
    total = log.results.total_samples
    return {"numbers": {"accuracy": number}, "not_run": log.eval.dataset.samples - total}


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    cases = {}
    for name, case in json.loads((folder / "cases.json").read_text(encoding="utf-8")).items():
        cases[name] = scored(lines(folder / case["items"]), lines(folder / case["answers"]))
    tool = f"inspect_evals {version('inspect_evals')}"
    out.write_text(json.dumps({"tool": tool, "cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
