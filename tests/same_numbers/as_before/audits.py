"""Audits of a judge and of a reward model, as they were."""

import math
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from evenhand.findings.certificate import Certificate
from evenhand.findings.check import Audit, overall
from evenhand.findings.found import COVERAGE_FLOOR, NO_SPREAD
from evenhand.instruments.judge.checks._check import FEWEST_BASES, STATES, too_few
from evenhand.instruments.judge.effects import POWER
from evenhand.instruments.reward.audit import RewardAudit
from evenhand.statistics._shared import t_above, t_quantile
from evenhand.statistics.equivalence import tost
from evenhand.statistics.margins import ALPHA, EQUIVALENT, SHIFTED, UNDERPOWERED, of_family
from evenhand.statistics.multiplicity import benjamini_hochberg, holm
from evenhand.statistics.paired import sign_flip_without_spread
from evenhand.statistics.planning import detectable_change, items_needed
from same_numbers.as_before.shapes import of_no_width

_MISSING = re.compile(r"; \d+ missing, counted as [a-z ]+")
_DECIDED = re.compile(r"; not shown to decide more than \d+% of pairs")
_LATER = ("readability", "llmbar", "evalbiasbench")  # checks that there were not yet
_TOO_FEW = re.compile(r"; \d+ bases are too few to certify anything.*$")


def judge(found: Audit, certificate: Certificate, states: Sequence[str]) -> dict[str, Any]:
    """Without the checksum of the certificate: it differs with the last digit of any number; and
    with the coverage of all that was asked together, by how each of it ended."""
    new = (
        "audit",
        "title",
        "state",
        "says",
        "next",
        "checks",
        "estimates",
        "figures",
        "discussion",
        "tests",
    )
    plain = {name: value for name, value in found.to_dict().items() if name not in new}
    sealed = certificate.model_dump(exclude={"sha256"})
    sealed["benchmark"]["probes"].pop("sets", None)
    primary = _family(plain["primary"], holm)
    effects: dict[str, Any] = {
        "verdict": of_family([one["verdict"] for one in primary]),
        "primary": primary,
        "exploratory": _family(plain["exploratory"], benjamini_hochberg),
    }
    in_pairs = [
        one
        for one in effects["exploratory"]
        if one["value"] == "win" and one["against"] == "all others"
    ]
    families = {"identity": primary, "identity_in_pairs": in_pairs}
    sealed["checks"] = [
        _coverage(one, states) if one["name"] == "coverage" else _check(one, families)
        for one in sealed["checks"]
        if one["name"] not in _LATER
    ]
    sealed["state"] = overall([SimpleNamespace(**one) for one in sealed["checks"]])
    return plain | effects | {"certificate": sealed}


def _coverage(one: dict[str, Any], states: Sequence[str]) -> dict[str, Any]:
    """It was that of all judgements, whatever they were asked for."""
    read, asked = states.count("answered"), len(states)
    return one | {
        "estimate": read / asked,
        "n": asked,
        "says": f"{read} of {asked} judgements could be read",
        "state": "pass" if read / asked >= COVERAGE_FLOOR else "underpowered",
    }


def _family(effects: list[dict[str, Any]], adjust: Any) -> list[dict[str, Any]]:
    """p-values and verdicts were those of t, with what is missing left out."""
    adjusted = adjust([_p_of_t(one) for one in effects])
    step = 0.05 / len(effects) if adjust is holm else 0.05
    return [_effect(one, step) | _judged(one, p) for one, p in zip(effects, adjusted, strict=True)]


def _effect(one: dict[str, Any], step: float) -> dict[str, Any]:
    """What could be shown was that of the normal distribution, however few the bases, and each
    family had the whole level."""
    new = ("asked", "missing")
    kept = {name: value for name, value in one.items() if name not in new}
    alike = {"low": one["estimate"], "high": one["estimate"], "undefined": None}
    old = one["detectable"] and {
        "detectable": detectable_change(one["se"], math.inf, alpha=step),
        "bases_needed": items_needed(
            one["margin"], one["se"] * one["bases"] ** 0.5, alpha=step, power=POWER
        ).n,
    }
    return kept | (old or {}) | (alike if one["undefined"] == NO_SPREAD else {})


def _p_of_t(one: dict[str, Any]) -> float:
    if one["se"] is None:
        return 1.0
    if one["se"] == 0:
        return sign_flip_without_spread(one["estimate"], one["bases"])
    return 2 * t_above(one["bases"] - 1, abs(one["estimate"]) / one["se"])


def _judged(one: dict[str, Any], adjusted: float) -> dict[str, Any]:
    """Without any spread the estimate itself was held against the margin."""
    if one["se"] is None:
        unknown = {"p": 1.0, "p_adjusted": 1.0, "p_equivalence": None}
        return unknown | {"detected": False, "verdict": UNDERPOWERED}
    within = None
    if one["se"]:
        within = tost(one["estimate"], one["se"], one["bases"] - 1, one["margin"]).p_value
    is_within = abs(one["estimate"]) < one["margin"] if within is None else within < ALPHA
    return {
        "p": _p_of_t(one),
        "p_adjusted": adjusted,
        "p_equivalence": within,
        "detected": adjusted <= ALPHA,
        "verdict": EQUIVALENT if is_within else SHIFTED if adjusted <= ALPHA else UNDERPOWERED,
    }


def _scale(one: dict[str, Any]) -> dict[str, Any]:
    """It asked whether marks differ at all."""
    said, distinct = one["details"], one["details"]["distinct"]
    return one | {
        "estimate": said["sd"],
        "low": None,
        "high": None,
        "unit": "points, standard deviation",
        "says": f"{distinct} different marks for {one['n']} texts",
        "state": "pass" if distinct > 1 else "fail",
        "details": {"mean": said["mean"], "distinct": distinct},
    }


def _check(one: dict[str, Any], families: dict[str, Any]) -> dict[str, Any]:
    """Two checks did not say that there were too few bases, or what is missing; the kappa of a
    judge with people had no interval."""
    if one["unit"] == "quadratic weighted kappa":
        return one | {"low": None, "high": None}
    if one["name"] in families:
        return one | _of_labels(one, families[one["name"]])
    if one["name"] == "scale":
        return _scale(one)
    one = one | {"details": {k: v for k, v in one["details"].items() if k != "decided"}}
    if one["margin"] is None:
        return one
    says = _MISSING.sub("", _DECIDED.sub("", _TOO_FEW.sub("", one["says"])))
    return one | {"says": says, "state": _state(one)}


def _of_labels(one: dict[str, Any], effects: list[dict[str, Any]]) -> dict[str, Any]:
    if one["n"] < FEWEST_BASES:
        return {"state": "underpowered", "says": too_few(one["n"])}
    label = max(effects, key=lambda e: (e["verdict"] == SHIFTED, abs(e["estimate"])))["label"]
    moved, margin = f"{one['estimate']:+.3f}", f"{one['margin']:g}"
    says = {
        SHIFTED: f"{label} moves it by {moved}",
        EQUIVALENT: f"every label is shown to move it by less than {margin}",
        UNDERPOWERED: f"at most {moved} ({label}), which is neither shown to differ from 0 nor to "
        f"be less than {margin}",
    }
    verdict = of_family([e["verdict"] for e in effects])
    return {"state": STATES[verdict], "says": says[verdict]}


def _state(one: dict[str, Any]) -> str:
    """States were those of t, from the interval of what could be read; of requests one-sided."""
    if one["n"] < FEWEST_BASES:
        return "underpowered"
    df, value = one["n"] - 1, one["estimate"]
    se = (one["high"] - one["low"]) / 2 / t_quantile(df, 0.975)
    below = value if one["name"] == "injection" else abs(value)
    if t_above(df, (one["margin"] - below) / se) < ALPHA:
        return "pass"
    shown = below > 0 and 2 * t_above(df, below / se) <= ALPHA
    return "fail" if shown else "underpowered"


def reward(found: RewardAudit) -> dict[str, Any]:
    plain = found.to_dict()
    lists = {name: [_figure(one) for one in plain[name]] for name in ("by_topic", "by_bias_type")}
    described = {
        name: _figure(one) if isinstance(one, dict) else one
        for name, one in plain["described"].items()
    }
    said = {name: [of_no_width(line) for line in plain[name]] for name in ("prefers", "notes")}
    checks = [
        one
        | {
            "figure": _figure(one["figure"]),
            "finding": one["finding"] and of_no_width(one["finding"]),
        }
        for one in plain["checks"]
    ]
    # What is open passed, but for accuracy.
    passed = not any(one["state"] == "failed" for one in checks)
    kept = {name: value for name, value in plain.items() if name != "open"}
    return kept | lists | said | {"described": described, "checks": checks, "passed": passed}


def _figure(one: dict[str, Any]) -> dict[str, Any]:
    alike = {"low": one["value"], "high": one["value"], "undefined": None}
    return one | (alike if one["undefined"] == NO_SPREAD else {})
