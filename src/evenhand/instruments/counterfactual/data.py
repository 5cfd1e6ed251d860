"""What is asked or was answered: prompts in every version, or the lines of answers that exist."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evenhand.core import FollowUp, Item, Message
from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.contrasts import paired
from evenhand.instruments.files import InstrumentWords, names_in
from evenhand.instruments.text_columns import names_of, text_columns
from evenhand.methods.baselines.several_drafts import VERSIONS, WITHOUT_LABEL
from evenhand.runs.runners.message_rows import MessageRow, ToolRow, Turns, turns_of
from evenhand.runs.runners.source import read_jsonl

_WORDS = InstrumentWords(__package__)
PROMPT = '{"prompt": "{name} asks for a loan of 5,000. Approve or reject?"}'
ANSWER = (
    '{"id": "loan-1", "family": "gender", "label": "woman", "role": "group", "answer": "Approve."}'
)
_MARK = (
    "Mark the words to replace with `evenhand counterfactual PROMPTS --find "
    "spans.jsonl`, then run with --spans spans.jsonl. Or write templates with "
    "placeholders such as {name}"
)
Role = Literal["none", "group", "placebo"]
PlaceboKind = Literal["other", "again"]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


_BETWEEN = "\n\n\ue000\n\n"  # between the messages of a conversation: no word, and no space alone


_PLACES = {"system": "system prompt", "tool": "tool"}


class SimulatedTurns(BaseModel):
    """The turns that a simulated user writes after those of the file, and what it wants."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    goal: Annotated[str, Field(min_length=1, max_length=2000)]
    turns: Annotated[int, Field(ge=1, le=50)]


class _Dialogue(BaseModel):
    """Common to prompts and their versions: a conversation before the prompt, or several turns of
    the user, each answered before the next is asked."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    messages: list[MessageRow] = []
    tools: list[ToolRow] = []  # declared alike in every version
    turns: list[Annotated[str, Field(min_length=1)]] = []
    user: SimulatedTurns | None = None
    place: Annotated[str, Field(max_length=60)] = ""  # where the group stands, as the user calls it

    @model_validator(mode="after")
    def _has_turns(self) -> Self:
        if self.user is not None and not self.turns:
            raise ValueError("user: a simulated user needs at least one of turns before its own")
        if self.tools and (self.turns or not self.messages):
            raise ValueError("tools: only the last turn of messages may have tools")
        unanswered = self.messages and self.messages[-1].role not in ("system", "assistant")
        if self.turns and unanswered:
            raise ValueError("messages: before turns, the last message is a system prompt or an "
                             "answer of the assistant")  # fmt: skip
        return self

    @property
    def answers_asked(self) -> int:
        """How many answers it asks for."""
        return max(len(self.turns), 1) + (self.user.turns if self.user else 0)

    def segments(self) -> list[tuple[str, str]]:
        """Give its words and where they stand: in the system prompt, an earlier turn, a tool, the
        prompt, or one of several turns."""
        users = [at for at, row in enumerate(self.messages) if row.role == "user"]
        asked = None if self.turns or not users else users[-1]
        rows = [("prompt" if at == asked else _PLACES.get(row.role, "earlier turn"), text)
                for at, row in enumerate(self.messages) for text in row.texts()]  # fmt: skip
        turns = [(f"turn {number}", text) for number, text in enumerate(self.turns, start=1)]
        return [*rows, *turns]


class CounterfactualPrompt(_Dialogue):
    """A prompt of the user's, or a conversation: what is swapped, and what stands before it and
    never is. The words of a conversation are swapped as one text, so that a person has the same
    name in all of its messages."""

    id: _Name = ""  # without one it is the number of its line
    prompt: Annotated[str, Field(min_length=1)] = ""
    task: str = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.prompt) == bool(self.messages or self.turns):
            raise ValueError("a line has a prompt, or messages, turns or both")
        if not self.prompt and self.task:
            raise ValueError("task: a conversation has a system message instead")
        for number, (_, text) in enumerate(self.segments()):
            if _BETWEEN.strip() in text:
                raise ValueError(f"messages: text {number} holds the character U+E000")
        return self

    @property
    def text(self) -> str:
        """All words in which a group may be mentioned."""
        return self.prompt or _BETWEEN.join(text for _, text in self.segments())

    def version(self, text: str) -> dict[str, Any]:
        """Give what is asked where this is the text of the prompt, with its task before it."""
        placed = {"place": self.place}
        if self.prompt:
            return {"prompt": f"{self.task}\n\n{text}" if self.task else text, **placed}
        words = iter(text.split(_BETWEEN))
        messages = [row.with_texts(words) for row in self.messages]
        turns = list(words)
        prompt = turns[0] if turns else _turns(messages).prompt
        return {"messages": messages, "tools": self.tools, "turns": turns, "user": self.user,
                "prompt": prompt, **placed}  # fmt: skip


def _turns(messages: Sequence[MessageRow], where: str = "messages") -> Turns:
    return turns_of([row.message() for row in messages], where)


class PromptVersion(_Dialogue):
    """One version of a prompt that is asked, or was: whom it speaks of, and the answer if there is
    one, or that to each of its turns. The label of a placebo is the one that it is a placebo of."""

    id: _Name
    family: _Name
    label: str = ""
    role: Role
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    prompt: str = ""
    answer: str | list[str | None] | None = None

    @model_validator(mode="after")
    def _has_an_answer_to_each_turn(self) -> Self:
        if isinstance(self.answer, str) and self.turns:
            raise ValueError("answer: a list with the answer to each of turns, or null")
        if isinstance(self.answer, list) and len(self.answer) != len(self.turns):
            raise ValueError(f"answer: {len(self.answer)} answers to {len(self.turns)} turns")
        return self

    def described(self) -> dict[str, Any]:
        """The fields of a version; those of a single prompt are without those of conversations."""
        fields = self.model_dump(exclude={"messages", "tools"})
        lists: dict[str, Sequence[BaseModel]] = {"messages": self.messages, "tools": self.tools}
        rows = {name: [row.model_dump(exclude_none=True) for row in entries]
                for name, entries in lists.items()}  # fmt: skip
        return {name: value for name, value in {**fields, **rows}.items()
                if value or name not in _Dialogue.model_fields}  # fmt: skip

    def asked(self, *, stored: bool) -> dict[str, Any]:
        """Give the fields of an item that are asked, or were answered."""
        answers = self.answer if isinstance(self.answer, list) else [None] * len(self.turns)
        answer = (
            (self.answer or None)
            if isinstance(self.answer, str) or not self.turns
            else (answers[-1] or None)
        )
        asked: dict[str, Any] = {"answer": answer if stored else ""}
        if not self.turns:
            fields = _turns(self.messages).fields() if self.messages else {}
            tools = tuple(row.tool() for row in self.tools)
            return {"prompt": self.prompt or " ", **fields, "tools": tools, **asked}
        opening = [row.message() for row in self.messages]
        if stored:
            pairs = zip(self.turns[:-1], answers, strict=False)
            said = [
                message
                for text, reply in pairs
                for message in (Message("user", text), Message("assistant", reply or ""))
            ]
            return {"history": (*opening, *said), "prompt": self.turns[-1], **asked}
        simulated = [FollowUp(goal=self.user.goal)] * self.user.turns if self.user else []
        follow_ups = (*map(FollowUp, self.turns[1:]), *simulated)
        return {"history": tuple(opening), "prompt": self.turns[0], "follow_ups": follow_ups,
                **asked}  # fmt: skip

    @property
    def key(self) -> tuple[str | int, ...]:
        placed = (self.place,) if self.place else ()
        return self.id, self.family, self.label, self.role, self.repeat, *placed


@dataclass(frozen=True, slots=True)
class CounterfactualDesign:
    """The versions that are asked, the labels of each family in their order, what could not be
    swapped (prompt, family and why), and likewise what has no version without a label. Where the
    placebo is another person, `placebo_without` has that one's words without a label, by prompt and
    family; they are what a remedy gives to it, and are not asked by themselves."""

    asked: tuple[PromptVersion, ...]
    labels: dict[str, tuple[str, ...]]
    refused: tuple[tuple[str, str, str], ...] = field(default=())
    skipped: tuple[tuple[str, str], ...] = field(default=())  # families, and why
    never_without: tuple[tuple[str, str, str], ...] = field(default=())
    placebo_without: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def said(self) -> list[str]:
        """Say what is not asked, how often, and why; equal reasons in one line."""
        parts = ((self.refused, "not_asked"), (self.never_without, "not_asked_without"))
        lines = [_WORDS("skipped", family=family, why=why) for family, why in self.skipped]
        gone = {family for family, _ in self.skipped}
        for rows, key in parts:
            by_why: dict[tuple[str, str], list[str]] = {}
            for prompt, family, why in rows:
                if family not in gone:
                    by_why.setdefault((family, why), []).append(prompt)
            lines += [
                _WORDS(key, family=family, prompts=len(ids), example=ids[0], why=why)
                for (family, why), ids in by_why.items()
            ]
        return lines

    def items(
        self, *, stored: bool, decision: str | None = None, number: bool = False
    ) -> list[Item]:
        """Make the items, each with the other label that it is compared with.

        The item of a single prompt also holds what a mitigation needs: its text without a label,
        and if answers are read as decisions or numbers its text under all labels.

        Args:
            stored: Whether the answers exist already.
            decision: Regular expression that finds the decision in an answer. None: no decision.
            number: Whether an answer is read as a number.

        Returns:
            One item per version.
        """
        others, places = _others(self.asked), self.places
        texts: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
        for request in self.asked:
            if not request.segments():
                texts[(*_whole(request), request.role)][request.label] = request.prompt
        reads = not stored and (decision is not None or number)

        def without(request: PromptVersion) -> str:
            nobody = texts[(*_whole(request), "none")].get("", "")
            if request.role != "placebo":
                return nobody
            return self.placebo_without.get((request.id, request.family), nobody)

        def versions(request: PromptVersion) -> str:
            labelled = [*texts[(*_whole(request), request.role)].values()]
            first = [without(request)] if request.role != "none" and without(request) else []
            record = {"texts": [*first, *labelled], "decision": decision}
            return orjson.dumps(record).decode() if reads and labelled else ""

        return [
            Item(
                id="/".join(
                    str(part).replace("%", "%25").replace("/", "%2F") for part in request.key
                ),
                **request.asked(stored=stored),
                tags={
                    "cluster": request.id,
                    "family": request.family,
                    "label": request.label,
                    "role": request.role,
                    "repeat": str(request.repeat),
                    "other": others[request.id, request.family].get(request.label, ""),
                    "place": places[_whole(request)],
                    "opening": str(len(request.messages)),
                    WITHOUT_LABEL: without(request),
                    VERSIONS: versions(request),
                },
            )
            for request in self.asked
        ]

    @property
    def places(self) -> dict[tuple[str, ...], str]:
        """Where the group stands in each prompt: as the user calls it, or else by what differs
        between the versions of two labels."""
        labelled: dict[tuple[str, ...], list[PromptVersion]] = defaultdict(list)
        for request in self.asked:
            if request.role == "group":
                labelled[_whole(request)].append(request)
        return {key: versions[0].place or _where_different(versions)
                for key, versions in labelled.items()}  # fmt: skip

    @property
    def prompts_by_place(self) -> dict[str, int]:
        """How many prompts mention the group in each place."""
        prompts = dict.fromkeys((prompt, place) for (prompt, *_), place in self.places.items())
        return dict(Counter(place for _, place in prompts))

    @property
    def declared_places(self) -> tuple[str, ...]:
        """The placements that are measured by themselves: those that the user declares."""
        declared = any(request.place for request in self.asked)
        return tuple(dict.fromkeys(self.places.values())) if declared else ()

    @property
    def turns(self) -> int:
        """How many answers each conversation has; 0 of prompts that have one."""
        several = {request.answers_asked if request.turns else 0 for request in self.asked}
        if len(several) > 1:
            raise UserError(
                "the prompts ask for different numbers of turns, and an effect per turn needs the "
                f"same number in each: {', '.join(map(str, sorted(several)))} (0: no turns). Split "
                "the file"
            )
        return several.pop()


def _whole(request: PromptVersion) -> tuple[str, str, str]:
    """The key of all versions of a prompt in a family."""
    return request.id, request.family, request.place


def _where_different(versions: Sequence[PromptVersion]) -> str:
    first, *others = [version.segments() for version in versions]
    if not first:
        return "prompt"
    places = dict.fromkeys(
        place for other in others for (place, text), (_, changed) in zip(first, other, strict=False)
        if text != changed
    )  # fmt: skip
    return next(iter(places), "prompt") if len(places) < 2 else "several places"


def in_turns(items: Sequence[Item]) -> list[Item]:
    """Give the items prompt by prompt, the versions of each in an order drawn by their names. Were
    one label always asked first and another last, they would differ by what changes on the way too:
    a server that warms up, or one whose answers depend on what it was asked just before."""
    prompts = dict.fromkeys(item.tags["cluster"] for item in items)
    places = {prompt: position for position, prompt in enumerate(prompts)}

    def turn(item: Item) -> tuple[int, bytes]:
        digest = hashlib.sha256(item.id.encode("utf-8", "surrogatepass")).digest()
        return places[item.tags["cluster"]], digest

    return sorted(items, key=turn)


def _others(requests: Sequence[PromptVersion]) -> dict[tuple[str, str], dict[str, str]]:
    labels: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for request in requests:
        labels[request.id, request.family].update(
            {request.label: None} if request.role == "group" else {}
        )
    return {key: paired([*names], "\n".join(key)) for key, names in labels.items()}


def measured_turns(turns: int, chosen: str | None) -> list[int]:
    """Give the turns that are measured: those that are named with commas, or all.

    Args:
        turns: How many turns each conversation has; 0 of prompts without turns.
        chosen: The turns that the user named.

    Raises:
        UserError: There are no such turns.
    """
    if chosen is None:
        return list(range(1, turns + 1))
    every = [str(turn) for turn in range(1, turns + 1)]
    named = names_in(chosen)
    if not turns or not named or not set(named) <= set(every):
        has = f"turns 1 to {turns}" if turns else "no turns"
        raise UserError(f"--turns {chosen}: the conversations have {has}")
    return sorted({int(turn) for turn in named})


def read_prompts(file: Path, column: str | None = None) -> list[CounterfactualPrompt]:
    """Read the prompts of a file: of .txt one a line, of .csv a column, else JSON lines. One
    without an id has the number of its line; a bad line, or an id that comes twice, is refused.

    Args:
        file: where the prompts are.
        column: the column of the prompts in a table; "prompt" without it.
    """
    if file.suffix.lower() == ".txt":
        prompts = [
            CounterfactualPrompt(id=str(number), prompt=line) for number, line in _text_lines(file)
        ]
    elif file.suffix.lower() == ".csv" or column is not None:
        prompts = _of_table(file, column or "prompt")
    else:
        rows = read_jsonl(file, CounterfactualPrompt, f"a line is like {PROMPT}")
        prompts = [prompt if prompt.id else prompt.model_copy(update={"id": str(number)})
                   for number, prompt in _without_answers(file, rows)]  # fmt: skip
    _refuse_twice(file, [(prompt.id,) for prompt in prompts])
    if len(prompts) < 2:
        raise UserError(f"{file} contains fewer than two prompts. At least two are required")
    return prompts


def _without_answers(
    file: Path, rows: Iterable[tuple[int, CounterfactualPrompt]]
) -> Iterator[tuple[int, CounterfactualPrompt]]:
    """Refuse a conversation without a turn to answer, or with one that is answered."""
    for number, prompt in rows:
        where = f"{file} line {number}: messages"
        if prompt.messages and not prompt.turns and _turns(prompt.messages, where).answer:
            raise UserError(f"{where}: the last turn has an answer. Leave it out")
        yield number, prompt


def _text_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{file} cannot be read as UTF-8 text: {problem}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def _of_table(file: Path, column: str) -> list[CounterfactualPrompt]:
    """The prompts of a table, with its columns `id` and `task` where it has them."""
    further = [name for name in ("id", "task") if name in names_of(file) and name != column]
    try:
        table = text_columns(file, [column, *further])
    except UserError as problem:
        raise UserError(f"{problem}. Select the column of the prompts with --text-column") from None
    prompts = []
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        if not row[column]:
            raise UserError(f"{file}: row {number} has no text in the column {column!r}")
        prompts.append(CounterfactualPrompt(id=row.get("id") or str(number), prompt=row[column],
                            task=row.get("task", "")))  # fmt: skip
    return prompts


def read_answers(file: Path) -> CounterfactualDesign:
    """Read the answers that an app gave, one a line. Every prompt of a family has the same labels,
    each with a placebo, and as many repeats: what is not there is written with the answer null."""
    answers = tuple(
        answer for _, answer in read_jsonl(file, PromptVersion, f"a line is like {ANSWER}")
    )
    if not answers:
        raise UserError(f"{file} is empty. Expected lines like {ANSWER}")
    _refuse_twice(file, [answer.key for answer in answers])
    labels: dict[str, dict[str, None]] = {}
    for answer in answers:
        labels.setdefault(answer.family, {}).update(
            {answer.label: None} if answer.role == "group" else {}
        )
    for family, names in labels.items():
        _refuse_holes(
            file, family, tuple(names), [answer for answer in answers if answer.family == family]
        )
    return CounterfactualDesign(answers, {family: tuple(names) for family, names in labels.items()})


def _refuse_holes(
    file: Path, family: str, labels: Sequence[str], answers: Sequence[PromptVersion]
) -> None:
    if len(labels) < 2 or "" in labels:
        raise UserError(
            f"{file}: the attribute {family[:60]!r} needs at least two groups (labels with "
            "role group)"
        )
    prompts = dict.fromkeys((answer.id, answer.place) for answer in answers)
    if len({prompt for prompt, _ in prompts}) < 2:
        raise UserError(f"{file}: the attribute {family[:60]!r} needs at least two prompts")
    there = {answer.key for answer in answers}
    repeats = range(1, max(answer.repeat for answer in answers) + 1)
    # A prompt may have no version without a label, since that would not be right English.
    with_none = {(answer.id, answer.place) for answer in answers if answer.role == "none"}
    always = [(label, role) for label in labels for role in ("group", "placebo")]
    roles = [*always, ("", "none")]
    for prompt, place in prompts:
        placed = (place,) if place else ()
        for label, role in roles if (prompt, place) in with_none else always:
            for repeat in repeats:
                if (prompt, family, label, role, repeat, *placed) not in there:
                    whom = f"{role} {label}".strip()
                    raise UserError(
                        f"{file}: prompt {prompt[:60]!r}, attribute {family[:60]!r}: no line for "
                        f'{whom[:80]!r}, repeat {repeat}. Ask it too, or add it with "answer": '
                        "null. `counterfactual --versions-out` writes all required lines"
                    )
    expected = {key for key in there if (key[2], key[3]) in roles}
    if expected != there:
        odd = min(there - expected)
        raise UserError(
            f"{file}: prompt {str(odd[0])[:60]!r} has {odd[3]} {str(odd[2])[:60]!r}, but no line "
            "with role group has that label. Lines with role none have no label"
        )


def designed(
    prompts: Sequence[CounterfactualPrompt],
    families: Sequence[str],
    versions: Callable[
        [CounterfactualPrompt, str], "tuple[Sequence[tuple[Role, str, str]], str] | str"
    ],
    repeats: int,
) -> CounterfactualDesign:
    """Make every version of every prompt in every family.

    Args:
        prompts: Prompts of the user or of a dataset.
        families: Names of the families.
        versions: Gives role, label and text of each version of a prompt in a family, with why some
            are left
        out; or says why there are none.
        repeats: Number of times that each version is asked.

    Returns:
        The versions to ask, and what was left out.

    Raises:
        UserError: No family can be compared.
    """
    requests: list[PromptVersion] = []
    refused: list[tuple[str, str, str]] = []
    without: list[tuple[str, str, str]] = []
    labels: dict[str, dict[str, None]] = {}
    for family in families:
        for prompt in prompts:
            result = versions(prompt, family)
            if isinstance(result, str):
                refused.append((prompt.id, family, result))
                continue
            texts, left_out = result
            if all(role != "none" for role, _, _ in texts):
                without.append((prompt.id, family, left_out))
            for role, label, text in texts:
                labels.setdefault(family, {}).update({label: None} if role == "group" else {})
                requests += [
                    PromptVersion(id=prompt.id, family=family,
                                  label="" if role == "none" else label,
                                  role=role, repeat=repeat, **prompt.version(text))
                    for repeat in range(1, repeats + 1)
                ]  # fmt: skip
    skipped = _too_few(families, requests, refused)
    if len(skipped) == len(families):
        raise UserError(f"{'; '.join(f'{family}: {why}' for family, why in skipped)}. {_MARK}")
    gone = {family for family, _ in skipped}
    return CounterfactualDesign(
        tuple(request for request in requests if request.family not in gone),
        {family: tuple(names) for family, names in labels.items() if family not in gone},
        tuple(refused),
        skipped,
        tuple(entry for entry in without if entry[1] not in gone),
    )


def _too_few(
    families: Sequence[str],
    requests: Sequence[PromptVersion],
    refused: Sequence[tuple[str, str, str]],
) -> tuple[tuple[str, str], ...]:
    """The families that fewer than two prompts can be swapped in, and why."""
    skipped = []
    for family in families:
        many = len({request.id for request in requests if request.family == family})
        if many < 2:
            why = next((why for _, name, why in refused if name == family), "")
            reason = f"{many} prompt{'s' * (many != 1)} can be varied, but at least 2 are required"
            skipped.append((family, f"{reason}{why and f' ({why})'}"))
    return tuple(skipped)


def _refuse_twice(file: Path, keys: Sequence[tuple[str | int, ...]]) -> None:
    twice = [" ".join(map(str, key)) for key, n in Counter(keys).items() if n > 1]
    if twice:
        raise UserError(
            f"{file}: {twice[0][:120]!r} is duplicated. Use a unique value in each line"
        )
