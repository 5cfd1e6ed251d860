"""How the numbers are got from the code of today. When the code moves, this file follows.

`CASES` names for each instrument what it is asked, and every case gives the flat entries of what
is written as JSON.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.core.prices import Price, Prices
from evenhand.findings import frontier, plan, sweep
from evenhand.findings.audit import audit_of, checks_of
from evenhand.findings.comparison import compare
from evenhand.findings.forecast import forecast, whole
from evenhand.findings.report import estimates_over_all, groups_of, report
from evenhand.findings.summary import summary
from evenhand.findings.totals import RunTotals
from evenhand.instruments import instrument_of
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.judge.certificate import certificate_of
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.instruments.likelihood_sets import all_sets, compare_sets, runs_at
from evenhand.instruments.reward.instrument import Reward
from evenhand.instruments.scorer.instrument import agreement, curves
from evenhand.instruments.scorer.sets import AuditTexts, held_out
from evenhand.runs.store import RunReader
from evenhand.training.probes import KEY
from evenhand.views.files import plain
from tests.instruments.judge.in_process import audited
from tests.same_numbers.flat import Entries, flat
from tests.scorers.judged_texts import Judged, scored_texts

KEPT = Path(__file__).with_name("kept")
PRICES = Prices({"writer": Price(per_million_prompt_tokens=2, per_million_completion_tokens=6)})

Case = Callable[[], Entries]


def _run(name: str) -> RunReader:
    return RunReader(KEPT / name)


def _measured(name: str) -> Entries:
    run = _run(name)
    prices = PRICES if run.record.cast["default"]["model"] in PRICES.models else None
    found = report(instrument_of(run), run, prices)
    return flat(plain({"report": found.to_dict(), "runs show": summary(run).to_dict()}))


def _compared(before: str, after: str) -> Entries:
    runs = _run(before), _run(after)
    return flat(plain(compare(instrument_of(runs[0]), *runs).to_dict()))


def _answers(instrument: str, pairs: list[tuple[str, str]]) -> dict[str, Case]:
    """The report of every run that is kept of an instrument, and some comparisons."""
    cases: dict[str, Case] = {}
    for folder in sorted((KEPT / instrument).iterdir()):
        cases[f"measure {folder.name}"] = partial(_measured, f"{instrument}/{folder.name}")
    for before, after in pairs:
        runs = (f"{instrument}/{name}" for name in (before, after))
        cases[f"compare {before} → {after}"] = partial(_compared, *runs)
    return cases


# -- RealToxicityPrompts: a run has several scorers, and a report is by one of them ----------------


def _rtp(name: str, scorer: str) -> Entries:
    """A folder names the scorer that its report goes by."""
    with tempfile.TemporaryDirectory() as folder:
        copied = shutil.copytree(KEPT / "rtp" / name, Path(folder) / name)
        (copied / "scoring.json").write_bytes(orjson.dumps({"scorer": scorer}))
        run = RunReader(copied)
        found = report(instrument_of(run), run)
    return flat(plain(found.to_dict()))


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
        cases[f"compare {before} → {after}"] = partial(_compared, *runs_of_it)
    return cases


# -- Over-correction: one report of all arms -----------------------------------------------------


def _overcorrection(*names: str) -> Entries:
    runs = {name: _run(f"overcorrection/{name}") for name in names}
    instrument = instrument_of(runs[names[0]])
    outcomes = sweep.outcomes(instrument, runs)
    rows = {
        name: dict(
            outcomes.filter(pl.col("method") == name).select("item_id", "outcome").iter_rows()
        )
        for name in names
    }
    found = sweep.sweep(instrument, runs, reference="default")
    return flat(plain({"sweep": found.to_dict(), "outcomes": rows}))


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
        frontier.FrontierArm(name=name, run=_run(f"bbq/{run}"), equal_calls=vote)
        for name, (run, vote) in named.items()
    ]
    found = frontier.frontier(instrument_of(arms[0].run), arms, calls=3, prices=prices)
    return flat(plain(found.to_dict()))


def _forecast(*names: str) -> Entries:
    """As after a dry run of every twelfth item, of each method and of all of them."""
    pilot = range(0, 232, 12)
    found = {name: forecast(_run(f"bbq/{name}"), pilot, PRICES) for name in names}
    each = {name: asdict(one) for name, one in found.items()}
    return flat(plain({"each": each, "all": whole(each).to_dict()}))


def _plan(detect: float, power: float, calls: float, price: float | None) -> Entries:
    an_item = plan.ItemPrice(calls=calls, tokens=220, per_million=price)
    found = plan.plan(Bbq(), detect=detect, power=power, price=an_item)
    return flat(plain(found.to_dict()))


# -- likelihood sets -----------------------------------------------------------------------------


def _likelihoods(name: str) -> dict[str, RunReader]:
    return runs_at(str(KEPT / "likelihood" / name))


def _likelihood(name: str) -> Entries:
    found = {name: report(all_sets()[name], run) for name, run in _likelihoods(name).items()}
    return flat(plain({name: one.to_dict() for name, one in found.items()}))


def _likelihood_change(before: str, after: str) -> Entries:
    found = compare_sets(_likelihoods(before), _likelihoods(after))
    return flat(plain({one.instrument.name: one.to_dict() for one in found}))


# -- audits: of a judge from its run, of a scorer and a reward model from what they gave -----------


def _judge(name: str) -> Entries:
    run = _run(f"judge/{name}")
    found = audit_of(report(JudgeAudit(), run))
    certificate = certificate_of(run, found.checks)
    return flat(plain({"audit": found.to_dict(), "certificate": certificate.model_dump()}))


def _checks_of_rows(name: str) -> Entries:
    """Every check of a judge, by judgements that no run is needed for."""
    rows = pl.read_parquet(KEPT / f"judge_rows_{name}.parquet")
    numbers = ("state", "required", "value", "low", "high", "n", "clusters", "undefined")
    return {
        f"{check.name} / {number}": value
        for check in audited(rows, ("female", "male")).checks
        for number, value in (
            *((number, getattr(check, number)) for number in numbers),
            ("details", dict(check.details)),
        )
    }


def _scorer(threshold: float, *names: str) -> Entries:
    kept = orjson.loads((KEPT / "scorer/scored.json").read_bytes())
    chosen = [one for one in kept["scored"] if one["name"].startswith(names)]
    outcomes = {one["name"]: _judged_texts(kept["tables"], one, threshold) for one in chosen}
    return flat(
        plain({
            "scorers": {
                one["name"]: _audited(_judged_texts(kept["tables"], _unseen(one), threshold))
                for one in chosen
            },
            "agreement": {
                f"{first}, {second}": agreement(outcomes[first], outcomes[second])
                for first, second in combinations(outcomes, 2)
            },
        })
    )  # fmt: skip


def _unseen(one: dict[str, Any]) -> dict[str, Any]:
    """The scores without those of texts that the scorer was trained on."""
    parts = one["described"].get("trained_on", {})
    return {**one, "unseen": {name for name, part in parts.items() if part == "held_out"}}


def _audited(rows: pl.DataFrame) -> dict[str, Any]:
    judged = Judged.of(rows)
    return {
        "checks": judged.checks,
        "estimates": judged.estimates,
        "groups": judged.groups,
        "curves": {curve.name: curve.rows for curve in curves(rows)},
    }


def _judged_texts(sets: dict[str, Any], one: dict[str, Any], threshold: float) -> pl.DataFrame:
    """The outcomes of a run whose scores are these."""
    schema = {"recorded": pl.Float64}
    tables = {n: pl.DataFrame(t, schema_overrides=schema) for n, t in sets.items()}
    tricks, scored = one["tricks"], {name: one["sets"][name]["values"] for name in tables}
    for name in one.get("unseen", set()) & tables.keys():
        kept = [held_out(text) for text in tables[name]["text"]]
        tables[name] = tables[name].filter(pl.Series(kept))
        scored[name] = [value for value, unseen in zip(scored[name], kept, strict=True) if unseen]
    texts = AuditTexts(
        tables,
        ["toxic"] * len(tricks["plain"]["values"]),
        ["kind"] * len(tricks["emoji"]["values"]),
    )
    columns = (tricks["plain"], *tricks["tricked"].values(), tricks["emoji"])
    scores = [value for values in scored.values() for value in values]
    scores += [value for column in columns for value in column["values"]]
    return scored_texts(texts, scores, threshold, one["described"].get("trained_on", {}))


def _rewards(name: str) -> Entries:
    kept = orjson.loads((KEPT / f"reward/{name}.json").read_bytes())
    instrument = Reward()
    totals = RunTotals.of(instrument, [_rewarded(kept)])
    estimates = estimates_over_all(instrument, totals)
    return flat(
        plain({
            "checks": checks_of(instrument.measures, estimates),
            "estimates": estimates,
            "groups": groups_of(instrument, totals),
        })
    )  # fmt: skip


def _rewarded(kept: dict[str, Any]) -> pl.DataFrame:
    """One row per pair, as the instrument makes of a run."""
    rewards = {**kept["answers"], "alone": kept["alone"], "beside_longer": kept["beside_longer"]}
    for kind, wordings in kept["keys"].items():
        rewards |= {f"{KEY}{kind}:{wording}": values for wording, values in wordings.items()}
    rows = len(kept["topics"])
    scores = [
        [{"name": n, "value": v[row]} for n, v in rewards.items() if row < len(v)]
        for row in range(rows)
    ]
    table = pl.DataFrame({
        "item_id": [str(row) for row in range(rows)],
        "cluster": kept["topics"],
        "bias_type": kept["bias_types"],
        "length_chosen": kept["length_chosen"],
        "length_rejected": kept["length_rejected"],
        "reason": pl.Series([None] * rows, dtype=pl.String),
        "scores_after": scores,
    })  # fmt: skip
    return Reward().outcomes(table)


CASES: dict[str, dict[str, Case]] = {
    "bbq": _answers(
        "bbq",
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
    "judge": {
        **{name: partial(_judge, name) for name in ("leaning", "even", "few_bases")},
        **{f"checks of rows, {name}": partial(_checks_of_rows, name) for name in ("yes", "marks")},
    },
    "scorer": {
        "all scorers": partial(_scorer, 0.5, ""),
        "at another threshold": partial(_scorer, 0.8, "wordlist", "halting"),
        "one scorer": partial(_scorer, 0.5, "halting"),
    },
    "reward": {
        name: partial(_rewards, name) for name in ("reads", "leans", "constant", "one_topic")
    },
}
