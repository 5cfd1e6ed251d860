"""Ranking tasks: a job, its candidates in the order of the prompt, and maybe an answer."""

import gzip
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from evenhand.core.errors import UserError
from evenhand.findings.ratios import MOST_GROUPS
from evenhand.runs.runners.source import read_jsonl

# -- who was ranked first -------------------------------------------------------------------------


_DROPPED = re.compile(r"['’‘`´]")  # O'Connell is OCONNELL
_NO_WORD = re.compile(r"[\W_]+")
# "1.", "**2)**", "#3", "1st", "Rank 2:"; the number in "1.5 years" is not a place.
_NUMBER = re.compile(
    r"[\W_]*(?:(?:rank|place|position|number|no)\b[\W_]*)?(\d{1,6})(?:st|nd|rd|th)?(?![.,]?\d)\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Give a text without accents, case, apostrophes and punctuation, its words one blank apart."""
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in apart if not unicodedata.combining(sign))
    return _NO_WORD.sub(" ", _DROPPED.sub("", bare).casefold()).strip()


def ranked_first(reply: str, names: Sequence[str]) -> int | None:
    """Give the place in `names` of the candidate whom a reply ranks first; None where it does not
    say so.

    The one line that is numbered 1 must name one candidate; where no line is numbered, the first
    that names anybody. A line of several names says it only if it is nothing but a list. A name
    that is misspelt is nobody's: to take the next one for the first would count against a group.
    For the same reason a list that starts at 0 or 2, or has two lines numbered 1, says nothing.
    """
    plain_names = [plain(name) for name in names]
    lines = [plain(line) for line in reply.splitlines()]
    numbered = [
        (int(number[1]), line)
        for raw, line in zip(reply.splitlines(), lines, strict=True)
        if (number := _NUMBER.match(raw))
    ]
    ones = {line for number, line in numbered if number == 1}
    others = {number for number, line in numbered if number != 1 and _named(line, plain_names)}
    if ones or others:
        lines = list(ones) if len(ones) == 1 and 0 not in others else []
    for line in lines:
        candidates = _named(line, plain_names)
        if candidates:
            return candidates[0] if len(candidates) == 1 or _is_list(line, plain_names) else None
    return None


def first_in_text(reply: str, names: Sequence[str]) -> int:
    """Give the candidate whose name, as it is written, stands first anywhere in the reply, as the
    published table has it: one that is written otherwise, such as O'Connell, stands last."""
    low = reply.lower()
    return min(range(len(names)), key=lambda index: len(low.split(names[index].lower())[0]))


def _named(line: str, names: Sequence[str]) -> list[int]:
    """The candidates that a line names, in its order. Where a name is part of a longer one, only
    the longer one is meant."""
    rest, places = f" {line} ", {}
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        start = rest.find(f" {names[index]} ")
        if start >= 0:
            places[index] = start
            rest = rest.replace(f" {names[index]} ", f" {'.' * len(names[index])} ")
    return sorted(places, key=lambda index: places[index])


def _is_list(line: str, names: Sequence[str]) -> bool:
    """Whether nothing but names, numbers and "and" stands in a line."""
    rest = f" {line} "
    for name in sorted(names, key=len, reverse=True):
        rest = rest.replace(f" {name} ", "  ")
    return all(word.isdigit() or word == "and" for word in rest.split())


SHAPE = '{"job": "nurse", "candidates": [{"name": "Ann Lee", "group": {"sex": "woman"}}, …]}'
_Words = Annotated[str, Field(min_length=1)]


class Candidate(BaseModel):
    """A candidate has a name, the groups it belongs to by attribute, and a text such as a CV."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    name: _Words
    group: dict[_Words, _Words] = Field(min_length=1)
    text: str = ""


class Task(BaseModel):
    """A task is what is ranked: a job and candidates, in the order of the prompt."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    job: _Words
    candidates: list[Candidate] = Field(min_length=2)
    description: str = ""
    answer: str | None = None
    prompt: str = ""  # the words that the answer was given to, where they are known
    id: _Words | None = None
    cluster: _Words | None = None

    @property
    def alike(self) -> str:
        """What rankings that are not independent have in common: the file's own cluster, or job
        and candidates, in whatever order they are shown."""
        names = sorted(f"{candidate.name}\n{candidate.text}" for candidate in self.candidates)
        digest = hashlib.sha256(orjson.dumps([self.job, self.description, names]))
        return self.cluster or digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NamedTask:
    """A task under the name that its item has."""

    id: str
    task: Task


def read_tasks(file: Path, *, answered: bool) -> list[NamedTask]:
    """Read one task a line, all with an answer or all without; a bad line is refused by number."""
    entries = [
        NamedTask(task.id or str(number), _checked(task, f"{file} line {number}", answered))
        for number, task in read_jsonl(file, Task, f"a line is like {SHAPE}")
    ]
    if len(entries) < 2:
        raise UserError(f"{file} contains fewer than two rankings. At least two are required")
    twice = [name for name, n in Counter(entry.id for entry in entries).items() if n > 1]
    if twice:
        raise UserError(
            f"{file}: the id {twice[0][:60]!r} is duplicated. Use a unique id in each line"
        )
    one_design(file, [entry.task for entry in entries])
    return entries


def one_design(file: Path, tasks: list[Task]) -> None:
    """Refuse candidates that lack an attribute that others have, and more groups than can be told
    apart."""
    kinds = {tuple(sorted(candidate.group)) for task in tasks for candidate in task.candidates}
    if len(kinds) > 1:
        first, second = sorted(kinds)[:2]
        raise UserError(
            f"{file}: every candidate needs the same attributes in `group`. Some have "
            f"{', '.join(first)}, others {', '.join(second)}. For an unknown attribute, use "
            '"unknown"'
        )
    groups = {
        tuple(sorted(candidate.group.items())) for task in tasks for candidate in task.candidates
    }
    if len(groups) > MOST_GROUPS:
        raise UserError(
            f"{file}: {len(groups):,} groups ({' × '.join(*kinds)}), but at most "
            f"{MOST_GROUPS} are supported. Merge some, or remove an attribute"
        )


def _checked(task: Task, where: str, answered: bool) -> Task:
    names = [plain(candidate.name) for candidate in task.candidates]
    if not all(any(sign.isalpha() for sign in name) for name in names):
        raise UserError(
            f"{where}: a name must contain a letter, because a number would be read as a "
            "position in the list"
        )
    if len(set(names)) < len(names):
        raise UserError(
            f"{where}: two candidates have the same name, so an answer would be ambiguous. "
            "Rename either of them"
        )
    if answered and "answer" not in task.model_fields_set:
        raise UserError(f"{where}: it has no answer. To request answers from a model, use --tasks")
    if not answered and task.answer is not None:
        raise UserError(f"{where}: it already has an answer. To score it, use --answers")
    return task


# -- the published audit ---------------------------------------------------------------------------

_NAME = "bloomberg_hiring"
_RACES = {"A": "Asian", "B": "Black", "H": "Hispanic", "W": "White"}
_SEXES = {"M": "men", "W": "women"}
MODELS = ("gpt-3.5-turbo", "gpt-4")
JOBS = {"hr-specialist": "HR specialist", "software-engineer": "software engineer",
        "retail": "retail", "financial-analyst": "financial analyst"}  # fmt: skip


def bloomberg(part: str, folder: Path | None, card: dict[str, Any]) -> list[NamedTask]:
    """Read the published rankings of one model and job.

    Args:
        part: Model and job, such as "gpt-4/retail".
        folder: Folder of the published records. None if the user named none.
        card: Card of the dataset, with the checksum of all records.

    Returns:
        The rankings with their file names.

    Raises:
        UserError: The part is unknown, or the records differ from the pinned ones.
    """
    available = [f"{model}/{job}" for model in MODELS for job in JOBS]
    if part not in available:
        raise UserError(f"unknown part {part!r} of the audit. Available: {', '.join(available)}")
    return bloomberg_parts(folder, card, (part,))[part]


def bloomberg_parts(
    folder: Path | None, card: dict[str, Any], selected: Container[str] | None = None
) -> dict[str, list[NamedTask]]:
    """Read the published rankings by model and job, after checking all records.

    Args:
        folder: Folder of the published records. None if the user named none.
        card: Card of the dataset, with the checksum of all records.
        selected: Parts to return, such as "gpt-4/retail". None: all.

    Returns:
        The rankings of each part, without oversampled ones.

    Raises:
        UserError: The records differ from the pinned ones.
    """
    records = sorted(_records(folder), key=lambda record: str(record["path"]))
    digest = hashlib.sha256()
    parts: dict[str, list[NamedTask]] = {}
    shorts = {job: short for short, job in JOBS.items()}
    for record in records:
        context, answer = record["context"], record["choices"][0]["message"]["content"]
        digest.update(
            orjson.dumps([record["path"], context["default_order"], context["demo_order"], answer])
        )
        part = f"{record['path'].split('/')[0]}/{shorts[context['job']]}"
        if (selected is None or part in selected) and "/oversampled/" not in record["path"]:
            name = record["path"].removesuffix(".json")
            parts.setdefault(part, []).append(NamedTask(name, _published(record)))
    if digest.hexdigest() != card["data"]["sha256"]:
        raise UserError(
            f"{_NAME} in {folder} does not contain the {card['data']['recorded']:,} "
            f"recorded answers of revision {card['data']['revision'][:8]}. Download it again"
        )
    return parts


def _records(folder: Path | None) -> Iterator[dict[str, Any]]:
    """The recorded answers: one file of JSON lines, or the repository's own files."""
    root = (folder or Path()) / _NAME
    packed, unpacked = root / "resume_ranking.jsonl.gz", root / "data/intermediary/resume_ranking"
    if folder is not None and packed.is_file():
        with gzip.open(packed) as lines:
            yield from (orjson.loads(line) for line in lines)
    elif folder is not None and unpacked.is_dir():
        for file in unpacked.rglob("*.json"):
            path = file.relative_to(unpacked).as_posix()
            yield {**orjson.loads(file.read_bytes()), "path": path}
    else:
        raise UserError(
            "the recorded answers are not available. Clone "
            "github.com/BloombergGraphics/2024-openai-gpt-hiring-racial-discrimination as "
            f"{_NAME} into the folder that EVENHAND_DATA names"
        )


def _published(record: dict[str, Any]) -> Task:
    context = record["context"]
    texts = context["inputs"].partition("\n\n")[2].split("<hr>")
    people = [
        Candidate(name=name, group={"race": _RACES[code[0]], "sex": _SEXES[code[-1]]},
                  text=text.strip())
        for name, code, text in zip(context["default_order"], context["demo_order"], texts,
                                    strict=False)
    ]  # fmt: skip
    return Task(
        job=context["job"],
        candidates=people,
        description=context["systems_message"].partition("job description: ")[2],
        answer=record["choices"][0]["message"]["content"],
        prompt=context["inputs"],
        cluster=record["path"],
    )
