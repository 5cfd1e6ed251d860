"""Pairs from runs that repair answers: what the evaluators refused, and what they accepted instead.

Only where a verdict says so on both. An item without one, or one that ended without acceptance, is
counted by its reason and never used.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from evenhand.agents.agent import RepairRoles, repairs_of
from evenhand.agents.prompts import LETTERS
from evenhand.core import Message
from evenhand.core.errors import UserError
from evenhand.core.items import BiasScore
from evenhand.runs.store import RunReader
from evenhand.training.debates.building import BuiltPairs, capped, finished, type_name
from evenhand.training.debates.pairs import FromRuns, ItemsOfRuns, PreferencePair, Split
from evenhand.training.debates.splits import sides

Row = Mapping[str, Any]
_TOPIC_TAGS = ("topic", "template", "article")
_TYPE_TAGS = ("bias_type", "category", "family")


def from_runs(runs: Sequence[RunReader], split: Split) -> BuiltPairs:
    unused: Counter[str] = Counter()
    available = [pair for run in runs for pair in _pairs(run, unused)]
    pairs = capped(available, split)
    origin = FromRuns(
        runs=[{"run": str(run.path), "method": run.record.method} for run in runs],
        items=ItemsOfRuns(used=len(available), not_used=dict(sorted(unused.items()))),
    )
    if not pairs:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(unused.items()))
        raise UserError(
            f"no pair: no item was refused, repaired and then accepted ({reasons or 'no items'}); "
            "run more items, or with a judge that accepts some of the revisions; `evenhand pairs "
            "from-items` needs no run"
        )
    where = sides({(pair.topic, pair.bias_type) for pair in pairs}, split.test_share, split.seed)
    return finished(pairs, where, split, origin)


def _pairs(run: RunReader, unused: Counter[str]) -> Iterator[PreferencePair]:
    method = run.record.method["name"]
    repairs = repairs_of(method)
    if repairs is None:
        raise UserError(
            f"{run.path} is a run of {method}; pairs come from runs of methods that repair, such "
            "as stardtox and mabrf: their judges score what they refuse and what they accept"
        )
    run.require_texts()
    rows = run.results()
    repaired = pl.col("drafts").list.len() > 1
    for stopped, reason in rows.filter(~repaired).select("stopped", "reason").collect().iter_rows():
        unused[_without_revision(stopped, reason)] += 1
    drafted = rows.filter(repaired).collect()
    choices = drafted.filter(pl.col("choice").is_not_null())["position"].to_list()
    questions = _questions(run, repairs.writer, choices)
    referee = _referee(run, list(repairs.critics))
    for row in drafted.iter_rows(named=True):
        pair = _pair(row, repairs, questions, run, referee)
        if isinstance(pair, str):
            unused[pair] += 1
        else:
            yield pair


def _without_revision(stopped: str | None, reason: str | None) -> str:
    """Why an item without a revision makes no pair."""
    if stopped is None:
        return f"failed:{reason}"
    return "accepted_at_once" if stopped == "accepted" else f"not_accepted:{stopped}"


def _pair(
    row: Row, repairs: RepairRoles, questions: Mapping[int, Any], run: RunReader, referee: str
) -> PreferencePair | str:
    """The pair, or why there is none."""
    first, last = row["drafts"][0], row["drafts"][-1]
    before, after = _score(first, repairs), _score(last, repairs)
    prompt = _prompt(row, questions)
    if row["stopped"] != "accepted":
        return f"not_accepted:{row['stopped']}"
    if _reply(first) == _reply(last):
        return "unchanged"
    if before is None or after is None:
        return "no_verdict"
    if before.above(after) <= 0:
        return "not_less_biased"  # it was refused for its language, or the judge found no change
    if not prompt:
        return "question_not_on_record"
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    topic = _first(tags, _TOPIC_TAGS) or row["prompt"]
    return PreferencePair(
        prompt=prompt,
        chosen=_reply(last),
        rejected=_reply(first),
        score_chosen=after.scale.bias(after.value),
        score_rejected=before.scale.bias(before.value),
        topic=topic,
        topic_rejected=topic,
        bias_type=type_name(_first(tags, _TYPE_TAGS) or "unnamed"),
        role_chosen="revision",
        role_rejected="first_draft",
        round_chosen=None,
        round_rejected=None,
        referee=referee,
        strategy="same_topic",
        source=run.record.method["name"],
        prompts=run.record.prompts,
        run=str(run.path),
    )


def _score(draft: Row, repairs: RepairRoles) -> BiasScore | None:
    for score in draft["scores"]:
        if score["name"] in repairs.scales:
            return BiasScore(score["value"], repairs.scales[score["name"]])
    return None


def _reply(draft: Row) -> str:
    """In the form that the question asks for."""
    if draft["choice"] is None:
        return str(draft["text"])
    reasoning = {"reasoning": draft["reasoning"]} if draft["reasoning"] else {}
    return orjson.dumps({**reasoning, "answer": LETTERS[draft["choice"]]}).decode()


def _prompt(row: Row, questions: Mapping[int, Any]) -> tuple[Message, ...]:
    """A text's own prompt. A question has a context and options too, which stand in the request."""
    if row["choice"] is None:
        return (Message("user", row["prompt"]),)
    return tuple(Message(m["role"], m["content"]) for m in questions.get(row["position"], ()))


def _questions(run: RunReader, writer: str, positions: Sequence[int]) -> dict[int, Any]:
    """The messages of the first request to the writer."""
    if not positions:
        return {}
    first = (pl.col("index") == 0) & (pl.col("role") == writer)
    selected = pl.col("position").is_in(positions)
    requests = run.turns().filter(first & selected).select("position", "messages").collect()
    return dict(requests.iter_rows())


def _referee(run: RunReader, judges: Sequence[str]) -> str:
    judged = run.turns().filter(pl.col("role").is_in(judges))
    models = judged.select(pl.col("model").unique()).collect()["model"]
    return " and ".join(sorted(models))


def _first(tags: Mapping[str, str], names: Sequence[str]) -> str:
    return next((tags[name] for name in names if tags.get(name)), "")
