"""The readers of BBQ in other languages: from the files of a set to the records of BBQ."""

import io
import re
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles

# -- Spanish and Catalan --------------------------------------------------------------------------


_KEY = ("category", "template_id", "version")
_QUOTED = r"'[^']*'|\"[^\"]*\""
_BLOCKS = 1000  # more than a template has


def spanish(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    read = [pl.read_csv(io.BytesIO(files.read(name)), infer_schema=False) for name in files.sha256]
    raw = pl.concat(read).with_columns(
        pl.col("version").fill_null(""),
        pl.col("label", "template_id").cast(pl.Int64),
        condition="context_condition",
        polarity="question_polarity",
    )
    labelled = raw.with_columns(unknown=_unknown(), biased=_biased()).with_columns(block=_block())
    return labelled.select(
        "category",
        "context",
        "question",
        "label",
        "polarity",
        "condition",
        "unknown",
        question_index=pl.col("template_id").cast(pl.String),
        # The data write "unknown" for the option that has no fixed words.
        options=pl.concat_list(
            pl.when(pl.col("unknown") == n).then(pl.lit(card["unknown"])).otherwise(f"ans{n}")
            for n in range(3)
        ),
        biased=pl.when(~_disputed()).then("biased"),
        names=pl.lit(value=False),  # our choice: as their paper counts, names and groups together
        against=_listed("stereotyped_groups").list.join(", "),
        block="block",
    )


def _unknown() -> pl.Expr:
    tagged = [_tagged(n) == "unknown" for n in range(3)]
    return pl.concat_list(tagged).list.arg_max().cast(pl.Int64)


def _listed(column: str) -> pl.Expr:
    return pl.col(column).str.extract_all(_QUOTED).list.eval(pl.element().str.slice(1).str.head(-1))


def _tagged(option: int) -> pl.Expr:
    """The tag's last words are the name of the group, as the authors' own scoring takes them."""
    return (
        _listed(f"answer_info.ans{option}").list.last().str.split(",").list.last().str.strip_chars()
    )


def _biased() -> pl.Expr:
    """The one option of a stereotyped group, or in a non-negative question the other person."""
    groups = _listed("stereotyped_groups")
    first, second = (groups.list.contains(_tagged(n)) for n in range(2))
    target = pl.when(first & ~second).then(0).when(second & ~first).then(1)
    return pl.when(pl.col("polarity") == "neg").then(target).otherwise(1 - target).cast(pl.Int64)


def _disputed() -> pl.Expr:
    """True of all spanish of a template with these tags, if one of them is marked otherwise."""
    marked = pl.col("question_type").replace_strict(
        {"pro-stereo": True, "anti-stereo": False}, default=None, return_dtype=pl.Boolean
    )
    disputed = marked != (pl.col("label") == pl.col("biased"))
    alike = ("category", "template_id", "answer_info.ans0", "answer_info.ans1")
    return disputed.any().over(alike)


def _block() -> pl.Expr:
    """Match each ambiguous pair of questions with a disambiguated pair that begins with its text.

    A template is written out with the two people in either order, in the ambiguous part ("ambig"),
    in what is added ("disambig") or in both ("all"); only the first kind has its own ambiguous
    questions. Of these the flipped ones go with "all", so that a template has blocks whose answer
    fits the stereotype and blocks whose answer does not. Disambiguated questions alone are left.
    """
    clear = pl.col("condition") == "disambig"
    kind = (*_KEY, "flipped", "condition")
    # A pair is a negative question and the other one behind it; a few texts have one of the two.
    paired = pl.col("polarity").ne(pl.col("polarity").shift(1)) & (
        pl.col("context") == pl.col("context").shift(1)
    )
    begins = (pl.col("polarity") == "neg") | ~paired.fill_null(value=False)
    turn = begins.cum_sum().over(kind)
    # An ambiguous question comes right before the first disambiguated one of its text.
    number = pl.when(clear).then(turn).otherwise(turn.shift(-1))
    swapped = (pl.col("flipped") == "all").any().over(_KEY)
    left_over = clear & swapped & (pl.col("flipped") == "ambig")
    part = (
        pl.when(left_over)
        .then(2)
        .otherwise(
            pl.col("flipped").replace_strict({"original": 0, "ambig": 1, "all": 1, "disambig": 3})
        )
    )
    sort_key = pl.format("{}/{}/{}", "version", part, number.cast(pl.String).str.zfill(4))
    return _BLOCKS * pl.col("template_id") + _rank(sort_key, "category", "template_id")


def _rank(sort_key: pl.Expr, *over: str) -> pl.Expr:
    return sort_key.rank("dense").over(over).cast(pl.Int64)


# -- German ---------------------------------------------------------------------------------------


_SUBSETS = {1: "bbq_de", 2: "bbq_de_proper_names"}
_CONDITIONS = {"ambig": "amb", "disambig": "disamb"}
_POLARITIES = {"negative": "neg", "non_negative": "nonneg"}
_GROUPS = {"F": "F", "M": "M", "non_binary": "trans", "unknown": "unknown"}  # of each tag
_PEOPLE = {"F": "women", "M": "men", "trans": "trans people"}
_SUBSET_BLOCKS = 10_000  # more than a subset has


def german(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    """Give the german of both subsets."""
    table = pl.concat([_subset(files, subset) for subset in _SUBSETS])
    swapped = pl.col("question_index").is_in(card["swapped"])
    return table.with_columns(biased=pl.when(~swapped).then("biased"))


def _subset(files: PinnedFiles, subset: int) -> pl.DataFrame:
    parts = []
    for condition, word in _CONDITIONS.items():
        name = f"data/subset-{subset}/{_SUBSETS[subset]}_{word}_test.jsonl"
        part = pl.read_ndjson(files.read(name))
        parts.append(part.with_columns(condition=pl.lit(condition)))
    raw = pl.concat(parts)
    templates = _templates_of(raw, files.read(f"templates/subset-{subset}.csv"))
    labelled = raw.with_columns(
        polarity=pl.col("question_type").replace_strict(_POLARITIES),
        unknown=_first(_group(n) == "unknown" for n in range(3)),
        target=_first(_stereotyped(n) for n in range(3)),
    ).join(templates, on=["question", "context"], how="left", maintain_order="left")
    other = 3 - pl.col("unknown") - pl.col("target")
    group = pl.concat_list([_group(n) for n in range(3)]).list.get("target")
    return labelled.select(
        "context",
        "question",
        "question_index",
        "label",
        "polarity",
        "condition",
        "unknown",
        category=pl.lit("GenderIdentity"),
        options=pl.concat_list(f"choice_{n}" for n in range(3)),
        biased=pl.when(pl.col("polarity") == "neg").then("target").otherwise(other),
        names=pl.lit(subset == 2),
        against=group.replace_strict(_PEOPLE),
        block=_SUBSET_BLOCKS * subset + pl.col("index") // 2,  # both questions of one text
    )


def _group(option: int) -> pl.Expr:
    tags = pl.col("choice_info").str.extract_all(r"'\w+'\]").list.get(option)
    return tags.str.strip_chars("']").replace_strict(_GROUPS)


def _stereotyped(option: int) -> pl.Expr:
    return pl.col("known_stereotyped_groups").str.contains(pl.format('"{}"', _group(option)))


def _first(places: Any) -> pl.Expr:
    """The one place of three that is true; null where none is, or several are."""
    at = pl.concat_list([flag.cast(pl.Int64) for flag in places])
    return pl.when(at.list.sum() == 1).then(at.list.arg_max().cast(pl.Int64))


def _templates_of(raw: pl.DataFrame, data: bytes) -> pl.DataFrame:
    """The template of each question and text. A record does not name its own: its question does,
    and where two templates ask the same, what its text begins with."""
    patterns: dict[str, dict[str, list[re.Pattern[str]]]] = {}
    for row in pl.read_csv(BytesIO(data), infer_schema=False).iter_rows(named=True):
        for question in ("question_negative_stereotype", "question_non_negative"):
            of_question = patterns.setdefault(row[question].strip(), {})
            of_question.setdefault(row["question_index"], []).append(
                _pattern(row["ambiguous_context "])
            )
    questions = raw.select("question", "context").unique(maintain_order=True)
    templates = [
        _template(patterns.get(q.strip(), {}), context) for q, context in questions.iter_rows()
    ]
    return questions.with_columns(question_index=pl.Series(templates, dtype=pl.String))


def _template(patterns: Mapping[str, list[re.Pattern[str]]], context: str) -> str:
    fitting = [*patterns]
    if len(fitting) > 1:
        fitting = [name for name in patterns if any(text.match(context) for text in patterns[name])]
    if len(fitting) != 1:
        raise UserError(f"GG-BBQ: no unique template matches the text that begins {context[:60]!r}")
    return fitting[0]


def _pattern(text: str) -> re.Pattern[str]:
    """A template's text with anything in the place of what is filled in."""
    parts = re.split(r"\{\{\w+\}\}", text.strip())
    return re.compile(r"\s*" + ".+?".join(map(re.escape, parts)))


# -- Chinese --------------------------------------------------------------------------------------


_UNKNOWN = 2  # the last option in every record, which `_refuse_others` holds
_CLEAR = pl.col("condition") == "disambig"
_ASKED = ("category", "question")


def chinese(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    del card
    read = [pl.read_csv(io.BytesIO(files.read(name)), infer_schema=False) for name in files.sha256]
    raw = pl.concat(read).with_columns(
        pl.col("label").cast(pl.Int64),
        condition=pl.col("context_condition").replace_strict(
            {"ambiguous": "ambig", "disambiguous": "disambig"}
        ),
    )
    _refuse_others(raw)
    joined = raw.join(_asked(raw), on=_ASKED, how="left", maintain_order="left")
    other = 1 - pl.col("label")
    labelled = joined.with_columns(
        biased=pl.when(_CLEAR).then(other).otherwise("target"),
        # One file calls all ambiguous questions negative: the disambiguated ones say which are.
        polarity=pl.coalesce("asks", "question_polarity").replace({"non_neg": "nonneg"}),
    )
    return labelled.with_columns(block=_pair_block()).select(
        "category",
        "question_index",
        "context",
        "question",
        "label",
        "polarity",
        "condition",
        "biased",
        "block",
        unknown=pl.lit(_UNKNOWN, pl.Int64),
        options=pl.concat_list("ans0", "ans1", "ans2"),
        names=pl.lit(value=False),
        against="bias_targeted_groups",
    )


def _refuse_others(raw: pl.DataFrame) -> None:
    """Refuse data whose unknown option is not always the last."""
    if not ((raw["label"] == _UNKNOWN) != raw.select(_CLEAR).to_series()).all():
        raise UserError(
            "CBBQ's last option is not always the unknown option. Check that this is the "
            "right dataset"
        )


def _asked(raw: pl.DataFrame) -> pl.DataFrame:
    """What the clear chinese of each question say: its stereotyped option and its polarity, each
    null where they differ."""
    values = {"target": 1 - pl.col("label"), "asks": pl.col("question_polarity")}
    agreed = {
        name: pl.when(value.n_unique() == 1).then(value.first()) for name, value in values.items()
    }
    return raw.filter(_CLEAR).group_by(_ASKED).agg(**agreed)


def _pair_block() -> pl.Expr:
    """The questions about the same two people in the same template, in the order of the files."""
    key = ("category", "question_index", "ans0", "ans1")
    turn = pl.int_range(pl.len()).over(*key, "condition", "polarity")
    sort_key = pl.format("{}/{}/{}/{}", pl.col("question_index").str.zfill(4), "ans0", "ans1", turn)
    return sort_key.rank("dense").over("category").cast(pl.Int64)


# -- Korean ---------------------------------------------------------------------------------------


_SAMPLES, _TEMPLATES = "data/KoBBQ_test_samples.tsv", "data/KoBBQ_templates.tsv"


def korean(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    del card
    raw = pl.read_csv(
        io.BytesIO(files.read(_SAMPLES)), separator="\t", infer_schema=False, quote_char=None
    )
    name = pl.col("sample_id").str.split("-")
    parsed = raw.with_columns(
        category=name.list.get(0),
        template=name.list.get(1).str.head(-1),
        version=name.list.get(1).str.tail(1),
        condition=name.list.get(3).replace_strict({"amb": "ambig", "dis": "disambig"}),
        polarity=name.list.get(4).replace_strict({"bsd": "neg", "cnt": "nonneg"}),
        options=pl.col("choices")
        .str.extract_all(_QUOTED)
        .list.eval(pl.element().str.slice(1).str.head(-1)),
    )
    block = ("category", "template", "version")
    # The right answer to ambiguous questions, whatever its words are: the "unknown" option.
    unsaid = pl.col("answer").filter(pl.col("condition") == "ambig").first().over(block)
    joined = parsed.join(_targets(files), on=block, how="left", maintain_order="left")
    return joined.select(
        "category",
        "context",
        "question",
        "polarity",
        "condition",
        "options",
        "against",
        question_index="template",
        label=_place(pl.col("answer")),
        unknown=_place(unsaid),
        biased=_place(pl.col("biased_answer")),
        names=pl.lit(value=False),
        block=(pl.col("template") + pl.col("version"))
        .rank("dense")
        .over("category")
        .cast(pl.Int64),
    )


def _place(answer: pl.Expr) -> pl.Expr:
    """Where an answer stands among the options."""
    at = [pl.col("options").list.get(n) == answer for n in range(3)]
    return pl.when(pl.any_horizontal(at)).then(pl.concat_list(at).list.arg_max()).cast(pl.Int64)


def _targets(files: PinnedFiles) -> pl.DataFrame:
    raw = pl.read_csv(io.BytesIO(files.read(_TEMPLATES)), separator="\t", infer_schema=False)
    return raw.select(
        category=pl.col("Category").str.to_lowercase(),
        template=pl.col("ID").str.zfill(3),
        version="version",
        against="Target_group",
    )
