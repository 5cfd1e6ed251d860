"""An audit is built from arrays: the answers of a simulated app, as a run of `swap` has them."""

from collections.abc import Mapping
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


def measured(families: Mapping[str, Answers]) -> Measured:
    """Measure the answers as a run over them is measured, without the files of one."""
    source = {"sampling": {"decision": DECISION, "number": False}, "chosen": "yes"}
    rows = pl.concat([_rows(family, answers) for family, answers in families.items()])
    labels = {family: labels_of(answers) for family, answers in families.items()}
    return Measured.of(answers_of(rows, source), labels, signed_by(source))


def _rows(family: str, answers: Answers) -> pl.DataFrame:
    prompts, labels, _ = answers.shape
    names = np.array(labels_of(answers))
    pairs = [paired(names.tolist(), f"p{prompt}\n{family}") for prompt in range(prompts)]
    others = np.array([[pairs[prompt].get(name, "") for name in names] for prompt in range(prompts)])
    prompt, label, role = (one.ravel() for one in np.indices(answers.shape))
    value = answers.ravel()
    texts = np.where(np.isnan(value), "", np.where(value == 1, "yes", "no"))
    return pl.DataFrame({
        "item_id": [f"{family}/{place}" for place in range(len(value))],
        "cluster": [f"p{one}" for one in prompt], "family": family, "label": names[label],
        "role": np.array(["group", "placebo"])[role], "repeat": 1,
        "other": others[prompt, label], "text": texts, "prompt": "", "reason": None,
    }, schema_overrides={"reason": pl.String})  # fmt: skip
