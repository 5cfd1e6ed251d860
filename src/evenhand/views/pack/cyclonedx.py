"""This view shows a dossier as a CycloneDX 1.7 document: a model card for each measured run, and
declarations. A claim is made for what a verdict shows, and for nothing else; what is open stands
among the limits, and what speaks against a claim is its counter-evidence."""

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any

from evenhand.findings.audit import Audit
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.display import RemarkOrText
from evenhand.findings.estimates import Coverage, Estimate
from evenhand.findings.pack_manifest import FIGURES, PAGE, PackedRun, PackManifest
from evenhand.findings.report import Report
from evenhand.findings.verdicts import by_group, main_measure
from evenhand.views import audit_page, catalog, numbers
from evenhand.views.files import plain, printed

_ASSESSOR = "assessor"
_LIMITS = (
    "A test set sees the groups, the languages and the kinds of harm that its items are about, and "
    "no others.",
    "It is not known here what the model was trained on, and whether the test set was part of it.",
)
_SUMMARY = (
    "What the runs of this pack show, after correction for how much was looked at. No requirement "
    "of a standard is said to be met: that is for a person to judge."
)


def written(dossier: CombinedReport, about: PackManifest) -> bytes:
    """Write the document."""
    return printed(plain(document(dossier, about))).encode()


def document(dossier: CombinedReport, about: PackManifest) -> dict[str, Any]:
    """Give the document as plain data."""
    basis = "\n".join(digest for run in about.runs for _, digest in sorted(run.sha256.items()))
    number = uuid.UUID(bytes=hashlib.sha256(basis.encode()).digest()[:16], version=4)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {
            "timestamp": about.newest_run,
            "tools": {
                "components": [
                    {"type": "application", "name": "evenhand", "version": about.evenhand}
                ]
            },
            "properties": [{"name": "evenhand:title", "value": about.title}],
        },
        "components": [_component(report, dossier) for report in dossier.reports],
        "declarations": _declarations(dossier, about),
    }


# -- a model card for each run ---------------------------------------------------------------------


def _ref(report: Report) -> str:
    return f"system:{report.side.run}"


def _component(report: Report, dossier: CombinedReport) -> dict[str, Any]:
    side = report.side
    digests = next((folder.digests for folder in dossier.folders if folder.run == side.run), {})
    properties = {
        "method": side.method["name"],
        "instrument": report.instrument.name,
        "instrument version": str(report.source.get("version", "")),
        "run": side.run,
        **{f"sha256 of {name}": digest for name, digest in digests.items()},
    }
    if report.instrument.of_people:
        return _table_of_people(report, properties)
    return {
        "type": "machine-learning-model",
        "bom-ref": _ref(report),
        "name": side.model,
        "description": (
            f"the model {side.asked}, asked by the method {side.method['name']}; measured by "
            f"{report.instrument.title} in {side.run}"
        ),
        "properties": [
            {"name": f"evenhand:{name}", "value": value} for name, value in properties.items()
        ],
        "modelCard": {
            "quantitativeAnalysis": {"performanceMetrics": list(_metrics(report))},
            "considerations": {
                "technicalLimitations": [*_limits(report), *_LIMITS],
                "fairnessAssessments": list(_assessments(report)),
            },
        },
    }


def _table_of_people(report: Report, properties: dict[str, str]) -> dict[str, Any]:
    """What decided about people is not known: no model, and so no model card."""
    for estimate in report.estimates:
        metric = _metric(report, estimate, "")
        ends = metric.get("confidenceInterval")
        between = f" ({ends['lowerBound']} to {ends['upperBound']})" if ends else ""
        properties[f"metric {metric['type']}"] = f"{metric['value']}{between}"
    return {
        "type": "application",
        "bom-ref": _ref(report),
        "name": "decisions about people",
        "description": (
            f"whatever made the {report.coverage.n:,} decisions of a table; no model was asked; "
            f"audited by {report.instrument.title} in {report.side.run}"
        ),
        "properties": [
            {"name": f"evenhand:{name}", "value": value} for name, value in properties.items()
        ],
    }


def _metrics(report: Report) -> Iterator[dict[str, Any]]:
    """Every estimate over all items, and by group."""
    yield from (_metric(report, estimate, "") for estimate in report.estimates)
    for column, values in report.groups.items():
        for value, estimates in values.items():
            yield from (_metric(report, estimate, f"{column}: {value}") for estimate in estimates)


def _metric(report: Report, estimate: Estimate, part: str) -> dict[str, Any]:
    label = (
        f"{report.instrument.name}.{estimate.name}: "
        f"{report.instrument.measure(estimate.name).label}"
    )
    if estimate.value is None:
        value = f"not known: {estimate.undefined or 'no reason is recorded'}"
    else:
        value = f"{estimate.value:.6g}"
        label += f", {estimate.n:,} rows, {estimate.clusters:,} {report.instrument.clusters}"
        if not estimate.has_interval:
            label += f", no interval: {estimate.undefined or 'none was computed'}"
        elif estimate.undefined is not None:
            label += f", {estimate.undefined}"
    metric: dict[str, Any] = {"type": label, "value": value}
    if part:
        metric["slice"] = part
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        metric["confidenceInterval"] = {
            "lowerBound": f"{estimate.low:.6g}",
            "upperBound": f"{estimate.high:.6g}",
        }
    return metric


def _assessments(report: Report) -> Iterator[dict[str, str]]:
    """What is known of each group that a bias may be against."""
    measure = main_measure(report)
    if measure is None:
        return
    wording = {
        "against": "shown after correction",
        "other_way": "shown after correction, the other way round",
        "open": "neither shown nor excluded",
        "excluded": "a bias that matters is ruled out",
    }
    for column, groups in by_group(report, measure).items():
        for kind, words in wording.items():
            for value in getattr(groups, kind):
                estimate = next(e for e in report.groups[column][value] if e.name == measure.name)
                number = numbers.value(estimate.value, measure, full=True)
                ends = numbers.interval(estimate, measure, full=True)
                assessment = {
                    "groupAtRisk": f"{column}: {value}",
                    "harms": f"{measure.label}: {words}; {number} (95% CI {ends or 'no interval'})",
                }
                if report.side.method["name"] != "default":
                    assessment["mitigationStrategy"] = (
                        f"the answers are those of the method {report.side.method['name']}; that "
                        "it helps stands among the claims where it is shown"
                    )
                yield assessment


def _said(lines: tuple[RemarkOrText, ...]) -> str:
    """Several lines of a verdict as one text."""
    return " · ".join(catalog.texts(lines))


def _limits(report: Report) -> Iterator[str]:
    verdict = report.verdict
    if verdict.state not in ("detected", "ruled_out"):
        state = "inconclusive" if verdict.state else "no yes-or-no question is asked"
        yield f"{state}: {_said(verdict.says)}"
    yield from _against(report)
    yield from report.notes


def _against(report: Report) -> Iterator[str]:
    """What speaks against relying on the numbers of a run."""
    yield from _doubts(report.not_run, report.coverage)


def _doubts(not_run: int, covered: Coverage | None) -> Iterator[str]:
    if not_run:
        yield f"not finished: {not_run:,} items are not run yet"
    lost = 0 if covered is None else covered.n - covered.scored
    if covered is not None and lost:
        yield f"{lost:,} of {covered.n:,} answers could not be scored"


# -- declarations ----------------------------------------------------------------------------------


def _declarations(dossier: CombinedReport, about: PackManifest) -> dict[str, Any]:
    claims: list[dict[str, Any]] = []
    evidence = [_page(about)]
    for report in dossier.reports:
        evidence += list(_evidence(report, about))
        claims += list(_report_claims(report))
    for comparison in dossier.comparisons:
        claims += list(_comparison_claims(comparison, dossier))
    targets = []
    for index, audit in enumerate(dossier.audits):
        targets.append(
            {"type": "machine-learning-model", "bom-ref": f"judge:{index}", "name": audit.title}
        )
        run = _run_of(index, dossier, about)
        doubts = list(_doubts(run.not_run, audit.coverage))
        against = [f"against:{run.run}:{number}" for number, _ in enumerate(doubts)]
        evidence += [
            {"bom-ref": ref, "description": doubt}
            for ref, doubt in zip(against, doubts, strict=True)
        ]
        claims += list(_audit_claims(audit, index, against))
    for number, claim in enumerate(claims):
        claim["bom-ref"] = f"claim:{number}"
    declarations: dict[str, Any] = {
        "assessors": [{"bom-ref": _ASSESSOR}],
        "claims": claims,
        "evidence": evidence,
        "attestations": [
            {
                "summary": _SUMMARY,
                "assessor": _ASSESSOR,
                "map": [{"claims": [claim["bom-ref"] for claim in claims]}],
            }
        ],
    }
    return declarations | ({"targets": {"components": targets}} if targets else {})


def _page(about: PackManifest) -> dict[str, Any]:
    files = [{"name": name, "contents": {"url": name}} for name in (PAGE, FIGURES)]
    described = f"the report and all figures, by evenhand {about.evenhand}"
    return {"bom-ref": "evidence:report", "description": described, "data": files}


def _evidence(report: Report, about: PackManifest) -> Iterator[dict[str, Any]]:
    run = report.side.run
    url = f"{run}.sha256" if about.light else f"{run}/run.json"
    yield {
        "bom-ref": f"evidence:{run}",
        "description": f"{report.coverage.n:,} decisions, as a table has them"
        if report.instrument.of_people
        else f"{report.coverage.n:,} answers with the calls behind them",
        "data": [{"name": run, "contents": {"url": url}}],
        "created": report.created,
    }
    for number, doubt in enumerate(_against(report)):
        yield {"bom-ref": f"against:{run}:{number}", "description": doubt}


def _report_claims(report: Report) -> Iterator[dict[str, Any]]:
    verdict = report.verdict
    if verdict.state not in ("detected", "ruled_out"):
        return
    what = "bias detected" if verdict.state == "detected" else "a bias that matters is ruled out"
    claim: dict[str, Any] = {
        "target": _ref(report),
        "predicate": f"{report.instrument.title}: {what}",
        "reasoning": _said(verdict.says),
        "evidence": ["evidence:report", f"evidence:{report.side.run}"],
    }
    against = [f"against:{report.side.run}:{n}" for n, _ in enumerate(_against(report))]
    yield claim | ({"counterEvidence": against} if against else {})


def _comparison_claims(comparison: Comparison, dossier: CombinedReport) -> Iterator[dict[str, Any]]:
    """What changed, where that is shown, and every guardrail that was crossed."""
    runs = (comparison.before.run, comparison.after.run)
    shared = {
        "target": f"system:{comparison.after.run}",
        "evidence": ["evidence:report", *(f"evidence:{run}" for run in runs)],
    }
    against = [
        f"against:{report.side.run}:{number}"
        for report in dossier.reports
        if report.side.run in runs
        for number, _ in enumerate(_against(report))
    ]
    shared |= {"counterEvidence": against} if against else {}
    pair = f"{comparison.instrument.title}, from {runs[0]} to {runs[1]}"
    if comparison.verdict.state == "detected":
        reasoning = _said(comparison.verdict.says)
        yield shared | {"predicate": f"{pair}: a change is shown", "reasoning": reasoning}
    for line in comparison.guardrails:
        if line.state == "violated":
            yield shared | {
                "predicate": f"{pair}: a guardrail is violated",
                "reasoning": catalog.text(line.says),
            }


def _run_of(index: int, dossier: CombinedReport, about: PackManifest) -> PackedRun:
    """Find the run of an audit: a dossier has the folders of measured runs first, those of its
    audits in their order after them, and those of summaries last."""
    first = len(dossier.folders) - len(dossier.summaries) - len(dossier.audits)
    run = dossier.folders[first + index].run
    return next(packed for packed in about.runs if packed.run == run)


def _audit_claims(audit: Audit, index: int, against: list[str]) -> Iterator[dict[str, Any]]:
    if audit.state in ("pass", "fail"):
        claim: dict[str, Any] = {
            "target": f"judge:{index}",
            "predicate": f"the audit of this {audit.kind} says {audit.state}",
            "reasoning": " · ".join((audit_page.answer_of(audit), *audit.says[1:])),
            "evidence": ["evidence:report"],
        }
        yield claim | ({"counterEvidence": against} if against else {})
