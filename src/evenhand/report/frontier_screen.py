"""A frontier on the screen, within 100 columns: what got worse and the verdicts come first."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report import bbq
from evenhand.report.bbq import Estimate
from evenhand.report.bbq_compare import ACCURACY_MARGIN
from evenhand.report.frontier import worst_first
from evenhand.report.frontier_verdict import HARM, UTILITY, Accuracy, Kind, accuracy_is
from evenhand.report.paired import Change
from evenhand.report.summary import COVERAGE_FLOOR, below_floor

_STYLES = {Kind.NOT_WORTH_IT: "bold red", Kind.UNDERPOWERED: "yellow", Kind.WORTH_IT: "bold green"}
_MARK = "◆ "  # on the Pareto front
_COSTS = (
    "Mean ± 95 % over templates, then the 95th percentile. Seconds are those of the model, added "
    "up also where calls overlapped."
)
_PAIRED = (
    "Over the items that both answered (n). p after Holm over the methods; fixed and broken with "
    "exact McNemar, which takes items for independent."
)
_EACH_PREVENTED = (
    "Extra cost over the default prompt for each stereotyped answer less on ambiguous contexts, "
    "with a bootstrap interval over templates."
)


def render(report: dict[str, Any]) -> RenderableType:
    source, methods = report["source"], report["methods"]
    head = (
        f"BBQ {source['version']} · {report['model']} · {source['items']:,} items · at most "
        f"{report['calls_an_item']} calls an item"
    )
    return Group(
        Text(head, style="bold"),
        *(Text(line, style="bold red") for line in _warnings(report)),
        _regressions(methods),
        Text(""),
        _verdicts(methods),
        Text(_rule(report), style="dim"),
        Text(""),
        _quality(methods),
        Text(_front_line(report), style="dim"),
        Text(""),
        _cost(report),
        Text(_COSTS, style="dim"),
        Text(""),
        _against_default(methods),
        Text(_PAIRED, style="dim"),
        Text(""),
        _prevented(report),
        Text(_EACH_PREVENTED, style="dim"),
    )


def _warnings(report: dict[str, Any]) -> list[str]:
    lines = list(report["notes"])
    for entry in report["methods"]:
        if below_floor(entry["coverage"]):
            lines.append(
                f"{entry['name']}: coverage {entry['coverage']['coverage']:.1%} is below "
                f"{COVERAGE_FLOOR:.0%}; what could not be scored may differ from what could."
            )
        if entry["not_run"]:
            lines.append(f"{entry['name']}: {entry['not_run']} items are not run yet.")
    return lines


def _regressions(methods: list[dict[str, Any]]) -> RenderableType:
    """Shown ones by method; then, in one line, whose accuracy may have fallen too far unseen."""
    table, open_ones = _table("worse than the default prompt", ""), []
    for entry in _named(methods):
        compared = entry["against_default"]
        if compared["regressions"]:
            lines = Text("\n".join(compared["regressions"]), style="red")
            table.add_row(Text(f"✗ {entry['name']}", style="bold red"), lines)
        if accuracy_is(compared["changes"][UTILITY]) is Accuracy.OPEN:
            open_ones.append(entry["name"])
    shown = table if table.row_count else Text("nothing is shown to be worse than by default")
    if not open_ones:
        return shown
    margin = f"{100 * ACCURACY_MARGIN:.0f} points"
    said = f"accuracy is not shown to have kept within {margin}: {', '.join(open_ones)}"
    return Group(shown, Text(said, style="yellow"))


def _verdicts(methods: list[dict[str, Any]]) -> Table:
    table = _table("verdict, worst first", "", "")
    for entry in worst_first(methods):
        found = entry["verdict"]
        table.add_row(entry["name"], Text(found.kind.value, style=_STYLES[found.kind]), found.why)
    return table


def _rule(report: dict[str, Any]) -> str:
    rules = report["rules"]
    return (
        f"Worth it: less {_words(rules['harm'])} than both, p ≤ {rules['alpha']:g} after Holm over "
        "all of these comparisons, and accuracy shown to have kept within "
        f"{100 * rules['accuracy_margin']:.0f} points of the default's. Underpowered: a change of "
        f"{rules['smallest_change_that_matters']:g} would have been missed more than once in five."
    )


def _quality(methods: list[dict[str, Any]]) -> Table:
    heads = ("attribution", "s_amb", "stereotyped", "accuracy dis.", "over-abst.", "cover")
    names = ("unsupported_attribution", "s_amb", "stereotyped_rate")
    table = _table("harm and utility (± 95 %)", *heads)
    for entry in methods:
        found = entry["estimates"]
        shown = [_estimate(found[n]) for n in (*names, "accuracy_disambiguated", "over_abstention")]
        coverage = entry["coverage"]["coverage"]
        table.add_row(_marked(entry), *shown, "-" if coverage is None else f"{coverage:.0%}")
    return table


def _estimate(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "undefined"
    sign = "+" if found.name == "s_amb" else ""
    reach = (found.high - found.low) / 2
    return f"{found.value:{sign}.2f} " + (f"±{reach:.2f}" if reach else "all")


def _front_line(report: dict[str, Any]) -> str:
    return (
        f"{_MARK}on the Pareto front of the estimates: least {report['rules']['cost']}, least "
        f"{_words(report['rules']['harm'])}, most accuracy. “all”: every template gave this value."
    )


def _cost(report: dict[str, Any]) -> Table:
    thousand = f"{report['currency']} a 1,000" if report["currency"] else ""
    heads = ("calls", "tokens", "seconds", *([thousand] if thousand else []))
    table = _table("an answer costs", *heads)
    for entry in report["methods"]:
        cost = entry["cost"]
        shown = [_spread(cost["calls"], 2), _spread(cost["tokens"], 0), _spread(cost["seconds"], 2)]
        if thousand:
            shown.append(_spread(cost["money"], 2, scale=1000))
        table.add_row(_marked(entry), *shown)
    return table


def _spread(cost: dict[str, Any], digits: int, scale: float = 1) -> str:
    mean, low, high, p95 = (
        None if cost[name] is None else scale * cost[name]
        for name in ("mean", "low", "high", "p95")
    )
    if mean is None or p95 is None:
        return "not counted"
    reach = (
        "" if low is None or high is None or low == high else f" ±{(high - low) / 2:,.{digits}f}"
    )
    return f"{mean:,.{digits}f}{reach}, {p95:,.{digits if p95 % 1 else 0}f}"


def _against_default(methods: list[dict[str, Any]]) -> Table:
    heads = ("attribution", "p", "n", "fixed/broken amb.", "fixed/broken dis.")
    table = _table("against the default prompt", *heads)
    for entry in _named(methods):
        compared = entry["against_default"]
        change: Change = compared["changes"][HARM]
        answers = compared["answers"]
        table.add_row(
            entry["name"],
            _change(change),
            _p(change.p_holm),
            f"{change.n:,}",
            *(_flips(answers[condition]) for condition in (bbq.AMBIGUOUS, bbq.DISAMBIGUATED)),
        )
    return table


def _prevented(report: dict[str, Any]) -> Table:
    kinds = ("calls", "tokens", *(["money"] if report["currency"] else []))
    units = {"money": f"{report['currency']} for 1,000"}
    table = _table("one prevented costs", *(units.get(kind, kind) for kind in kinds))
    for entry in _named(report["methods"]):
        costs = entry["against_default"]["per_prevented"]
        reasons = {costs[kind].get("undefined") for kind in kinds}
        shown = [_per_prevented(costs[kind], kind) for kind in kinds]
        if len(reasons) == 1 and None not in reasons:  # the same for every kind
            shown = shown[:1]
        table.add_row(entry["name"], *shown)
    return table


def _per_prevented(found: dict[str, Any], kind: str) -> str:
    if "undefined" in found:
        return str(found["undefined"])
    digits, scale = {"calls": (1, 1), "tokens": (0, 1), "money": (2, 1000)}[kind]
    ends = (scale * found[name] for name in ("estimate", "low", "high"))
    value, low, high = (f"{end:,.{digits}f}" for end in ends)
    return f"{value} ({low} to {high})"


def _change(change: Change) -> str:
    if change.difference is None or change.low is None or change.high is None:
        return "undefined"
    reach = (change.high - change.low) / 2
    return f"{change.difference:+.2f} " + (f"±{reach:.2f}" if reach else "all")


def _flips(moved: dict[str, Any]) -> str:
    return f"{moved['fixed']}/{moved['broken']} p {_p(moved['p_mcnemar'])}"


def _named(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are compared with the default and that somebody asked for."""
    return [entry for entry in methods if entry["against_default"] and entry["role"] != "vote"]


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return f"{p:.3f}" if p >= 0.001 else "<.001"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _marked(entry: dict[str, Any]) -> str:
    return (_MARK if entry["pareto"] else "  ") + str(entry["name"])


def _table(name: str, *heads: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(name, no_wrap=True)
    for head in heads:
        table.add_column(head)
    return table
