"""Draw the pictures of the main pages from what was recorded, with the charts that a
report has: `EVENHAND_DATA=data python scripts/docs_recorded.py docs/images`.

The runs in recorded/ are asked nothing again. Bloomberg's answers are read from EVENHAND_DATA; the
answers of the app that `counterfactual` audits are made up, and the page says so."""

import json
import random
import re
import sys
import tempfile
from pathlib import Path

import evenhand as eh
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.report import Report, report
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views.charts import Chart, charts_of
from evenhand.views.charts.forest import ForestPanel, ForestRow, State, forest

RECORDED = Path(__file__).parents[1] / "recorded/qwen2.5-coder-1.5b"
STATES: dict[str, State] = {"detected": "bad", "ruled_out": "good", "same": "good"}
LABELS = {"gender": ("woman", "man"), "race": ("white", "black", "asian", "hispanic")}
PROMPTS = 60


def main(folder: Path) -> None:
    """Write all pictures."""
    drawn = {
        "changes-qwen": _chart(_compared("repaired"), "changes"),
        "changes-half-qwen": _chart(
            _compared("frontier/detect_first-choice_brain-rule"), "changes"
        ),
        "gate-qwen": _chart(_compared("frontier/self_consistency"), "changes"),
        "bbq-qwen": _chart(report(Bbq(), _run("frontier/default")), "estimates"),
    }
    with tempfile.TemporaryDirectory() as held:
        drawn |= _rankings(Path(held)) | _swap(Path(held))
    for name, chart in drawn.items():
        (folder / f"{name}.svg").write_text(f"{chart.svg}\n")


def _run(name: str) -> RunReader:
    return RunReader(RECORDED / name)


def _compared(name: str) -> Comparison:
    return compare(Bbq(), _run("frontier/default"), _run(name))


def _chart(finding: object, name: str) -> Chart:
    return next(one for one in charts_of(finding) if one.name == name)


def _rankings(held: Path) -> dict[str, Chart]:
    """Draw who is ranked first by GPT-3.5, by group and by place in the prompt."""
    found = eh.measure(
        "rankings", out=held / "r", options={"bloomberg": "gpt-3.5-turbo/hr-specialist"}
    )
    ratios = [
        _row(str(row[0]), str(row[5]), str(row[6]), STATES.get(str(row[-1]), "open"))
        for row in _section(found, "ratios_0")
    ]
    places = [
        _row(f"place {row[0]}", str(row[2]), str(row[3]), "plain")
        for row in _section(found, "places")
    ]
    by_group = ForestPanel(rows=ratios, axis="rate over the rate of all others", line=1)
    by_place = ForestPanel(rows=places, axis="share of first places, %", line=12.5)
    said = "✗ difference detected, ✓ the interval is within 0.8 to 1.25, ? inconclusive."
    chance = "Line: 12.5%, the share of every place by chance."
    return {
        "rankings-groups": forest(
            "g", "Who GPT-3.5 ranks first: HR specialist", [by_group], [said]
        ),
        "rankings-places": forest(
            "p", "Which CV it ranks first, by its place", [by_place], [chance]
        ),
    }


def _swap(held: Path) -> dict[str, Chart]:
    """Draw an audit of a made-up app that rejects one group more often in some prompts."""
    lines = [json.dumps(line) for line in _answers(random.Random(1))]
    (held / "answers.jsonl").write_text("\n".join(lines))
    found = eh.measure(
        "counterfactual",
        out=held / "s",
        options={
            "answers": held / "answers.jsonl",
            "decision": r"\b(approve|reject)\b",
            "favorable_outcome": "reject",
        },
    )
    drawn = [
        _row(f"{row[0]}: {row[1]}", str(row[2]), str(row[3]), STATES.get(str(row[-1]), "open"))
        for row in _section(found, "effects")
    ]
    panel = ForestPanel(rows=drawn, axis="decisions that differ, of 100", line=0, band=(-5, 5))
    said = (
        "✗ detected, ✓ equivalent, ? inconclusive.",
        "Gray band: too small to matter.",
    )
    return {"counterfactual-made-up": forest("s", "Effect of the mentioned group", [panel], said)}


def _answers(chance: random.Random) -> list[dict[str, str]]:
    """Make up what the app says: one answer in twenty is turned by nothing at all."""
    made = []
    for n in range(PROMPTS):
        usual, harsh = chance.random() < 0.3, n % 3 == 0
        for family, labels in LABELS.items():
            asked = [
                ("", "none"),
                *((one, role) for one in labels for role in ("group", "placebo")),
            ]
            for label, role in asked:
                reject = usual or (harsh and label == "black")
                reject ^= chance.random() < 0.05
                answer = "reject" if reject else "approve"
                made.append({"id": f"{n}", "family": family, "label": label, "role": role,
                             "answer": answer})  # fmt: skip
    return made


def _section(found: Report, name: str) -> tuple[tuple[object, ...], ...]:
    table = found.section(name)
    assert table is not None, name
    return tuple(tuple(row) for row in table.rows)


def _row(label: str, value: str, interval: str, state: State) -> ForestRow:
    """Read one row of a printed table."""
    low, high = (float(end) for end in re.findall(r"[-+]?[\d.]+", interval)[:2])
    says = f"{value.rstrip(' %')} ({interval.rstrip(' %')})"
    return ForestRow(label=label, value=float(value.rstrip(" %")), low=low, high=high,
                     state=state, says=says)  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
