"""Draw the charts of docs/reports.md, from the small runs that the tests keep:
`python scripts/docs_charts.py docs/images`."""

import sys
from pathlib import Path

from evenhand.findings.audit import audit_of
from evenhand.findings.comparison import compare
from evenhand.findings.frontier import FrontierArm, frontier
from evenhand.findings.report import report
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.runs.store import RunReader
from evenhand.views.charts import charts_of

KEPT = Path(__file__).parents[1] / "tests/same_numbers/kept"
# A method, its run, and the vote with as many calls that it is held against.
ARMS = (
    ("default", "default", None),
    ("fairness", "fairness", None),
    ("self_consistency", "self_consistency-3", None),
    ("cot", "cot", "self_consistency:calls=1"),
    ("self_debias_reprompting", "self_debias_reprompting", "self_consistency:calls=2"),
    ("self_consistency:calls=1", "self_consistency-1", None),
    ("self_consistency:calls=2", "self_consistency-2", None),
)


def _bbq(name: str) -> RunReader:
    return RunReader(KEPT / "bbq" / name)


def main(folder: Path) -> None:
    """Write some charts of four findings."""
    compared = compare(Bbq(), _bbq("default"), _bbq("fairness"))
    arms = [FrontierArm(name=name, run=_bbq(run), equal_calls=vote) for name, run, vote in ARMS]
    wanted = {
        "by_category": report(Bbq(), _bbq("always_stereotyped")),
        "slope_category": compared,
        "pairs": compared,
        "frontier": frontier(Bbq(), arms, calls=3),
        "labels": audit_of(report(JudgeAudit(), RunReader(KEPT / "judge/leaning"))),
    }
    for name, finding in wanted.items():
        chart = next(one for one in charts_of(finding) if one.name == name)
        (folder / f"chart-{name}.svg").write_text(f"{chart.svg}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
