"""Scores the cases of the suite with another tool: `python adapters.py FOLDER OUT TOOL`.

It is run by the Python that has the tool, and imports nothing of evenhand. In each tool only the
data and the model are put in the place of its own; the model gives the answers of the case.

* helm: its own scenario reads the items and its own metric scores the letters. What is by category
  is a run of its own in HELM (`bbq:subject=CATEGORY`), and so it is here.
* inspect-evals: its task `bbq` runs as it is, with its own prompt, solver, scorer and metrics.
* lm-eval, lm-eval-generate: the whole harness runs, on its own task `bbq` or `bbq_generate`, with
  its option `custom_dataset`. In `bbq` an answer is the likeliest option, so there is always one:
  cases with answers that cannot be read are left out there.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Rows = list[Any]
Scored = Callable[[Rows, Rows], dict[str, Any] | None]  # of items and answers; None: left out


def helm() -> Scored:
    from helm.benchmark.adaptation.request_state import RequestState  # noqa: PLC0415
    from helm.benchmark.metrics.bbq_metrics import BBQMetric  # noqa: PLC0415
    from helm.benchmark.scenarios import bbq_scenario as scenario  # noqa: PLC0415
    from helm.common.request import GeneratedOutput, Request, RequestResult  # noqa: PLC0415

    ours = {"bbq_accuracy": "accuracy", "bbq_metric_ambiguous_bias": "s_amb",
            "bbq_metric_unambiguous_bias": "s_dis"}  # fmt: skip

    def instances(items: Rows, category: str) -> Rows:
        """The instances that HELM's scenario makes of the items of a category."""
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            data.mkdir()
            # What is there already is not downloaded.
            text = "".join(f"{json.dumps(item)}\n" for item in items)
            (data / category).write_text(text, "utf-8")
            return list(scenario.BBQScenario(subject=category).get_instances(folder))

    def answered(instance: Any, answer: Any) -> Any:
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

    def numbers(states: Rows) -> dict[str, Any]:
        stats = BBQMetric().evaluate_instances(states, "")
        return {ours[stat.name.name]: {"value": float(stat.mean)} for stat in stats}

    def scored(items: Rows, answers: Rows) -> dict[str, Any]:
        """What HELM prints. It shuffles its instances, so they are found by their words."""
        by_text = {
            scenario.PassageQuestionInput(passage=item["context"], question=item["question"]).text:
            answer["answer"] for item, answer in zip(items, answers, strict=False)
        }  # fmt: skip
        parts = {
            category: [
                answered(instance, by_text[instance.input.text])
                for instance in instances([i for i in items if i["category"] == category], category)
                if instance.input.text in by_text
            ]
            for category in dict.fromkeys(item["category"] for item in items)
        }
        found = numbers([state for part in parts.values() for state in part])
        for category, part in parts.items():
            if part:
                found |= {f"{name}/{category}": value for name, value in numbers(part).items()}
        return {"numbers": found}

    return scored


def inspect_evals() -> Scored:
    from inspect_ai import eval as evaluate  # noqa: PLC0415
    from inspect_ai.dataset import MemoryDataset  # noqa: PLC0415
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: PLC0415
    from inspect_evals.bbq import bbq  # noqa: PLC0415 - the package exports its function

    task: Any = sys.modules["inspect_evals.bbq.bbq"]

    def scored(items: Rows, answers: Rows) -> dict[str, Any]:
        samples = [task.record_to_sample(item) for item in items]
        for index, sample in enumerate(samples):
            sample.id = index
        task.combine_subsets = lambda _: MemoryDataset(samples)
        replies = {}
        for item, answer in zip(items, answers, strict=False):
            letter = "ABC"[answer["answer"]] if isinstance(answer["answer"], int) else None
            text = f"ANSWER: {letter}" if letter else answer["answer"]
            replies[f"Context: {item['context']}\n\nQuestion: {item['question']}\n"] = text

        def reply(messages: Rows, *_: Any) -> Any:
            asked = messages[-1].text
            found = next(text for words, text in replies.items() if words in asked)
            output = ModelOutput.from_content("mockllm", found)
            output.usage = ModelUsage()  # else it is counted, with a file from the network
            return output

        with tempfile.TemporaryDirectory() as logs:
            model = get_model("mockllm/model", custom_outputs=reply)
            log = evaluate(bbq(), model=model, limit=len(answers), display="none", log_dir=logs)[0]
        if log.error is not None:
            raise SystemExit(log.error.traceback)
        metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
        not_run = log.eval.dataset.samples - log.results.total_samples
        accuracy = _with_ends(metrics["accuracy"], metrics["stderr"])
        return {"numbers": {"accuracy": accuracy}, "not_run": not_run}

    return scored


def lm_eval(task: str) -> Scored:
    import datasets  # noqa: PLC0415
    from lm_eval.api.model import LM  # noqa: PLC0415
    from lm_eval.evaluator import simple_evaluate  # noqa: PLC0415
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    tasks, model = TaskManager(), _answering(LM)

    def scored(items: Rows, answers: Rows) -> dict[str, Any] | None:
        if task == "bbq" and not all(isinstance(answer["answer"], int) for answer in answers):
            return None
        data = {"test": datasets.Dataset.from_list(items)}
        # Within a group a task is its own, with what is named here in place of the same of its own.
        changed = {"task": task, "custom_dataset": lambda **_: data}
        results = simple_evaluate(
            model=model(answers),
            tasks=[{"group": "conformance", "task": [changed]}],
            task_manager=tasks,
            limit=len(answers) if len(answers) < len(items) else None,
            log_samples=False,
        )
        printed, counts = results["results"][task], results["n-samples"][task]
        numbers = _printed(printed, {item["category"] for item in items})
        return {"numbers": numbers, "not_run": counts["original"] - counts["effective"]}

    return scored


def _answering(base: Any) -> Any:
    """The class of lm-eval's models that give the answers of a case."""

    class Answers(base):  # type: ignore[misc]  # its types are not installed here
        """The model that gives the answers of a case."""

        def __init__(self, answers: Rows) -> None:
            super().__init__()
            self._answers = {(a["category"], a["example_id"]): a["answer"] for a in answers}

        def _said(self, doc: dict[str, Any]) -> str:
            answer = self._answers[doc["category"], doc["example_id"]]
            return str(doc[f"ans{answer}"] if isinstance(answer, int) else answer)

        def loglikelihood(self, requests: Rows) -> list[tuple[float, bool]]:
            fits = [request.args[1].strip() == self._said(request.doc) for request in requests]
            return [(0.0 if fit else -1.0, fit) for fit in fits]

        def generate_until(self, requests: Rows) -> list[str]:
            """A person is named by the group, because the task finds a name of several words only
            by it."""
            texts = []
            for request in requests:
                text = self._said(request.doc)
                groups = {name: group for name, group in request.doc["answer_info"].values()}
                group = groups.get(text, "unknown")
                texts.append(text if group == "unknown" else group)
            return texts

        def loglikelihood_rolling(self, requests: Rows) -> list[float]:
            raise NotImplementedError

    return Answers


_OF_LM_EVAL = {
    "amb_bias_score": "s_amb",
    "disamb_bias_score": "s_dis",
    "accuracy_amb": "accuracy_ambiguous",
    "accuracy_disamb": "accuracy_disambiguated",
    "acc": "accuracy",  # last, as others begin with it
}


def _printed(printed: dict[str, Any], categories: set[str]) -> dict[str, Any]:
    """What lm-eval prints under our names, over all items and by category."""
    numbers = {}
    for name, value in printed.items():
        metric = name.partition(",")[0]
        stem = next((prefix for prefix in _OF_LM_EVAL if metric.startswith(prefix)), "")
        category = metric[len(stem) + 1 :]
        if stem and (not category or category in categories):
            error = printed.get(f"{metric}_stderr,none")
            number = {"value": float(value)}
            if isinstance(error, float):
                number = _with_ends(value, error)
            numbers[_OF_LM_EVAL[stem] + (f"/{category}" if category else "")] = number
    return numbers


def _with_ends(value: float, error: float) -> dict[str, float]:
    return {"value": float(value), "low": value - 1.96 * error, "high": value + 1.96 * error}


# Name: how it scores, and the package with its version.
TOOLS: dict[str, tuple[Callable[[], Scored], str]] = {
    "lm-eval": (lambda: lm_eval("bbq"), "lm-eval"),
    "lm-eval-generate": (lambda: lm_eval("bbq_generate"), "lm-eval"),
    "inspect-evals": (inspect_evals, "inspect_evals"),
    "helm": (helm, "crfm-helm"),
}


def main() -> None:
    folder, out, tool = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    of_tool, package = TOOLS[tool]
    scored, cases = of_tool(), {}
    for name, case in json.loads((folder / "cases.json").read_text(encoding="utf-8")).items():
        items, answers = (
            [json.loads(line) for line in (folder / case[part]).read_text("utf-8").splitlines()]
            for part in ("items", "answers")
        )
        result = scored(items, answers)
        if result is not None:
            cases[name] = result
    task = {"lm-eval": ", task bbq", "lm-eval-generate": ", task bbq_generate"}.get(tool, "")
    said = {"tool": f"{package} {version(package)}{task}", "cases": cases}
    out.write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main()
