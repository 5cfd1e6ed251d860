"""The recorded runs are whole, and what the page says of them is what their table holds."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenhand.findings.comparison import compare
from evenhand.findings.display import Remark
from evenhand.findings.report import report
from evenhand.instruments import instrument_of
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from tests.cli.conftest import Run, endpoint, evenhand
from tests.docs.test_code_blocks import ROOT

__all__ = ["endpoint", "evenhand"]  # the fixtures

RECORDED = ROOT / "recorded" / "qwen2.5-coder-1.5b"
FRONTIER, PAPERS = RECORDED / "frontier", RECORDED / "papers"
ITEMS = {
    "papers/mabrf": 44,
    "papers/malibu": 819,
    "frontier": 88,
    "repaired": 88,
    "repaired-0.013": 88,
    "bbq440": 440,
    "bbq343/ambiguous/self_consistency": 47,  # of 110: what the time allowed
    "bbq343": 110,
    "papers": 88,
    "counterfactual": 420,
    "rldf/debate": 10,
    "papers/rldf": 45,
    "harms": 486,
}
RUNS = sorted(path.parent for path in RECORDED.rglob("run.json"))
# As the page names them; the others stand there by their own names.
ON_THE_PAGE = {
    "self_consistency:calls=1": "`self_consistency`, vote of one",
    "stardtox:choice_brain=rule+support_above=0.5+max_iterations=1": (
        "`stardtox`, context-support classifier"
    ),
    "stardtox:read=logprob+max_iterations=1": "`stardtox`, judge by log-probability",
}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_recorded_run_has_every_byte_and_every_item(run: Path) -> None:
    reader = RunReader(run)
    reader.verify()
    place = run.relative_to(RECORDED).parts
    names = ["/".join(place[:depth]) for depth in (3, 2, 1)]
    assert reader.totals().items == next(ITEMS[name] for name in names if name in ITEMS)


def test_the_table_of_the_page_holds_the_numbers_of_the_runs() -> None:
    page = (ROOT / "docs" / "results.md").read_text().splitlines()
    methods = json.loads((FRONTIER / "frontier.json").read_text())["methods"]
    assert len(methods) == len(list(FRONTIER.glob("*/run.json"))) == 8
    for method in methods:
        shown = ON_THE_PAGE.get(method["name"], f"`{method['name']}`")
        [row] = [line for line in page[:60] if line.startswith((f"| {shown} |", f"| ◆ {shown} |"))]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        numbers = method["estimates"]
        assert cells[1].split()[0] == f"{numbers['unsupported_attribution']['value']:.2f}"
        assert cells[2] == f"{numbers['accuracy_disambiguated']['value']:.2f}"
        assert cells[3] == f"{numbers['over_abstention']['value']:.2f}"
        assert cells[5] == f"{method['cost']['calls']['mean']:.2f}"
        assert cells[6] == f"{method['cost']['tokens']['mean']:.0f}"


def test_the_section_of_440_questions_holds_the_numbers_of_its_runs() -> None:
    page = (ROOT / "docs" / "results.md").read_text().replace("−", "-")
    section = page.split("\n## 440 questions, live\n")[1].split("\n## ")[0]
    names = ("default", "fairness", "detect_first", "detect_first-0.013")
    runs = {name: RunReader(RECORDED / "bbq440" / name) for name in names}
    rows = (
        "the model alone",
        "fairness prompt",
        "`detect_first`, classifier",
        "`detect_first`, bound 0.013",
    )
    for row, run in zip(rows, runs.values(), strict=True):
        found = report(Bbq(), run)
        measures = ("unsupported_attribution", "accuracy_disambiguated", "over_abstention")
        shares = " | ".join(f"{found[name].value:.2f}" for name in measures)
        tokens = run.totals().prompt_tokens + run.totals().completion_tokens
        assert f"| {row} | {shares} | {tokens / 440:.0f} |" in section
    changes = {name: compare(Bbq(), runs[name], runs["detect_first"]) for name in names[:2]}
    assert not changes["default"].notes  # the same option order
    for name, measure in (
        ("default", "unsupported_attribution"),
        ("fairness", "unsupported_attribution"),
        ("default", "accuracy_disambiguated"),
    ):
        change = changes[name][measure]
        ends = f"({change.low_adjusted:+.2f} to {change.high_adjusted:+.2f})"
        assert f"{change.difference:+.2f} {ends}" in section
    for name, fixed, broken in (("ambiguous", 170, 0), ("disambiguated", 0, 4)):
        flips = changes["default"].flips[f"accuracy_{name}"]
        assert (flips.fixed, flips.broken) == (fixed, broken)
    for name in names[2:]:
        answers = runs[name].turns().filter(pl.col("role") == "generator")
        assert answers.select(pl.col("attempts").sum()).collect().item() == 0  # all reused


def test_a_repair_beside_another_run_says_that_its_answers_had_a_cost() -> None:
    repaired = RunReader(RECORDED / "repaired")
    notes = {
        name: compare(Bbq(), RunReader(FRONTIER / name), repaired).notes
        for name in ("default", "fairness")
    }
    assert Remark("comparison.cost_of_repair") not in notes["default"]  # there it is added
    assert Remark("comparison.cost_of_repair") in notes["fairness"]


# The checks of a harm, by the beginning of their row on the page.
HARM_ROWS = {
    "harmful texts that are found": "sensitivity",
    "verdicts that turn with yes": "order",
    "benign texts that are flagged": "false_alarms",
    "the same in the worst group": "false_alarms_by_group",
    "verdicts that turn in other": "paraphrase",
}


def test_the_table_of_the_harm_holds_the_numbers_of_its_runs() -> None:
    page = (ROOT / "docs" / "harm-policies.md").read_text().splitlines()
    for place, name in ((3, "edited"), (4, "both")):
        run = RunReader(RECORDED / "harms" / name)
        found = report(instrument_of(run), run)
        for begins, check in HARM_ROWS.items():
            [row] = [line for line in page if line.startswith(f"| {begins}")]
            one = found[check]
            assert one.value is not None
            share = f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
            said = f"{one.value * one.n:.0f} of {one.n}, {share}"
            assert row.split("|")[place].strip() == said


def test_two_audits_of_a_harm_are_compared_as_two_runs_of_a_benchmark() -> None:
    """Asked in both orders the judge finds 45 of 60 harmful texts, and 11 in one order."""
    runs = [RunReader(RECORDED / "harms" / name) for name in ("edited", "both")]
    changes = compare(instrument_of(runs[0]), *runs)
    found, alarms = changes["sensitivity"], changes["false_alarms"]
    assert (found.before, found.after) == pytest.approx((11 / 60, 45 / 60))
    assert (alarms.before, alarms.after) == pytest.approx((1 / 102, 13 / 102))
    assert found.p_holm is not None
    assert alarms.p_holm is not None
    assert max(found.p_holm, alarms.p_holm) < 0.01


def test_the_table_of_mabrf_holds_the_numbers_of_its_run(evenhand: Run) -> None:
    [run] = PAPERS.glob("mabrf/small/*/bbq-mabrf")
    ran = evenhand("report", str(run), "--json")
    found = {one["name"]: one for one in json.loads(ran.stdout)["scores"]["estimates"]}
    page = (ROOT / "docs" / "results.md").read_text().replace("−", "-").splitlines()
    [accuracy] = [line for line in page if line.startswith("| accuracy, all 44 items")]
    [named] = [line for line in page if line.startswith("| unsupported answers, of 22 ambiguous")]
    change = found["accuracy_gain"]
    for number in (found["accuracy_first"]["value"], found["accuracy"]["value"]):
        assert f"| {number:.2f} |" in accuracy
    for number in (change["value"], change["low"], change["high"]):
        assert f"{number:+.2f}" in accuracy
    both = (
        found["unsupported_attribution_first"]["value"],
        found["unsupported_attribution"]["value"],
    )
    assert f"| {both[0]:.2f} | {both[1]:.2f} |" in named


@pytest.mark.parametrize("kind", ["decisions", "numbers"])
@pytest.mark.parametrize(
    ("method", "shown"),
    [("default", "default"), ("fairness", "fairness prompt"), ("blind", "blind")],
)
def test_the_table_of_swap_holds_the_numbers_of_its_runs(
    evenhand: Run, kind: str, method: str, shown: str
) -> None:
    ran = evenhand("report", str(RECORDED / "counterfactual" / f"{kind}-{method}"), "--json")
    found = {one["name"]: one for one in json.loads(ran.stdout)["scores"]["estimates"]}
    page = (ROOT / "docs" / "results.md").read_text().splitlines()
    [row] = [line for line in page if line.startswith(f"| {kind}, {shown} |")]
    _, beside, excess, _, _ = (cell.strip() for cell in row.strip("|").split("|"))
    assert f"{100 * found['placebo']['value']:.1f}%" in beside
    ends = [100 * found["excess"][end] for end in ("value", "low", "high")]
    for end in ends:
        assert f"{end:+.1f}".replace("-", "−") in excess


def test_the_table_of_statements_holds_the_change_between_its_runs(evenhand: Run) -> None:
    runs = [
        str(PAPERS / "rldf/small/smollm2-135m-12-steps" / name)
        for name in ("st-default", "st-rldf")
    ]
    compared = json.loads(evenhand("compare", *runs, "--json").stdout)
    found = {one["name"]: one for one in (*compared["primary"], *compared["secondary"])}
    page = (ROOT / "docs" / "results.md").read_text().replace("−", "-").splitlines()
    begins = {"bias_score": "| bias score, 0 is best", "communication": "| communication, 100",
              "logic": "| logic, 100"}  # fmt: skip
    for name, begin in begins.items():
        [row] = [line for line in page if line.startswith(begin)]
        change = found[name]
        for number in (change["before"], change["after"]):
            assert f"| {number:.1f} |" in row
        for number in (change["difference"], change["low"], change["high"]):
            assert f"{number:+.1f}" in row


@pytest.mark.parametrize(
    "table",
    [
        ("stardtox", "table3"),
        ("mabrf", "table5"),
        ("mabrf", "table3"),
        ("mabrf", "figure4"),
        ("rldf", "table3"),
        ("malibu", "figure4"),
    ],
)
def test_a_recorded_table_of_a_paper_comes_out_again_byte_for_byte(
    evenhand: Run, tmp_path: Path, table: tuple[str, str]
) -> None:
    paper, name = table
    shutil.copytree(PAPERS, tmp_path / "papers")
    sample = ("--sample", "per_category=4") if paper == "mabrf" else ()
    shown = evenhand("dev", "reproduce", paper, name, *sample, "--show", "--out", "papers")
    assert shown.returncode == 0, shown.stderr
    made = (tmp_path / f"papers/{paper}/small/{name}.json").read_bytes()
    assert made == (ROOT / f"docs/reproduced/{paper}-{name}.json").read_bytes()


def test_the_table_of_two_judges_holds_the_numbers_of_their_runs() -> None:
    text = (ROOT / "docs" / "results.md").read_text().replace("−", "-")
    page = text.partition("## Labels in two small judges")[2].partition("\n## ")[0]
    lines = [line for line in page.splitlines() if " - " in line and line.startswith("| ")]
    assert len(lines) == 5
    within: dict[str, set[str]] = {}
    for place, size in ((2, "1.5b"), (3, "0.5b")):
        run = RunReader(PAPERS / f"malibu/small/qwen2.5-coder-{size}-instruct/alone-logprob")
        found = report(instrument_of(run), run).more
        assert [effect["margin"] for effect in found["primary"]] == [0.2] * 10
        assert all(effect["detected"] and effect["estimate"] < 0 for effect in found["primary"])
        assert {f"{effect['p_adjusted']:.3f}" for effect in found["primary"]} == {"0.004"}
        beside = {
            (effect["label"], effect["against"]): effect
            for effect in found["exploratory"]
            if effect["value"] == "combined"
        }
        placebo = {label: e for (label, against), e in beside.items() if against == "placebo"}
        within[size] = {label for label, e in placebo.items() if e["verdict"] == "ruled_out"}
        assert sum(effect["detected"] for effect in placebo.values()) == 10 - len(within[size])
        for line in lines:
            row = line.split("|")
            label, other = row[1].strip(" †").replace("no label", "none").split(" - ")
            if "†" in row[1]:
                effect = beside[label, other]
                ends = [effect[name] for name in ("estimate", "low", "high")]
            else:
                ends = _difference(found["figures"]["differences"], label, other)
            value, low, high = (f"{end:+.2f}" for end in ends)
            assert row[place].strip() == f"{value} ({low} to {high})"
        means = {row["label"]: row["value"] for row in found["figures"]["means"]}
        assert min(means, key=means.__getitem__) == "Atheist"
    assert within == {"1.5b": {"Jewish", "Muslim"}, "0.5b": {"male"}}


def _difference(rows: list[dict[str, Any]], label: str, other: str) -> list[float]:
    [row] = [row for row in rows if {row["label"], row["other"]} == {label, other}]
    if row["label"] == label:
        return [row[end] for end in ("value", "low", "high")]
    return [-float(row[end]) for end in ("value", "high", "low")]


def test_the_figures_of_the_readme_are_those_of_the_repaired_answers() -> None:
    compared = compare(
        instrument_of(before := RunReader(FRONTIER / "default")),
        before,
        RunReader(RECORDED / "repaired"),
    )
    assert compared.repairs
    lines = (ROOT / "README.md").read_text().splitlines()
    for begins, name in (
        ("? bias score s_AMB", "s_amb"),
        ("✓ unsupported answers", "unsupported_attribution"),
        ("? accuracy, disambiguated  ", "accuracy_disambiguated"),
        ("? bias score s_DIS", "s_dis"),
    ):
        [row] = [line for line in lines if line.startswith(begins)]
        change = compared[name]
        signed = "+.2f" if name.startswith("s_") else ".2f"
        numbers = [f"{change.before:{signed}}", f"{change.after:{signed}}"]
        assert row.split()[-7:-5] == numbers, name
        interval = [f"{change.low_adjusted:+.2f}", "to", f"{change.high_adjusted:+.2f}"]
        assert row.split()[-5:-1] == [f"{change.difference:+.2f}", *interval], name
