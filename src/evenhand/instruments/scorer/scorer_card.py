"""What an audit leaves behind: `scorer-card.md` to read, `scorer-card.json` with every figure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from evenhand.instruments.scorer.audit import ScorerAudit, ScorerAudits
from evenhand.instruments.scorer.figures import Calibration, Figures, LabelFit, WrongShare
from evenhand.metrics.scorer_intervals import IfKnown


def write(result: ScorerAudits, out: Path) -> list[Path]:
    """One folder a scorer within `out`, and the whole audit beside them."""
    cards = []
    for audit in result.audits:
        folder = out / re.sub(r"[^\w.@+-]+", "_", audit.figures.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scorer-card.md").write_text(card(audit, result), encoding="utf-8")
        (folder / "scorer-card.json").write_bytes(_json(audit.to_dict()))
        cards.append(folder / "scorer-card.md")
    (out / "audit.json").write_bytes(_json(result.to_dict()))
    return cards


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def card(audit: ScorerAudit, result: ScorerAudits) -> str:
    """The card of one scorer, as Markdown."""
    figures = audit.figures
    coverage = figures.coverage
    missing = ", ".join(f"{reason} {count:,}" for reason, count in coverage.by_reason.items())
    facts = {
        "attributes": ", ".join(figures.attributes),
        "audited": f"{result.attribute}, toxic from {result.threshold:g}",
        "texts": f"{coverage.n:,}, of which {coverage.scored:,} scored"
        + (f" (missing: {missing})" if missing else ""),
        "speed": f"{figures.texts_per_second:,.0f} texts a second",
        **{name: _said(value) for name, value in figures.described.items()},
    }
    parts = [
        f"# Scorer card: `{figures.name}`",
        _table(["", ""], [[name, value] for name, value in facts.items()]),
        "## Where not to trust it",
        "\n".join(f"- {line}" for line in audit.limits)
        or "Nothing found in these texts. Others may show more.",
        "## Labels and recorded scores",
        "AUC and kappa against labels; ECE and Spearman against recorded Perspective scores.",
        _labels(figures),
        "## Harmless texts called toxic",
        _shares(figures.false_positives),
        "## Hateful texts missed",
        _shares(figures.misses),
        "## The same texts in disguise",
        _tricks(figures),
        *_curves(figures),
    ]
    left_out = [f"- {name}: {why}" for name, why in result.left_out.items()]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _number(row: LabelFit | Calibration, name: str) -> str:
    value, ends = getattr(row, name), row.intervals[name]
    if value is None:
        return "–"
    return f"{value:.3f}" + (f" ({ends.low:.3f} – {ends.high:.3f})" if ends else ", no interval")


def _labels(figures: Figures) -> str:
    scales = {row.set: row for row in figures.calibration}
    rows = []
    for row in figures.labels:
        scale = scales.get(row.set)
        errors = ("–", "–")
        if scale is not None:
            ece = _number(scale, "ece") + _beside(scale.if_known, ".3f")
            errors = ece, _number(scale, "spearman")
        trained = {"all": "trained on", "held_out": "held-out fifth"}.get(row.seen, "")
        auc = _number(row, "auc") + _beside(row.if_known, ".3f")
        numbers = auc, _number(row, "kappa"), *errors
        rows.append([row.set, f"{row.n:,}", *numbers, trained])
    return _table(["set", "texts", "AUC", "kappa", "ECE", "Spearman", ""], rows)


def _shares(shares: Sequence[WrongShare]) -> str:
    rows = [
        [row.set, row.kind, _percent(row.estimate) + _beside(row.if_known, ".1%"),
         f"{_percent(row.low)} – {_percent(row.high)}", f"{row.n:,}"]
        for row in shares
    ]  # fmt: skip
    return _table(["set", "kind or group", "share", "95 %", "texts"], rows)


def _beside(bounds: IfKnown | None, form: str) -> str:
    """What a figure could be if texts without a score had one."""
    if bounds is None or bounds.low is None or bounds.high is None:
        return ""
    return f"; {bounds.low:{form}} – {bounds.high:{form}} if known"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _tricks(figures: Figures) -> str:
    rows = [
        [row.trick, f"{row.caught} of {row.plain}",
         _percent(row.kept) + _beside(row.if_known, ".1%"),
         f"{row.ends.low:.1%} – {row.ends.high:.1%}" if row.ends else ""]
        for row in figures.tricks
    ]  # fmt: skip
    if figures.emoji is not None:
        lost = f", {figures.emoji.missing} without a score" if figures.emoji.missing else ""
        rows.append(["harmless, with emoji", f"{figures.emoji.flagged} flagged{lost}", "", ""])
    return _table(["trick", "caught", "of plain", "95 %"], rows)


def _curves(figures: Figures) -> list[str]:
    parts = []
    for row in figures.calibration:
        steps = [
            [
                f"{step.low:.1f} – {step.high:.1f}",
                f"{step.n:,}",
                f"{step.score:.3f}",
                f"{step.target:.3f}",
            ]
            for step in row.curve
        ]
        parts += [
            f"## Reliability on {row.set}",
            _table(["score", "texts", "mean score", "mean recorded"], steps),
        ]
    return parts


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
