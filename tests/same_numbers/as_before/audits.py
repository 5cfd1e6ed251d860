"""Audits of a judge and of a reward model, as they were."""

import re
from typing import Any

from evenhand.findings.certificate import Certificate
from evenhand.findings.check import Audit
from evenhand.findings.found import NO_SPREAD
from evenhand.instruments.reward.audit import RewardAudit
from same_numbers.as_before.shapes import of_no_width

_TOO_FEW = re.compile(r"; \d+ bases are too few to certify anything.*$")


def judge(found: Audit, certificate: Certificate) -> dict[str, Any]:
    """Without the checksum of the certificate: it differs with the last digit of any number."""
    new = ("audit", "title", "state", "says", "next", "checks", "estimates")
    plain = {name: value for name, value in found.to_dict().items() if name not in new}
    sealed = certificate.model_dump(exclude={"sha256"})
    sealed["checks"] = [_check(one) for one in sealed["checks"]]
    effects = {name: [_effect(one) for one in plain[name]] for name in ("primary", "exploratory")}
    return plain | effects | {"certificate": sealed}


def _effect(one: dict[str, Any]) -> dict[str, Any]:
    alike = {"low": one["estimate"], "high": one["estimate"], "undefined": None}
    return one | (alike if one["undefined"] == NO_SPREAD else {})


def _check(one: dict[str, Any]) -> dict[str, Any]:
    """Two checks did not say that there were too few bases."""
    silent = one["name"] in ("position", "injection")
    return one | ({"says": _TOO_FEW.sub("", one["says"])} if silent else {})


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
    return plain | lists | said | {"described": described, "checks": checks}


def _figure(one: dict[str, Any]) -> dict[str, Any]:
    alike = {"low": one["value"], "high": one["value"], "undefined": None}
    return one | (alike if one["undefined"] == NO_SPREAD else {})
