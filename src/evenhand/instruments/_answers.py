"""Answers that exist already, joined to the items of an instrument by the id of each item.

A file has a JSON object on each line, or one object from id to answer; a run folder works as well.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Formatter
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, create_model

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.findings.report import Side
from evenhand.instruments.files import sha256_of
from evenhand.interop import Origin
from evenhand.runs.runners.source import ItemList, Source, read_row
from evenhand.runs.store import RunReader

RecordedAnswer = str | int | None  # None: known to be missing
_BLANK = " "  # an empty answer that says something; "" would be an item without an answer


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Recorded answers by the id of their item, with the place of each in the file. Those of a run
    also have what was asked, and where they are from."""

    file: str
    by_item: Mapping[str, RecordedAnswer]
    places: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    sha256: str | None = None  # of the items of the run

    def place(self, item: str) -> str:
        """Say where the answer to an item stands."""
        return self.places.get(item, self.file)


def fields_in(template: str) -> tuple[str, ...]:
    """Name the fields of a row that its item's id is made of."""
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)


def read_answers(file: Path, benchmark: str, template: str) -> RecordedAnswers:
    """Read recorded answers from a file of JSON lines, a single JSON object or a run folder.

    Args:
        file: Where the answers are; a file may be compressed (.gz).
        benchmark: Name of the instrument, which made the run if it is one.
        template: How the fields of a row name its item, such as "{category}/{example_id}".

    Returns:
        The answers by item.

    Raises:
        UserError: The file cannot be read, a row does not match, or an item has two answers.
    """
    if (file / "run.json").is_file():
        return _of_run(RunReader(file), benchmark)
    if not file.is_file():
        raise UserError(f"{file} is neither a file nor a run folder. Check the path of --answers")
    data = _bytes(file)
    rows = _of_object(data, file, template) or _of_lines(data, file, template)
    by_item: dict[str, RecordedAnswer] = {}
    places: dict[str, str] = {}
    for place, item, answer in rows:
        if item in by_item:
            raise UserError(
                f"{place}: a second answer to {item!r} (the first: {places[item]}). Keep one of "
                "them"
            )
        by_item[item], places[item] = answer, place
    if not by_item:
        raise UserError(f"{file} has no answers; {_form(template)}")
    return RecordedAnswers(str(file), by_item, places)


def _bytes(file: Path) -> bytes:
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{file} cannot be read: {error}") from None


_Rows = Iterable[tuple[str, str, RecordedAnswer]]  # where it stands, the item's id, the answer


def _of_object(data: bytes, file: Path, template: str) -> _Rows | None:
    """The pairs of one JSON object from id to answer; None where the file is none."""
    try:
        answers = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    line = {"answer", *fields_in(template)}
    if not isinstance(answers, dict) or line & answers.keys():
        return None
    for item, answer in answers.items():
        if not (answer is None or isinstance(answer, str)):
            raise UserError(f"{file}: the answer to {item!r} must be a text or null")
    pairs = json.loads(data, object_pairs_hook=list)  # with an id that stands there twice
    return [(str(file), item, answer) for item, answer in pairs]


def _of_lines(data: bytes, file: Path, template: str) -> Iterator[tuple[str, str, RecordedAnswer]]:
    names = fields_in(template)
    columns: dict[str, Any] = {name: (str | int, ...) for name in names}
    columns["answer"] = (str | int | None, ...)
    row_model: type[BaseModel] = create_model(
        "AnswerRow", __config__=ConfigDict(strict=True), **columns
    )
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            place = f"{file} line {number}"
            row = read_row(row_model, line, place, _form(template)).model_dump()
            yield place, template.format(**row), row["answer"]


def _form(template: str) -> str:
    names = ", ".join(fields_in(template))
    return f"each line needs {names} and answer, which is null where there is none"


def _of_run(run: RunReader, benchmark: str) -> RecordedAnswers:
    """The answers of a run; an item without one is missing."""
    if run.record.source.get("benchmark") != benchmark:
        raise UserError(f"{run.path} is not a run of {benchmark}. Check the path of --answers")
    if run.open or run.totals().items < run.planned:
        raise UserError(f"{run.path} is not finished. Repeat its command to finish it")
    run.require_texts()
    by_item: dict[str, RecordedAnswer] = {}
    prompts: dict[str, str] = {}
    for batch in run.result_batches(["item_id", "prompt", "text"]):
        for item, prompt, text in batch.iter_rows():
            by_item[item], prompts[item] = text, prompt
    origin = Origin(
        tool="evenhand",
        version=str(run.record.versions.get("evenhand", "")),
        task=f"{benchmark}, {run.record.method['name']}",
        model=Side.of(run).model,
        created=str(run.record.created),
        file=Path(run.path).name,
        sha256=run.digests()["answers"],
    )
    return RecordedAnswers(str(run.path), by_item, {}, prompts, origin, run.record.source["sha256"])


class AnsweredItems(ItemList):
    """The items of an instrument that a file has answers to, each with its answer."""

    def __init__(
        self,
        source: Source,
        answers: RecordedAnswers,
        *,
        together: str | None = None,
        silence: bool = False,
    ) -> None:
        """Join the answers to the items.

        Args:
            source: All items that may have an answer.
            answers: The answers.
            together: The tag of items that are scored together. Where one of them has an answer, an
                item without one is missing. None: it is left out.
            silence: Whether an empty answer says something; else it is missing.

        Raises:
            UserError: An answer belongs to no item, or to another prompt or option than its item.
        """
        every = list(source.read(0, len(source)))
        unknown = answers.by_item.keys() - {item.id for item in every}
        if unknown:
            first = next(item for item in answers.by_item if item in unknown)
            raise UserError(
                f"{answers.place(first)}: no item is called {first!r} ({len(unknown):,} of "
                f"{len(answers.by_item):,} answers belong to no item). An id is like "
                f"{every[0].id!r}. Correct the ids, or remove these answers"
            )
        answered = [item for item in every if item.id in answers.by_item]
        if together is not None:
            units = {item.tags[together] for item in answered}
            answered = [item for item in every if item.tags[together] in units]
        super().__init__([_answered(item, answers, silence) for item in answered])
        self._answers = answers
        self._of = source.fingerprint()

    def fingerprint(self) -> dict[str, Any]:
        """The same items without their answers have the same sha256, so that runs are compared."""
        ids = [item.id for item in self._items]
        stored, of = self._of["sha256"], self._of["items"]
        if len(ids) < of:
            stored = self._answers.sha256 or sha256_of([stored, ids])
        origin = self._answers.origin
        return {
            **self._of,
            "items": len(ids),
            "sha256": stored,
            "sampling": {"stored": {"items": len(ids), "of": of}},
            "answers": sha256_of([(item.id, item.answer) for item in self._items]),
            **({} if origin is None else {"origin": origin.to_dict()}),
        }


def _answered(item: Item, answers: RecordedAnswers, silence: bool) -> Item:
    answer = answers.by_item.get(item.id)
    if answers.prompts.get(item.id, item.prompt) != item.prompt:
        raise UserError(
            f"{answers.place(item.id)}: the run asked {item.id!r} in other words than this "
            "version does. Score it with the options and the version that asked it"
        )
    if isinstance(answer, int):
        answer = str(answer)
        if item.choices and answer not in item.choices:
            raise UserError(
                f"{answers.place(item.id)}: {answer} does not say which option it is, because "
                f"options are shuffled. Write the option's text, such as {item.choices[0]!r}"
            )
    if answer is not None and not answer.strip():
        answer = _BLANK if silence else None
    return replace(item, answer=answer)
