"""This view shows a gate as JUnit XML, which every CI server reads: one test case for a check."""

import re
from xml.etree import ElementTree as Xml

from evenhand.findings.gate import Checked, Gate, Verdict
from evenhand.views.gate_page import told
from evenhand.views.visible import visible

_KINDS: dict[Verdict, str] = {"fail": "failure", "broken": "error", "open": "skipped"}
_NOT_IN_XML = re.compile("[\ufdd0-\ufdef]")  # beside what `visible` takes out


def render(found: Gate) -> bytes:
    """Give the document. Our choice: what is open is a skipped test, as it says neither yes nor
    no; the exit code tells it from a pass."""
    counts = {
        "tests": len(found.checks),
        "failures": _count(found, "fail"),
        "errors": _count(found, "broken"),
        "skipped": _count(found, "open"),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = Xml.Element("testsuites", {"name": "evenhand gate", **numbers})
    suite = Xml.SubElement(root, "testsuite", {"name": "evenhand gate", **numbers, "time": "0"})
    for one in found.checks:
        _add(suite, one)
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _count(found: Gate, verdict: Verdict) -> int:
    return sum(one.verdict == verdict for one in found.checks)


def _add(suite: Xml.Element, one: Checked) -> None:
    named = {"name": _text(one.name), "classname": _text(f"evenhand.{one.instrument or 'gate'}")}
    case = Xml.SubElement(suite, "testcase", {**named, "time": "0"})
    if one.verdict in _KINDS:
        first = {"message": _text(one.says)}
        kind = {} if one.verdict == "open" else {"type": one.verdict}
        Xml.SubElement(case, _KINDS[one.verdict], {**first, **kind}).text = _text(told(one))
    else:
        Xml.SubElement(case, "system-out").text = _text(told(one))


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("", visible(text))
