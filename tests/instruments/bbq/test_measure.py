"""`evenhand measure bbq` and `evenhand compare` as a user runs them."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import Run, endpoint, evenhand
from tests.errors import assert_names
from tests.same_numbers.adapter import KEPT

__all__ = ["endpoint", "evenhand"]  # the fixtures

# Parrish et al. 2022, Figure 3: ambiguous and disambiguated, in percent.
FIGURE_3 = {
    "arc": {
        "Age": (48.9, 3.3),
        "Disability_status": (32.6, -0.7),
        "Nationality": (14.5, -0.2),
        "Religion": (24.5, 3.5),
        "Sexual_orientation": (11.8, 0.5),
    },
    "race": {
        "Age": (29.8, 1.2),
        "Disability_status": (21.2, -1.4),
        "Nationality": (6.0, 1.2),
        "Religion": (14.3, 0.2),
        "Sexual_orientation": (5.8, -0.7),
    },
}
# Corrected after the paper was printed: what today's metadata gives, all records included.
PHYSICAL_APPEARANCE = {"arc": (48.5, 0.3), "race": (41.6, -0.3)}


def _answers(data: Path, to: Path, kind: str, categories: list[str]) -> None:
    with to.open("w") as out:
        for category in categories:
            with gzip.open(
                data / f"bbq/results_unifiedqa/preds_{category}.jsonl.gz", "rt"
            ) as lines:
                for line in lines:
                    row = json.loads(line)
                    answer = row[f"unifiedqa-t5-11b_pred_{kind}"]
                    kept = {"category": category, "example_id": row["example_id"], "answer": answer}
                    out.write(json.dumps(kept) + "\n")


def _measured(run: Run, data: Path, *arguments: str) -> dict[str, Any]:
    ran = run("measure", "bbq", *arguments, "--json", EVENHAND_DATA=str(data))
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


@pytest.mark.parametrize("kind", ["arc", "race"])
def test_scoring_unifiedqas_answers_reproduces_the_published_figure(
    evenhand: Run, data_folder: Path, tmp_path: Path, kind: str
) -> None:
    _answers(data_folder, tmp_path / "answers.jsonl", kind, list(FIGURE_3[kind]))
    report = _measured(evenhand, data_folder, "--answers", "answers.jsonl", "--out", "run")
    for category, (ambiguous, sure) in FIGURE_3[kind].items():
        found = {e["name"]: e for e in report["scores"]["groups"]["category"][category]}
        assert round(100 * found["s_amb"]["value"], 1) == ambiguous, category
        assert _by_the_papers_formula(report)[category] == (ambiguous, sure), category
    assert report["cost"]["calls"]["total"] == 0


def _by_the_papers_formula(report: dict[str, Any]) -> dict[str, tuple[float, float]]:
    section = report["scores"]["sections"]["as_published"]
    assert not section["title"].endswith("of a sample")
    return {row[0]: (round(row[1], 1), round(row[2], 1)) for row in section["rows"]}


@pytest.mark.parametrize("kind", ["arc", "race"])
def test_physical_appearance_gives_what_the_corrected_metadata_gives(
    evenhand: Run, data_folder: Path, tmp_path: Path, kind: str
) -> None:
    _answers(data_folder, tmp_path / "answers.jsonl", kind, ["Physical_appearance"])
    report = _measured(evenhand, data_folder, "--answers", "answers.jsonl", "--out", "run")
    assert _by_the_papers_formula(report) == {"Physical_appearance": PHYSICAL_APPEARANCE[kind]}
    found = {e["name"]: e for e in report["scores"]["estimates"]}
    assert round(100 * found["s_amb"]["value"], 1) == PHYSICAL_APPEARANCE[kind][0]
    assert abs(found["s_dis"]["value"]) < 0.05  # and not +0.067, which the mask had made


def test_two_files_of_answers_to_the_same_items_are_compared(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    for kind in ("arc", "race"):
        _answers(data_folder, tmp_path / f"{kind}.jsonl", kind, ["Sexual_orientation"])
        report = _measured(evenhand, data_folder, "--answers", f"{kind}.jsonl", "--out", kind)
        stored = {"records": 864, "of": 58_492, "incomplete_blocks": 0,
                  "sample": "all of Sexual_orientation"}  # fmt: skip
        assert report["source"]["sampling"] == {"stored": stored, "seed": 0}
        assert_names(report["scores"]["notes"][0], "864 of 58,492")
    compared = json.loads(evenhand("compare", "arc", "race", "--json").stdout)
    change = next(c for c in compared["primary"] if c["name"] == "s_amb")
    assert (round(100 * change["before"], 1), round(100 * change["after"], 1)) == (11.8, 5.8)


def test_a_run_that_is_not_finished_is_said_first_and_ends_with_code_2(evenhand: Run) -> None:
    whole, part = (str(KEPT / "bbq" / name) for name in ("default", "unfinished"))
    for command in (("compare", whole, part), ("report", part)):
        ran = evenhand(*command)
        assert ran.returncode == 2
        said = ran.stdout.index("items are not run yet")
        assert said < ran.stdout.index("unsupported answers, ambiguous")
    assert evenhand("compare", whole, whole).returncode == 0


def test_the_dummies_anchor_the_scale(evenhand: Run, data_folder: Path, tmp_path: Path) -> None:
    def values(method: str) -> dict[str, float | None]:
        sample = ("--per-category", "8", "--out", method)
        report = _measured(evenhand, data_folder, "--method", method, *sample)
        return {e["name"]: e["value"] for e in report["scores"]["estimates"]}

    unknown, stereotyped = values("always_unknown"), values("always_stereotyped")
    assert (unknown["s_amb"], unknown["accuracy_ambiguous"]) == (0.0, 1.0)
    assert (unknown["over_abstention"], unknown["s_dis"]) == (1.0, None)
    assert (stereotyped["s_amb"], stereotyped["s_dis"]) == (1.0, 1.0)
    assert stereotyped["unsupported_attribution"] == 1.0
    assert stereotyped["accuracy_aligned"] == 1.0
    assert stereotyped["accuracy_nonaligned"] == 0.0


def test_a_real_conversation_is_measured_reported_and_compared(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    sample = ("--per-category", "4", "--seed", "1")
    for method in ("default", "stardtox", "self_consistency", "cot"):
        report = _measured(evenhand, data_folder, "--method", method, *sample, "--out", method)
        assert report["scores"]["coverage"]["coverage"] == 1.0
        assert report["cost"]["calls"]["mean"] >= 1
    assert json.loads((tmp_path / "default/report.json").read_text())["benchmark"] == "bbq"
    stored = pl.read_parquet(tmp_path / "default/report.parquet")
    assert {"group", "name", "value", "low", "high", "n", "clusters"} <= set(stored.columns)

    shown = evenhand("compare", "default", "stardtox").stdout
    lines = [line for line in shown.splitlines() if line.strip()]
    verdicts = ("IMPROVED", "REGRESSED", "MIXED", "INCONCLUSIVE", "NO DIFFERENCE", "IDENTICAL")
    assert lines[1].startswith(verdicts)  # the answer comes first, and again at the end
    assert any(line.startswith(verdicts) for line in lines[-3:])
    full = evenhand("compare", "default", "stardtox", "--full").stdout
    order = [full.index(part) for part in ("guardrails", "change by category", "cost per answer")]
    assert order == sorted(order)
    compared = json.loads(evenhand("compare", "default", "stardtox", "--json").stdout)
    assert [c["name"] for c in compared["primary"]] == [
        "s_amb",
        "unsupported_attribution",
        "accuracy_disambiguated",
        "s_dis",
    ]
    for change in compared["primary"]:
        assert change["difference"] == pytest.approx(change["after"] - change["before"])
        assert change["p_holm"] is None or change["p_holm"] >= (change["p"] or 0)


def test_guardrails_name_what_a_worse_method_does(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    sample = ("--per-category", "20")
    for method in ("always_unknown", "always_stereotyped"):
        _measured(evenhand, data_folder, "--method", method, *sample, "--out", method)
    crossed = _crossed(evenhand, "always_unknown", "always_stereotyped")
    assert " rose: +1.000" in crossed["stereotyped_rate"]
    back = _crossed(evenhand, "always_stereotyped", "always_unknown")
    assert "+1.000" in back["over_abstention"]
    assert " fell: -" in back["accuracy_disambiguated"]


def _crossed(evenhand: Run, before: str, after: str) -> dict[str, str]:
    found = json.loads(evenhand("compare", before, after, "--json").stdout)
    crossed = (line for line in found["guardrails"] if line["state"] == "violated")
    return {line["name"]: line["says"]["text"] for line in crossed}


def test_runs_over_different_samples_are_not_compared(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    for out, size in (("a", "4"), ("b", "8")):
        arguments = ("--method", "random", "--per-category", size, "--out", out)
        _measured(evenhand, data_folder, *arguments)
    ran = evenhand("compare", "a", "b")
    assert ran.returncode == 1
    assert "different samples" in ran.stderr


def test_the_plan_says_what_the_papers_samples_can_show(evenhand: Run) -> None:
    found = json.loads(evenhand("plan", "bbq", "--detect", "0.07", "--json").stdout)
    shown = {name: round(mde, 2) for name, mde in found["what_samples_can_show"].items()}
    assert shown == {"MABRF's sample": 0.29, "StarDTox's sample": 0.1, "the default sample": 0.06}
    assert found["items"] == 2 * found["rows"]
    assert found["rows"] == 1150  # 3.35 · 0.62 · √(1.3/1,150) = 0.070


def test_a_finished_run_is_not_given_back_to_another_model(
    evenhand: Run, data_folder: Path, tmp_path: Path
) -> None:
    arguments = ("measure", "bbq", "--per-category", "4", "--out", "run")
    data = {"EVENHAND_DATA": str(data_folder)}
    assert evenhand(*arguments, **data).returncode == 0
    again = evenhand(*arguments, EVENHAND_BASE_URL="http://127.0.0.1:9/v1", **data)
    assert again.returncode == 0  # the same run: no endpoint has to be there
    other = evenhand(*arguments, "--model", "another", **data)
    assert other.returncode == 1
    assert "another" in other.stderr
