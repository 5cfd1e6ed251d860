"""The first screen of a combined report: the answer, three numbers, one chart, and what to do next.

`evenhand report --summary` writes this alone, as one sheet."""

from collections import Counter
from pathlib import Path

from evenhand.findings.audit import Audit
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.report import Report
from evenhand.findings.summary import Summary
from evenhand.views import audit_page, catalog, comparison_page, report_page, run_page
from evenhand.views.blocks import Block, Box, Grid, Heading, Line, Tile, Tiles, Tone
from evenhand.views.charts import Pictures

Main = Comparison | Report | Audit | Summary


class RunNames:
    """What a page calls its runs: by model and method, and by folder where that is ambiguous."""

    def __init__(self, dossier: CombinedReport) -> None:
        sides = [(report.side.run, _system(report)) for report in dossier.reports]
        sides += [
            (summary.run, f"{summary.cast['default']['model']} · {summary.method['name']}")
            for summary in dossier.summaries
        ]
        systems = dict(sides)
        same_name = Counter(systems.values())
        folders = Counter(Path(run).name for run in systems)
        self._names = {}
        for run, system in systems.items():
            folder = Path(run).name if folders[Path(run).name] == 1 else run
            self._names[run] = system if same_name[system] == 1 else f"{system} ({folder})"

    def of(self, run: str) -> str:
        """Return the name of a run; a run that nothing is known of keeps its folder."""
        return self._names.get(run, run)

    def report(self, report: Report) -> str:
        """Return the name of a report: what was measured, and of whom."""
        return f"{report.instrument.title} · {self.of(report.side.run)}"

    def pair(self, comparison: Comparison) -> str:
        """Return the name of a comparison: what was measured, and what changed."""
        before, after = comparison.before, comparison.after
        names = (self.of(before.run), self.of(after.run))
        if before.asked == after.asked:
            prefix = f"{before.asked} · "
            short = " → ".join(name.removeprefix(prefix) for name in names)
            return f"{comparison.instrument.title} · {before.asked}: {short}"
        return f"{comparison.instrument.title}: {' → '.join(names)}"


def _system(report: Report) -> str:
    """Name what decided or answered."""
    if report.instrument.of_people:
        return Path(report.side.run).name
    if report.side.method["name"] == "stored" and report.side.asked == "none":
        return "stored answers"
    return f"{report.side.asked} · {report.side.method['name']}"


def page(dossier: CombinedReport, names: RunNames, pictures: Pictures) -> list[Block]:
    """Return the blocks of the first screen."""
    blocks: list[Block] = [Heading(dossier.title, 1)]
    main = _main(dossier)
    if main is None:
        return blocks
    blocks += [Box(tuple(_answer(main, names)), _tone(main))]
    tiles = _tiles(main)
    if tiles:
        blocks.append(Tiles(tiles))
    blocks += pictures.lead(main) if not isinstance(main, Summary) else []
    steps = _next(main)
    if steps:
        blocks += [Heading("What to do next", 3), *(Line(step) for step in steps)]
    others = [finding for finding in _all(dossier) if finding is not main]
    if others:
        rows = tuple((_name(finding, names), _opening(finding)) for finding in others)
        tones = tuple(_tone(finding) for finding in others)
        blocks += [Heading("Also on this page", 3), Grid(("", "answer"), rows, tones)]
    return blocks


def _all(dossier: CombinedReport) -> list[Main]:
    """Every finding, the most telling first: a change, then a measurement, then an audit."""
    return [*dossier.comparisons, *dossier.reports, *dossier.audits, *dossier.summaries]


def _main(dossier: CombinedReport) -> Main | None:
    return next(iter(_all(dossier)), None)


def _name(finding: Main, names: RunNames) -> str:
    match finding:
        case Comparison():
            return names.pair(finding)
        case Report():
            return names.report(finding)
        case Audit():
            return f"{finding.kind} · {finding.title}"
        case Summary():
            return names.of(finding.run)


def _lines(finding: Main) -> list[Line]:
    """Return the answer in words, the first line the most important."""
    match finding:
        case Comparison():
            return comparison_page.verdict(finding)
        case Report():
            return report_page.verdict(finding)
        case Audit():
            return audit_page.opening(finding)
        case Summary() if finding.remedy is not None:
            return run_page.remedy_lines(finding.remedy)
        case Summary():
            text = "The method judges no draft, and no instrument measured the answers."
            return [Line(text)]


def _answer(finding: Main, names: RunNames) -> list[Line]:
    match finding:
        case Comparison():
            about = f"{finding.items:,} shared items"
        case Report():
            about = f"{finding.coverage.scored:,} of {finding.source['items']:,} scored"
        case Summary():
            so_far = " so far" if finding.open else ""
            about = f"{finding.answered:,} of {finding.planned:,} answered{so_far}"
        case Audit():
            about = ""
    title = " · ".join(filter(None, (_name(finding, names), about)))
    paid = [Line(comparison_page.cost(finding))] if isinstance(finding, Comparison) else []
    return [Line(title, "dim"), *_lines(finding), *paid]


def _opening(finding: Main) -> str:
    return next((line.text for line in _lines(finding)), "")


def _tone(finding: Main) -> Tone:
    if isinstance(finding, Audit):
        return audit_page.tone(finding)
    tone: Tone = next((line.tone for line in _lines(finding)), "plain")
    return "plain" if tone in ("strong", "dim") else tone


def _next(finding: Main) -> list[str]:
    match finding:
        case Comparison() | Report():
            return catalog.texts(finding.verdict.next)
        case Audit():
            return list(finding.next)
        case Summary():
            return []


def _tiles(finding: Main) -> tuple[Tile, ...]:
    match finding:
        case Comparison():
            return comparison_page.tiles(finding)
        case Report():
            return report_page.tiles(finding)
        case Audit():
            return audit_page.tiles(finding)
        case Summary():
            return ()
