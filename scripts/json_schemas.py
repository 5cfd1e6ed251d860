"""Write the JSON Schema of what evenhand writes for machines: docs/schemas/NAME-FORMAT.json.

    python scripts/json_schemas.py            # writes the schemas
    python scripts/json_schemas.py --check    # ends with 1 if one of them is out of date

Files that evenhand seals are pydantic models. Findings, which `--json` prints, are dataclasses:
their schema is read off the types of their fields, as `views/files.py` writes them. A finding may
get another field at any time, so its schema allows more than it names.

The number is that of the format. A change of a released format is a new number and a new file; the
schemas of older formats stay.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from evenhand.findings.audit import Audit
from evenhand.findings.certificate import Certificate
from evenhand.findings.comparison import Comparison
from evenhand.findings.display import Remark
from evenhand.findings.estimates import Coverage, Estimate, Section
from evenhand.findings.gate import Gate, GateCheckResult
from evenhand.findings.pack_manifest import PackManifest
from evenhand.findings.plan import Plan
from evenhand.findings.reliability import Reliability
from evenhand.findings.report import Report
from evenhand.findings.screen_file import ScreenFile

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    "certificate": Certificate,  # audit judge, slant, harm, reward
    "evidence": PackManifest,  # evidence.json of a bundle, and `runs pack --json`
    "screen": ScreenFile,  # `scorers screen calibrate`, and its --json
}
_Object = dict[str, Any]


# -- findings --------------------------------------------------------------------------------------


def _object(properties: Mapping[str, _Object], required: Sequence[str] | None = None) -> _Object:
    names = properties if required is None else required
    return {"type": "object", "properties": dict(properties), "required": sorted(names)}


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_REMARK = _object({"code": {"type": "string"}, "values": {"type": "object"},
                   "text": {"type": "string"}})  # fmt: skip


def schema_of(kind: Any) -> _Object:
    """Give the schema of a type, as `views/files.py` writes its values."""
    origin = get_origin(kind)
    if origin is not None:
        return _generic(origin, get_args(kind))
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind is Remark:
        return _REMARK
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if isinstance(kind, type) and is_dataclass(kind):
        return _object(of_fields(kind))
    return {}  # what an instrument or a method says in its own form


def _generic(origin: Any, inside: tuple[Any, ...]) -> _Object:
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(part) for part in inside]}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    if origin is tuple and inside[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [schema_of(part) for part in inside]}
    return {"type": "array", "items": schema_of(inside[0])}


def of_fields(kind: type) -> dict[str, _Object]:
    """Give the schema of each field of a dataclass that is written."""
    written = {field.name: field.type for field in fields(kind) if field.compare}
    # A class with these fields alone: others may have types that are there for type checkers only.
    names = {"__annotations__": written, "__module__": kind.__module__}
    hints = get_type_hints(type(kind.__name__, (), names))
    return {name: schema_of(hints[name]) for name in written}


def _both(schema: _Object) -> _Object:
    return _object({"before": schema, "after": schema})


def _report() -> _Object:
    own = of_fields(Report)
    flat = ("source", "created", "versions", "not_run", "verdict", "stopped", "cost", "money",
            "further")  # fmt: skip
    coverage = _object({
        **of_fields(Coverage), "failed_by_reason": own["failed_by_reason"],
        "coverage": {"type": "number"}, "by": own["coverage_by"],
    })  # fmt: skip
    scores = _object({
        "coverage": coverage, "estimates": own["estimates"],
        "with_masked_records": own["with_masked"], "masked_records": own["masked_records"],
        "groups": own["groups"], "sections": schema_of(Mapping[str, Section]),
        "notes": own["notes"],
    })  # fmt: skip
    text, maybe = schema_of(str), schema_of(str | None)
    return _object({
        "benchmark": text, "run": text, "method": {"type": "object"}, "model": text,
        "system": maybe, "params": maybe, "adapted": schema_of(tuple[str, ...]),
        **{name: own[name] for name in flat}, "scores": scores,
    })  # fmt: skip


def _comparison() -> _Object:
    own = of_fields(Comparison)
    flat = ("before", "after", "items", "verdict", "guardrails", "primary", "secondary", "places",
            "groups", "regressions", "transitions", "notes")  # fmt: skip
    return _object({
        "benchmark": schema_of(str), **{name: own[name] for name in flat},
        "differ": schema_of(tuple[dict[str, Any], ...]), "answers": own["flips"],
        "not_run": _both(schema_of(int)), "coverage": _both(schema_of(Coverage)),
        "coverage_by": {"type": "object", "additionalProperties": _both(schema_of(Coverage))},
        "sections": schema_of(Mapping[str, Section]), "cost": _both({"type": "object"}),
    })  # fmt: skip


def _gate() -> _Object:
    own = of_fields(Gate)
    check = {**of_fields(GateCheckResult), "measure": schema_of(str | None),
             "margin": schema_of(float | None)}  # fmt: skip
    return _object({
        "verdict": of_fields(GateCheckResult)["verdict"], "file": own["file"],
        "checks": {"type": "array", "items": _object(check)}, "notes": own["notes"],
    })  # fmt: skip


def _audit() -> _Object:
    own = of_fields(Audit)
    flat = ("title", "state", "says", "next", "checks", "notes")
    estimates = schema_of(tuple[Estimate, ...])
    return _object({"audit": own["kind"], **{name: own[name] for name in flat},
                    "estimates": estimates})  # fmt: skip


def _plan() -> _Object:
    own = of_fields(Plan)
    flat = ("measure", "detect", "power", "family", "rows", "items", "clusters", "too_small",
            "what_samples_can_show")  # fmt: skip
    computed = dict.fromkeys(("calls", "tokens", "money"), schema_of(float | None))
    return _object({
        "benchmark": schema_of(str), "runs": schema_of(int), "assumed": {"type": "object"},
        **computed, **{name: own[name] for name in flat},
    })  # fmt: skip


def _stability() -> _Object:
    own = of_fields(Reliability)
    return _object({
        "benchmark": schema_of(str), **{name: own[name] for name in ("verdict", "of", "runs")},
        "facets": schema_of(dict[str, int]), "fully_crossed": own["crossed"],
        "dependability": own["measures"], "same_option": own["agreement"], "pairs": own["pairs"],
    })  # fmt: skip


# `report --json`, `measure --json` and report.json; `compare --json`; `gate --json`; `audit --json`
FINDINGS = {"report-1": _report, "comparison-1": _comparison, "gate-1": _gate, "audit-1": _audit,
            "plan-1": _plan, "stability-1": _stability}  # fmt: skip


# -- files -----------------------------------------------------------------------------------------


def schemas() -> dict[str, str]:
    """Give the text of each schema by the name of its file."""
    made = {
        f"{name}-{model.model_fields['format'].default}": model.model_json_schema(
            mode="serialization"
        )
        for name, model in MODELS.items()
    }
    made |= {name: build() for name, build in FINDINGS.items()}
    return {f"{name}.json": _text(name, schema) for name, schema in made.items()}


def _text(name: str, schema: _Object) -> str:
    draft = "https://json-schema.org/draft/2020-12/schema"
    whole = {"$schema": draft, "$id": f"evenhand:{name}", **schema}
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def main() -> None:
    texts = schemas()
    outdated = [
        file
        for file, text in texts.items()
        if not (FOLDER / file).is_file() or (FOLDER / file).read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(outdated)}" if outdated else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file in outdated:
        (FOLDER / file).write_text(texts[file], "utf-8")


if __name__ == "__main__":
    main()
