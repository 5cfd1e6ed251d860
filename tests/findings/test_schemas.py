"""The published JSON Schemas are those of the code, and what evenhand writes keeps to them."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest

from evenhand.findings.certificate import Certificate, CertifiedCheck, CertifiedJudge

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "scripts/json_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_published_schemas_are_those_of_the_code(program: ModuleType) -> None:
    """After a change: python scripts/json_schemas.py. A released format gets a new number."""
    schemas: dict[str, str] = program.schemas()
    assert set(schemas) == {"certificate-1.json", "evidence-1.json", "screen-1.json"}
    for file, text in schemas.items():
        assert (ROOT / "docs/schemas" / file).read_text("utf-8") == text, file


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
    schema = json.loads((ROOT / "docs/schemas/certificate-1.json").read_text("utf-8"))
    assert jsonschema_rs.is_valid(schema, _certificate() | change) is valid
