"""What to do next where too few answers could be scored."""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.findings.report import Report


def look_at_failures(report: "Report") -> tuple[str, ...]:
    """Name what shows why answers are missing: more items would not help."""
    show = ["evenhand", "runs", "show", report.side.run]
    if report.failed_item is not None:
        show += ["--item", report.failed_item]
    steps = [f"{shlex.join(show)}    (why answers could not be scored)"]
    if any(reason.endswith("cut_off") for reason in report.failed_by_reason):
        steps.append("the same command with a higher --max-tokens and another --out")
    if report.failed_by_reason and report.side.method["name"] != "stored":
        steps.append("evenhand doctor    (what the endpoint can do)")
    return tuple(steps)
