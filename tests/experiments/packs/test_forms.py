"""The forms that others read: each file against its public schema, without a network, and what is
said in it against the findings."""

import math
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from huggingface_hub import (
    EvalResultEntry,
    eval_result_entries_to_yaml,
    parse_eval_result_entries,
)
from jsonschema import Draft7Validator

from evenhand.findings.certificate import Certificate
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.estimates import Coverage, GuardrailTest, Verdict
from evenhand.views.files import plain
from evenhand.views.pack import cyclonedx, records
from tests.errors import assert_names
from tests.experiments.packs.conftest import Packed
from tests.experiments.packs.eee_fields import Record


def _eee_schema() -> Path | None:
    """The schema of Every Eval Ever: as its package has it, which needs Python 3.12 and is never
    imported here, or as a copy in the folder of data sets."""
    package = find_spec("every_eval_ever")
    places = [
        Path(one, "schemas") for one in (package and package.submodule_search_locations) or ()
    ]
    places.append(Path(os.environ.get("EVENHAND_DATA", "/nowhere"), "every_eval_ever"))
    files = (place / "eval.schema.json" for place in places)
    return next((file for file in files if file.is_file()), None)


EEE = _eee_schema()


@pytest.fixture
def found(packed: Packed) -> CombinedReport:
    return packed.found


def _bom(found: CombinedReport, packed: Packed) -> dict[str, Any]:
    made = orjson.loads(orjson.dumps(plain(cyclonedx.document(found, packed.evidence))))
    assert isinstance(made, dict)
    return made


def test_the_model_card_fits_the_schema_of_cyclonedx_1_7(
    found: CombinedReport, packed: Packed, tmp_path: Path
) -> None:
    text = (packed.unpacked(tmp_path) / "cyclonedx.json").read_text()
    shown = Verdict(state="detected", says=("It says so.",))
    claiming = replace(
        found,
        reports=tuple(replace(one, verdict=shown) for one in found.reports),
        comparisons=tuple(replace(one, verdict=shown) for one in found.comparisons),
        audits=tuple(replace(one, state="pass") for one in found.audits),
    )
    claimed = orjson.dumps(_bom(claiming, packed)).decode()
    validator = JsonStrictValidator(SchemaVersion.V1_7)
    assert validator.validate_str(text) is None
    assert validator.validate_str(claimed) is None
    assert validator.validate_str(claimed.replace('"predicate"', '"says"', 1)) is not None
    for bom in (orjson.loads(text), orjson.loads(claimed)):
        assert bom["specVersion"] == "1.7"
        # What is referred to is there.
        said = bom["declarations"]
        parts = (bom["components"], said["claims"], said["evidence"], said["assessors"],
                 said["targets"]["components"])  # fmt: skip
        there = [one["bom-ref"] for part in parts for one in part]
        assert len(there) == len(set(there))
        for claim in said["claims"]:
            named = {claim["target"], *claim["evidence"], *claim.get("counterEvidence", [])}
            assert named <= {*there}
        for one in said["evidence"]:
            for data in one.get("data", []):
                assert (tmp_path / data["contents"]["url"]).is_file()
    made = len(found.reports) + len(found.comparisons) + len(found.audits)
    assert len(said["claims"]) >= made  # and one for each guardrail that is crossed


def test_the_model_card_has_each_number_with_its_slice_and_interval(
    found: CombinedReport, packed: Packed
) -> None:
    bom, report = _bom(found, packed), found.reports[0]
    card = bom["components"][0]["modelCard"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    groups = [one for values in report.groups.values() for each in values.values() for one in each]
    assert len(metrics) == len(report.estimates) + len(groups)
    for one, metric in zip((*report.estimates, *groups), metrics, strict=True):
        if one.value is None:
            assert metric["value"].startswith("not known: ")
            continue
        assert math.isclose(float(metric["value"]), one.value, rel_tol=1e-5, abs_tol=1e-9)
        assert ("confidenceInterval" in metric) == one.has_interval
        if one.has_interval:
            assert float(metric["confidenceInterval"]["lowerBound"]) == pytest.approx(one.low, 1e-5)
        else:
            assert "no interval" in metric["type"]
    assert {metric["slice"] for metric in metrics if "slice" in metric} >= {"category: Age"}
    assert card["considerations"]["fairnessAssessments"]


def test_a_claim_is_made_for_what_a_verdict_shows_and_for_nothing_else(
    found: CombinedReport, packed: Packed
) -> None:
    first, comparison = found.reports[0], found.comparisons[0]
    said = {"detected": "bias detected", "ruled_out": "a bias that matters is ruled out"}
    for state in ("detected", "ruled_out", "inconclusive", None):
        verdict = Verdict(state=state, says=("It says so.",))
        one = replace(first, verdict=verdict, not_run=3)
        bare = replace(found, reports=(one,), comparisons=(), audits=())
        bom = _bom(bare, packed)
        claims = bom["declarations"]["claims"]
        limits = bom["components"][0]["modelCard"]["considerations"]
        spoken = any("It says so." in line for line in limits["technicalLimitations"])
        if state in said:
            assert said[state] in claims[0]["predicate"]
            against = claims[0]["counterEvidence"][0]
            described = {one["bom-ref"]: one["description"]
                         for one in bom["declarations"]["evidence"]}  # fmt: skip
            assert_names(described[against], "not finished", 3)
            assert not spoken
        else:
            assert claims == []
            assert spoken
    lines = tuple(GuardrailTest(name="x", state=state, says=f"line {state}")
                  for state in ("violated", "inconclusive", "non_inferior"))  # fmt: skip
    open_ = replace(comparison, verdict=Verdict(state="inconclusive", says=()), guardrails=lines)
    bare = replace(found, reports=(), comparisons=(open_,), audits=())
    claims = _bom(bare, packed)["declarations"]["claims"]
    assert [one["reasoning"] for one in claims] == ["line violated"]
    for state, count in (("pass", 1), ("fail", 1), ("inconclusive", 0), (None, 0)):
        audit = replace(found.audits[0], state=state)  # type: ignore[arg-type]
        bare = replace(found, reports=(), comparisons=(), audits=(audit,))
        assert len(_bom(bare, packed)["declarations"]["claims"]) == count


def test_what_speaks_against_an_audit_is_counter_evidence_of_its_claim(
    found: CombinedReport, packed: Packed
) -> None:
    covered = Coverage(n=10, scored=7, by_reason={})
    audit = replace(found.audits[0], state="pass", coverage=covered)
    bom = _bom(replace(found, reports=(), comparisons=(), audits=(audit,)), packed)
    (claim,) = bom["declarations"]["claims"]
    described = {one["bom-ref"]: one["description"] for one in bom["declarations"]["evidence"]}
    said = [described[one] for one in claim["counterEvidence"]]
    (lost,) = said
    assert_names(lost, "3 of 10")
    last = packed.evidence.runs[-1].model_copy(update={"not_run": 2})
    about = packed.evidence.model_copy(update={"runs": [*packed.evidence.runs[:-1], last]})
    bom = cyclonedx.document(replace(found, audits=(replace(audit, coverage=None),)), about)
    against = [one["description"] for one in bom["declarations"]["evidence"]
               if one["bom-ref"].startswith("against:runs/few_bases")]  # fmt: skip
    (open_,) = against
    assert_names(open_, "not finished", 2)


def test_records_of_every_eval_ever_have_its_fields_and_the_numbers_of_the_report(
    found: CombinedReport, packed: Packed, tmp_path: Path
) -> None:
    files = sorted((packed.unpacked(tmp_path) / "eee").iterdir())
    assert len(files) == len(found.reports) == 3
    records = {}
    for file in files:
        record = Record.model_validate_json(file.read_bytes())
        records[record.source_metadata.additional_details["run"]] = record
    for report in found.reports:
        record = records[report.side.run]
        known = {one.evaluation_result_id: one for one in record.evaluation_results}
        assert len(known) == len(record.evaluation_results)
        for one in report.estimates:
            held = known.get(f"{report.side.run}/all/{one.name}")
            assert (held is None) == (one.value is None)
            if held is None:
                assert f"{one.name} (all)" in record.source_metadata.additional_details["not_known"]
                continue
            assert held.score_details.score == one.value
            interval = held.score_details.uncertainty.confidence_interval
            assert (interval.lower if interval else None) == one.low
            low, high = (float(end) for end in (held.metric_config.min_score,
                                                held.metric_config.max_score))  # fmt: skip
            assert low <= held.score_details.score <= high
    (signed, *_) = records["runs/cot"].evaluation_results
    assert signed.metric_config.metric_id == "evenhand.bbq.s_amb"
    assert "no meaning" in signed.metric_config.additional_details["direction"]


@pytest.mark.skipif(
    EEE is None,
    reason="no schema: pip install --no-deps --ignore-requires-python -r requirements/schemas.txt",
)
def test_records_of_every_eval_ever_fit_its_schema(packed: Packed, tmp_path: Path) -> None:
    assert EEE is not None
    schema = orjson.loads(EEE.read_bytes())
    assert schema["version"] == records.SCHEMA
    validator = Draft7Validator(schema)
    written = [orjson.loads(file.read_bytes())
               for file in (packed.unpacked(tmp_path) / "eee").iterdir()]  # fmt: skip
    assert len(written) == 3
    for record in written:
        validator.validate(record)
        assert not validator.is_valid(record | {"said": "more"})
        del record["evaluation_results"][0]["metric_config"]["min_score"]
        assert not validator.is_valid(record)


def test_the_hub_reads_the_results_back_as_they_were(
    found: CombinedReport, packed: Packed, tmp_path: Path
) -> None:
    read = []
    for file in sorted((packed.unpacked(tmp_path) / "hf").rglob("*.yaml")):
        data = yaml.safe_load(file.read_text())
        read += parse_eval_result_entries(data)
        assert eval_result_entries_to_yaml(parse_eval_result_entries(data)) == data
    assert all(isinstance(one, EvalResultEntry) for one in read)
    main = [(one, one.instrument.primary() or one.instrument.measures) for one in found.reports]
    numbers = [report[measure.name].value for report, measures in main for measure in measures]
    known = [number for number in numbers if number is not None]
    assert sorted(one.value for one in read) == sorted(known)
    assert all("; 95% CI " in (one.notes or "") for one in read)
    assert len({(one.dataset_id, one.task_id) for one in read}) == len(read)


def test_models_of_two_names_have_a_file_each(found: CombinedReport, packed: Packed) -> None:
    first = found.reports[0]
    other = replace(first, side=replace(first.side, model="../evil\u202e"))
    made = records.hub_files(replace(found, reports=(first, other)), packed.evidence)
    assert len(made) == 2
    assert list(records.hub_files(replace(found, reports=(first,)), packed.evidence)) == [
        "hf/.eval_results/evenhand.yaml"
    ]
    assert all(name.startswith("hf/") and ".." not in name for name in made)


def test_a_number_without_interval_or_value_says_so(found: CombinedReport, packed: Packed) -> None:
    report = found.reports[0]
    bare = replace(report.estimates[0], low=None, high=None, undefined="no_spread")
    none = replace(report.estimates[1], value=None, low=None, high=None, undefined="no rows")
    one = replace(report, estimates=(bare, none, *report.estimates[2:]))
    record = Record.model_validate(plain(records.eee_record(one, packed.evidence)))
    first = record.evaluation_results[0].score_details
    assert first.uncertainty.confidence_interval is None
    assert first.details["no_interval"] == "no_spread"
    assert f"{none.name} (all): no rows" in record.source_metadata.additional_details["not_known"]


def test_certificates_of_audits_are_whole(packed: Packed, tmp_path: Path) -> None:
    (file,) = (packed.unpacked(tmp_path) / "certificates/audited").iterdir()
    assert Certificate.from_bytes(file.read_bytes(), "here").state == "inconclusive"
