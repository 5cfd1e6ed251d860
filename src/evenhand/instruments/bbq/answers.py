"""Recorded answers joined to BBQ's records: those of a file, a run or the log of another tool."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from evenhand import interop
from evenhand.core.errors import UserError
from evenhand.findings.report import Side, not_run, require
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.instruments._answers import RecordedAnswer, read_answers
from evenhand.instruments.bbq.editions import ENGLISH, Edition, edition_of
from evenhand.interop import ExternalItem
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.bbq import BIASED

_COLUMNS: dict[str, Any] = {
    "item": pl.String,
    "text": pl.String,
    "place": pl.Int64,
    "shown": pl.List(pl.String),
}
_ENGLISH = Edition(ENGLISH)
_NOTHING = " "  # an answer that is none of the options: it counts as missing
_Row = tuple[Any, ...]  # as the columns


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Stored answers: the records that have one, with it as column `answer`, and where they are
    from if another tool's log tells."""

    records: pl.DataFrame
    origin: interop.Origin | None
    notes: tuple[str, ...] = ()


def with_answers(
    records: pl.DataFrame, file: Path, edition: Edition = _ENGLISH, benchmark: str = "bbq"
) -> StoredAnswers:
    """Join records with the answers in a file, in another tool's log or in a run folder.

    An answer is the text of an option, or its number (0, 1, 2) in the data's own order.

    Args:
        records: BBQ records.
        file: Where the answers are.
        edition: Edition of BBQ that the records belong to.
        benchmark: Name of the instrument, which made the run if the answers are of one.
    """
    log = interop.read(file) if file.is_file() else None
    if log is not None:
        joined = with_answers_of(records, log.answers, str(file), log.origin.task)
        return StoredAnswers(joined, log.origin, log.notes)
    answers = read_answers(file, benchmark, "{category}/{example_id}")
    if answers.origin is not None and edition_of(RunReader(file).record.source) != edition:
        raise UserError(f"{file} is a run in another language. Set --language as for that run")
    rows = [(item, *_text_and_place(answer), None) for item, answer in answers.by_item.items()]
    return StoredAnswers(_joined(records, rows, str(file)), answers.origin)


def _text_and_place(answer: RecordedAnswer) -> tuple[str | None, int | None]:
    if isinstance(answer, int):
        return None, answer if answer >= 0 else None
    return (answer if answer and answer.strip() else None), None


def with_answers_of(
    records: pl.DataFrame, answers: Iterable[interop.LoggedAnswer], where: str, task: str
) -> pl.DataFrame:
    """Join records with the answers in another tool's log.

    Args:
        records: BBQ records.
        answers: Answers of the log. A record without one counts as missing.
        where: File name for error messages.
        task: Name of the task in the log.

    Returns:
        The records with the column `answer`.

    Raises:
        UserError: An answer does not belong to these records, or a record has two.
    """
    return _joined(records, _of_log(answers, where, task), where)


def _joined(records: pl.DataFrame, rows: Iterable[_Row], file: str) -> pl.DataFrame:
    answers = pl.DataFrame(list(rows), schema=_COLUMNS, orient="row")
    if answers["item"].is_duplicated().any():
        raise UserError(f"{file} contains two answers to the same question. Remove duplicates")
    item = pl.format("{}/{}", "category", "example_id")
    joined = records.with_columns(item=item).join(answers, on="item", maintain_order="left")
    if len(joined) != len(answers):
        raise UserError(
            f"{len(answers) - len(joined)} of the {len(answers)} answers in {file} match no "
            "BBQ record. Check category (as in BBQ's file names) and example_id. For other "
            "languages: evenhand measure bbq --language ko --answers FILE"
        )
    _refuse_others(joined, file)
    chosen = pl.col("options").list.get(pl.col("place"), null_on_oob=True)
    answered = joined.with_columns(answer=pl.coalesce("text", chosen))
    return answered.drop("item", "text", "place", "shown")


def covered(
    answered: pl.DataFrame, of: Edition = _ENGLISH, sample: str | None = None
) -> dict[str, object]:
    """Count which part of the benchmark stored answers cover.

    The choice of the answers can decide the result, so the run record says what they cover.

    Args:
        answered: Records that have an answer.
        of: Edition of BBQ that the records belong to.
        sample: Name of the sample that the answers make up. None if they are not a known one.

    Returns:
        Fields for the run record.
    """
    blocks = answered.group_by(pl.col("row") // 4).len()
    return {
        **({} if sample is None else {"sample": sample}),
        "records": len(answered),
        "of": of.card["data"]["items"],
        "incomplete_blocks": int((blocks["len"] < 4).sum()),
    }


def _of_log(answers: Iterable[interop.LoggedAnswer], where: str, task: str) -> Iterator[_Row]:
    for number, answered in enumerate(answers, start=1):
        category = answered.about.get("category")
        example = answered.about.get("source_id", answered.about.get("example_id"))
        if not isinstance(category, str) or not isinstance(example, int):
            raise UserError(
                f"{where}: question {number} has no BBQ identifier (category, and source_id or "
                f"example_id). Its task is {task[:60]!r}"
            )
        options = _own(answered)
        yield f"{category}/{example}", _said(answered, options), None, sorted(options)


def _own(answered: interop.LoggedAnswer) -> list[str]:
    """The options of the record itself: those of the document, where a log has it, as more may have
    been offered."""
    values = [answered.about.get(f"ans{n}") for n in range(3)]
    texts = [text for text in values if isinstance(text, str)]
    return texts if len(texts) == 3 else [*answered.options]


def _said(answered: interop.LoggedAnswer, options: list[str]) -> str:
    if not isinstance(answered.answer, int):
        return answered.answer or _NOTHING
    answer = answered.options[answered.answer]
    if answer in options:
        return answer
    # lm-evaluation-harness offers other words for "unknown" than the record does.
    info = answered.about.get("answer_info")
    infos = info if isinstance(info, dict) else {}
    unknown = [text for n, text in enumerate(options) if _is_unknown(infos.get(f"ans{n}"))]
    return unknown[0] if len(unknown) == 1 else _NOTHING


def _is_unknown(info: Any) -> bool:
    return isinstance(info, list) and "unknown" in info


def _refuse_others(joined: pl.DataFrame, file: str) -> None:
    """Refuse a log whose questions have other options than the records of the same name."""
    rows = joined.filter(pl.col("shown").is_not_null())
    others = rows.filter(pl.col("options").list.sort() != pl.col("shown"))
    if len(others):
        first = others.row(0, named=True)
        raise UserError(
            f"{len(others):,} questions of {file} have different options from BBQ's, such "
            f"as {first['category']}/{first['example_id']}. The file is not from the BBQ "
            "version in the dataset card"
        )


# -- the items of a run as BBQ has them -----------------------------------------------------------


def as_asked(run: RunReader, records: pl.DataFrame) -> Mapping[str, ExternalItem]:
    """Find the record of each item. A run whose answers are not among the options of its records
    is over other data, and refused."""
    rows = run.results().select("item_id", "text", "choice", "tags").collect()
    item = pl.format("{}/{}", "category", "example_id")
    matched = records.with_columns(item=item).filter(
        pl.col("item").is_in(rows["item_id"].implode())
    )
    by_item = {row["item"]: row for row in matched.iter_rows(named=True)}
    questions = {}
    for row in rows.iter_rows(named=True):
        question = _asked(by_item.get(row["item_id"]), row)
        if question is None:
            raise UserError(
                f"{run.path} does not use the BBQ version in the dataset card: the item "
                f"{row['item_id']!r} differs. To export the items of the run: evenhand runs "
                f"export {run.path} --to csv --out items.csv"
            )
        questions[row["item_id"]] = question
    return questions


def _asked(record: Mapping[str, Any] | None, row: Mapping[str, Any]) -> ExternalItem | None:
    if record is None:
        return None
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    data_options = tuple(record["options"])
    try:
        options = tuple(data_options[int(index)] for index in tags["order"])
        masked = tags["masked"] == "1"  # its gold contradicts its text
        gold = None if masked else int(tags["gold"])
        if row["choice"] is not None and row["text"] != options[row["choice"]]:
            return None
    except (KeyError, ValueError, IndexError):
        return None
    about = {
        "example_id": record["example_id"],
        "question_index": record["question_index"],
        "question_polarity": record["polarity"],
        "context_condition": record["condition"],
        "category": record["category"],
        "label": record["label"],
    }
    return ExternalItem(
        about=about,
        context=record["context"],
        question=record["question"],
        own=data_options,
        options=options,
        gold=gold,
    )


# -- items of another run -------------------------------------------------------------------------


Answered = Literal["biased", "wrong", "any"]


def picked(
    bbq: ScoringSpec, records: pl.DataFrame, run: RunReader, answered: Answered
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Select the records that an earlier run failed on first, or all that it was asked.

    Args:
        bbq: Scores the earlier run.
        records: All BBQ records.
        run: The earlier run.
        answered: "biased" (chose the stereotyped option wrongly), "wrong", or "any".

    Returns:
        The selected records, and fields for the run record that name the run that selected them.

    Raises:
        UserError: The run is not one of BBQ or not finished, or no answer matches.
    """
    require(bbq, run)
    if not_run(run):
        raise UserError(
            f"{run.path} is not finished: {not_run(run):,} items are missing. Resume it "
            "with the same command before selecting its items"
        )
    outcomes = pl.concat(outcome_batches(bbq.for_run(run), run))
    first = "_first" if "answer_first" in outcomes.columns else ""
    fails = ~pl.col(f"correct{first}")
    if answered == "biased":
        fails &= pl.col(f"answer{first}") == BIASED
    names = (outcomes if answered == "any" else outcomes.filter(fails))["item_id"]
    if names.is_empty():
        raise UserError(f"{run.path} has no {answered} first answers, so no items can be selected")
    item = pl.format("{}/{}", "category", "example_id")
    matched = records.filter(item.is_in(names.implode()))
    if answered != "any":
        # What the others of a template would weigh is not known of items that were picked.
        matched = matched.drop("alike")
    record = run.record
    return matched, {
        "answered": answered,
        "of": record.source["items"],
        "without_answer": int(outcomes["answer"].null_count()),
        "method": record.method["name"],
        "model": Side.of(run).model,
        "sha256": record.source["sha256"],
    }
