"""A gate in the forms that hosts of code read: annotations of GitHub, JUnit XML and SARIF."""

import hashlib
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as Xml

import orjson

from evenhand.core.version import __version__
from evenhand.findings.gate import Gate, GateCheckResult, Verdict
from evenhand.views import catalog
from evenhand.views.gate_page import LEVELS, told
from evenhand.views.visible import visible


def annotations(gate: Gate) -> str:
    """Give the lines; every sign that could end a line or begin a command is escaped."""
    lines = [_line(gate.file, check) for check in gate.checks if check.verdict in LEVELS]
    if not gate.checks:
        lines = ["::error title=evenhand gate::the gate has no check"]
    return "".join(f"{line}\n" for line in lines)


def _line(file: str, check: GateCheckResult) -> str:
    properties = {"title": f"evenhand gate: {check.verdict}: {check.name}"}
    if file:
        properties = {"file": file, "line": str(check.line), **properties}
    parameters = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{LEVELS[check.verdict]} {parameters}::{_data(told(check))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_KINDS: dict[Verdict, str] = {"fail": "failure", "error": "error", "inconclusive": "skipped"}
_NOT_IN_XML = re.compile("[\ufdd0-\ufdef]")  # in addition to what `visible` takes out


def junit(gate: Gate) -> bytes:
    """Give the document. Our choice: what is open is a skipped test, as it says neither yes nor
    no; the exit code tells it from a pass."""
    counts = {
        "tests": len(gate.checks),
        "failures": _count(gate, "fail"),
        "errors": _count(gate, "error"),
        "skipped": _count(gate, "inconclusive"),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = Xml.Element("testsuites", {"name": "evenhand gate", **numbers})
    suite = Xml.SubElement(root, "testsuite", {"name": "evenhand gate", **numbers, "time": "0"})
    for check in gate.checks:
        _add(suite, check)
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _count(gate: Gate, verdict: Verdict) -> int:
    return sum(check.verdict == verdict for check in gate.checks)


def _add(suite: Xml.Element, check: GateCheckResult) -> None:
    attributes = {
        "name": _text(check.name),
        "classname": _text(f"evenhand.{check.instrument or 'gate'}"),
    }
    case = Xml.SubElement(suite, "testcase", {**attributes, "time": "0"})
    if check.verdict in _KINDS:
        first = {"message": _text(catalog.text(check.says))}
        kind = {} if check.verdict == "inconclusive" else {"type": check.verdict}
        Xml.SubElement(case, _KINDS[check.verdict], {**first, **kind}).text = _text(told(check))
    else:
        Xml.SubElement(case, "system-out").text = _text(told(check))


def _text(words: str) -> str:
    return _NOT_IN_XML.sub("", visible(words))


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_RULES: dict[Verdict, str] = {
    "fail": "A metric regressed, or is no longer checked.",
    "error": "A check could not be computed.",
    "inconclusive": "No significant regression, but the metric is not shown to be within its "
    "margin.",
}


def sarif(gate: Gate) -> bytes:
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
        "invocations": [{"executionSuccessful": gate.verdict != "error"}],
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
