# ruff: noqa: T201
"""Is the context-support classifier worth its cost at a stricter bound? The second live sample.

    EVENHAND_DATA=data EVENHAND_BASE_URL=http://127.0.0.1:8080/v1 \
        python scripts/support_sample.py ask recorded/qwen2.5-coder-1.5b/bbq343 PART…
    python scripts/support_sample.py table recorded/qwen2.5-coder-1.5b/bbq343

The design is preregistered in `design/support-bound.md`. The parts of `ask`: default, repaired,
fairness, vote, changed, changed-repaired, level; a part that was interrupted goes on. `table` asks
no model and reads no data set. The bound changes few answers to disambiguated questions: only for
these are both answers needed, since the others are the same reply.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import polars as pl

import evenhand as eh
from evenhand.agents import Cast
from evenhand.findings.change_test import ChangeTest
from evenhand.findings.comparison import change_between, compare
from evenhand.findings.decision_rules import adjusted
from evenhand.findings.worst_case import WorstCasePair, WorstCaseSums
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling, BbqSource, sample, spread
from evenhand.methods import named
from evenhand.methods.evaluators import SUPPORT_BOUND
from evenhand.runs.store import RunReader
from evenhand.scorers.support import SupportClaim, SupportJudge, SupportModel

SAMPLE = BbqSampling(preset="templates", seed=3)
BOUNDS = (0.013, SUPPORT_BOUND)
TEMPLATES = 110  # of the sample of harm
SEED, TOKENS = 1, 160
ARMS = {  # by part: the folder, the items, the method and its settings
    "changed": ("disambiguated/default", "changed", "default", {}),
    "changed-repaired": ("disambiguated/default", "changed", "default", {}),
    "default": ("ambiguous/default", "ambiguous", "default", {}),
    "repaired": ("ambiguous/default", "ambiguous", "default", {}),
    "fairness": ("ambiguous/fairness", "ambiguous", "fairness", {}),
    "vote": ("ambiguous/self_consistency", "ambiguous", "self_consistency", {"calls": 1}),
    "level": ("level/default", "level", "default", {}),
}
REPAIRED = ("repaired", "changed-repaired")  # the method itself, which reuses the replies
_DISAMBIGUATED = pl.col("condition") == "disambig"
HARM = "unsupported_attribution"
_TEMPLATE = pl.format("{}/{}", "category", "question_index")


def drawn() -> pl.DataFrame:
    """Draw the sample, in its seeded order."""
    data = Path(os.environ.get("EVENHAND_DATA", "data"))
    records = spread(sample(BbqData(local=data, cache=data).records(), SAMPLE), SAMPLE.seed)
    return records.with_columns(template=_TEMPLATE)


def marked(records: pl.DataFrame) -> pl.DataFrame:
    """Add the best mark of each question's options."""
    judge, marks = SupportJudge(), []
    for row in records.iter_rows(named=True):
        options = [text for at, text in enumerate(row["options"]) if at != row["unknown"]]
        claims = [
            SupportClaim(row["context"], row["question"], option,
                         tuple(other for other in options if other != option))
            for option in options
        ]  # fmt: skip
        marks.append(max(judge.of(claims)))
    return records.with_columns(best=pl.Series(marks))


def changed(records: pl.DataFrame) -> pl.DataFrame:
    """Select the disambiguated questions whose answers a bound may change."""
    return marked(records.filter(_DISAMBIGUATED)).filter(pl.col("best") <= max(BOUNDS))


def of_templates(records: pl.DataFrame, *, disambiguated: bool) -> pl.DataFrame:
    """Select one question of each of the first templates, of negative and non-negative in turns."""
    first = records.unique("template", keep="first", maintain_order=True).head(TEMPLATES)
    turns = {name: ("neg", "nonneg")[at % 2] for at, name in enumerate(first["template"])}
    return records.filter(
        (pl.col("row") // 4).is_in((first["row"] // 4).implode()),
        pl.col("polarity") == pl.col("template").replace_strict(turns, default=None),
        _DISAMBIGUATED if disambiguated else ~_DISAMBIGUATED,
    )


def ask(folder: Path, parts: list[str]) -> None:
    """Ask the model for parts of the design."""
    records = drawn()
    facts = folder / "sample.json"
    if not facts.exists():
        facts.parent.mkdir(parents=True, exist_ok=True)
        facts.write_text(json.dumps(_facts(marked(records)), indent=1) + "\n")
    for part in parts:
        place, which, method, settings = ARMS[part]
        if which == "changed":
            rows = changed(records).drop("best")
        else:
            rows = of_templates(records, disambiguated=which == "level")
        source = BbqSource(rows.drop("template"), SAMPLE)
        model = eh.Endpoint(os.environ["EVENHAND_BASE_URL"], model="qwen2.5-coder-1.5b",
                            attempt_timeout=600)  # fmt: skip
        shared = {"seed": SEED, "limits": eh.Limits(max_tokens=TOKENS), "concurrency": 4,
                  "model": Cast(model, {"support": SupportModel()})}  # fmt: skip
        out = folder / place
        if part in REPAIRED:
            for bound in BOUNDS:
                remedy = named("detect_first")(choice_brain="rule", support_above=bound)
                repaired = out.with_name(f"detect_first-{bound}")
                eh.mitigate(source, method=remedy, out=repaired, reuse=[out], **shared)
        else:
            eh.mitigate(source, method=named(method)(**settings), out=out, **shared)
        print(part, len(rows))


def _facts(records: pl.DataFrame) -> dict[str, object]:
    """Give what the table needs of questions that nobody was asked."""
    counts = (
        records.filter(_DISAMBIGUATED)
        .group_by("template")
        .agg(items=pl.len(), unmasked=(~pl.col("masked")).sum())
    )
    return {
        "items": len(records),
        "at_or_below": {
            condition: {str(bound): int((rows["best"] <= bound).sum()) for bound in BOUNDS}
            for (condition,), rows in records.group_by("condition", maintain_order=True)
        },
        "disambiguated_by_template": {
            name: [each, unmasked] for name, each, unmasked in counts.sort("template").iter_rows()
        },
    }


def change_of_all(folder: Path, bound: float, name: str) -> tuple[ChangeTest, int, int]:
    """Test a change over all disambiguated questions, where most answers are the same reply.

    Args:
        folder: The recorded runs.
        bound: The bound of the classifier.
        name: accuracy_disambiguated, which leaves out masked questions, or over_abstention.

    Returns:
        The test, the number of answers that the method lost, and of the questions.
    """
    facts = json.loads((folder / "sample.json").read_text())
    runs = [folder / "disambiguated" / arm for arm in ("default", f"detect_first-{bound}")]
    replaced = facts["at_or_below"]["disambig"][str(bound)]
    answers = [_outcomes(RunReader(run)) if replaced else [] for run in runs]
    masked = name == "accuracy_disambiguated"
    by_template = facts["disambiguated_by_template"]
    rows = {template: counts[int(masked)] for template, counts in by_template.items()}
    place = {template: at for at, template in enumerate(rows)}
    sums = np.zeros((3, len(rows)))  # before at its smallest and at its largest, and after
    for old, new in zip(*answers, strict=True):
        if masked and old["masked"]:
            continue
        value = "right" if masked else "abstained"
        at = place[old["template"]]
        sums[:, at] += (old[value] or 0, 1 if old[value] is None else old[value], new[value] or 0)
    counts = np.array([float(count) for count in rows.values()])
    none = np.zeros_like(counts)
    used = counts > 0
    pair = WorstCasePair(
        before=WorstCaseSums(sums[0][used], sums[1][used], counts[used], none[used]),
        after=WorstCaseSums(sums[2][used], sums[2][used], counts[used], none[used]),
        missing=none[used],
        difference=(sums[2] - sums[0])[used],
    )
    lost = int(np.abs(sums[2] - sums[0]).sum())
    return ChangeTest.of(Bbq().measure(name), [pair]), lost, int(counts.sum())


def _outcomes(run: RunReader) -> list[dict[str, object]]:
    """Say of each item whether it was right and whether it was "unknown"; None without answer."""
    found = []
    for row in run.results().sort("item_id").collect().iter_rows(named=True):
        tags = {tag["name"]: tag["value"] for tag in row["tags"]}
        choice = row["choice"] if row["status"] == "answered" else None
        answered = choice is not None
        found.append({
            "template": tags["template"],
            "masked": tags["masked"] == "1",
            "right": int(choice == int(tags["gold"])) if answered else None,
            "abstained": int(choice == int(tags["unknown"])) if answered else None,
        })  # fmt: skip
    return found


def table(folder: Path) -> None:
    """Print the tests of the design."""
    bbq = Bbq()
    folders = [path.parent for path in folder.glob("ambiguous/*/run.json")]
    runs = {path.name: RunReader(path) for path in folders}
    for bound in BOUNDS:
        if f"detect_first-{bound}" not in runs:
            print(f"{bound}: the answers were not repaired")
            continue
        remedy = runs[f"detect_first-{bound}"]
        references = [name for name in ("fairness", "self_consistency") if name in runs]
        family = adjusted([change_between(bbq, runs[name], remedy, HARM) for name in references])
        changes = {name: change_between(bbq, runs[name], remedy, HARM) for name in ("default",)}
        for name, harm in (changes | dict(zip(references, family, strict=True))).items():
            ends = (harm.low_adjusted, harm.high_adjusted) if name in references else (
                harm.low, harm.high)  # fmt: skip
            print(f"{bound} against {name}: unsupported answers {harm.before:.3f} to "
                  f"{harm.after:.3f}, {harm.difference:+.3f} ({ends[0]:+.3f} to {ends[1]:+.3f}), "
                  f"p {harm.p_adjusted:.4f}, {harm.n} items")  # fmt: skip
        for name in ("accuracy_disambiguated", "over_abstention"):
            if bound == BOUNDS[0] or (folder / "disambiguated").exists():
                test, lost, count = change_of_all(folder, bound, name)
                low, high = test.limits(0.025)
                print(f"{bound} {name}: {lost} of {count} answers, between {low:+.4f} and "
                      f"{high:+.4f}, one-sided 97.5%; two-sided p {test.p:.3f}")  # fmt: skip
        for line in compare(bbq, runs["default"], remedy).guardrails:
            if line.name not in ("accuracy_disambiguated", "over_abstention"):  # tested above
                print(f"{bound} {line.name}: {line.state}")


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask(Path(sys.argv[2]), sys.argv[3:])
    else:
        table(Path(sys.argv[2]))
