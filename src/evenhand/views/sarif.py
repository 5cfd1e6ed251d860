"""This view shows a gate as SARIF 2.1.0, for the list of findings that a code host keeps."""

import hashlib
from typing import Any
from urllib.parse import quote

import orjson

from evenhand.core.version import __version__
from evenhand.findings.gate import Gate, GateCheckResult, Verdict
from evenhand.views.gate_page import LEVELS, told
from evenhand.views.visible import visible

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_RULES: dict[Verdict, str] = {
    "fail": "A checked number is shown to be worse than the baseline, or is no longer checked.",
    "broken": "A check has nothing to judge by.",
    "open": "A checked number is neither shown to be worse nor to be within its margin.",
}


def render(gate: Gate) -> bytes:
    """Give the log: one result for each check that did not pass."""
    rules = [
        {"id": verdict, "shortDescription": {"text": text}, "help": {"text": text},
         "defaultConfiguration": {"level": LEVELS[verdict]}}
        for verdict, text in _RULES.items()
    ]  # fmt: skip
    driver = {"name": "evenhand gate", "semanticVersion": __version__, "rules": rules}
    results = [_result(gate.file, check) for check in gate.checks if check.verdict in LEVELS]
    run = {
        "tool": {"driver": driver},
        "results": results,
        "invocations": [{"executionSuccessful": gate.verdict != "broken"}],
        "columnKind": "unicodeCodePoints",
    }
    log = {"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}
    return orjson.dumps(log, option=orjson.OPT_INDENT_2) + b"\n"


def _result(file: str, check: GateCheckResult) -> dict[str, Any]:
    fingerprint = hashlib.sha256(
        f"{check.name}\n{check.verdict}".encode("utf-8", "replace")
    ).hexdigest()
    artifact = {"uri": quote(visible(file or "evenhand.gate.toml"))}
    where = {"artifactLocation": artifact, "region": {"startLine": check.line}}
    return {
        "ruleId": check.verdict,
        "ruleIndex": list(_RULES).index(check.verdict),
        "level": LEVELS[check.verdict],
        "message": {"text": visible(f"{check.name}: {told(check)}")},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"check/v1": fingerprint},
    }
