"""subtler_biases as an instrument: which word a model finds likeliest in a blank."""

import io
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Measure, Share, option
from evenhand.instruments._option_items import ANTI, STEREOTYPE, UNRELATED, OptionItem
from evenhand.instruments._options import (
    OptionSet,
    OptionSetOptions,
    fluency,
    language_model_score,
    pinned_files,
    preference,
)
from evenhand.statistics.metrics import likelihood as metrics
from evenhand.training.debates.building import TYPES, templates
from evenhand.training.debates.dataset import trained_topics

_BLANK = "BLANK"
_NAMES = (STEREOTYPE, ANTI, UNRELATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtlerOptions(OptionSetOptions):
    unseen: Path | None = option(
        None,
        "The pairs that the weights were trained on: items with a topic of their training side "
        "are left out.",
    )


class SubtlerBiases(OptionSet):
    """Measures bias on subtler_biases: 11,940 contexts with a blank about age, beauty, beauty and
    profession, institution and nationality (Kamruzzaman et al. 2024), the source of the five bias
    types of paper 002."""

    name = "subtler_biases"
    title = "subtler_biases"
    clusters = "pairs of options"
    names = _NAMES
    options = SubtlerOptions
    measures = (
        preference("stereotype_score", "stereotype score", role="primary"),
        preference("stereotype_score_per_token", "… by the mean per token", per_token=True),
        language_model_score("lms", "language-model score"),
        Measure(
            name="unrelated_wins", label="unrelated option is the likeliest", unit="percent",
            statistic=Share(metrics.unrelated_wins(*map(pl.col, _NAMES))), within=(0, 100),
        ),
        fluency(*_NAMES),
    )  # fmt: skip
    groups = (Grouping(column="bias_type", measures=("stereotype_score", "lms", "unrelated_wins")),)

    def items(self, data: DataFolder) -> list[OptionItem]:
        return [_item(number, row) for number, row in enumerate(rows(data))]

    def trained_on(self, data: DataFolder, options: SubtlerOptions) -> frozenset[str]:
        """The contexts whose template is on the training side of the pairs."""
        if options.unseen is None:
            return frozenset()
        topics, every = trained_topics(options.unseen), rows(data)
        pairs = zip(every, templates(every), strict=True)
        return frozenset(row["context"].strip() for row, topic in pairs if topic in topics)


def rows(data: DataFolder) -> list[dict[str, str]]:
    """The rows of the set as its file has them."""
    table = pinned_files(__package__, data).read("dataset.csv")
    return pl.read_csv(io.BytesIO(table), infer_schema=False).to_dicts()


def _item(number: int, row: dict[str, str]) -> OptionItem:
    context = row["context"].strip()
    words = {name: row[name].strip() for name in _NAMES}
    kind = TYPES[row["bias_type"]]
    # What is a stereotype of one group is the anti-stereotype of the other: the two words together
    # are what contexts share.
    pair = "/".join(sorted((words[STEREOTYPE], words[ANTI])))
    return OptionItem(
        id=f"subtler_biases/{number}",
        group=kind,
        cluster=f"{kind}: {pair}",
        options={name: context.replace(_BLANK, word) for name, word in words.items()},
        topic=context,
        tags={"polarity": row["item_category"], "direction": row["type_category"]},
    )
