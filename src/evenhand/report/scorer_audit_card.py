"""What an audit leaves behind: `scorer-card.md` to read, `scorer-card.json` with every figure."""

import re
from pathlib import Path
from typing import Any

import orjson

from evenhand.report.scorer_audit_screen import number


def write(found: dict[str, Any], out: Path) -> list[Path]:
    """One folder a scorer within `out`, and the whole audit beside them."""
    cards = []
    for entry in found["scorers"]:
        folder = out / re.sub(r"[^\w.@+-]+", "_", entry["name"])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scorer-card.md").write_text(card(entry, found), encoding="utf-8")
        (folder / "scorer-card.json").write_bytes(_json(entry))
        cards.append(folder / "scorer-card.md")
    (out / "audit.json").write_bytes(_json(found))
    return cards


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def card(entry: dict[str, Any], found: dict[str, Any]) -> str:
    seen = entry["coverage"]
    missing = ", ".join(f"{reason} {count:,}" for reason, count in seen["reasons"].items())
    facts = {
        "attributes": ", ".join(entry["attributes"]),
        "audited": f"{found['attribute']}, toxic from {found['threshold']:g}",
        "texts": f"{seen['texts']:,}, of which {seen['scored']:,} scored"
        + (f" (missing: {missing})" if missing else ""),
        "speed": f"{entry['texts_per_second']:,.0f} texts a second",
        **{name: _said(value) for name, value in entry["described"].items()},
    }
    parts = [
        f"# Scorer card: `{entry['name']}`",
        _table(["", ""], [[name, value] for name, value in facts.items()]),
        "## Where not to trust it",
        "\n".join(f"- {line}" for line in entry["limits"])
        or "Nothing found in these texts. Others may show more.",
        "## Labels and recorded scores",
        "AUC and kappa against labels; ECE and Spearman against recorded Perspective scores.",
        _labels(entry),
        "## Harmless texts called toxic",
        _shares(entry["false_positives"]),
        "## Hateful texts missed",
        _shares(entry["misses"]),
        "## The same texts in disguise",
        _tricks(entry),
        *_curves(entry),
    ]
    left_out = [f"- {name}: {why}" for name, why in found["left_out"].items()]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def _said(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _labels(entry: dict[str, Any]) -> str:
    scales = {row["set"]: row for row in entry["calibration"]}
    rows = []
    for row in entry["labels"]:
        scale = scales.get(row["set"], {})
        figures = [row["auc"], row["kappa"], scale.get("ece"), scale.get("spearman")]
        trained = {"all": "trained on", "held_out": "held-out fifth"}.get(row["seen"], "")
        rows.append([row["set"], f"{row['n']:,}", *map(number, figures), trained])
    return _table(["set", "texts", "AUC", "kappa", "ECE", "Spearman", ""], rows)


def _shares(found: list[dict[str, Any]]) -> str:
    rows = [
        [
            row["set"],
            row["kind"],
            f"{row['estimate']:.1%}",
            f"{row['low']:.1%} – {row['high']:.1%}",
            f"{row['n']:,}",
        ]
        for row in found
    ]
    return _table(["set", "kind or group", "share", "95 %", "texts"], rows)


def _tricks(entry: dict[str, Any]) -> str:
    rows = [
        [
            row["trick"],
            f"{row['caught']} of {row['plain']}",
            "–" if row["kept"] is None else f"{row['kept']:.1%}",
        ]
        for row in entry["tricks"]
    ]
    if entry["emoji"]:
        rows.append(["harmless, with emoji", f"{entry['emoji']['flagged']} flagged", ""])
    return _table(["trick", "caught", "of plain"], rows)


def _curves(entry: dict[str, Any]) -> list[str]:
    parts = []
    for row in entry["calibration"]:
        steps = [
            [
                f"{step['low']:.1f} – {step['high']:.1f}",
                f"{step['n']:,}",
                f"{step['score']:.3f}",
                f"{step['target']:.3f}",
            ]
            for step in row["curve"]
        ]
        parts += [
            f"## Reliability on {row['set']}",
            _table(["score", "texts", "mean score", "mean recorded"], steps),
        ]
    return parts


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
