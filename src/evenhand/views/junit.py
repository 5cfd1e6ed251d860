"""This view shows a gate as JUnit XML, which every CI server reads: one test case for a check."""

import re
from xml.etree import ElementTree as Xml

from evenhand.findings.gate import Gate, GateCheckResult, Verdict
from evenhand.views import catalog
from evenhand.views.gate_page import told
from evenhand.views.visible import visible

_KINDS: dict[Verdict, str] = {"fail": "failure", "broken": "error", "open": "skipped"}
_NOT_IN_XML = re.compile("[\ufdd0-\ufdef]")  # beside what `visible` takes out


def render(gate: Gate) -> bytes:
    """Give the document. Our choice: what is open is a skipped test, as it says neither yes nor
    no; the exit code tells it from a pass."""
    counts = {
        "tests": len(gate.checks),
        "failures": _count(gate, "fail"),
        "errors": _count(gate, "broken"),
        "skipped": _count(gate, "open"),
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
        kind = {} if check.verdict == "open" else {"type": check.verdict}
        Xml.SubElement(case, _KINDS[check.verdict], {**first, **kind}).text = _text(told(check))
    else:
        Xml.SubElement(case, "system-out").text = _text(told(check))


def _text(words: str) -> str:
    return _NOT_IN_XML.sub("", visible(words))
