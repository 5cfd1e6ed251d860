"""Draw the claims of docs/results.md, and the first picture of README:
`python scripts/docs_claims.py docs/images`.

The claims are the rows of the page's first table. README's picture shows one repair on stored
answers of UnifiedQA-11B, from the page's table of them, and on the answers of a live model, from
its runs in recorded/. No model is asked and no data set is read."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evenhand.findings.comparison import compare
from evenhand.findings.decision_rules import direction
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views.charts import Chart
from evenhand.views.charts.chart import DARK, LIGHT
from evenhand.views.charts.forest import ForestPanel, ForestRow, State, forest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/results.md"
RUNS = ROOT / "recorded/qwen2.5-coder-1.5b/bbq440"
ESTIMATE = re.compile(r"([+−]?[\d.]+) \(([+−]?[\d.]+) to ([+−]?[\d.]+)\)")
STATES: dict[str, State] = {"improved": "good", "regressed": "bad", "inconclusive": "open"}
REPAIRED = {
    "unsupported_attribution": ("unsupported answers, ambiguous", "unsupported answers"),
    "accuracy_disambiguated": ("accuracy, disambiguated", "accuracy"),
}  # of the page, and of the picture
MARGIN = 0.02  # of accuracy: the non-inferiority margin of BBQ's guardrail


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A row of the page's first table: what was measured, in which unit, and the estimate."""

    section: str  # the anchor of its section
    measured: str
    unit: str
    estimate: str  # as printed, with its interval

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The value and the ends of the interval."""
        found = ESTIMATE.fullmatch(self.estimate)
        if found is None:
            raise SystemExit(f"{self.measured}: {self.estimate!r} is no number with an interval")
        value, low, high = (float(part.replace("−", "-")) for part in found.groups())
        return value, low, high


def rows_below(page: str, head: str) -> list[list[str]]:
    """Give the cells of the table whose head begins so."""
    table = page[page.index(f"\n{head}") + 1 :].split("\n\n", maxsplit=1)[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def claims(page: str) -> list[Claim]:
    """Read the claims of the page."""
    found = []
    for claim, measured, unit, estimate, _ in rows_below(page, "| claim |"):
        link = re.search(r"\]\(#([\w-]+)\)", claim)
        section = link[1] if link else ""
        found.append(Claim(section=section, measured=measured, unit=unit, estimate=estimate))
    return found


def drawn_claims(page: str) -> Chart:
    """Draw one row per claim, in a panel per unit. A change has a line at 0, a ratio one at 1."""
    by_unit: dict[str, list[Claim]] = {}
    for claim in claims(page):
        by_unit.setdefault(claim.unit, []).append(claim)
    panels = [
        ForestPanel(rows=[_row(claim) for claim in group], axis=unit, line=_none(group[0]))
        for unit, group in by_unit.items()
    ]
    legend = ["Squares: estimates, bars: 95% CIs. Line: no effect, where there is such a value."]
    return forest("claims", "What the experiments show", panels, legend)


def _row(claim: Claim) -> ForestRow:
    value, low, high = claim.numbers
    return ForestRow(label=claim.measured, value=value, low=low, high=high, says=claim.estimate)


def _none(claim: Claim) -> float | None:
    if claim.unit.startswith("ratio"):
        return 1.0
    return 0.0 if claim.estimate[0] in "+−" else None


def drawn_repair(page: str) -> Chart:
    """Draw what one repair changes: before and after, and the change with its interval."""
    band = (-MARGIN, MARGIN)
    repaired = [*_stored(page), *_live()]
    panel = ForestPanel(rows=repaired, axis="change: after minus before", line=0.0, band=band)
    legend = [
        "UnifiedQA-11B: 1,192 stored answers to BBQ. Live: Qwen2.5-Coder-1.5B, 440 questions.",
        "✓ improved, ? inconclusive. Gray band: ±0.02, the margin of accuracy.",
        "The repair is a classifier of 40 kB; it sends no call to a model.",
    ]
    return forest("repair", "One repair, two models: changes with 95% CIs", [panel], legend)


def _stored(page: str) -> Iterator[ForestRow]:
    """Read the first form of the page's table of UnifiedQA."""
    rows = {row[2]: row[3:] for row in reversed(rows_below(page, "| answers | items |"))}
    for label, short in REPAIRED.values():
        before, after, change = rows[label]
        found = ESTIMATE.fullmatch(change)
        assert found is not None, change
        value, low, high = (float(part.replace("−", "-")) for part in found.groups())
        state: State = "open" if low <= 0 <= high else "good" if label[0] == "u" else "bad"
        yield ForestRow(
            label=f"UnifiedQA-11B, {short}: {before} → {after}",
            value=value, low=low, high=high, state=state, says=change,
        )  # fmt: skip


def _live() -> Iterator[ForestRow]:
    """Compare the recorded runs."""
    bbq = Bbq()
    compared = compare(bbq, RunReader(RUNS / "default"), RunReader(RUNS / "detect_first"))
    for name, (_, short) in REPAIRED.items():
        change = compared[name]
        ends = (change.low_adjusted, change.high_adjusted)
        printed = [f"{end:+.2f}".replace("-", "−") for end in (change.difference, *ends)]
        yield ForestRow(
            label=f"live 1.5B, {short}: {change.before:.2f} → {change.after:.2f}",
            value=change.difference, low=ends[0], high=ends[1],
            state=STATES[direction(change, bbq.measure(name))],
            says=f"{printed[0]} ({printed[1]} to {printed[2]})",
        )  # fmt: skip


def main(folder: Path) -> None:
    """Write the claims, and README's picture once light and once dark."""
    page = PAGE.read_text("utf-8")
    (folder / "claims.svg").write_text(f"{drawn_claims(page).svg}\n")
    repair = drawn_repair(page)
    for name, (ground, words) in (("light", LIGHT), ("dark", DARK)):
        style = f"<style>svg{{background:{ground};color:{words}}}</style>"
        fixed = re.sub(r"<style>.*?</style>", style, repair.svg, count=1)
        (folder / f"readme-{name}.svg").write_text(f"{fixed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
