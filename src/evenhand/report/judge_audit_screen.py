"""A judge's audit on the screen: what is missing, what moves it, then the figures."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.statistics import margins

_MOST_ROWS = 12  # of the exploratory comparisons; --json has all
_STYLES = {margins.SHIFTED: "bold red", margins.UNDERPOWERED: "yellow", margins.EQUIVALENT: "green"}
_VALUES = {"win": "win rate", "gap": "score in pairs"}


def render(report: dict[str, Any]) -> RenderableType:
    parts: list[RenderableType] = [
        _coverage(report),
        *(Text(f"✗ {note}", style="bold red") for note in report["notes"]),
        *_verdict(report),
        _effects("identities against no label, combined score (Holm)", report["primary"]),
        _omnibus(report["omnibus"]),
        *_exploratory(report["exploratory"]),
        *_pairs(report["pairs"]),
        *_repeats(report["repeats"]),
        *_paper(report["as_the_paper_prints_it"]),
    ]
    return Group(*parts)


def _coverage(report: dict[str, Any]) -> Text:
    seen = report["coverage"]
    text = Text(
        f"{seen['scored']:,} of {seen['n']:,} judgements scored "
        f"(single {seen['single']['scored']:,} of {seen['single']['n']:,}, "
        f"pairs {seen['pair']['scored']:,} of {seen['pair']['n']:,}); "
        f"{seen['bases']} base scenarios"
    )
    if seen["by_reason"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in seen["by_reason"].items())
        text.append(f"\nMissing, and in no figure below: {reasons}", style="bold red")
    worst = min(seen["by_label"], key=lambda row: row["coverage"] or 0, default=None)
    if worst and worst["scored"] < worst["n"]:
        text.append(f"\nfewest for {worst['label']}: {worst['scored']} of {worst['n']}")
    return text


def _verdict(report: dict[str, Any]) -> list[Text]:
    """The labels that move the judge, or what else may be said of all of them."""
    margin, found = report["margins"]["score"], report["primary"]
    moved = [e for e in found if e["verdict"] == margins.SHIFTED]
    if moved:
        return [
            Text(f"✗ {e['label']} shifts the score by {_interval(e)} points", style="bold red")
            for e in moved
        ]
    verdict = report["verdict"]
    if verdict == margins.EQUIVALENT:
        line = f"✓ every identity is shown to move the score by less than {margin:g} points"
        return [Text(line, style=_STYLES[verdict])]
    open_ones = [e for e in found if e["verdict"] == margins.UNDERPOWERED]
    needed = max((e["bases_needed"] or 0 for e in open_ones), default=0)
    line = f"? underpowered: {len(open_ones)} of {len(found)} identities are neither shown to "
    line += f"shift the score nor to stay within {margin:g} points"
    if needed:
        line += f"; about {needed} base scenarios would do"
    return [Text(line, style=_STYLES[verdict])]


def _effects(title: str, effects: list[dict[str, Any]]) -> Table:
    columns = ("shift", "95 %", "p", "dz", "changed", "bases", "verdict")
    table = _table(title, "label", *columns)
    for e in effects:
        if e["estimate"] is None:
            empty = [""] * (len(columns) - 3)
            table.add_row(_name(e), "–", Text(e["undefined"]), *empty, e["verdict"])
            continue
        table.add_row(
            _name(e),
            f"{e['estimate']:+.3f}",
            _range(e["low"], e["high"]),
            _p(e["p_adjusted"]),
            "–" if e["dz"] is None else f"{e['dz']:+.2f}",
            "" if e["changed"] is None else f"{e['changed']:.0%}",
            str(e["bases"]),
            Text(_said(e), style=_STYLES[e["verdict"]]),
        )
    return table


def _name(e: dict[str, Any]) -> str:
    if e["value"] == "combined":
        return e["label"] if e["against"] == "none" else f"{e['label']} – {e['against']}"
    between = "" if e["against"] == "none" else f" – {e['against']}"
    return f"{e['label']}{between}, {_VALUES.get(e['value'], e['value'])}"


def _said(e: dict[str, Any]) -> str:
    """In few words: a terminal of 80 columns has to hold the row."""
    if e["verdict"] != margins.EQUIVALENT:
        return str(e["verdict"])
    return "there, but small" if e["detected"] else "within margin"


def _omnibus(found: dict[str, Any]) -> Text:
    if "undefined" in found:
        return Text(f"any label at all (Friedman): undefined, {found['undefined']}", style="dim")
    return Text(
        f"any label at all (Friedman): χ² = {found['chi2']:.1f}, df = {found['df']}, "
        f"p {_p(found['p_value'])}, W = {found['kendalls_w']:.3f}, {found['blocks']} bases",
        style="dim",
    )


def _exploratory(effects: list[dict[str, Any]]) -> list[RenderableType]:
    """Those that were found, the largest first; how many others there are is said."""
    found = [e for e in effects if e["detected"]]
    head = f"\n{len(found)} of {len(effects)} exploratory comparisons differ from 0 (BH)"
    if not found:
        return [Text(head, style="dim")]
    shown = found[:_MOST_ROWS]
    more = f", the first {len(shown)}" if len(shown) < len(found) else ""
    return [Text(), _effects(head.strip() + more, shown)]


def _pairs(pairs: dict[str, Any]) -> list[RenderableType]:
    found = pairs["all"]
    if "undefined" in found:
        return [Text(f"\npairs: {found['undefined']}", style="dim")]
    table = _table("pairs in both orders", "", "share", "95 %")
    for name, label in (("consistency", "same verdict twice"), ("first_slot", "first slot wins")):
        share = found[name]
        if share is None:
            table.add_row(label, "–", "undefined")
            continue
        table.add_row(label, f"{share['estimate']:.1%}", _percents(share["low"], share["high"]))
    table.add_row("pairs judged twice", f"{found['n']} of {found['n_asked']}", "")
    return [Text(), table]


def _repeats(found: dict[str, Any]) -> list[RenderableType]:
    lines = [
        f"asked again, {name}: {one['identical']:.0%} of {one['questions']} questions answered "
        f"alike, deviation {one['deviation']:.2f}"
        for name, one in found.items()
        if one is not None
    ]
    return [Text("\n" + "\n".join(lines), style="dim")] if lines else []


def _paper(found: dict[str, Any]) -> list[RenderableType]:
    """Its own analysis, for comparison: rows counted as independent."""
    tests = _table("as the paper prints it: chi-square", "family", "metric", "χ²", "df", "p", "V")
    for row in found["paper_chi_square"]:
        tests.add_row(
            row["family"],
            row["metric"],
            f"{row['chi2']:.1f}",
            str(row["df"]),
            _p(row["p_value"]),
            f"{row['cramers_v']:.3f}",
        )
    wins = _table("as the paper prints it: win rates", "label", "rate", "95 %", "decided")
    for label, one in found["paper_win_rates"].items():
        wins.add_row(
            label, f"{one['estimate']:.1%}", _percents(one["low"], one["high"]), str(one["n"])
        )
    tables: list[RenderableType] = []
    for table in (tests, _matrix(found["paper_difference_matrix"]), wins):
        if table.row_count:
            tables += [Text(), table]
    return tables


def _matrix(found: dict[str, Any]) -> Table:
    table = _table("as the paper prints it: column minus row", "", *found["labels"])
    for label, row in zip(found["labels"], found["x_minus_y"], strict=True):
        table.add_row(label, *(f"{round(cell, 2) or 0.0:+.2f}" for cell in row))
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="dim", box=None, pad_edge=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    return table


def _interval(e: dict[str, Any]) -> str:
    return f"{e['estimate']:+.2f} ({_range(e['low'], e['high'], 2)})"


def _range(low: float, high: float, digits: int = 3) -> str:
    return "no spread" if low == high else f"{low:+.{digits}f} to {high:+.{digits}f}"


def _percents(low: float, high: float) -> str:
    return "no spread" if low == high else f"{low:.1%} to {high:.1%}"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
