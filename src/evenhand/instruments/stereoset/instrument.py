"""StereoSet as an instrument: a stereotype, its opposite and what makes no sense, by likelihood."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import orjson
import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Measure, OfMeans
from evenhand.instruments._options import (
    ANTI,
    FACTS,
    STEREOTYPE,
    UNRELATED,
    OptionItem,
    OptionSet,
    fluency,
    language_model_score,
    pinned_files,
    preference,
)
from evenhand.statistics.metrics import likelihood as metrics

_FILE = "data/dev.json"
INTRA, INTER = "intrasentence", "intersentence"
_NAMES = (STEREOTYPE, ANTI, UNRELATED)
_LMS = language_model_score("lms", "language-model score", per_token=True, macro=True)
_SS = preference("ss", "stereotype score", per_token=True, macro=True, role="primary")
_LMS_SUM = language_model_score("lms_sum", "language-model score by the sum", macro=True)
_MEANS = [pl.col(f"{name}_mean") for name in _NAMES]
_ICAT = OfMeans(
    rows={"lms": metrics.language_model_score(*_MEANS), "ss": metrics.preferred(*_MEANS[:2])},
    value=lambda means: np.asarray(metrics.icat(means[:, 0], means[:, 1])),
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
    context = row["context"].strip() if task == INTER else ""
    ends = {
        sentence["gold_label"].replace("-", "_"): sentence["sentence"].strip()
        for sentence in row["sentences"]
    }
    return OptionItem(
        id=f"{task}/{row['id']}",
        group=row["bias_type"],
        cluster=row["target"].lower(),
        options={name: f"{context} {end}" if context else end for name, end in ends.items()},
        given=context,
        tags={"task": task},
    )
