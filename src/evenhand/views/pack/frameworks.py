"""This view shows what a pack has for the clauses of a framework, each in one of three states. It
never says that a clause is met: the person responsible judges that."""

from typing import Any

from evenhand.core.package_data import read_toml
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.pack_manifest import PackManifest
from evenhand.views import markdown
from evenhand.views.blocks import GAP, Block, Grid, Heading, Line

HERE, PARTLY, NOT_COVERED = "evidence here", "partly", "not covered by this tool"
STATES = (HERE, PARTLY, NOT_COVERED)
# What a row may need of a pack, and how to say that it is not there.
FACTS = {
    "measured": "no run was measured",
    "model": "no model was asked",
    "accuracy": "no accuracy was measured",
    "groups": "no number is given by group",
    "finished": "a run is not finished",
    "compared": "nothing is compared with what was before",
    "spoiled": "nobody looked at what a remedy spoils",
    "audited": "no judge was audited",
    "sides": "no run measured opposite political requests",
    "judged_sides": "no judge compared answers to opposite requests",
    "folders": "the run folders are not in the pack",
    "signed": "nobody signed the pack",
    "chained": "no earlier pack is named",
}
_RULE = (
    f"“{HERE}”: the pack holds what the clause asks for. “{PARTLY}”: it holds a part of it. "
    f"“{NOT_COVERED}”: nothing in the pack is about it. No row says that a duty is fulfilled."
)


def known() -> dict[str, Any]:
    """Give every framework with its rows, by its name."""
    return read_toml(__package__, "frameworks.toml")


def written(dossier: CombinedReport, about: PackManifest) -> dict[str, bytes]:
    """Write one page for each framework that was asked for."""
    there = facts(dossier, about)
    return {
        f"frameworks/{name}.md": markdown.render(_page(name, about, there)).encode()
        for name in about.frameworks
    }


def facts(dossier: CombinedReport, about: PackManifest) -> set[str]:
    """Say which of the things that rows may need this pack has."""
    measured = [report.instrument for report in dossier.reports]
    has = {
        "measured": bool(measured),
        "model": any(not instrument.of_people for instrument in measured),
        "accuracy": any(instrument.utility and not instrument.overdone for instrument in measured),
        "groups": any(report.groups or report.instrument.selects for report in dossier.reports),
        "finished": not about.unfinished,
        "compared": bool(dossier.comparisons),
        "spoiled": any(instrument.overdone for instrument in measured),
        "audited": bool(dossier.audits) or any(judge.passes for judge in dossier.judges),
        "sides": any(instrument.name == "political" for instrument in measured),
        "judged_sides": any(
            instrument.name == "political"
            and any(measure.name == "preference" for measure in instrument.measures)
            for instrument in measured
        ),
        "folders": not about.light,
        "signed": about.signed,
        "chained": about.previous is not None,
    }
    return {name for name, there in has.items() if there}


def state(row: dict[str, Any], there: set[str]) -> str:
    """Give the state of a row: its best where all that it needs is there, and none where the first
    thing, without which the others say nothing, is not."""
    needs = row.get("needs", [])
    if not needs or needs[0] not in there:
        return NOT_COVERED
    best: str = row["best"]
    return best if there.issuperset(needs) else PARTLY


def _page(name: str, about: PackManifest, there: set[str]) -> list[Block]:
    framework = known()[name]
    rows = tuple(_row(row, there) for row in framework["row"])
    columns = ("clause", "asks, in our words", "state", "where", "what is not here")
    return [
        Heading(framework["title"], 1),
        Line(f"For the pack “{about.title}”, by evenhand {about.evenhand}."),
        Line(framework["source"]),
        Line(_RULE),
        GAP,
        Grid(columns, rows),
    ]


def _row(row: dict[str, Any], there: set[str]) -> tuple[str, ...]:
    status = state(row, there)
    missing = [FACTS[name] for name in row.get("needs", []) if name not in there]
    where = "" if status == NOT_COVERED else row["here"]
    return row["clause"], row["asks"], status, where, "; ".join([*missing, row["lacks"]])
