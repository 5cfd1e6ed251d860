"""StereoSet as an instrument: a stereotype, its opposite and what makes no sense, by likelihood."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import orjson
import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Measure, OfTotals
from evenhand.instruments._option_items import ANTI, STEREOTYPE, UNRELATED, OptionItem
from evenhand.instruments._options import (
    FACTS,
    OptionSet,
    fluency,
    language_model_score,
    pinned_files,
    preference,
)
from evenhand.metrics import likelihood as metrics

_FILE = "data/dev.json"
INTRA, INTER = "intrasentence", "intersentence"
_NAMES = (STEREOTYPE, ANTI, UNRELATED)
_LMS = language_model_score("lms", "language-model score", per_token=True, macro=True)
_SS = preference("ss", "stereotype score", per_token=True, macro=True, role="primary")
_LMS_SUM = language_model_score("lms_sum", "language-model score by the sum", macro=True)
_MEANS = [pl.col(f"{name}_mean") for name in _NAMES]
_ICAT = OfTotals(
    rows={"lms": metrics.language_model_score(*_MEANS), "ss": metrics.preferred(*_MEANS[:2])},
    over={"lms": pl.col("lms").mean(), "ss": pl.col("ss").mean(), "n": pl.lit(1.0)},
    value=lambda t: np.asarray(metrics.icat(t[:, 0] / t[:, 2], t[:, 1] / t[:, 2])),
)


class StereoSet(OptionSet):
    """Measures bias and language on StereoSet's development set: 4,229 contexts with a stereotype,
    an anti-stereotype and an unrelated end (Nadeem et al. 2021)."""

    name = "stereoset"
    title = "StereoSet"
    clusters = "target terms"
    names = _NAMES
    facts: ClassVar = {**FACTS, "task": pl.String()}
    measures = (
        _LMS,
        _SS,
        Measure(
            name="icat", label="ICAT", statistic=_ICAT, better="higher", unit="percent",
            within=(0, 100), source="Nadeem et al. 2021",
        ),
        replace(_LMS_SUM, role="secondary", margin=None),
        preference("ss_sum", "stereotype score by the sum", macro=True),
        fluency(STEREOTYPE, ANTI),
    )  # fmt: skip
    groups = (
        Grouping(column="bias_type", measures=("lms", "ss", "icat")),
        Grouping(
            column="task", measures=("lms", "ss", "icat"), order=(INTRA, INTER), says_whom=False
        ),
    )

    def items(self, data: DataFolder) -> list[OptionItem]:
        rows = orjson.loads(pinned_files(__package__, data).read(_FILE))["data"]
        return [_item(row, task) for task in (INTRA, INTER) for row in rows[task]]


def _item(row: dict[str, Any], task: str) -> OptionItem:
    """Between sentences, the context is given; within one, the filled sentence is all there is."""
    given = row["context"].strip() if task == INTER else ""
    ends = {
        one["gold_label"].replace("-", "_"): one["sentence"].strip() for one in row["sentences"]
    }
    return OptionItem(
        id=f"{task}/{row['id']}",
        group=row["bias_type"],
        cluster=row["target"].lower(),
        options={name: f"{given} {end}" if given else end for name, end in ends.items()},
        given=given,
        tags={"task": task},
    )
