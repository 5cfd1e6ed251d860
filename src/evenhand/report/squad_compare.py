"""Two SQuAD runs on the questions they share: what got worse first, then the scores."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evenhand.instruments.squad.outcomes import outcomes
from evenhand.report import measured, paired, squad
from evenhand.report.measured import cost, cost_table
from evenhand.store import RunReader

# Fixed before looking, as on BBQ.
SCORE_MARGIN = 0.02
ABSTENTION_MARGIN = 0.02
MISSING_MARGIN = 0.01


def compare(before: RunReader, after: RunReader) -> dict[str, Any]:
    """The whole comparison as plain data."""
    measured.same_sample(before, after)
    results = [measured.read(run, "squad") for run in (before, after)]
    old, new = (outcomes(frame) for frame in results)
    changes = {
        name: paired.change(name, squad.values(old, name), squad.values(new, name))
        for name in squad.LABELS
    }
    missing = squad.coverage(old)["coverage"] - squad.coverage(new)["coverage"]
    lines = [
        line
        for name in squad.PRIMARY
        for line in paired.fell(changes[name], squad.LABELS[name], SCORE_MARGIN)
    ]
    lines += paired.rose(changes["over_abstention"], "over-abstention", ABSTENTION_MARGIN)
    if missing > MISSING_MARGIN:
        lines.append(f"unreadable or missing answers rose by {missing:.3f}")
    return {
        "before": measured.described(before),
        "after": measured.described(after),
        "guardrails": lines,
        "primary": paired.with_holm([changes[name] for name in squad.PRIMARY]),
        "secondary": [c for name, c in changes.items() if name not in squad.PRIMARY],
        "cost": {"before": cost(before, results[0]), "after": cost(after, results[1])},
    }


def render(found: dict[str, Any]) -> RenderableType:
    return Group(
        *measured.comparison_head(found),
        Text(""),
        paired.table("primary (Holm over the three)", found["primary"], squad.LABELS, "articles"),
        Text(""),
        paired.table("further (exploratory)", found["secondary"], squad.LABELS, "articles"),
        Text(""),
        cost_table(found["cost"]),
    )
