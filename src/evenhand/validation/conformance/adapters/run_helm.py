"""Scores the cases with HELM: `python run_helm.py FOLDER OUT`.

HELM's own scenario reads the items and its own metric scores the letters, as it does with the
answers of a model. What is by category is a run of its own in HELM (`bbq:subject=CATEGORY`), and
so it is here.
"""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.bbq_metrics import BBQMetric
from helm.benchmark.scenarios.bbq_scenario import BBQScenario, PassageQuestionInput
from helm.common.request import GeneratedOutput, Request, RequestResult

OURS = {"bbq_accuracy": "accuracy", "bbq_metric_ambiguous_bias": "s_amb",
        "bbq_metric_unambiguous_bias": "s_dis"}  # fmt: skip


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def instances(items: list[Any], category: str) -> list[Any]:
    """The instances that HELM's scenario makes of the items of a category."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        # What is there already is not downloaded.
        (data / category).write_text("".join(f"{json.dumps(item)}\n" for item in items), "utf-8")
        return list(BBQScenario(subject=category).get_instances(folder))


def answered(instance: Any, answer: Any) -> RequestState:
    """The instance with its answer: a letter, or a text that is none."""
    text = "ABC"[answer] if isinstance(answer, int) else answer
    output = GeneratedOutput(text=text, logprob=0.0, tokens=[])
    return RequestState(
        instance=instance,
        reference_index=None,
        request_mode=None,
        train_trial_index=0,
        output_mapping=None,
        request=Request(model="conformance/answers", model_deployment="conformance/answers"),
        result=RequestResult(success=True, embedding=[], completions=[output], cached=False),
        num_train_instances=0,
        prompt_truncated=False,
    )


def scored(items: list[Any], answers: list[Any]) -> dict[str, Any]:
    """What HELM prints of a case. It shuffles its instances, so they are found by their words."""
    answer_by_text = {
        PassageQuestionInput(passage=item["context"], question=item["question"]).text: answer[
            "answer"
        ]
        for item, answer in zip(items, answers, strict=False)
    }
    states = {
        category: [
            answered(instance, answer_by_text[instance.input.text])
            for instance in instances([i for i in items if i["category"] == category], category)
            if instance.input.text in answer_by_text
        ]
        for category in dict.fromkeys(item["category"] for item in items)
    }
    numbers = _numbers([state for part in states.values() for state in part])
    for category, part in states.items():
        if part:
            numbers |= {f"{name}/{category}": value for name, value in _numbers(part).items()}
    return {"numbers": numbers}


def _numbers(states: list[RequestState]) -> dict[str, Any]:
    stats = BBQMetric().evaluate_instances(states, "")
    return {OURS[stat.name.name]: {"value": float(stat.mean)} for stat in stats}


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    cases = {}
    for name, case in json.loads((folder / "cases.json").read_text(encoding="utf-8")).items():
        cases[name] = scored(lines(folder / case["items"]), lines(folder / case["answers"]))
    tool = f"crfm-helm {version('crfm-helm')}"
    out.write_text(json.dumps({"tool": tool, "cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
