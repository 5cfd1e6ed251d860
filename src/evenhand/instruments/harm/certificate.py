"""The certificate of a harm: it lets one policy in one prompt be judged by one model, as long as
neither of them, the examples nor the bars have changed since."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit
from evenhand.findings.certificate import (
    Certificate,
    CertificateRequirements,
    CertifiedJudge,
    certificates_in,
    why_not,
)
from evenhand.instruments.harm.measures import NAMES
from evenhand.instruments.harm.policy import OwnHarm
from evenhand.methods.judge_text import AS_WRITTEN
from evenhand.models.base import ChatModel
from evenhand.runs.store import RunReader
from evenhand.scorers.harm import HarmJudge

FILE = "harm-certificate.json"
METHOD = "harm"  # the name of the method on a certificate


def certified_judge(harm: OwnHarm, model: ChatModel, folder: Path | None) -> HarmJudge:
    """Make the judge of a harm policy, if a certificate allows it.

    Args:
        harm: The policy from the config.
        model: Model that judges.
        folder: Directory of certificates. None if the config names none.

    Returns:
        The judge, for steering methods and for reports.

    Raises:
        UserError: No certificate of this policy, prompt and model passed.
    """
    result = holding(harm, folder)
    if isinstance(result, Certificate):
        return HarmJudge(harm.asked, model, certificate=result.sha256)
    raise UserError(
        f"{harm.where} cannot be used: {result}. No model was called. {_then(harm, folder)}"
    )


def certificate_of(run: RunReader, audit: Audit, look: int) -> Certificate:
    """Return the certificate of a finished audit, sealed.

    Args:
        run: The run of the audit.
        audit: What the run showed.
        look: How many checks used these examples, with this one.
    """
    source = run.record.source
    model: dict[str, Any] = run.record.cast[AS_WRITTEN.role]["scorer"]["model"]
    benchmark = {name: source[name] for name in ("items", "sha256", "examples", "texts")}
    return Certificate.of_run(
        run,
        kind=METHOD,
        judge=CertifiedJudge(
            model=model["model"],
            served_by=[],
            described={key: value for key, value in model.items() if key != "url"},
        ),
        checks=audit.checks,
        method={"name": METHOD, "settings": source["asked"]},
        prompts=source["hashes"],
        benchmark={**benchmark, "look": look},
        margins=source["bars"],
    )


def holding(harm: OwnHarm, folder: Path | None) -> Certificate | str:
    """Find the certificate that lets this harm be used, or why there is none. The newest matching
    one decides; if a file cannot be read no certificate does, since it may have been a fail."""
    if folder is None:
        return "the config names no folder of certificates"
    read = list(_read(folder))
    broken = [problem for problem in read if isinstance(problem, str)]
    if broken:
        return f"{broken[0]}; restore the file, or remove it from {folder}"
    certificates = sorted(
        (
            certificate
            for certificate in read
            if isinstance(certificate, Certificate) and _name(certificate) == harm.name
        ),
        key=lambda certificate: (
            certificate.created,
            certificate.state != "pass",
        ),  # of two at once the one that fails
    )
    expected = tied_to(harm)
    fitting = [certificate for certificate in certificates if not why_not(certificate, expected)]
    if fitting and fitting[-1].state == "pass":
        return fitting[-1]
    if fitting:
        return f"its certificate says {fitting[-1].state}{fitting[-1].decided_by}"
    if certificates:
        return f"its certificate {why_not(certificates[-1], expected)}"
    return f"{folder} has no certificate of it"


def looks_before(texts: frozenset[str], created: str, folder: Path) -> int:
    """Count earlier checks that share an example with this one.

    They count whatever their name, policy, model or outcome: each was a chance to choose by these
    examples.

    Args:
        texts: Checksums of the examples of this check.
        created: Time of this check, as its certificate states it.
        folder: Directory of certificates.

    Returns:
        The number of earlier checks.
    """
    return sum(
        certificate.created < created and bool(texts & {*certificate.benchmark["texts"]})
        for certificate in _own(folder)
    )


def refuse_unreadable(folder: Path | None) -> Path:
    """Refuse to check where the certificates of the checks before cannot be counted."""
    if folder is None:
        raise UserError(
            "The config names no folder for certificates, and an audit counts earlier audits by "
            'them. Add certificates = "certificates" under [judges], then run this again.'
        )
    _own(folder)
    return folder


def _own(folder: Path) -> list[Certificate]:
    """All certificates of harms in a folder; refused where one cannot be read."""
    read = list(_read(folder))
    broken = [problem for problem in read if isinstance(problem, str)]
    if broken:
        raise UserError(f"{broken[0]}. Restore the file, or remove it from {folder}.")
    return [
        certificate
        for certificate in read
        if isinstance(certificate, Certificate) and _name(certificate) is not None
    ]


def tied_to(harm: OwnHarm) -> CertificateRequirements:
    """All that a certificate of this harm must have been made with."""
    question = harm.asked
    return CertificateRequirements(
        kind=METHOD,
        model=harm.model,
        method={"name": METHOD, "settings": question.settings},
        prompts=question.hashes,
        benchmark={"examples": harm.examples.sha256},
        margins=harm.config.bars,
        checks=frozenset(NAMES),
    )


def _read(folder: Path) -> Iterator[Certificate | str]:
    """Every certificate of a folder, those of judges too; what cannot be read as a problem."""
    for path, result in certificates_in(folder):
        if isinstance(result, Certificate) and not _is_whole(result):
            yield f"{path} is not a harm certificate as `evenhand audit harm` writes it"
        else:
            yield result


def _is_whole(certificate: Certificate) -> bool:
    """Whether a certificate of a harm has what it is read by."""
    if certificate.kind != METHOD:
        return True
    settings, texts = certificate.method.get("settings"), certificate.benchmark.get("texts")
    is_named = isinstance(settings, dict) and isinstance(settings.get("harm"), str)
    return is_named and isinstance(texts, list) and all(isinstance(t, str) for t in texts)


def _name(certificate: Certificate) -> str | None:
    """The harm that a certificate is of; None for that of a judge."""
    is_harm = certificate.kind == METHOD
    return str(certificate.method["settings"]["harm"]) if is_harm else None


def _then(harm: OwnHarm, folder: Path | None) -> str:
    first = "" if folder else 'Write certificates = "certificates" under [judges] in the config. '
    return f"{first}Run:\nevenhand audit harm {harm.name} --out {place_for(harm)}"


def place_for(harm: OwnHarm) -> str:
    """A run folder that no check of another policy or other examples has."""
    return f"runs/harm-{harm.name}-{harm.asked.hashes['policy'][:4]}{harm.examples.sha256[:4]}"
