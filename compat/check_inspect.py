"""The plug-in of Inspect in Inspect itself, and its logs in evenhand; `make check-inspect`.

    EVENHAND_DATA=data python -m compat.check_inspect

It is run by the Python of an environment that has evenhand, inspect_ai and inspect_evals from the
registry. The model is a stand-in of ours on loopback. A line for each that was seen; it ends with
code 1 at the first that does not hold. inspect_evals takes BBQ's files from the Hugging Face Hub;
here the same files are put where it would have put them.
"""

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, read_eval_log

from compat.commands import Commands
from compat.standin import MODEL, Standin, standing_in
from evenhand.experiments.certificates import expected_of
from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge
from evenhand.instruments.bbq.data import card
from evenhand.instruments.files import PinnedFiles
from evenhand.instruments.judge.certificate import NEEDED, keep
from evenhand.instruments.judge.design import JudgeDesign
from evenhand.methods import Rate

GRADED = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match, model_graded_qa, multi_scorer
from inspect_ai.solver import generate

@task
def graded():
    asked = [Sample(input="How are people?", target="Different.")]
    return Task(dataset=asked, solver=generate(), scorer=model_graded_qa())

@task
def panel():
    asked = [Sample(input="How are people?", target="Different.")]
    together = multi_scorer([model_graded_qa(), match()], "mode")
    return Task(dataset=asked, solver=generate(), scorer=together)
"""
SHUFFLED = """
from random import Random

from inspect_ai import task, task_with
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice
from inspect_evals.bbq import bbq

from evenhand.integrations.inspect import bias

@task
def shuffled():
    return task_with(bbq(subsets="Age"), solver=multiple_choice(shuffle=Random(7)),
                     scorer=[choice(), bias()])
"""


class Check(Commands):
    """Both commands, with BBQ where inspect_evals looks for it."""

    def __init__(self, folder: Path, standin: Standin) -> None:
        super().__init__(folder, standin)
        put_bbq(self.data, folder / "inspect_evals" / "bbq_dataset" / "bbq")

    def evaluated(self, logs: str, *given: str, also: Mapping[str, str] | None = None) -> EvalLog:
        """Run `inspect eval` and open its log."""
        model = ("--model", f"openai-api/standin/{MODEL}", "--display", "none")
        ran = self.ran("inspect", "eval", *given, *model, "--log-dir", logs, also=also)
        found = sorted((self.folder / logs).glob("*.eval"))
        assert found, ran.stdout + ran.stderr
        return read_eval_log(str(found[-1]))


def put_bbq(data: Path, cache: Path) -> None:
    """Put BBQ's files where inspect_evals looks for them before it asks the Hub."""
    said = card()["data"]
    files = PinnedFiles(
        "bbq", said["url"], said["revision"], said["sha256"], local=data, cache=cache
    )
    (cache / "data").mkdir(parents=True)
    for name in files.sha256:
        if name.startswith("data/"):
            (cache / name).write_bytes(files.read(name))


def metrics_of(log: EvalLog) -> dict[str, float]:
    """The metrics of the scorer `bias`."""
    assert log.status == "success", log.error
    assert log.results is not None
    found = next(one for one in log.results.scores if one.name == "bias")
    return {name: one.value for name, one in found.metrics.items()}


def same(metrics: Mapping[str, float], report: Mapping[str, Any]) -> str:
    """Hold every number of Inspect's metrics against the report, to the last bit."""
    seen = 0
    for one in report["scores"]["estimates"]:
        bounds = one["bounds"] or {}
        ends = {"": one["value"], "_low": one["low"], "_high": one["high"],
                "_worst_low": bounds.get("low"), "_worst_high": bounds.get("high")}  # fmt: skip
        for end, value in ends.items():
            if one["name"] in metrics:
                assert metrics.get(f"{one['name']}{end}") == value, (one, end, metrics)
                seen += value is not None
    coverage = report["scores"]["coverage"]
    assert metrics["answers"] == coverage["n"]
    assert metrics["missing"] == coverage["n"] - coverage["scored"]
    return f"{seen} numbers, s_amb {metrics['s_amb']!r}, {metrics['missing']:g} missing"


def import_of_their_task(check: Check) -> str:
    """A log of inspect_evals' own task gives what the same answers give in a file."""
    log = check.evaluated("theirs", "inspect_evals/bbq", "-T", "subsets=Age,Religion",
                          "--sample-shuffle", "7", "--limit", "200")  # fmt: skip
    assert log.status == "success", log.error
    with (check.folder / "answers.jsonl").open("w") as out:
        for one in log.samples or ():
            said = re.fullmatch(r"ANSWER: ([ABC])", one.output.completion)
            answer = "ABC".index(said[1]) if said else " "
            about = {"category": one.metadata["category"], "example_id": one.metadata["source_id"]}
            out.write(json.dumps({**about, "answer": answer}) + "\n")
    ours = check.evenhand("measure", "bbq", "--answers", "answers.jsonl", "--out", "runs/answers")
    theirs = check.evenhand("runs", "import", str(log.location), "--out", "runs/theirs")
    for part in ("estimates", "groups", "coverage"):
        assert theirs["scores"][part] == ours["scores"][part], part
    ran = check.ran("inspect", "score", str(log.location), "--scorer", "evenhand/bias", "--action",
                    "append", "--output-file", "again.eval", "--display", "none")  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    again = metrics_of(read_eval_log(str(check.folder / "again.eval")))
    return f"{len(log.samples or ())} samples; scored again in Inspect: {same(again, theirs)}"


def shuffled_options(check: Check) -> str:
    """Where a solver shuffles the options, the answer is the option that the model saw behind its
    letter: in our scorer, and in the log."""
    (check.folder / "shuffled.py").write_text(SHUFFLED)
    log = check.evaluated("shuffled", "shuffled.py", "--sample-shuffle", "7", "--limit", "120")
    assert log.status == "success", log.error
    log = read_eval_log(log.location, resolve_attachments=True)
    moved = 0
    with (check.folder / "shuffled.jsonl").open("w") as out:
        for one in log.samples or ():
            (call,) = (event for event in one.events if event.event == "model")
            seen = re.findall(r"^[ABC]\) (.*)$", call.input[-1].text, re.MULTILINE)
            said = re.fullmatch(r"ANSWER: ([ABC])", call.output.completion)
            moved += seen != one.choices
            about = {"category": one.metadata["category"], "example_id": one.metadata["source_id"]}
            answer = one.choices.index(seen["ABC".index(said[1])]) if said else " "
            out.write(json.dumps({**about, "answer": answer}) + "\n")
    assert moved > len(log.samples or ()) / 2, moved
    scored = ("measure", "bbq", "--answers", "shuffled.jsonl")
    ours = check.evenhand(*scored, "--out", "runs/shuffled")
    named = ("runs", "import", str(log.location), "--instrument", "bbq")
    theirs = check.evenhand(*named, "--out", "runs/of-shuffled")
    assert theirs["scores"]["estimates"] == ours["scores"]["estimates"]
    return f"{moved} of {len(log.samples or ())} in another order: {same(metrics_of(log), ours)}"


def method_as_solver(check: Check) -> str:
    """A method answers samples of their task, by calls that are in Inspect's log."""
    before = len(check.standin.asked)
    log = check.evaluated("solved", "inspect_evals/bbq", "-T", "subsets=Age", "--limit", "6",
                          "--solver", "evenhand/stardtox", "-S", "max_iterations=2")  # fmt: skip
    assert log.status == "success", log.error
    served = len(check.standin.asked) - before
    did = [one.store["evenhand"] for one in log.samples or ()]
    events = sum(one.event == "model" for sample in log.samples or () for one in sample.events)
    assert events == served == sum(one["calls"] for one in did) > 6
    assert all(one["settings"]["max_iterations"] == 2 for one in did)
    ended = Counter(one.get("stopped") or one["failed"] for one in did)
    changed = sum(one.get("changed", False) for one in did)
    return f"{len(did)} samples, {served} calls, all in the log; {dict(ended)}, {changed} changed"


def limits_of_a_sample(check: Check) -> str:
    """A method that is out of calls leaves the sample without an answer."""
    log = check.evaluated("limited", "evenhand/bbq", "-T", "per_category=4", "--limit", "3",
                          "--solver", "evenhand/stardtox", "-S", "limits={calls: 2}")  # fmt: skip
    did = [one.store["evenhand"] for one in log.samples or ()]
    assert [(one["failed"], one["calls"]) for one in did] == [("budget_spent", 2)] * 3, did
    found = metrics_of(log)
    assert (found["answers"], found["missing"]) == (3, 3)
    assert "s_amb" not in found
    return "3 samples out of calls: all missing, and no s_amb"


def own_task(check: Check) -> str:
    """Our task in Inspect gives the numbers of the command, and so does its log."""
    log = check.evaluated("own", "evenhand/bbq", "-T", "per_category=8")
    asked = ("measure", "bbq", "--per-category", "8")
    ours = check.evenhand(*asked, *check.served, "--out", "runs/ours")
    said = same(metrics_of(log), ours)
    again = check.evenhand("runs", "import", str(log.location), "--out", "runs/own")
    assert again["scores"]["estimates"] == ours["scores"]["estimates"]
    return f"{said}; its log, imported, has the same"


def graders(check: Check) -> str:
    """The hook refuses a grader before the first sample, unless it is certified or let through."""
    (check.folder / "graded.py").write_text(GRADED)
    asked = len(check.standin.asked)
    for name in ("panel", "graded"):
        refused = check.evaluated(f"refused-{name}", f"graded.py@{name}")
        assert refused.status == "error", (name, refused.status)
        assert not refused.samples
        assert refused.error is not None
        assert "not certified" in refused.error.message
        assert len(check.standin.asked) == asked, "nobody was asked"
    let = check.evaluated("let", "graded.py@graded", also={"EVENHAND_INSPECT_GRADERS": "any"})
    assert let.status == "success", let.error
    certify(check.folder / "certificates")
    (check.folder / "evenhand.toml").write_text('[judges]\ncertificates = "certificates"\n')
    for name in ("panel", "graded"):
        certified = check.evaluated(f"certified-{name}", f"graded.py@{name}")
        assert certified.status == "success", certified.error
    role = ("--model-role", "grader=openai-api/standin/another")
    other = check.evaluated("other", "graded.py@graded", *role)
    assert other.status == "error"
    return (
        f"refused, let through, certified, alone and within multi_scorer: {refused.error.message}"
    )


def certify(folder: Path) -> None:
    """Write a certificate of the stand-in, of the default audit's size."""
    needed = expected_of(Rate(), MODEL)
    checks = [CertifiedCheck(name=name, state="pass", required=True, says="so it is")
              for name in sorted(NEEDED.checks)]  # fmt: skip
    made = Certificate(
        kind="judge", run={}, judge=CertifiedJudge(model=MODEL, served_by=[], described={}),
        method=dict(needed.method), prompts=dict(needed.prompts),
        margins={"score": 0.25, "win_rate": 0.05},
        benchmark={"version": needed.benchmark["version"], "sampling": JudgeDesign().describe(),
                   "own": {"scenarios": None, "labels": {}}, "probes": {"injection": 180}},
        limits={}, seed=None, evenhand="0.1.0", created="2026-11-01T00:00:00Z", calls=2000,
        checks=checks, state="pass",
    )  # fmt: skip
    keep(made.sealed(), folder)


def agent_under_test(check: Check) -> str:
    """An agent of Inspect, whose model asks for references of women alone."""
    found = check.evenhand(
        "measure", "actions", "--scenario", "hiring", "--attributes", "gender",
        "--model", "python:compat.inspect_agent:decide", "--out", "agent",
    )  # fmt: skip
    values = {each["name"]: each["value"] for each in found["scores"]["estimates"]}
    assert found["scores"]["coverage"]["scored"] == 100
    assert values["difference.references.gender.woman"] == 1.0
    assert values["difference.advance.gender.woman"] == 0.0
    return "100 of 100 scored; the planted difference in tool use is found"


CHECKS = (import_of_their_task, shuffled_options, method_as_solver, limits_of_a_sample, own_task,
          graders, agent_under_test)  # fmt: skip


def main() -> None:
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, standing_in() as standin:
        check = Check(Path(folder), standin)
        for run in CHECKS:
            if not names or run.__name__ in names:
                print(f"{run.__name__}: {run(check)}", flush=True)


if __name__ == "__main__":
    main()
