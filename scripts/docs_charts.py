"""Draw the charts of docs/reports.md, from the small runs that the tests keep, and the figures of
docs/papers.md, from docs/reproduced: `python scripts/docs_charts.py docs/images`."""

import sys
from pathlib import Path

from evenhand.findings.audit import audit_of
from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.findings.reproduction import Reproduction
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.runs.store import RunReader
from evenhand.views.charts import charts_of

KEPT = Path(__file__).parents[1] / "tests/same_numbers/kept"
REPRODUCED = Path(__file__).parents[1] / "docs/reproduced"
FIGURES = ("stardtox-figure3", "mabrf-figure4")


def _bbq(name: str) -> RunReader:
    return RunReader(KEPT / "bbq" / name)


def main(folder: Path) -> None:
    """Write a chart each of three findings and of the figures of papers.

    Args:
        folder: Where the images go.
    """
    wanted = {
        "by_category": report(Bbq(), _bbq("always_stereotyped")),
        "pairs": compare(Bbq(), _bbq("default"), _bbq("fairness")),
        "labels": audit_of(report(JudgeAudit(), RunReader(KEPT / "judge/leaning"))),
    }
    for name, finding in wanted.items():
        chart = next(one for one in charts_of(finding) if one.name == name)
        (folder / f"chart-{name}.svg").write_text(f"{chart.svg}\n")
    for name in FIGURES:
        figure = Reproduction.from_json((REPRODUCED / f"{name}.json").read_bytes())
        (chart,) = charts_of(figure)
        (folder / f"{name}.svg").write_text(f"{chart.svg}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
