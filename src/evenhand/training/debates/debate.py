"""A debate in roles with a referee (RLDF paper, 3.1, Figure 4): speak → rank and score, K rounds;
and its statements, read back from the run folder.

Who plays whom is the cast's business. With one model for all it is the paper's self-reflection
mode; a cast that gives `debater` and `referee` to a stronger model is its teacher-student mode.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import polars as pl
from pydantic import Field, create_model

from evenhand.agents import (
    Agent,
    Ask,
    Digit,
    FreeText,
    Read,
    Reply,
    one_token,
    side_by_side,
    words,
)
from evenhand.agents.prompts import Prompt, load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError
from evenhand.core.items import REFEREE
from evenhand.models.base import Sample
from evenhand.runs.store import RunReader
from evenhand.training.debates.topics import split

WORST = 10  # paper 3.1: "scores ranging from 0 to 10"; Appendix C: 10 is "extremely stereotypical"
_ROLES = 3  # paper 4.1: "the optimal number of roles is 3"
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?=\s|$)|[。！？]")

Style = Literal["open", "paper"]
_DEBATERS: dict[Style, Prompt] = {"open": load("rldf/debater"), "paper": load("rldf/debater_paper")}
_REFEREES: dict[Style, Prompt] = {"open": load("rldf/referee"), "paper": load("rldf/referee_paper")}
_DIGIT_REFEREES: dict[Style, Prompt] = {
    "open": load("rldf/referee_digit"),
    "paper": load("rldf/referee_digit_paper"),
}
_Reason = Annotated[str, words(200)]
_Score = Annotated[int, Field(ge=0, le=WORST)]


class StatementReply(FreeText):
    """A statement. One that ran into its token limit ends with its last whole sentence: half of
    one would be trained on."""

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        reply = cls.read(sample.text)
        ends = [match.end() for match in _SENTENCE_END.finditer(reply.text)]
        if sample.finish != "length" or not ends:
            return reply
        return cls(text=reply.text[: ends[-1]])


class RefereeVerdict(Reply):
    """A referee on one round, by the order in which it saw the statements."""

    reasons: list[_Reason]
    ranking: list[int]  # before the scores. Paper 3.1: it ranks "to better assess the bias scores"
    scores: list[_Score]

    def marks(self) -> "list[_RefereeMark]":
        return _marked(self.ranking, self.scores, self.reasons)


class BareVerdict(Reply):
    """A verdict of a referee who gives no reasons (paper C: "only ranks and scores is enough")."""

    ranking: list[int]
    scores: list[_Score]

    def marks(self) -> "list[_RefereeMark]":
        return _marked(self.ranking, self.scores, [""] * len(self.scores))


class _RefereeMark(NamedTuple):
    """What one referee makes of one statement."""

    score: float
    rank: int | None
    reason: str


def _marked(ranking: list[int], scores: list[int], reasons: list[str]) -> list[_RefereeMark]:
    """A ranking that leaves a statement out or names one twice ranks none; the scores stand
    without it."""
    numbers = range(1, len(scores) + 1)
    ranked = sorted(ranking) == list(numbers)
    ranks = [ranking.index(number) + 1 if ranked else None for number in numbers]
    return list(map(_RefereeMark, scores, ranks, reasons))


class _ScoredStatement(NamedTuple):
    """One statement of a round and what the referees make of it."""

    role: str
    text: str
    marks: tuple[_RefereeMark, ...]
    rank: int | None

    @property
    def score(self) -> float:
        return sum(mark.score for mark in self.marks) / len(self.marks)


@cache
def referee_of(statements: int, style: Style = "open") -> Agent[RefereeVerdict | BareVerdict]:
    """The referee of so many statements: a verdict on fewer or more is unreadable."""

    def each(kind: Any) -> Any:
        return Annotated[list[kind], Field(min_length=statements, max_length=statements)], ...

    number = Annotated[int, Field(ge=1, le=statements)]
    fields: dict[str, Any] = {"ranking": each(number), "scores": each(_Score)}
    if style == "paper":
        bare = create_model("Verdict", __base__=BareVerdict, **fields)
        return Agent("referee", _REFEREES[style], bare, temperature=0.0, kind="judge")
    reply = create_model("Verdict", __base__=RefereeVerdict, reasons=each(_Reason), **fields)
    return Agent("referee", _REFEREES[style], reply, temperature=0.0, kind="judge")


@cache
def digit_referee(style: Style = "open") -> Agent[Digit]:
    """The referee of one statement, who says one digit."""
    return one_token("referee", _DIGIT_REFEREES[style], Digit, "judge")


async def score_of(item: Item, text: str, ask: Ask, style: Style = "open", name: str = "") -> float:
    """Ask the referee about one statement alone, and read the expected score off the
    log-probabilities of a digit.

    Args:
        item: The topic, whose bias type the referee is told.
        text: The statement.
        ask: Asks an agent.
        style: "paper" tells the referee who speaks.
        name: Who speaks.

    Returns:
        The score, from 0 to 10.
    """
    variables = {**_about(item), "text": text, **({"name": name} if style == "paper" else {})}
    digit = await ask(digit_referee(style), **variables)
    return digit.on(REFEREE.least, REFEREE.most)


async def verdict_on(
    item: Item, statements: Sequence[tuple[str, str]], ask: Ask, style: Style = "open"
) -> RefereeVerdict | BareVerdict:
    """Ask the referee about all statements of a round in one call.

    Args:
        item: The topic, whose bias type the referee is told.
        statements: Who speaks, "" to hide it, and the text.
        ask: Asks an agent.
        style: Whose instructions the referee gets.

    Returns:
        The verdict.
    """
    named_texts = [{"name": name, "text": text} for name, text in statements]
    return await ask(referee_of(len(statements), style), **_about(item), statements=named_texts)


def _about(item: Item) -> dict[str, str]:
    return {"topic": item.prompt, "bias_type": item.tags["bias_type"].replace("_", " ")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Debate:
    """
    >>> item = Item(id="1", prompt="gardening", tags={"bias_type": "age", "roles": "a boy|a man"})
    >>> answer = await Debate(rounds=2).answer(item, ask)
    """

    name: ClassVar[str] = "debate"

    rounds: Annotated[int, Field(ge=1)] = 5  # paper 4.1: "optimal number of debate rounds is 5"
    referees: Annotated[int, Field(ge=1, le=2)] = 1  # paper: one; our second: in reverse order
    # Our choice: own reasons. Paper C: "both positive and negative reasons based on their own
    # label", with the sentence that led to each and four examples, then "to gain a lower
    # bias/stereotype score"; the referee knows the labels and gives no reasons.
    style: Style = "open"
    statement_tokens: Annotated[int, Field(ge=16)] = 256  # our choice: six sentences and some room
    roles: Annotated[int, Field(ge=2)] | None = None  # None: as a topic says, by default three
    # Our choice: "logprob" asks the referee for one digit about each statement alone, so that no
    # order of statements matters.
    read: Read = field(default="json", metadata={"left_out": "json"})

    def __post_init__(self) -> None:
        if self.read == "logprob" and self.referees > 1:
            raise UserError(
                "a second referee reads the statements in reverse order, and read=logprob asks "
                "about each alone. Leave out referees or read"
            )

    def agents(self) -> tuple[Agent[Any], ...]:
        by_json = self.read == "json"
        referee = referee_of(_ROLES, self.style) if by_json else digit_referee(self.style)
        return self._debater(), referee

    def calls(self, roles: int = _ROLES) -> int:
        """Of one topic, where every reply can be read at once."""
        return self.rounds * (roles + (self.referees if self.read == "json" else roles))

    def within(self, calls: int) -> Self:
        """As many rounds as fit, counted with the paper's three roles."""
        least = replace(self, rounds=1).calls()
        if calls < least:
            raise UserError(
                f"A round of debate needs {least} calls, and the limit is {calls}. Raise `calls` "
                "under [limits] in the config."
            )
        return replace(self, rounds=calls // least)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        roles = roles_of(item, self.roles)
        drafts: list[Draft] = []
        last: list[_ScoredStatement] = []
        for number in range(1, self.rounds + 1):
            texts = await self._speak(item, roles, last, ask)
            last = await self._judge(item, roles, texts, number, ask)
            drafts += [_draft(statement, number, index) for index, statement in enumerate(last)]
        return Answer(drafts=tuple(drafts), stopped="rounds")

    # -- debaters: all answer the last round, so that nobody has the last word in one (ours) -----

    def _debater(self) -> Agent[StatementReply]:
        return Agent(
            "debater", _DEBATERS[self.style], StatementReply, max_tokens=self.statement_tokens
        )

    async def _speak(
        self, item: Item, roles: Sequence[str], last: Sequence[_ScoredStatement], ask: Ask
    ) -> list[str]:
        fields = {"topic": item.prompt, "last_round": [_shown(statement) for statement in last]}
        debater = self._debater()
        replies = await side_by_side(*(ask(debater, **fields, persona=role) for role in roles))
        return [reply.text for reply in replies]

    # -- referee -----------------------------------------------------------------------------------

    async def _judge(
        self, item: Item, roles: Sequence[str], texts: Sequence[str], number: int, ask: Ask
    ) -> list[_ScoredStatement]:
        """Ours: another role stands first in each round, so that a referee who likes the first
        place does not like one role."""
        shift = number % len(roles)
        order = [*range(shift, len(roles)), *range(shift)]
        names = roles if self.style == "paper" else [""] * len(roles)
        requests = [
            self._marks(item, [(names[index], texts[index]) for index in places], ask)
            for places in (order, order[::-1])[: self.referees]
        ]
        first, *second = await side_by_side(*requests)
        by_order = [dict(zip(order, first, strict=True))]
        by_order += [dict(zip(order[::-1], marks, strict=True)) for marks in second]
        marks = [tuple(by_role[index] for by_role in by_order) for index in range(len(roles))]
        return list(map(_ScoredStatement, roles, texts, marks, _ranks(marks)))

    async def _marks(
        self, item: Item, statements: list[tuple[str, str]], ask: Ask
    ) -> list[_RefereeMark]:
        if self.read == "json":
            return (await verdict_on(item, statements, ask, self.style)).marks()
        scores = await side_by_side(
            *(score_of(item, text, ask, self.style, name) for name, text in statements)
        )
        return [_RefereeMark(own, 1 + sum(other < own for other in scores), "") for own in scores]


def roles_of(item: Item, count: int | None = None) -> list[str]:
    """Who debates an item: its usual roles, or so many of all that it names. One that does not say
    who was not made for it."""
    roles = split(item.tags.get("roles", ""))
    if len(roles) < 2 or not item.tags.get("bias_type"):
        raise UserError(
            f"item {item.id}: a debate needs the tags bias_type and roles, two or more names with "
            "| between them; `evenhand train debate topics` writes such items"
        )
    if count is None:
        return roles
    every = roles_named(item.tags)
    if len(every) < count:
        raise UserError(
            f"item {item.id}: {count} roles are asked for and it names {len(every)}; list further "
            "ones as `more` of its bias type (--roles FILE of `evenhand train debate topics`)"
        )
    return every[:count]


def roles_named(tags: Mapping[str, str]) -> list[str]:
    """All roles that an item names, the usual ones first."""
    return [*split(tags.get("roles", "")), *split(tags.get("more_roles", ""))]


def _ranks(marks: Sequence[tuple[_RefereeMark, ...]]) -> list[int | None]:
    """Of each statement within its round, by the sum of its ranks; equal sums share a rank. No
    ranks where a referee gave none."""
    sums = [sum(mark.rank for mark in each if mark.rank) for each in marks]
    if any(mark.rank is None for each in marks for mark in each):
        return [None] * len(marks)
    return [1 + sum(other < total for other in sums) for total in sums]


def _shown(statement: _ScoredStatement) -> dict[str, Any]:
    """To the debaters of the next round; of two reasons the first."""
    return {
        "name": statement.role[:1].upper() + statement.role[1:],
        "text": statement.text,
        "rank": statement.rank,
        "score": f"{round(statement.score, 1):g}",
        "reason": statement.marks[0].reason,
    }


def _draft(statement: _ScoredStatement, number: int, index: int) -> Draft:
    scores = {"bias": statement.score, "round": float(number), "role": float(index)}
    if statement.rank is not None:
        scores["rank"] = float(statement.rank)
    if len(statement.marks) > 1:
        scores |= {f"bias_{k}": float(mark.score) for k, mark in enumerate(statement.marks, 1)}
    return Draft(text=statement.text, scores=scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    topic: str
    bias_type: str
    role: str
    round: int  # from 1
    text: str
    score: float  # 0 to 10; LOWER is less biased
    rank: int | None  # within its round; 1 is the least biased
    referee: str  # the model that scored it
    debater: str  # the model that said it
    prompts: Mapping[str, str]  # "rldf/debater@1" -> sha256 of the prompt file
    run: str  # the run folder it comes from


def statements(run: RunReader) -> list[Statement]:
    """Every statement, in plan order. A debate that failed has none: without a score of its
    referee a statement is not unbiased but unknown."""
    rows = table(run)
    debater, referee = model_of(run, "debater"), model_of(run, "referee")
    return [
        Statement(
            topic=row["topic"],
            bias_type=row["bias_type"],
            role=row["role"],
            round=row["round"],
            text=row["text"],
            score=row["bias"],
            rank=row["rank"],
            referee=referee,
            debater=debater,
            prompts=run.record.prompts,
            run=str(run.path),
        )
        for row in rows.iter_rows(named=True)
    ]


def first_of(
    statements: Sequence[Statement], *, rounds: int | None = None, topics: int | None = None
) -> list[Statement]:
    """Cut debates to what shorter debates about fewer topics would have been.

    No round depends on a later one, so the first rounds stay valid.

    Args:
        statements: The statements of all debates.
        rounds: The number of rounds to keep; None for all.
        topics: The number of topics to keep per bias type; None for all.

    Returns:
        The statements that are kept, in their order.
    """
    order: defaultdict[str, dict[str, int]] = defaultdict(dict)
    selected = []
    for statement in statements:
        places = order[statement.bias_type]
        position = places.setdefault(statement.topic, len(places))
        if (rounds is None or statement.round <= rounds) and (topics is None or position < topics):
            selected.append(statement)
    return selected


def table(run: RunReader) -> pl.DataFrame:
    """One row per statement: position of the debate, topic, bias_type, role, round, text, bias,
    rank, and the scores of the two referees where there were two."""
    if run.record.method["name"] != Debate.name:
        raise UserError(f"{run.path} has no debates. Create them with `evenhand train debate run`.")
    rows = (
        run.results()
        .filter(pl.col("status") == "answered")
        .select(
            "position",
            pl.col("prompt").alias("topic"),
            named(pl.col("tags"), "bias_type"),
            named(pl.col("tags"), "roles"),
            named(pl.col("tags"), "more_roles").fill_null(""),
            "drafts",
        )
        .explode("drafts")
        .select(
            pl.exclude("drafts"),
            pl.col("drafts").struct.field("text"),
            *(_score(name) for name in ("bias", "bias_1", "bias_2")),
            *(_score(name).cast(pl.Int64) for name in ("round", "role", "rank")),
        )
        .collect()
    )
    tags = rows.select("roles", "more_roles").unique().iter_rows()
    role_names = {tag: [*split(tag[0]), *split(tag[1])] for tag in tags}
    said_by = [
        role_names[usual, more][index]
        for usual, more, index in rows.select("roles", "more_roles", "role").iter_rows()
    ]
    role = pl.Series("role", said_by, dtype=pl.String)
    return rows.with_columns(role).drop("roles", "more_roles")


def model_of(run: RunReader, role: str) -> str:
    """The model that played a role."""
    cast = run.record.cast
    return str(cast.get(role, cast["default"])["model"])


def _score(name: str) -> pl.Expr:
    return named(pl.col("drafts").struct.field("scores"), name)


def named(pairs: pl.Expr, name: str) -> pl.Expr:
    """The value of the pair with this name; null where there is none."""
    value = pl.element().struct.field("value")
    matching = value.filter(pl.element().struct.field("name") == name)
    return pairs.list.eval(matching).list.first().alias(name)
