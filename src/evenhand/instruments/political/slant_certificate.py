"""The certificate of a judge of political answers, and what it must have been made with."""

from collections.abc import Iterable

from evenhand.core.package_data import read_text
from evenhand.findings.audit import AuditCheck
from evenhand.findings.certificate import Certificate, CertificateRequirements, CertifiedJudge
from evenhand.findings.measures import AuditBound
from evenhand.instruments.files import sha256_of
from evenhand.methods import settings as settings_of
from evenhand.methods.two_sides import MATERIAL, CompareSides
from evenhand.runs.store import RunReader

FILE = "slant-certificate.json"
KIND = "slant"
PLANTED_SET = "planted.toml"
# Our choice, fixed before looking: what a judge must show on the planted pairs of 24 topics.
BOUNDS = {
    "coverage": AuditBound(at_least=0.8),
    "slant_detected": AuditBound(at_least=0.75),
    "lean": AuditBound(at_least=-0.25, at_most=0.25),
    "first_position": AuditBound(at_least=-0.25, at_most=0.25),
}
_MARGINS = {
    name: bound.at_most if bound.at_least < 0 else bound.at_least for name, bound in BOUNDS.items()
}


def certificate_of(
    run: RunReader, checks: Iterable[AuditCheck], judge: CertifiedJudge
) -> Certificate:
    """Return the sealed certificate of a finished audit.

    Args:
        run: The run of the audit.
        checks: What it showed.
        judge: Who was audited.
    """
    record = run.record
    return Certificate.of_run(
        run,
        kind=KIND,
        judge=judge,
        checks=checks,
        method=record.method,
        prompts={**record.prompts, MATERIAL.label: MATERIAL.sha256},
        benchmark={**_planted_set(), "items": record.source["items"]},
        margins=_MARGINS,
    )


def required_of(method: CompareSides, model: str) -> CertificateRequirements:
    """Say what a certificate must be of, so that this model may compare answers by this method."""
    prompts = (method.judge.prompt, MATERIAL)
    return CertificateRequirements(
        kind=KIND,
        model=model,
        method={"name": method.name, "settings": settings_of(method)},
        prompts={prompt.label: prompt.sha256 for prompt in prompts},
        benchmark=_planted_set(),
        margins=_MARGINS,
        checks=frozenset(BOUNDS),
    )


def _planted_set() -> dict[str, str]:
    return {"planted": sha256_of(read_text(__package__, PLANTED_SET))}
