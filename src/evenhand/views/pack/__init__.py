"""A pack shows a dossier in the forms that others read: one file per form, none per instrument."""

from evenhand.findings.certificate import Certificate
from evenhand.findings.combined_report import Dossier
from evenhand.findings.pack_manifest import FIGURES, PAGE, PRICES, Evidence
from evenhand.store.folder import as_file_name
from evenhand.views import html, page_of
from evenhand.views.pack import cyclonedx, eee, figures, frameworks, hub, replay

__all__ = ["files_of"]


def files_of(found: Dossier, about: Evidence) -> dict[str, bytes]:
    """Write every file of a pack that follows from its runs: the same runs give the same bytes."""
    return {
        FIGURES: figures.written(found),
        PAGE: html.document(page_of(found, full=True), found.title).encode(),
        "cyclonedx.json": cyclonedx.written(found, about),
        "replay.sh": replay.script(found, about),
        **({} if about.prices is None else {PRICES: replay.price_file(about.prices)}),
        **_certificates(found),
        **eee.written(found, about),
        **hub.written(found, about),
        **frameworks.written(found, about),
    }


def _certificates(found: Dossier) -> dict[str, bytes]:
    """Write the certificates of the judges whose audits are in the dossier."""
    made = {}
    for number, audit in enumerate(found.audits):
        certificate = Certificate.model_validate(audit.more["certificate"])
        name = f"{number}-{as_file_name(certificate.judge.model)}"
        made[f"certificates/audited/{name}.json"] = certificate.to_bytes()
    return made
