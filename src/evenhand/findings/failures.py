"""What to do next where too few answers could be scored."""

from typing import TYPE_CHECKING

from evenhand.findings.remarks import Remark

if TYPE_CHECKING:
    from evenhand.findings.report import Report


def look_at_failures(report: "Report") -> tuple[Remark, ...]:
    """Name what shows why answers are missing: more items would not help."""
    steps = [Remark("next.failures", run=report.side.run, item=report.failed_item)]
    if any(reason.endswith("cut_off") for reason in report.failed_by_reason):
        steps.append(Remark("next.max_tokens"))
    if report.failed_by_reason and report.side.method["name"] != "stored":
        steps.append(Remark("next.doctor"))
    return tuple(steps)
