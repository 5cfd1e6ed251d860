"""The words of what to do next: commands, each with what it is for."""

import shlex
from collections.abc import Callable, Mapping

_PLAN = "    (how many items would tell)"


def _failures(*, run: str, item: str | None) -> str:
    command = ["evenhand", "runs", "show", run, *(["--item", item] if item is not None else [])]
    return f"{shlex.join(command)}    (why answers could not be scored)"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
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
    "next.max_tokens": "the same command with a higher --max-tokens and another --out; a model "
    "that thinks needs 4096 or more, or --param reasoning_effort=low",
    "next.doctor": "evenhand doctor    (what the endpoint can do)",
    "next.gate_run": "evenhand gate FILE --baseline BASELINE --run {run}    (judges it)",
    "next.without_until": "evenhand measure {instrument} --out {run}-all    (without --until: "
    "groups, tables, comparisons)",
    "next.confirm": "the same command with --confirm    (measures it on a fresh sample)",
    "next.more_conditions": "evenhand measure {instrument} … --order-seed N --wording 2 --seed N",
    "next.talk_rubric": "Talk the rubric through on texts that are not rated, then: evenhand rate "
    "export …",
    "next.more_ratings": "evenhand rate export … --sample MORE: the interval is over items",
}
