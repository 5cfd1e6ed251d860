"""An audit is built from arrays: the answers of a simulated app, as a run of `swap` has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.instruments.swap.answers import answers_of, signed_by
from evenhand.instruments.swap.measured import Measured
from evenhand.instruments.swap.squares import paired

DECISION = r"\b(yes|no)\b"
# prompts × labels × roles (group, placebo): 1 is yes, 0 is no, NaN is missing
Answers = NDArray[np.float64]


def labels_of(answers: Answers) -> tuple[str, ...]:
    """Name the labels of an array: a, b, c and so on."""
    return tuple("abcdefgh"[: answers.shape[1]])


def lines_of(families: Mapping[str, Answers]) -> list[dict[str, Any]]:
    """Give the lines of a file for `evenhand swap --answers`."""
    lines = []
    for family, answers in families.items():
        for (prompt, label, role), value in np.ndenumerate(answers):
            lines.append({
                "id": f"p{prompt}", "family": family, "label": labels_of(answers)[label],
                "role": ("group", "placebo")[role],
                "answer": None if np.isnan(value) else ("no", "yes")[int(value)],
            })  # fmt: skip
    return lines


def measured(audits: Sequence[Mapping[str, Answers]]) -> list[Measured]:
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
    return [Measured.of(part, names, outcome) for part, names in zip(parts, labels, strict=True)]


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
        "other": others[prompt, label], "text": texts, "prompt": "", "reason": None,
    }, schema_overrides={"reason": pl.String})  # fmt: skip
