"""A pack shows a dossier in the forms that others read: one file per form, none per instrument."""

from evenhand.findings.certificate import Certificate
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import FIGURES, PAGE, PRICES, PackManifest
from evenhand.runs.store.folder import as_file_name
from evenhand.views import html, page_of
from evenhand.views.pack import cyclonedx, figures, frameworks, records

__all__ = ["files_of"]


def files_of(dossier: CombinedReport, about: PackManifest) -> dict[str, bytes]:
    """Write every file of a pack that follows from its runs: the same runs give the same bytes."""
    return {
        FIGURES: figures.written(dossier),
        PAGE: html.document(page_of(dossier, full=True), dossier.title).encode(),
        "cyclonedx.json": cyclonedx.written(dossier, about),
        "replay.sh": figures.script(dossier, about),
        **({} if about.prices is None else {PRICES: figures.price_file(about.prices)}),
        **_certificates(dossier),
        **records.eee_files(dossier, about),
        **records.hub_files(dossier, about),
        **frameworks.written(dossier, about),
    }


def _certificates(dossier: CombinedReport) -> dict[str, bytes]:
    """Write the certificates of the judges whose audits are in the dossier."""
    files = {}
    for number, audit in enumerate(dossier.audits):
        certificate = Certificate.model_validate(audit.more["certificate"])
        name = f"{number}-{as_file_name(certificate.judge.model)}"
        files[f"certificates/audited/{name}.json"] = certificate.to_bytes()
    return files
