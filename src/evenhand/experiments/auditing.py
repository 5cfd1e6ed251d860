"""An audit is concluded from the report of its run, and kept where its users look for it."""

from pathlib import Path
from typing import Any

from evenhand.findings.audit import Audit, audit_of
from evenhand.findings.report import Report
from evenhand.instruments import Instrument


def concluded(
    instrument: Instrument, options: Any, report: Report, certificates: Path | None = None
) -> Audit:
    """Make the audit of a report, and keep what follows from it.

    Args:
        instrument: The audit that was run.
        options: Its own options.
        report: Of its run.
        certificates: The folder that certificates are kept in, if there is one.
    """
    audit = audit_of(report)
    instrument.keep(audit, options, certificates)
    return audit
