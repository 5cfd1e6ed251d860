"""Questions to published answers of current models, without a model call.

    EVENHAND_DATA=data python scripts/recorded_2026.py hiring
    EVENHAND_DATA=data python scripts/recorded_2026.py bias-judge
    EVENHAND_DATA=data python scripts/recorded_2026.py orders
    EVENHAND_DATA=data python scripts/recorded_2026.py reasoning

- hiring: does a name move the score of a CV by more than asking again? (re:cinq Hiring-Bias, 2026)
- bias-judge: how often does a judge of bias flag a change that asking again makes as well?
- orders: which judges give the same verdict in both orders, compared with asking again in one?
  (Position-Bias-Analyzer, 2024)
- reasoning: what does reasoning change in answers to BBQ, and its repair?
  (Mitigating-Reasoning-LLM-Social-Bias, 2025)

docs/results.md names sources, commits and licenses. In `recorded/` of EVENHAND_DATA, each file has
the published records as JSON lines, compressed: `recinq_hiring/answers.jsonl.gz` those of
`results/`, `recinq_hiring/judge_verdicts.jsonl.gz` those of `data/audits/`,
`position_bias_judges/verdicts.jsonl.gz` the rows of `judgment_data/*_repetition`, and
`bbq_reasoning_debias/bbq_sexual_orientation.jsonl.gz` the answers in `BBQ/answers/BBQ`. With
`--json`, the numbers are printed as JSON.
"""

import gzip
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import evenhand
from evenhand.core.errors import Undefined
from evenhand.findings.estimates import Estimate
from evenhand.statistics.clusters import clustered_mean

Row = dict[str, Any]
NAMES = "firstName_"
ASKED = (1, 2)  # runs that are the answer; the next two are the same CV asked again
AGAIN = (3, 4)
ALPHA = 0.05


def read(name: str) -> list[Row]:
    """Read one published file of JSON lines."""
    path = Path(os.environ["EVENHAND_DATA"]) / "recorded" / name
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def share(values: Sequence[float], clusters: Sequence[str]) -> Row:
    """Estimate a mean with its 95% CI over clusters."""
    out: Row = {"estimate": fmean(values), "n": len(values), "clusters": len(set(clusters))}
    try:
        interval = clustered_mean(values, clusters)
    except Undefined:
        return out
    return {**out, "low": interval.low, "high": interval.high}


# -- a name on a CV -------------------------------------------------------------------------------


def hiring() -> list[Row]:
    """Measure the effect of six names on the score and on the invitation, beyond asking again."""
    answers = read("recinq_hiring/answers.jsonl.gz")
    named = [row for row in answers if row["variant"].startswith(NAMES)]
    models = sorted({row["model"] for row in named})
    rows = [effect(f"{len(models)} models", outcome, named) for outcome in ("score", "invited")]
    return rows + [
        effect(model, "score", [row for row in named if row["model"] == model]) for model in models
    ]


def effect(whose: str, outcome: str, named: Sequence[Row]) -> Row:
    """Measure the effect of the names on one outcome of these answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "answers.jsonl")
        file.write_text("".join(json.dumps(line) + "\n" for line in _lines(named, outcome)))
        reads: Row = {"number": True}
        if outcome == "invited":
            reads = {"decision": r"\b(yes|maybe|no)\b", "favorable_outcome": "yes"}
        report = evenhand.counterfactual(
            answers=file, placebo="again", out=Path(folder, "run"), **reads
        )
        signed = [estimate for estimate in report.estimates
                  if estimate.name.startswith("difference.")]  # fmt: skip
        widest = max(signed, key=lambda estimate: abs(estimate.value or 0.0))
        excess = report["excess"]
        return {
            "model": whose, "outcome": outcome, "state": report.verdict.state,
            "again": report["placebo"].value,
            "excess": _interval(excess),
            "largest": widest.name.rpartition(".")[2], "difference": _interval(widest),
        }  # fmt: skip


def _interval(estimate: Estimate) -> Row:
    ends = {"low": estimate.low, "high": estimate.high}
    return {"estimate": estimate.value, "n": estimate.clusters, **ends}


def _lines(named: Sequence[Row], outcome: str) -> Iterator[Row]:
    field = "score" if outcome == "score" else "recommend_interview"
    for row in named:
        if row["run"] in ASKED + AGAIN:
            answer = (row["response"] or {}).get(field)
            runs = ASKED if row["run"] in ASKED else AGAIN
            yield {
                "id": f"{row['jd']} {row['model']}", "family": "name",
                "label": row["variant"].removeprefix(NAMES),
                "role": "group" if runs is ASKED else "placebo",
                "repeat": runs.index(row["run"]) + 1,
                "answer": None if answer is None else str(answer),
            }  # fmt: skip


# -- a judge of bias ------------------------------------------------------------------------------


def bias_judge() -> list[Row]:
    """Estimate how often the judge flags a change, and how often asking again changes as much."""
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in read("recinq_hiring/answers.jsonl.gz"):
        score = (row["response"] or {}).get("score")
        if score is not None:
            scores[row["variant"], row["model"], row["jd"]].append(float(score))
    cells = read("recinq_hiring/judge_verdicts.jsonl.gz")
    for cell in cells:
        place = cell["model"], cell["jd"]
        before, after = (scores[name, *place] for name in ("baseline", cell["variant"]))
        cell.update(
            cluster=" ".join(place),
            flagged=cell["first_run"]["verdict"] == "bias",
            equal=fmean(before) == fmean(after),
            p=permutation_p(before, after),
        )
    names = [cell for cell in cells if cell["variant"].startswith(NAMES)]
    flagged = [cell for cell in names if cell["flagged"]]
    alike = [cell for cell in cells if cell["equal"]]
    return [
        _share("name changes that the judge flags", names, "flagged"),
        _share("flagged name changes whose scores differ by no more than asking again",
               [{**cell, "alike": cell["p"] > ALPHA} for cell in flagged], "alike"),
        _share("the same, of name changes that are not flagged",
               [{**cell, "alike": cell["p"] > ALPHA} for cell in names if not cell["flagged"]],
               "alike"),
        _share("changes of any kind with equal mean scores that the judge flags", alike, "flagged"),
        _share("changes of any kind on which the judge's two verdicts differ",
               [{**cell, "differ": not cell["verdicts_agree"]} for cell in cells], "differ"),
    ]  # fmt: skip


def _share(what: str, cells: Sequence[Row], column: str) -> Row:
    values = [float(cell[column]) for cell in cells]
    return {"what": what, **share(values, [cell["cluster"] for cell in cells])}


def permutation_p(before: Sequence[float], after: Sequence[float]) -> float:
    """Compute the exact two-sided p of a difference of means, over all ways to split the scores."""
    pooled = [*before, *after]
    observed = abs(fmean(before) - fmean(after))
    total, size = sum(pooled), len(before)
    splits = [sum(part) for part in combinations(pooled, size)]
    rest = len(pooled) - size
    as_far = [abs(part / size - (total - part) / rest) >= observed - 1e-9 for part in splits]
    return fmean(as_far)


# -- both orders ----------------------------------------------------------------------------------


def orders() -> list[Row]:
    """Estimate how often two verdicts agree: asked in the other order, and again in the same."""
    return list(_by_judge(_verdicts()))


Verdict = tuple[str, str, str, bool, str | None]  # judge, cluster, pair, first order, choice


def _verdicts() -> Iterator[Verdict]:
    for row in read("position_bias_judges/verdicts.jsonl.gz"):
        chosen = {"A": row["A"], "B": row["B"], "C": "tie"}.get(row["choice"])
        sides = sorted((row["A"], row["B"]))
        question = row["cmp"].split(";")[0]
        pair = " ".join((row["set"], row["task"], question, *sides))
        yield row["judge"], f"{row['set']} {question}", pair, row["A"] == sides[0], chosen


def _by_judge(verdicts: Iterable[Verdict]) -> Iterator[Row]:
    by_judge: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_judge[verdict[0]].append(verdict)
    for judge, replies in by_judge.items():
        other, again, beyond, clusters = [], [], [], []
        by_pair: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in replies:
            if verdict[4] is not None:
                by_pair[verdict[2]].append(verdict)
        for of_pair in by_pair.values():
            crossed, same = _agreements(of_pair)
            if crossed and same:  # asked in both orders, and in one of them twice
                other.append(fmean(crossed))
                again.append(fmean(same))
                beyond.append(other[-1] - again[-1])
                clusters.append(of_pair[0][1])
        yield {
            "judge": judge, "replies": len(replies),
            "readable": sum(verdict[4] is not None for verdict in replies),
            "other_order": share(other, clusters), "same_order": share(again, clusters),
            "difference": share(beyond, clusters),
        }  # fmt: skip


def _agreements(verdicts: Sequence[Verdict]) -> tuple[list[float], list[float]]:
    crossed, same = [], []
    for first, second in combinations(verdicts, 2):
        agreements = same if first[3] == second[3] else crossed
        agreements.append(float(first[4] == second[4]))
    return crossed, same


# -- reasoning ------------------------------------------------------------------------------------


# The answers of one model: by itself, with the reasoning of another, and with what a panel of
# judges left of that.
WITH = {"none": "no_cot", "reasoning": "cot", "repaired": "unbiased_cot"}
UNSUPPORTED = "unsupported_attribution"


def reasoning() -> list[Row]:
    """Measure unsupported answers with and without reasoning, and what changes them."""
    records = read("bbq_reasoning_debias/bbq_sexual_orientation.jsonl.gz")
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: Path(folder, name) for name in WITH}
        rows = []
        for name, run in runs.items():
            file = run.with_suffix(".jsonl")
            file.write_text("".join(json.dumps(_on_bbq(row, name)) + "\n" for row in records))
            report = evenhand.measure("bbq", out=run, options={"answers": file})
            rows.append({"answers": name, "n": report.coverage.scored,
                         "unsupported": _interval(report[UNSUPPORTED])})  # fmt: skip
        return rows + [_repair(runs, *pair) for pair in combinations(WITH, 2)]


def _on_bbq(row: Row, name: str) -> Row:
    fields = {field: row[field] for field in ("category", "example_id")}
    return {**fields, "answer": row[f"{WITH[name]}_answer"]}


def _repair(runs: dict[str, Path], before: str, after: str) -> Row:
    compared = evenhand.compare(runs[before], runs[after])
    change, flips = compared[UNSUPPORTED], compared.flips["accuracy_ambiguous"]
    ends = {"low": change.low_adjusted, "high": change.high_adjusted}
    return {
        "answers": f"{before} -> {after}", "state": compared.verdict.state,
        "change": {"estimate": change.difference, "n": change.clusters, **ends},
        "fixed": flips.fixed, "broken": flips.broken,
    }  # fmt: skip


# -- output ---------------------------------------------------------------------------------------


def main(question: str, *flags: str) -> None:
    """Answer one question and print its table."""
    questions = {"hiring": hiring, "bias-judge": bias_judge, "orders": orders,
                 "reasoning": reasoning}  # fmt: skip
    rows = questions[question]()
    if "--json" in flags:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    for row in rows:
        line = "  ".join(f"{name} {_shown(value)}" for name, value in row.items())
        sys.stdout.write(line + "\n")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        ends = f"{_shown(value.get('low'))} to {_shown(value.get('high'))}"
        return f"{_shown(value['estimate'])} ({ends}; {value['n']} pairs)"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
