"""Audits of a judge, as they were."""

import re
from typing import Any

from evenhand.findings.certificate import Certificate
from evenhand.findings.check import Audit
from evenhand.findings.found import NO_SPREAD

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
