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
from evenhand.findings.board import Board
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.designs import Designs
from evenhand.findings.fitted_threshold import FittedThreshold
from evenhand.findings.forecast import DryRun, Forecast, FrontierForecast
from evenhand.findings.frontier import Frontier
from evenhand.findings.gate import Gate
from evenhand.findings.gateway_plan import GatewayPlan
from evenhand.findings.labelled import LabelledRate
from evenhand.findings.monitoring import Monitoring
from evenhand.findings.pack_manifest import PackCheck
from evenhand.findings.plan import Plan, RatioPlan, ScreenPlan
from evenhand.findings.reliability import Reliability
from evenhand.findings.repeats import Repeats
from evenhand.findings.report import Report
from evenhand.findings.reproduction import Catalogue, Reproduction
from evenhand.findings.run import Run, TracedAnswer
from evenhand.findings.screen_file import ScreenFile
from evenhand.findings.screened import ScreenedRun
from evenhand.findings.summary import Summary
from evenhand.findings.sweep import Sweep
from evenhand.runs.store.plain_files import hidden_beside
from evenhand.training.debates.findings import DebateReport
from evenhand.training.debates.pairs import PairsReport
from evenhand.training.debates.sweep import DebateSweep
from evenhand.training.rating.findings import RatingReport
from evenhand.training.record import TrainingRun
from evenhand.views import (
    audit_page,
    board_page,
    comparison_page,
    debates_page,
    dossier_page,
    files,
    forecast_page,
    frontier_page,
    gate_page,
    html,
    markdown,
    monitoring_page,
    plan_page,
    ratings_page,
    reliability_page,
    report_page,
    reproduction_page,
    run_page,
    screen_page,
    sweep_page,
    terminal,
    threshold_page,
    timeline_page,
    training_page,
)
from evenhand.views.blocks import Block

__all__ = ["html_of", "page_of", "save", "terminal_of"]

_PAGES: dict[type, Callable[..., list[Block]]] = {  # those with a longer form
    Report: report_page.page,
    Comparison: comparison_page.page,
    CombinedReport: dossier_page.page,
    Reliability: reliability_page.page,
    Repeats: reliability_page.repeats_page,
    Sweep: sweep_page.page,
    Frontier: frontier_page.page,
    PackCheck: run_page.pack_check_page,
    RatingReport: ratings_page.page,
    Audit: audit_page.page,
    Audits: audit_page.pages,
    Run: run_page.page,
    TracedAnswer: timeline_page.page,
    TrainingRun: training_page.page,
    Monitoring: monitoring_page.page,
    Reproduction: reproduction_page.page,
}
_ONE_FORM: dict[type, Callable[..., list[Block]]] = {
    Board: board_page.page,
    FittedThreshold: threshold_page.page,
    FrontierForecast: forecast_page.frontier_page,
    Gate: gate_page.page,
    LabelledRate: ratings_page.labelled_page,
    Plan: plan_page.page,
    Designs: plan_page.designs_page,
    RatioPlan: plan_page.ratio_page,
    Summary: run_page.summary_page,
    DryRun: forecast_page.dry_run_page,
    Forecast: forecast_page.page,
    DebateReport: debates_page.page,
    DebateSweep: debates_page.sweep_page,
    PairsReport: debates_page.pairs_page,
    Catalogue: reproduction_page.catalogue_page,
    ScreenFile: screen_page.card,
    ScreenedRun: screen_page.applied,
    ScreenPlan: screen_page.planned,
    GatewayPlan: plan_page.gateway,
}


def page_of(finding: object, *, full: bool = False) -> list[Block]:
    """Give the page of a finding, as blocks."""
    for kind in type(finding).__mro__:
        if kind in _PAGES:
            return _PAGES[kind](finding, full=full)
        if kind in _ONE_FORM:
            return _ONE_FORM[kind](finding)
    raise TypeError(f"{type(finding).__name__} has no page")


def terminal_of(finding: object, *, full: bool = False) -> RenderableType:
    """Give the page of a finding, for a terminal."""
    return terminal.render(page_of(finding, full=full))


def html_of(finding: object) -> str:
    """Give the page of a finding, for a notebook."""
    return html.render(page_of(finding))


def save(finding: Any, *paths: str, full: bool = True) -> None:
    """Write a finding to files, each in the form that its ending names. The page is made once.

    Args:
        finding: The finding.
        *paths: The files.
        full: Whether pages have everything, or the short form.
    """
    title = getattr(finding, "title", f"evenhand: {type(finding).__name__.lower()}")

    @cache
    def page() -> list[Block]:
        return page_of(finding, full=full)

    def document() -> str:
        return html.document(page(), title)

    writers: dict[str, Callable[[], bytes]] = {
        ".json": lambda: files.to_json(finding),
        ".parquet": lambda: files.to_parquet(finding.frame()),
        ".csv": lambda: finding.frame().write_csv().encode(),
        ".md": lambda: markdown.render(page()).encode(),
        ".html": lambda: document().encode(),
        ".pdf": lambda: html.pdf(document()),
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
