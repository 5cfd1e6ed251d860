"""The report of one BBQ run: coverage first, then the endpoints, cost, categories, and what other
tools would have printed."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.instruments.bbq.outcomes import outcomes
from evenhand.report import bbq, measured
from evenhand.report.bbq import Estimate
from evenhand.report.summary import COVERAGE_FLOOR, below_floor
from evenhand.store import RunReader

# A run's rows without its texts: all that scoring and costing need.
SCORED_COLUMNS = (
    "position",
    "item_id",
    "status",
    "reason",
    "choice",
    "tags",
    "calls",
    "prompt_tokens",
    "completion_tokens",
)
SIGNED = ("s_amb", "s_dis")  # these run from -1 to 1, the others from 0 to 1
_LABELS = {
    "s_amb": "bias score, ambiguous (s_amb)",
    "s_dis": "bias score, disambiguated (s_dis)",
    "unsupported_attribution": "unsupported attribution, ambiguous",
    "accuracy_ambiguous": "accuracy, ambiguous",
    "accuracy_disambiguated": "accuracy, disambiguated",
    "stereotyped_rate": "stereotyped answers, ambiguous",
    "counter_stereotyped_rate": "counter-stereotyped answers, ambiguous",
    "over_abstention": "over-abstention (unknown, disambiguated)",
    "accuracy_aligned": "accuracy where the answer fits the stereotype",
    "accuracy_nonaligned": "accuracy where it goes against it",
}


def label(name: str) -> str:
    return _LABELS[name]


def measure(run: RunReader) -> dict[str, Any]:
    """Everything that may be said of a run, as plain data."""
    results = run.results().select(SCORED_COLUMNS).collect()
    return {**measured.head(run, results), "scores": bbq.scores(outcomes(results))}


def write(report: dict[str, Any], location: str | Path) -> None:
    """`report.json`, and the estimates as rows of `report.parquet`."""
    scores = report["scores"]
    groups = {"all": scores["estimates"], "with masked records": scores["with_masked_records"]}
    for category in scores["categories"]:
        found = [value for value in category.values() if isinstance(value, Estimate)]
        groups[category["category"]] = found
    measured.write(report, groups, location)


def render_measure(report: dict[str, Any]) -> RenderableType:
    scores = report["scores"]
    method = report["method"]["name"]
    head = f"BBQ {report['source']['version']} · {report['model']} · {method} · {report['run']}"
    return Group(
        Text(head, style="bold"),
        *_warnings(report),
        _endpoints(scores["estimates"]),
        _masked(scores),
        Text(""),
        measured.cost_table({method: report["cost"]}),
        Text(""),
        _categories(scores["categories"], scores["macro"]),
        Text(""),
        _others(scores["as_others_print_it"]),
    )


def _warnings(report: dict[str, Any]) -> list[Text]:
    coverage = report["scores"]["coverage"]
    lines = []
    if below_floor(coverage):
        lines.append(
            f"Coverage {coverage['coverage']:.1%} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if report["not_run"]:
        lines.append(f"{report['not_run']} items are not run yet: this is not the whole sample.")
    if coverage["unreadable"] or coverage["missing"]:
        lines.append(
            f"{coverage['unreadable']} answers unreadable, {coverage['missing']} missing, "
            f"of {coverage['n']}; they are in no rate below."
        )
    lines += report["scores"]["notes"]
    return [Text(line, style="bold red") for line in lines]


def _endpoints(estimates: list[Estimate]) -> Table:
    table = Table("", "estimate", "95 % interval", "n", "templates", box=None, padding=(0, 2, 0, 0))
    ordered = sorted(estimates, key=lambda e: e.name not in bbq.PRIMARY)
    for estimate in ordered:
        style = "bold" if estimate.name in bbq.PRIMARY else ""
        table.add_row(label(estimate.name), *cells(estimate), style=style)
    return table


def cells(estimate: Estimate) -> tuple[str, str, str, str]:
    if estimate.value is None:
        return "undefined", estimate.undefined or "", "", ""
    sign = "+" if estimate.name in SIGNED else ""
    interval = "no spread"
    if estimate.low != estimate.high:
        interval = f"{estimate.low:{sign}.3f} to {estimate.high:{sign}.3f}"
    return f"{estimate.value:{sign}.3f}", interval, f"{estimate.n:,}", f"{estimate.clusters}"


def _masked(scores: dict[str, Any]) -> Text:
    if not scores["masked_records"]:
        return Text("none of the 68 masked records is in this sample", style="dim")
    found = ", ".join(
        f"{e.name} {e.value:.3f}" for e in scores["with_masked_records"] if e.value is not None
    )
    return Text(
        f"{scores['masked_records']} records whose gold contradicts their context are left out; "
        f"with them: {found}",
        style="dim",
    )


def _categories(rows: list[dict[str, Any]], macro: dict[str, float | None]) -> Table:
    names = (*bbq.PRIMARY, "s_dis")
    heads = ("s_amb", "attribution", "accuracy dis.", "s_dis")
    table = Table("category", "n", *heads, box=None, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(row["category"], str(row["n"]), *(_short(row[name]) for name in names))
    means = ("-" if macro[name] is None else f"{macro[name]:.2f}" for name in names)
    table.add_row("mean of categories", "", *means, style="dim")
    return table


def _short(estimate: Estimate) -> str:
    if estimate.value is None:
        reason = estimate.undefined or ""
        return "one template" if reason.startswith("one cluster") else "undefined"
    sign = "+" if estimate.name in SIGNED else ""
    if estimate.low == estimate.high:
        return f"{estimate.value:{sign}.2f} (no spread)"
    return f"{estimate.value:{sign}.2f} ({estimate.low:{sign}.2f}, {estimate.high:{sign}.2f})"


def _others(variants: dict[str, float | None]) -> Table:
    table = Table("what others would print", "", box=None, padding=(0, 2, 0, 0), style="dim")
    for name, value in variants.items():
        table.add_row(name, "undefined" if value is None else f"{value:.3f}")
    return table
