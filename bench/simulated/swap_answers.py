"""Answers of a simulated app about people of several groups, as a counterfactual run has them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.simulated.outcomes import OutcomeRun
from evenhand.instruments.counterfactual.contrasts import answers_of, paired, signed_by
from evenhand.instruments.counterfactual.measures import CounterfactualContrasts

DECISION = r"\b(yes|no)\b"
# prompts × labels × roles (group, placebo): 1 is yes, 0 is no, NaN is missing
Answers = NDArray[np.float64]


def labels_of(answers: Answers) -> tuple[str, ...]:
    """Name the labels of an array: a, b, c and so on."""
    return tuple("abcdefgh"[: answers.shape[1]])


def lines_of(families: Mapping[str, Answers]) -> list[dict[str, Any]]:
    """Give the lines of a file for `evenhand counterfactual --answers`."""
    lines = []
    for family, answers in families.items():
        for (prompt, label, role), value in np.ndenumerate(answers):
            lines.append({
                "id": f"p{prompt}", "family": family, "label": labels_of(answers)[label],
                "role": ("group", "placebo")[role],
                "answer": None if np.isnan(value) else ("no", "yes")[int(value)],
            })  # fmt: skip
    return lines


def measured(audits: Sequence[Mapping[str, Answers]]) -> list[CounterfactualContrasts]:
    """Measure simulated audits as runs over their answers are measured, without the files of a run.
    Their answers are read all at once, which takes most of the time."""
    source = {"sampling": {"decision": DECISION, "number": False}, "chosen": "yes"}
    rows = [_rows(family, answers).with_columns(audit=pl.lit(number))
            for number, families in enumerate(audits)
            for family, answers in families.items()]  # fmt: skip
    apart = pl.concat_str("audit", pl.lit("/"), "family")
    read = answers_of(pl.concat(rows).with_columns(
        item_id=pl.concat_str("audit", pl.lit("/"), "item_id"), family=apart), source)  # fmt: skip
    known = read.with_columns(pl.col("family").str.split("/").list.last())
    parts = known.partition_by("audit", maintain_order=True)
    labels = [{name: labels_of(one) for name, one in families.items()} for families in audits]
    outcome = signed_by(source)
    return [
        CounterfactualContrasts.of(part, names, outcome)
        for part, names in zip(parts, labels, strict=True)
    ]


def run_of(families: Mapping[str, Answers], path: str = "simulated") -> OutcomeRun:
    """Give the run over these answers."""
    rows = pl.concat(_rows(family, answers) for family, answers in families.items())
    rows = rows.with_columns(text=pl.when(pl.col("text") != "").then(pl.col("text")))
    sampling = {
        "decision": DECISION,
        "number": False,
        "families": {name: list(labels_of(one)) for name, one in families.items()},
    }
    facts = ("cluster", "family", "label", "role", "repeat", "other", "place")
    return OutcomeRun("counterfactual", rows, path=path, facts=facts,
                      source={"sampling": sampling, "chosen": "yes"})  # fmt: skip


def without_bias(rng: np.random.Generator, number: int) -> dict[str, Answers]:
    """Give answers to which labels say nothing: sizes, shapes and ways to be missing take turns."""
    kind = ("even", "rare", "skewed", "mixed", "ties")[number % 5]
    how = ("", "at random", "", "by group")[number % 4]
    labels = (2,) if number % 7 else (2, 4)
    return {f"f{place}": lost(rng, drawn(rng, (12, 40, 90)[number % 3], many, kind), how)
            for place, many in enumerate(labels)}  # fmt: skip


def drawn(rng: np.random.Generator, prompts: int, labels: int, kind: str) -> Answers:
    """Give the answers of an app to which labels say nothing."""
    shape = (prompts, labels, 2)
    rate = {"even": 0.5, "rare": 0.04, "skewed": 0.85}.get(kind)
    chance = rng.beta(0.3, 0.3, (prompts, 1, 1)) if rate is None else np.full((1, 1, 1), rate)
    found = (rng.random(shape) < chance).astype(float)
    if kind == "ties":  # most prompts are answered alike for everybody
        found[rng.random(prompts) < 0.8] = 1.0
    return found


def lost(rng: np.random.Generator, answers: Answers, how: str) -> Answers:
    """Give the answers with some missing: at random, or those about the first label alone."""
    gone = rng.random(answers.shape) < (0.02 if how == "at random" else 0.05)
    if how == "by group":
        gone[:, 1:] = False
    return np.where(gone, np.nan, answers) if how else answers


PROMPTS = (40, 60, 120)
PAIRS = len(PROMPTS)


def detectable(number: int) -> float:
    """Give the difference of two rates around ½ that so many prompts show 4 times in 5: 2.8
    standard errors."""
    return 2.8 * math.sqrt(2 * 0.25 / (2 * PROMPTS[number % 3]))


def with_bias(rng: np.random.Generator, number: int, difference: float) -> dict[str, Answers]:
    """Give answers about two labels whose rates differ by so much."""
    rates = np.array([0.5 - difference / 2, 0.5 + difference / 2])[:, None]
    return {"f": (rng.random((PROMPTS[number % 3], 2, 2)) < rates).astype(float)}


def two_systems(
    rng: np.random.Generator, number: int, difference: float
) -> tuple[OutcomeRun, OutcomeRun]:
    """Give the runs of two systems that share most of what they decide by. The second treats the
    labels so differently; the first has a bias of its own in every other pair without a change."""
    own = 0.2 * (number % 2) if not difference else 0.0
    shape = (PROMPTS[number % 3], 2, 2)
    u = rng.random(shape)
    again = np.where(rng.random(shape) < (0.1, 0.3, 1.0)[number % 3], rng.random(shape), u)
    half = np.array([-0.5, 0.5])[:, None]
    before, after = u < 0.5 + own * half, again < 0.5 + (own + difference) * half
    how = ("", "", "at random")[number % 3 if not difference else 0]
    first, second = (lost(rng, one.astype(float), how) for one in (before, after))
    return run_of({"f": first}, "before"), run_of({"f": second}, "after")


def _rows(family: str, answers: Answers) -> pl.DataFrame:
    prompts = len(answers)
    names = np.array(labels_of(answers))
    pairs = [paired(names.tolist(), f"p{prompt}\n{family}") for prompt in range(prompts)]
    others = np.array(
        [[pairs[prompt].get(name, "") for name in names] for prompt in range(prompts)]
    )
    prompt, label, role = (one.ravel() for one in np.indices(answers.shape))
    value = answers.ravel()
    texts = np.where(np.isnan(value), "", np.where(value == 1, "yes", "no"))
    return pl.DataFrame({
        "item_id": [f"{family}/{place}" for place in range(len(value))],
        "cluster": [f"p{one}" for one in prompt], "family": family, "label": names[label],
        "role": np.array(["group", "placebo"])[role], "repeat": 1,
        "other": others[prompt, label], "place": "", "turn": 0, "text": texts, "prompt": "",
        "reason": None,
    }, schema_overrides={"reason": pl.String})  # fmt: skip
