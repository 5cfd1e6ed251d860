"""What evenhand writes keeps to the JSON Schemas that are published (tests/house: they are those
of the code)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from evenhand.findings.audit import audit_of
from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.gate import Gate
from evenhand.findings.plan import plan
from evenhand.findings.reliability import reliability
from evenhand.findings.report import Report, report
from evenhand.instruments import instrument_named, instrument_of
from evenhand.runs.store import RunReader
from evenhand.views.files import printed

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/same_numbers/kept"


def _schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / f"docs/schemas/{name}.json").read_text("utf-8"))
    return loaded


def _report(run: str) -> Report:
    reader = RunReader(KEPT / run)
    return report(instrument_of(reader), reader)


def _comparison() -> Comparison:
    before, after = (RunReader(KEPT / f"bbq/{name}") for name in ("default", "fairness"))
    return compare(instrument_of(before), before, after)


def _repeats() -> list[RunReader]:
    return [RunReader(KEPT / f"bbq/self_consistency-{number}") for number in (1, 2, 3)]


FINDINGS: dict[str, Callable[[], Any]] = {
    "report-1": lambda: _report("bbq/unfinished"),
    "comparison-1": _comparison,
    "gate-1": lambda: Gate.broken("no baseline", "evenhand.gate.toml"),
    "audit-1": lambda: audit_of(_report("judge/few_bases")),
    "plan-1": lambda: plan(instrument_named("bbq")),
    "stability-1": lambda: reliability(instrument_named("bbq"), _repeats()),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_keeps_to_its_schema_and_to_no_smaller_one(name: str) -> None:
    """What the schema does not name is what only one instrument has."""
    finding = FINDINGS[name]()
    written = json.loads(printed(finding.to_dict()))
    jsonschema_rs.validator_for(_schema(name)).validate(written)
    assert set(written) - set(_schema(name)["properties"]) <= set(getattr(finding, "more", ()))
    for field in _schema(name)["required"]:
        without = {key: value for key, value in written.items() if key != field}
        assert not jsonschema_rs.is_valid(_schema(name), without), field


def _certificate() -> dict[str, Any]:
    check = CertifiedCheck(name="coverage", state="pass", required=True, says="", low=0.9)
    certificate = Certificate(
        kind="judge", run={"ledger": "0" * 64}, method={"name": "rate"}, prompts={}, benchmark={},
        judge=CertifiedJudge(model="m", served_by=[], described={}), margins={}, limits={},
        seed=None, evenhand="0", created="2026-11-20T00:00:00+00:00", calls=1, checks=[check],
        state="pass",
    )  # fmt: skip
    dumped: dict[str, Any] = json.loads(certificate.sealed().to_bytes())
    return dumped


@pytest.mark.parametrize(
    ("change", "valid"),
    [({}, True), ({"state": "maybe"}, False), ({"format": 2}, False), ({"more": 1}, False)],
)
def test_a_certificate_keeps_to_its_schema_and_a_changed_one_does_not(
    change: dict[str, Any], valid: bool
) -> None:
    assert jsonschema_rs.is_valid(_schema("certificate-1"), _certificate() | change) is valid
