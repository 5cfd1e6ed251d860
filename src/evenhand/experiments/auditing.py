"""An audit is concluded from the report of its run, and kept where its users look for it."""

from typing import Any

from evenhand.findings.audit import Audit, audit_of
from evenhand.findings.report import Report
from evenhand.instruments import Instrument


def concluded(instrument: Instrument, options: Any, report: Report) -> Audit:
    """Make the audit of a report, and keep what follows from it.

    Args:
        instrument: The audit that was run.
        options: Its own options.
        report: Of its run.
    """
    audit = audit_of(report)
    instrument.keep(audit, options)
    return audit
