"""Scores the cases with lm-evaluation-harness: `python run_lm_eval.py FOLDER OUT TASK`.

The whole harness runs, on its own task `bbq` or `bbq_generate`. Only two things are put in its
place: the data (the option `custom_dataset` of a task) and the model, which gives the answers of
the case. In `bbq` an answer is the likeliest option, so there is always one: cases with answers
that cannot be read are left out there.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

OURS = {
    "amb_bias_score": "s_amb",
    "disamb_bias_score": "s_dis",
    "acc": "accuracy",
    "accuracy_amb": "accuracy_ambiguous",
    "accuracy_disamb": "accuracy_disambiguated",
}


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class Answers(LM):  # type: ignore[misc]  # its types are not installed here
    """The model that gives the answers of a case."""

    def __init__(self, answers: dict[tuple[str, int], Any]) -> None:
        super().__init__()
        self._answers = answers

    def _said(self, doc: dict[str, Any]) -> str:
        answer = self._answers[doc["category"], doc["example_id"]]
        return str(doc[f"ans{answer}"] if isinstance(answer, int) else answer)

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        fits = [request.args[1].strip() == self._said(request.doc) for request in requests]
        return [(0.0 if fit else -1.0, fit) for fit in fits]

    def generate_until(self, requests: list[Any]) -> list[str]:
        """A person is named by the group, because the task finds a name of several words only by
        it."""
        texts = []
        for request in requests:
            text = self._said(request.doc)
            groups = {name: group for name, group in request.doc["answer_info"].values()}
            group = groups.get(text, "unknown")
            texts.append(text if group == "unknown" else group)
        return texts

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        raise NotImplementedError


def scored(items: list[Any], answers: list[Any], task: str, tasks: TaskManager) -> dict[str, Any]:
    answer_by_id = {
        (answer["category"], answer["example_id"]): answer["answer"] for answer in answers
    }
    data = {"test": datasets.Dataset.from_list(items)}
    # Within a group a task is its own, with what is named here in place of the same of its own.
    changed = {"task": task, "custom_dataset": lambda **_: data}
    results = simple_evaluate(
        model=Answers(answer_by_id),
        tasks=[{"group": "conformance", "task": [changed]}],
        task_manager=tasks,
        limit=len(answers) if len(answers) < len(items) else None,
        log_samples=False,
    )
    printed, counts = results["results"][task], results["n-samples"][task]
    there = {item["category"] for item in items}
    numbers = {}
    for name, value in printed.items():
        metric = name.partition(",")[0]
        stem = next(
            (prefix for prefix in sorted(OURS, key=len, reverse=True) if metric.startswith(prefix)),
            "",
        )
        category = metric[len(stem) + 1 :]
        if not stem or (category and category not in there):
            continue
        error = printed.get(f"{metric}_stderr,none")
        number = {"value": float(value)}
        if isinstance(error, float):
            number |= {"low": value - 1.96 * error, "high": value + 1.96 * error}
        numbers[OURS[stem] + (f"/{category}" if category else "")] = number
    return {"numbers": numbers, "not_run": counts["original"] - counts["effective"]}


def main() -> None:
    folder, out, task = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    cases, tasks = {}, TaskManager()
    for name, case in json.loads((folder / "cases.json").read_text(encoding="utf-8")).items():
        items, answers = lines(folder / case["items"]), lines(folder / case["answers"])
        if task == "bbq" and not all(isinstance(answer["answer"], int) for answer in answers):
            continue
        cases[name] = scored(items, answers, task, tasks)
    tool = f"lm-eval {version('lm-eval')}, task {task}"
    out.write_text(json.dumps({"tool": tool, "cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
