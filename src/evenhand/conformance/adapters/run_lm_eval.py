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
        fits = [one.args[1].strip() == self._said(one.doc) for one in requests]
        return [(0.0 if fit else -1.0, fit) for fit in fits]

    def generate_until(self, requests: list[Any]) -> list[str]:
        """A person is named by the group, because the task finds a name of several words only by
        it."""
        said = []
        for one in requests:
            text = self._said(one.doc)
            groups = {name: group for name, group in one.doc["answer_info"].values()}
            group = groups.get(text, "unknown")
            said.append(text if group == "unknown" else group)
        return said

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        raise NotImplementedError


def scored(items: list[Any], answers: list[Any], task: str, tasks: TaskManager) -> dict[str, Any]:
    said = {(one["category"], one["example_id"]): one["answer"] for one in answers}
    data = {"test": datasets.Dataset.from_list(items)}
    # Within a group a task is its own, with what is named here in place of the same of its own.
    changed = {"task": task, "custom_dataset": lambda **_: data}
    found = simple_evaluate(
        model=Answers(said),
        tasks=[{"group": "conformance", "task": [changed]}],
        task_manager=tasks,
        limit=len(answers) if len(answers) < len(items) else None,
        log_samples=False,
    )
    printed, asked = found["results"][task], found["n-samples"][task]
    there = {one["category"] for one in items}
    numbers = {}
    for name, value in printed.items():
        metric = name.partition(",")[0]
        stem = next(
            (one for one in sorted(OURS, key=len, reverse=True) if metric.startswith(one)), ""
        )
        category = metric[len(stem) + 1 :]
        if not stem or (category and category not in there):
            continue
        error = printed.get(f"{metric}_stderr,none")
        number = {"value": float(value)}
        if isinstance(error, float):
            number |= {"low": value - 1.96 * error, "high": value + 1.96 * error}
        numbers[OURS[stem] + (f"/{category}" if category else "")] = number
    return {"numbers": numbers, "not_run": asked["original"] - asked["effective"]}


def main() -> None:
    folder, out, task = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    cases, tasks = {}, TaskManager()
    for name, case in json.loads((folder / "cases.json").read_text(encoding="utf-8")).items():
        items, answers = lines(folder / case["items"]), lines(folder / case["answers"])
        if task == "bbq" and not all(isinstance(one["answer"], int) for one in answers):
            continue
        cases[name] = scored(items, answers, task, tasks)
    tool = f"lm-eval {version('lm-eval')}, task {task}"
    out.write_text(json.dumps({"tool": tool, "cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
