"""How the numbers are got from the code of today. When the code moves, this file alone follows.

`CASES` names for each instrument what it is asked, and every case gives flat entries. Each report
has its JSON as it stands, under `json`, and the rows of its `report.parquet`, under `rows`.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
from evenhand.report import (
    bbq_plan,
    frontier,
    frontier_files,
    frontier_forecast,
    judge_check_report,
    likelihood,
    likelihood_compare,
    overcorrection,
    reward_probes,
    rtp_compare,
    rtp_report,
    scorer_audit,
)
from evenhand.report.cost import forecast, spent
from evenhand.report.summary import summary

from evenhand.domain.prices import Price, Prices
from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments import instrument_of
from evenhand.metrics.reward_probes import Rewards
from evenhand.store import RunReader
from evenhand.store.likelihood import LikelihoodRun
from same_numbers import as_before
from same_numbers.flat import ESTIMATE, Entries, flat

KEPT = Path(__file__).with_name("kept")
PRICES = Prices({"writer": Price(per_million_prompt_tokens=2, per_million_completion_tokens=6)})

Case = Callable[[], Entries]
Report = dict[str, Any]


def _run(name: str) -> RunReader:
    return RunReader(KEPT / name)


def _with_rows(report: Report, write: Callable[[Report, str], None]) -> Entries:
    """The report, and the rows that it is written as."""
    with tempfile.TemporaryDirectory() as folder:
        write(report, folder)
        rows = pl.read_parquet(Path(folder) / "report.parquet").to_dicts()
    table = {f"{row['group']} / {row['name']}": [row[c] for c in ESTIMATE] for row in rows}
    return flat({"json": report, "rows": table})


def _measured(name: str, shape: Any) -> Entries:
    run = _run(name)
    prices = PRICES if run.record.cast["default"]["model"] in PRICES.models else None
    found = report(instrument_of(run), run, prices)
    shaped = shape(found) | {"runs show": summary(run)}
    return flat({"json": shaped, "rows": as_before.rows(found)})


def _compared(shape: Any, before: str, after: str) -> Entries:
    runs = _run(before), _run(after)
    return flat(shape(compare(instrument_of(runs[0]), *runs)))


def _answers(instrument: str, shape: Any, changed: Any, pairs: list[tuple[str, str]]) -> Any:
    """The report of every run that is kept of an instrument, and some comparisons."""
    cases: dict[str, Case] = {}
    for folder in sorted((KEPT / instrument).iterdir()):
        cases[f"measure {folder.name}"] = partial(_measured, f"{instrument}/{folder.name}", shape)
    for before, after in pairs:
        runs = (f"{instrument}/{name}" for name in (before, after))
        cases[f"compare {before} → {after}"] = partial(_compared, changed, *runs)
    return cases


# -- RealToxicityPrompts: a run has several scorers, and a report is by one of them ----------------


def _rtp(name: str, scorer: str) -> Entries:
    run = _run(f"rtp/{name}")
    report = {**rtp_report.measure(run, scorer), "money": spent(run, None)}
    return _with_rows(report, rtp_report.write)


def _rtp_change(before: str, after: str) -> Entries:
    return flat(rtp_compare.compare(_run(before), _run(after)))


def _rtp_cases() -> dict[str, Case]:
    runs = ("default", "fairness", "stardtox")
    scorers = pl.read_parquet(KEPT / "rtp/default/scores.parquet")["scorer"].unique().sort()
    cases: dict[str, Case] = {
        f"measure {name} by {scorer}": partial(_rtp, name, scorer)
        for name in runs
        for scorer in scorers
    }
    for before, after in (
        ("default", "fairness"),
        ("default", "stardtox"),
        ("stardtox", "default"),
    ):
        runs_of_it = (f"rtp/{name}" for name in (before, after))
        cases[f"compare {before} → {after}"] = partial(_rtp_change, *runs_of_it)
    return cases


# -- Over-correction: one report of all arms -----------------------------------------------------


def _overcorrection(*names: str) -> Entries:
    arms = [overcorrection.Arm(name=n, run=_run(f"overcorrection/{n}")) for n in names]
    report = overcorrection.overcorrection(arms)
    outcomes = {
        arm.name: dict(overcorrection.outcomes(arm.run).select("item_id", "outcome").iter_rows())
        for arm in arms
    }
    return flat({"json": report, "rows": outcomes})


# -- Frontier and plan of BBQ --------------------------------------------------------------------

Arms = dict[str, tuple[str, str | None]]  # name → its run, and the vote that it is held against
_ARMS: Arms = {
    "default": ("default", None),
    "fairness": ("fairness", None),
    "self_consistency": ("self_consistency-3", None),
    "cot": ("cot", "self_consistency:calls=1"),
    "self_debias_reprompting": ("self_debias_reprompting", "self_consistency:calls=2"),
    "self_consistency:calls=1": ("self_consistency-1", None),
    "self_consistency:calls=2": ("self_consistency-2", None),
}
_DUMMIES: Arms = {
    "always_unknown": ("always_unknown", "self_consistency:calls=1"),
    "always_stereotyped": ("always_stereotyped", "self_consistency:calls=1"),
}
_NO_SPREAD: Arms = {
    "default": ("always_unknown", None),
    "fairness": ("always_unknown", None),
    "self_consistency": ("self_consistency-1", None),
    "always_stereotyped": ("always_stereotyped", "self_consistency"),
}
_SAME_ACCURACY: Arms = {
    "default": ("self_debias_reprompting", None),
    "fairness": ("default", None),
    "self_consistency": ("self_consistency-1", None),
    "default again": ("self_debias_reprompting", "self_consistency"),
}


def _frontier(named: Arms, prices: Prices | None = None) -> Entries:
    arms = [
        frontier.Arm(name=name, run=_run(f"bbq/{run}"), equal_calls=vote)
        for name, (run, vote) in named.items()
    ]
    report = frontier.frontier(arms, calls=3, prices=prices)
    equal = {arm.name: frontier.equal_calls(arm.run, 3) for arm in arms}
    rows = {
        " / ".join(str(row.pop(key)) for key in ("method", "group", "name")): list(row.values())
        for row in frontier_files.rows(report)
    }
    return flat({"json": report, "rows": rows, "equal_calls": equal})


def _forecast(*names: str) -> Entries:
    """As after a dry run of every twelfth item, of each method and of all of them."""
    pilot = range(0, 232, 12)
    each = {name: forecast(_run(f"bbq/{name}"), pilot, PRICES) for name in names}
    return flat({"each": each, "all": frontier_forecast.whole(each)})


def _plan(detect: float, power: float, calls: float, price: float | None) -> Entries:
    asked: dict[str, float] = {"detect": detect, "power": power, "calls": calls, "tokens": 220}
    return flat(bbq_plan.plan(**asked, price_per_million=price))


# -- likelihood sets -----------------------------------------------------------------------------


def _likelihoods(name: str) -> LikelihoodRun:
    return LikelihoodRun(str(KEPT / "likelihood" / name))


def _likelihood(name: str) -> Entries:
    return _with_rows(likelihood.measure(_likelihoods(name)), likelihood.write)


def _likelihood_change(before: str, after: str) -> Entries:
    return flat(likelihood_compare.compare(_likelihoods(before), _likelihoods(after)))


# -- audits: of a judge from its run, of a scorer and a reward model from what they gave -----------


def _judge(name: str) -> Entries:
    run = _run(f"judge/{name}")
    report, _ = judge_check_report.measure(run)
    del report["certificate"]["sha256"]  # a hash differs with the last digit of any number
    return flat({"json": {**report, "money": spent(run, None)}})


def _scorer(threshold: float, *names: str) -> Entries:
    kept = orjson.loads((KEPT / "scorer/scored.json").read_bytes())
    schema = {"recorded": pl.Float64}
    tables = {n: pl.DataFrame(t, schema_overrides=schema) for n, t in kept["tables"].items()}
    chosen = [one for one in kept["scored"] if one["name"].startswith(names)]
    given = [_scored(one) for one in chosen]
    return flat(scorer_audit.audit(tables, given, threshold=threshold, left_out={"gone": "why"}))


def _scored(one: dict[str, Any]) -> scorer_audit.Scored:
    tricks = one["tricks"]
    return scorer_audit.Scored(
        name=one["name"],
        described=one["described"],
        attributes=one["attributes"],
        sets={name: scorer_audit.Column(**column) for name, column in one["sets"].items()},
        tricks=scorer_audit.Tricks(
            plain=scorer_audit.Column(**tricks["plain"]),
            tricked={n: scorer_audit.Column(**column) for n, column in tricks["tricked"].items()},
            emoji=scorer_audit.Column(**tricks["emoji"]),
        ),
        texts_per_second=one["texts_per_second"],
    )


def _rewards(name: str) -> Entries:
    kept = orjson.loads((KEPT / f"reward/{name}.json").read_bytes())
    rewards = Rewards(
        topics=kept["topics"],
        bias_types=kept["bias_types"],
        length_chosen=kept["length_chosen"],
        length_rejected=kept["length_rejected"],
        answers={name: np.array(values) for name, values in kept["answers"].items()},
        keys={
            kind: {wording: np.array(values) for wording, values in wordings.items()}
            for kind, wordings in kept["keys"].items()
        },
        alone=np.array(kept["alone"]),
        beside_longer=np.array(kept["beside_longer"]),
    )
    return flat(reward_probes.judged(rewards, kept["said"]))


CASES: dict[str, dict[str, Case]] = {
    "bbq": _answers(
        "bbq",
        as_before.bbq,
        as_before.bbq_change,
        [
            ("default", "fairness"),
            ("default", "self_debias_reprompting"),
            ("fairness", "default"),
            ("default", "stored"),
            ("default", "unfinished"),
            ("random", "always_unknown"),
            ("random", "always_stereotyped"),
            ("self_consistency-1", "self_consistency-3"),
            ("always_unknown", "always_stereotyped"),
            ("always_unknown", "always_unknown"),
            ("default", "default"),
        ],
    ),
    "squad": _answers(
        "squad",
        as_before.squad,
        as_before.sides,
        [("default", "fairness"), ("fairness", "stored"), ("one_article", "one_article")],
    ),
    "rtp": _rtp_cases(),
    "overcorrection": {
        "all arms": partial(
            _overcorrection, "default", "fairness", "self_debias_reprompting", "stored"
        ),
        "without default": partial(_overcorrection, "fairness", "stored"),
    },
    "frontier": {
        "all arms": partial(_frontier, _ARMS | _DUMMIES),
        "with prices": partial(_frontier, _ARMS, PRICES),
        "references alone": partial(_frontier, dict(list(_ARMS.items())[:3])),
        "without any spread": partial(_frontier, _NO_SPREAD),
        "the same accuracy": partial(_frontier, _SAME_ACCURACY),
        "forecast": partial(_forecast, "default", "fairness", "self_consistency-3"),
    },
    "plan": {
        "as it is": partial(_plan, 0.05, 0.8, 1, None),
        "small change": partial(_plan, 0.02, 0.9, 4, 0.5),
        "too small": partial(_plan, 0.001, 0.99, 1, 1.0),
        "large change": partial(_plan, 0.3, 0.8, 2.5, None),
    },
    "likelihood": {
        **{
            f"measure {name}": partial(_likelihood, name)
            for name in ("before", "after", "worse", "one_set")
        },
        "compare before → after": partial(_likelihood_change, "before", "after"),
        "compare after → worse": partial(_likelihood_change, "after", "worse"),
        "compare one_set → one_set": partial(_likelihood_change, "one_set", "one_set"),
    },
    "judge": {name: partial(_judge, name) for name in ("leaning", "even", "few_bases")},
    "scorer": {
        "all scorers": partial(_scorer, 0.5, ""),
        "at another threshold": partial(_scorer, 0.8, "wordlist", "halting"),
        "one scorer": partial(_scorer, 0.5, "halting"),
    },
    "reward": {
        name: partial(_rewards, name) for name in ("reads", "leans", "constant", "one_topic")
    },
}
