"""A view turns a finding into what a person or a machine reads. There is one file per medium and
none per instrument."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from evenhand.core.errors import UserError
from evenhand.findings.audit import Audit, Audits
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.designs import Designs
from evenhand.findings.dry_run import DryRun
from evenhand.findings.forecast import Forecast
from evenhand.findings.frontier import Frontier
from evenhand.findings.frontier_forecast import FrontierForecast
from evenhand.findings.gate import Gate
from evenhand.findings.labelled import LabelledRate
from evenhand.findings.monitoring import Monitoring
from evenhand.findings.pack_check import PackCheck
from evenhand.findings.plan import Plan
from evenhand.findings.ratio_plan import RatioPlan
from evenhand.findings.reliability import Reliability
from evenhand.findings.repeats import Repeats
from evenhand.findings.report import Report
from evenhand.findings.reproduction import Catalogue, Reproduction
from evenhand.findings.run import Run
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.screen_plan import ScreenPlan
from evenhand.findings.screened import ScreenedRun
from evenhand.findings.summary import Summary
from evenhand.findings.sweep import Sweep
from evenhand.findings.traced_answer import TracedAnswer
from evenhand.runs.store.plain_files import hidden_beside
from evenhand.training.debates.findings import DebateReport
from evenhand.training.debates.pairs import PairsReport
from evenhand.training.debates.sweep import DebateSweep
from evenhand.training.rating.findings import RatingReport
from evenhand.training.record import TrainingRun
from evenhand.views import (
    audit_page,
    comparison_page,
    debate_sweep_page,
    debates_page,
    designs_page,
    dossier_page,
    dry_run_page,
    files,
    forecast_page,
    frontier_forecast_page,
    frontier_page,
    gate_page,
    html,
    labelled_page,
    markdown,
    monitoring_page,
    pack_check_page,
    pairs_page,
    plan_page,
    printing,
    ratings_page,
    ratio_plan_page,
    reliability_page,
    repeats_page,
    report_page,
    reproduction_page,
    run_page,
    screen_page,
    summary_page,
    sweep_page,
    terminal,
    timeline_page,
    training_page,
)
from evenhand.views.blocks import Block

__all__ = ["html_of", "page_of", "save", "terminal_of"]

_PAGES: dict[type, Any] = {
    CombinedReport: dossier_page.page,
    Report: report_page.page,
    Comparison: comparison_page.page,
    Reliability: reliability_page.page,
    Repeats: repeats_page.page,
    Sweep: sweep_page.page,
    Frontier: frontier_page.page,
    FrontierForecast: frontier_forecast_page.page,
    Gate: gate_page.page,
    PackCheck: pack_check_page.page,
    LabelledRate: labelled_page.page,
    Plan: plan_page.page,
    Designs: designs_page.page,
    RatioPlan: ratio_plan_page.page,
    RatingReport: ratings_page.page,
    Audit: audit_page.page,
    Audits: audit_page.pages,
    Summary: summary_page.page,
    DryRun: dry_run_page.page,
    Forecast: forecast_page.page,
    DebateReport: debates_page.page,
    DebateSweep: debate_sweep_page.page,
    PairsReport: pairs_page.page,
    Reproduction: reproduction_page.page,
    Catalogue: reproduction_page.catalogue_page,
    Run: run_page.page,
    TracedAnswer: timeline_page.page,
    TrainingRun: training_page.page,
    Monitoring: monitoring_page.page,
    ScreenFile: screen_page.card,
    ScreenedRun: screen_page.applied,
    ScreenPlan: screen_page.planned,
}


def page_of(finding: object, *, full: bool = False) -> list[Block]:
    """Give the page of a finding, as blocks."""
    page = next(_PAGES[kind] for kind in type(finding).__mro__ if kind in _PAGES)
    blocks: list[Block] = page(finding, full=full)
    return blocks


def terminal_of(finding: object, *, full: bool = False) -> RenderableType:
    """Give the page of a finding, for a terminal."""
    return terminal.render(page_of(finding, full=full))


def html_of(finding: object) -> str:
    """Give the page of a finding, for a notebook."""
    return html.render(page_of(finding))


def save(finding: Any, *paths: str) -> None:
    """Write a finding to files, each in the form that its ending names. The page is made once."""
    title = getattr(finding, "title", f"evenhand: {type(finding).__name__.lower()}")

    @cache
    def page() -> list[Block]:
        return page_of(finding, full=True)

    def document() -> str:
        return html.document(page(), title)

    writers: dict[str, Callable[[], bytes]] = {
        ".json": lambda: files.to_json(finding),
        ".parquet": lambda: files.to_parquet(finding.frame()),
        ".csv": lambda: finding.frame().write_csv().encode(),
        ".md": lambda: markdown.render(page()).encode(),
        ".html": lambda: document().encode(),
        ".pdf": lambda: printing.pdf(document()),
    }
    for path in paths:
        ending = Path(path).suffix
        if ending not in writers:
            raise UserError(f"{path}: an ending decides the form; there are: {', '.join(writers)}")
        _write(Path(path), writers[ending]())


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and never through a link into what it points to. It may be
    read by whom the one before it could be."""
    hidden = hidden_beside(path)
    try:
        hidden.write_bytes(data)
        if path.is_file() and not path.is_symlink():
            shutil.copymode(path, hidden)
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)
