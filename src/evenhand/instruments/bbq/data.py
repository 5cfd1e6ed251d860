"""The records of BBQ, joined with the metadata that says which option is the stereotyped one."""

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles, card_of

_METADATA = "supplemental/additional_metadata.csv"
_KEY = ("category", "question_index", "example_id")
STRATUM = ("category", "question_index", "aligned", "condition")


card = partial(card_of, __package__)


class BbqData:
    """Every record, one row each.

    `biased` is the option that agrees with the stereotype in this question: the metadata's
    `target_loc`, which is already turned around for non-negative questions (turning it again is
    the common mistake). It is null for the 16 records without a unique target. `against` names the
    group that the stereotype is about. `aligned` says of a whole block whether its text names the
    stereotyped person, and `alike` how many records share template, `aligned` and condition.
    """

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._files = PinnedFiles.of("bbq", card()["data"], local, cache)

    def records(self) -> pl.DataFrame:
        """Give all records. Files are checked at each call; bytes with the same checksums are
        parsed once."""
        checksums = tuple(self._files.sha256.values())
        if checksums not in _PARSED:
            _PARSED[checksums] = _joined(self._files)
        else:
            for name in self._files.sha256:
                self._files.read(name)
        return _PARSED[checksums]


_PARSED: dict[tuple[str, ...], pl.DataFrame] = {}  # by the checksums of the files


def _joined(files: PinnedFiles) -> pl.DataFrame:
    """Read the records and join them with their metadata."""
    names = [name for name in sorted(files.sha256) if name.startswith("data/")]
    frame = pl.concat([_parsed(files.read(name)) for name in names]).with_row_index("row")
    metadata = _metadata(files.read(_METADATA))
    joined = frame.join(metadata, on=_KEY, how="left", maintain_order="left")
    if len(joined) != card()["data"]["items"] or joined["names"].null_count():
        raise UserError(
            "BBQ's metadata does not match its records. Check that the folder is complete"
        )
    return completed(joined.with_columns(against=against()).drop("groups"), card()["masked"])


def _metadata(data: bytes) -> pl.DataFrame:
    raw = pl.read_csv(io.BytesIO(data), infer_schema=False, null_values=["NA", ""])
    return (
        raw.select(
            "category",
            "question_index",
            pl.col("example_id").cast(pl.Int64),
            biased=pl.col("target_loc").cast(pl.Int64),
            names=pl.col("label_type") == "name",
        ).unique()  # 64 keys stand twice, with equal values
    )


_ANSWER = pl.List(pl.String)  # text and group
_FIELDS: dict[str, Any] = {
    "category": pl.String,
    "question_index": pl.String,
    "example_id": pl.Int64,
    "question_polarity": pl.String,
    "context_condition": pl.String,
    "context": pl.String,
    "question": pl.String,
    "ans0": pl.String,
    "ans1": pl.String,
    "ans2": pl.String,
    "label": pl.Int64,
    "answer_info": pl.Struct({"ans0": _ANSWER, "ans1": _ANSWER, "ans2": _ANSWER}),
}


def _parsed(data: bytes) -> pl.DataFrame:
    """One file's records as columns, without a Python object per field."""
    info = pl.col("answer_info").struct
    is_unknown = [info.field(f"ans{n}").list.get(1) == "unknown" for n in range(3)]
    return pl.read_ndjson(data, schema=_FIELDS).select(
        "category",
        "question_index",
        "example_id",
        "context",
        "question",
        "label",
        polarity="question_polarity",
        condition="context_condition",
        options=pl.concat_list("ans0", "ans1", "ans2"),
        unknown=pl.concat_list(is_unknown).list.arg_max().cast(pl.Int64),
        groups=pl.concat_list([info.field(f"ans{n}").list.get(1) for n in range(3)]),
    )


def completed(records: pl.DataFrame, masked: Mapping[str, Any]) -> pl.DataFrame:
    """Add what follows from the records: which are masked, by the card, which way each block
    points, and how many are alike."""
    marked = records.with_columns(masked=_masked(masked)).with_columns(aligned=_aligned())
    return marked.with_columns(alike=pl.len().over(STRATUM))


def _aligned() -> pl.Expr:
    """The gold of a masked record names the wrong person, so there its text says the opposite."""
    fits = (pl.col("label") == pl.col("biased")) != pl.col("masked")
    alignment = pl.when(pl.col("condition") == "disambig").then(fits)
    return alignment.max().over(pl.col("row") // 4)


def _masked(ranges: Mapping[str, Any]) -> pl.Expr:
    masked = pl.lit(value=False)
    for category, spans in ranges.items():
        ids = [n for s in spans for n in range(s["from"], s["to"] + 1, s["step"])]
        masked |= (pl.col("category") == category) & pl.col("example_id").is_in(ids)
    return masked


# -- whom the stereotype of a question is about ---------------------------------------------------


_RACES = {
    "Black": "Black", "African American": "Black", "African": "Black",
    "Latino": "Latino", "Hispanic": "Latino", "South American": "Latino",
    "Arab": "Middle Eastern", "Middle Eastern": "Middle Eastern",
    "White": "White", "Caucasian": "White", "European": "White",
    "Asian": "Asian", "Native American": "Native American", "Roma": "Roma", "Jewish": "Jewish",
}  # fmt: skip
_PEOPLE = {
    "F": "women", "woman": "women", "girl": "women", "M": "men", "man": "men", "boy": "men",
    "trans": "trans people", "trans_F": "trans people", "trans_M": "trans people",
    "old": "old people", "nonOld": "young people",
    "disabled": "disabled people",
    "lowSES": "poor people", "highSES": "rich people",
    "Africa": "people from Africa", "AsiaPacific": "people from Asia and the Pacific",
    "MiddleEast": "people from the Middle East", "ArabStates": "people from the Middle East",
    "Europe": "people from Europe", "NorthAmerica": "people from North America",
    "obese": "obese people", "negDress": "badly dressed people", "pregnant": "pregnant women",
    "short": "short people", "visibleDifference": "people with a visible difference",
    "Muslim": "Muslims", "Christian": "Christians", "Catholic": "Catholics", "Mormon": "Mormons",
    "Hindu": "Hindus", "Atheist": "atheists",
    "gay": "gay men", "lesbian": "lesbians", "bisexual": "bisexual people",
    "pansexual": "pansexual people",
}  # fmt: skip
_SEXES, _MEANS = {"F": "women", "M": "men"}, {"lowSES": "poor", "highSES": "rich"}


def against() -> pl.Expr:
    """Name the group of the target; null where a record has no target."""
    other = 3 - pl.col("unknown") - pl.col("biased")
    target = pl.when(pl.col("polarity") == "neg").then("biased").otherwise(other)
    label = pl.col("groups").list.get(target, null_on_oob=True)
    text = pl.col("options").list.get(target, null_on_oob=True)
    # BBQ leaves the label of one option empty, "the Latina woman".
    corrected = pl.when((label == "") & text.str.contains("Latina")).then(pl.lit("F-Latino"))
    pair = pl.struct(category="category", label=corrected.otherwise(label))
    return pair.map_elements(lambda row: name_of(**row), return_dtype=pl.String)


def name_of(category: str, label: str | None) -> str | None:
    """Name a group in the plural. A race has a sex only where the category is about both, because
    the names of people have one by chance.

    >>> name_of("Race_x_gender", "F-Black"), name_of("Race_ethnicity", "F-Black")
    ('Black women', 'Black people')
    """
    if label is None or label in _PEOPLE:
        return _PEOPLE.get(label or "")
    *before, race = label.split("-")
    if race not in _RACES:
        return label or None
    means = [_MEANS[part] for part in before if part in _MEANS]
    sexes = [_SEXES[part] for part in before if part in _SEXES and category == "Race_x_gender"]
    return " ".join([*means, _RACES[race], *(sexes or ["people"])])
