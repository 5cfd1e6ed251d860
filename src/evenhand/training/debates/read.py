"""The statements of a debate run, read back from its folder."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core.errors import UserError
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import Debate
from evenhand.training.debates.topics import split


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
    """What shorter debates about fewer topics would have been: the first so many rounds, which hang
    on no later one, of the first so many topics of each bias type. None leaves all."""
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
        raise UserError(f"{run.path} holds no debates; `evenhand debate run` makes them")
    rows = (
        run.results()
        .filter(pl.col("status") == "answered")
        .select(
            "position",
            pl.col("prompt").alias("topic"),
            _named(pl.col("tags"), "bias_type"),
            _named(pl.col("tags"), "roles"),
            _named(pl.col("tags"), "more_roles").fill_null(""),
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
    return _named(pl.col("drafts").struct.field("scores"), name)


def _named(pairs: pl.Expr, name: str) -> pl.Expr:
    """The value of the pair with this name; null where there is none."""
    value = pl.element().struct.field("value")
    matching = value.filter(pl.element().struct.field("name") == name)
    return pairs.list.eval(matching).list.first().alias(name)
