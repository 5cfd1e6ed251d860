"""The tables of an audit of a scorer, the worst first."""

from collections.abc import Sequence

from evenhand.findings.estimates import Cell, Section
from evenhand.instruments.scorer.figures import (
    Agreement,
    Calibration,
    Figures,
    LabelFit,
    WrongShare,
)
from evenhand.metrics.scorer_intervals import Ends

_MOST_ROWS = 8  # of kinds and groups; the card and --json have all
_TRAINED = {"all": " (trained on)", "held_out": " (held-out fifth)"}


def sections(figures: Figures) -> tuple[Section, ...]:
    """Labels and recorded scores, the two kinds of mistakes, and disguises."""
    tables = (
        _labels(figures),
        _shares(figures.false_positives, "false_positives", "harmless texts called toxic"),
        _shares(figures.misses, "misses", "hateful texts missed"),
        _tricks(figures),
    )
    return tuple(section for section in tables if section.rows)


def _labels(figures: Figures) -> Section:
    recorded = {row.set: row for row in figures.calibration}
    rows: list[tuple[Cell, ...]] = []
    for row in figures.labels:
        scale = recorded.get(row.set)
        errors = _ranged(scale, "ece", "spearman") if scale is not None else ("", "")
        head = (row.set + _TRAINED.get(row.seen, ""), row.n, row.toxic)
        rows.append((*head, *_ranged(row, "auc", "kappa"), *errors))
    return Section(
        name="labels",
        title="with labels and recorded scores",
        columns=("set", "texts", "toxic", "AUC", "kappa", "ECE", "ρ"),
        rows=tuple(rows),
        in_short=True,
    )


def _ranged(row: LabelFit | Calibration | Agreement, *names: str) -> tuple[Cell, ...]:
    """Figures of a row, each with its interval."""
    return tuple(_said(getattr(row, name), row.intervals[name]) for name in names)


def _said(value: float | None, ends: Ends | None) -> Cell:
    """A figure with its interval, or alone where it has none; None where it has no value."""
    return (
        value
        if value is None or ends is None
        else f"{value:.2f} ({ends.low:.2f} to {ends.high:.2f})"
    )


def _shares(shares: Sequence[WrongShare], name: str, title: str) -> Section:
    return Section(
        name=name,
        title=title,
        columns=("set", "kind or group", "share", "low", "high", "texts", "templates"),
        rows=tuple(
            (share.set, share.kind, share.estimate, share.low, share.high, share.n, share.clusters)
            for share in _worst(shares)
        ),
        in_short=True,
    )


def _worst(shares: Sequence[WrongShare]) -> list[WrongShare]:
    ordered = sorted(shares, key=lambda share: -(share.estimate or 0.0))
    parts = [share for share in ordered if share.by != "all"]
    return [*(share for share in ordered if share.by == "all"), *parts[:_MOST_ROWS]]


def _tricks(figures: Figures) -> Section:
    rows: list[tuple[Cell, ...]] = [
        (row.trick, f"{row.plain} of {row.n}", row.caught, _said(row.kept, row.ends))
        for row in figures.tricks
    ]
    return Section(
        name="tricks",
        title="the same texts in disguise",
        columns=("trick", "caught plain", "caught", "kept"),
        rows=tuple(rows),
        in_short=True,
    )


def agreement_section(rows: Sequence[Agreement]) -> Section:
    """How far each two scorers agree."""
    return Section(
        name="agreement",
        title="agreement",
        columns=("scorers", "set", "texts", "Spearman", "kappa"),
        rows=tuple(
            (f"{row.first} · {row.second}", row.set, row.n, *_ranged(row, "spearman", "kappa"))
            for row in rows
        ),
        in_short=True,
    )
