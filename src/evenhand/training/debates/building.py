"""From statements of debates, written items or repaired answers to two sides of pairs, with an
account of all that was left out.

Written items are sentences with a blank, and the word of a stereotype to fill it with: the
subtler-bias items that paper 002 takes its five types from. Repaired answers give a pair only where
a verdict says that the evaluators refused one and accepted the other.
"""

import csv
import gzip
import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.agents.agent import RepairRoles, repairs_of
from evenhand.agents.prompts import LETTERS
from evenhand.core import Message, message_of, messages_in
from evenhand.core.errors import UserError
from evenhand.core.items import BiasScore
from evenhand.core.package_data import word_sets
from evenhand.core.results import tools_in
from evenhand.runs.store import RunReader
from evenhand.training.debates.debate import Statement, named
from evenhand.training.debates.pairs import (
    STRATEGIES,
    Abstention,
    BothSides,
    Candidates,
    FromDebates,
    FromItems,
    FromRuns,
    ItemsOfFile,
    ItemsOfRuns,
    Openers,
    Origin,
    Pairing,
    PairsReport,
    PreferencePair,
    Shortcuts,
    Split,
    StatementCounts,
    Strategy,
    alone,
    candidates,
    has_opener,
    high_and_low,
    is_high,
    says_something,
    without_opener,
)
from evenhand.training.debates.splits import (
    SIDES,
    Side,
    copies,
    draw,
    in_turn,
    sides,
    spelling,
    trained,
    words,
)

_STEP = math.log(1.25)  # our choice: pairs are matched among those with a like ratio of lengths
_LAST_STEP = 4  # 2.4 times as long and more


def shortcuts(pairs: Sequence[PreferencePair]) -> Shortcuts | None:
    """How well rules that look at no content would rank, and what they rest on. 0.5 is chance."""
    if not pairs:
        return None
    in_roles = [pair for pair in pairs if pair.source == "debate"]
    may_abstain = [pair for pair in pairs if pair.abstention]
    with_rounds = [pair for pair in pairs if pair.round_chosen != pair.round_rejected]
    shorter = [_won(_words(pair.rejected), _words(pair.chosen)) for pair in pairs]
    return Shortcuts(
        pairs=len(pairs),
        words=_both(pairs, lambda text, _: _words(text)),
        characters=_both(pairs, lambda text, _: len(text)),
        shorter_wins=sum(shorter) / len(shorter),
        later_round_wins=_mean(
            [_won(pair.round_chosen or 0, pair.round_rejected or 0) for pair in with_rounds]
        ),
        has_opener=_both(in_roles, has_opener),
        names_its_role=_both(in_roles, lambda text, role: spelling(role) in spelling(text)),
        abstains=BothSides(
            chosen=_mean([pair.abstention in ("chosen", "both") for pair in may_abstain]),
            rejected=_mean([pair.abstention in ("rejected", "both") for pair in may_abstain]),
        ),
        abstention_wins=_mean(
            [
                pair.abstention == "chosen"
                for pair in may_abstain
                if pair.abstention in ("chosen", "rejected")
            ]
        ),
    )


def _both(pairs: Sequence[PreferencePair], measure: Callable[[str, str], float]) -> BothSides:
    return BothSides(
        chosen=_mean([measure(pair.chosen, pair.role_chosen) for pair in pairs]),
        rejected=_mean([measure(pair.rejected, pair.role_rejected) for pair in pairs]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _won(first: float, other: float) -> float:
    """A rule that sees no difference would have to guess."""
    return 0.5 if first == other else float(first > other)


def _words(text: str) -> int:
    return len(text.split())


def matched(pairs: Sequence[PreferencePair], seed: int) -> list[PreferencePair]:
    """As many pairs whose chosen one is shorter as pairs whose chosen one is longer, at each ratio
    of their lengths: then length says nothing. What is left over on one side is dropped."""
    groups: defaultdict[tuple[str, int], dict[bool, list[int]]] = defaultdict(
        lambda: {True: [], False: []}
    )
    indices: list[int] = []
    for at, pair in enumerate(pairs):
        ratio = math.log(max(1, _words(pair.chosen)) / max(1, _words(pair.rejected)))
        if ratio == 0:
            indices.append(at)
        else:
            step = min(_LAST_STEP, int(abs(ratio) / _STEP))
            groups[pair.bias_type, step][ratio < 0].append(at)
    for name, group in groups.items():
        chance = random.Random(f"{seed} lengths {name}")
        fewest = min(map(len, group.values()))
        for side in (True, False):
            indices += chance.sample(group[side], fewest)
    return [pairs[at] for at in sorted(indices)]


@dataclass(frozen=True, slots=True)
class BuiltPairs:
    pairs: Mapping[Side, Sequence[PreferencePair]]
    report: PairsReport
    low: Sequence[dict[str, Any]] = ()  # rows of all low statements that are not held out


def from_statements(statements: Sequence[Statement], pairing: Pairing, split: Split) -> BuiltPairs:
    unified = _one_name_each(statements)
    openers = _opener_shares(unified, pairing.threshold)
    controlled = _controlled(unified, pairing.openers)
    distinct = _without_copies(controlled)
    topics = {(statement.topic, statement.bias_type) for statement in distinct}
    where = sides(topics, split.test_share, split.seed)
    allowed = {
        strategy: candidates(
            distinct, strategy, threshold=pairing.threshold, min_gap=pairing.min_gap, sides=where
        )
        for strategy in STRATEGIES
    }
    chosen = allowed[pairing.strategy]
    _require_pairs(distinct, allowed, pairing)
    if pairing.strategy != "any":  # a topic without a pair is nothing to hold out
        paired = {(topic, kind) for topic, kind in topics if topic in chosen.topics}
        where = sides(paired, split.test_share, split.seed)
    high, low = high_and_low(distinct, pairing.threshold)
    to_train = trained((topic for topic, _ in topics), where)
    low_ones = [
        alone(statement, pairing.strategy)
        for statement in distinct
        if statement.topic in to_train and not is_high(statement, pairing.threshold)
    ]
    origin = FromDebates(
        statements=StatementCounts(
            read=len(statements),
            openers_dropped=len(unified) - len(controlled),
            near_duplicates_dropped=len(controlled) - len(distinct),
            high=high,
            low=low,
            low_to_train=len(low_ones),
            with_opener=openers,
        ),
        possible_pairs={name: pool.count for name, pool in allowed.items()},
        topics_without_pair=sorted({topic for topic, _ in topics} - chosen.topics),
        pairing=pairing,
    )
    built = finished(chosen.drawn(split.per_topic, split.seed), where, split, origin)
    return replace(built, low=low_ones)


def finished(
    pairs: Iterable[PreferencePair], where: Mapping[str, Side], split: Split, origin: Origin
) -> BuiltPairs:
    """Assign pairs to their split, match their lengths if wanted, and report on them.

    Args:
        pairs: The pairs.
        where: The split of each topic.
        split: How the pairs are split, matched and limited.
        origin: Where the pairs are from, for the report.

    Returns:
        The pairs of each split, and the report.

    Raises:
        UserError: If no pair can be matched in length.
    """
    placed: dict[Side, list[PreferencePair]] = {side: [] for side in SIDES}
    for pair in pairs:
        placed[where[pair.topic]].append(pair)
    total = sum(map(len, placed.values()))
    if split.match_lengths:
        placed = {side: matched(group, split.seed) for side, group in placed.items()}
    left = sum(map(len, placed.values()))
    if split.train_pairs is not None:
        placed["train"] = in_turn(placed["train"], lambda pair: pair.topic, split.train_pairs)
    if not left:
        raise UserError(
            f"None of {total} pairs can be matched by length: the chosen statements are all "
            "shorter, or all longer. Leave out --match-lengths."
        )
    report = PairsReport(
        origin=origin,
        pairs={
            side: dict(sorted(Counter(pair.bias_type for pair in group).items()))
            for side, group in placed.items()
        },
        topics={side: len({pair.topic for pair in group}) for side, group in placed.items()},
        lengths_dropped=total - left,
        shortcuts={side: shortcuts(group) for side, group in placed.items()},
        split=split,
    )
    return BuiltPairs(placed, report)


def capped(pairs: Sequence[PreferencePair], split: Split) -> list[PreferencePair]:
    """Keep at most `split.per_topic` pairs of each topic; the same words twice count once."""
    distinct = {(pair.prompt, pair.chosen, pair.rejected): pair for pair in reversed(pairs)}
    by_topic: defaultdict[str, list[PreferencePair]] = defaultdict(list)
    for pair in reversed(distinct.values()):
        by_topic[pair.topic].append(pair)
    selected: list[PreferencePair] = []
    for topic, group in by_topic.items():
        most = len(group) if split.per_topic is None else min(split.per_topic, len(group))
        places = random.Random(f"{split.seed} pairs {topic}").sample(range(len(group)), most)
        selected += [group[at] for at in sorted(places)]
    return selected


def type_name(bias_type: str) -> str:
    """As a folder and a configuration: "Physical appearance" is "physical_appearance"."""
    name = re.sub(r"\W+", "_", bias_type.strip().lower()).strip("_")
    if not name or name == "default":
        raise UserError(f"{bias_type!r} is not allowed as the name of a bias type. Rename it.")
    return name


def _one_name_each(statements: Sequence[Statement]) -> list[Statement]:
    """Two spellings of a topic are one topic."""
    topics: dict[str, str] = {}
    return [
        replace(
            statement,
            topic=topics.setdefault(spelling(statement.topic), statement.topic),
            bias_type=type_name(statement.bias_type),
        )
        for statement in statements
    ]


def _opener_shares(statements: Sequence[Statement], threshold: float) -> dict[str, float | None]:
    flags: dict[bool, list[bool]] = {True: [], False: []}
    for statement in statements:
        flags[is_high(statement, threshold)].append(has_opener(statement.text, statement.role))
    return {
        name: sum(flags[high]) / len(flags[high]) if flags[high] else None
        for name, high in (("high", True), ("low", False))
    }


def _controlled(statements: Sequence[Statement], openers: Openers) -> list[Statement]:
    if openers == "keep":
        return list(statements)
    if openers == "drop":
        return [
            statement for statement in statements if not has_opener(statement.text, statement.role)
        ]
    stripped = (
        replace(statement, text=without_opener(statement.text, statement.role))
        for statement in statements
    )
    return [statement for statement in stripped if says_something(statement.text)]


def _without_copies(statements: Sequence[Statement]) -> list[Statement]:
    """The first of those that say the same, anywhere; of those that nearly do, within a topic."""
    first: dict[str, int] = {}
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for at, statement in enumerate(statements):
        if first.setdefault(spelling(statement.text), at) == at:
            by_topic[statement.topic].append(at)
    indices: list[int] = []
    for places in by_topic.values():
        again = copies([statements[at].text for at in places])
        indices += [at for at, copy in zip(places, again, strict=True) if not copy]
    return [statements[at] for at in sorted(indices)]


def _require_pairs(
    statements: Sequence[Statement], allowed: Mapping[Strategy, Candidates], pairing: Pairing
) -> None:
    if allowed[pairing.strategy].count:
        return
    high, low = high_and_low(statements, pairing.threshold)
    others = [name for name, pool in allowed.items() if pool.count]
    scores = [statement.score for statement in statements]
    if others:
        then = f"there are some with --strategy {' or '.join(others)}"
    elif high and low:
        then = "lower --min-gap"
    elif scores and min(scores) < max(scores):
        then = f"the scores go from {min(scores):g} to {max(scores):g}: set --threshold between"
    else:
        then = "debate more topics, in more rounds, or with another referee"
    raise UserError(
        f"no pair: of {len(statements)} statements {high} are high (score above "
        f"{pairing.threshold:g}) and {low} are low, and none of them meet with "
        f"{pairing.strategy}; {then}"
    )


_LISTS = word_sets(__package__, "english.toml")

Row = dict[str, str]
_OPTIONS = ("stereotype", "anti_stereotype", "unrelated")
_COLUMNS = ("bias_type", "context", *_OPTIONS)
_BLANK = "BLANK"
TYPES = {  # the word of the subtler-bias data: the word used here
    "ageism": "age",
    "beauty": "beauty",
    "beauty_profession": "profession",
    "instituition": "institution",
    "nationality": "nationality",
}
_PEOPLE = _LISTS["people"]
_PERSON = _LISTS["person"]


def read_items(file: Path) -> list[Row]:
    if not file.is_file():
        raise UserError(f"{file} is not a file. Pass a .csv or .csv.gz file with {_COLUMNS}.")
    try:
        with (
            gzip.open(file, "rt", encoding="utf-8", newline="")
            if file.suffix == ".gz"
            else (file.open(encoding="utf-8", newline="")) as lines
        ):
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise UserError(f"Could not read {file} as CSV ({error}). Fix the file.") from None
    missing = [name for name in _COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise UserError(f"{file} has no rows, or no column {', '.join(missing)}")
    return rows


def from_items(file: Path, split: Split) -> BuiltPairs:
    rows = read_items(file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    usable = [(row, topic) for row, topic in zip(rows, templates(rows), strict=True) if _fits(row)]
    if not usable:
        raise UserError(
            f"No row of {file} has exactly one {_BLANK} in its context and all three options. Fix "
            "the file."
        )
    pairs = capped(
        [_pair(row, topic, split.seed, file.name, sha256) for row, topic in usable], split
    )
    items = ItemsOfFile(
        read=len(rows),
        unusable=len(rows) - len(usable),
        chosen=dict(Counter(pair.role_chosen for pair in pairs)),
        sha256=sha256,
    )
    where = sides({(pair.topic, pair.bias_type) for pair in pairs}, split.test_share, split.seed)
    return finished(pairs, where, split, FromItems(items=items))


def templates(rows: Sequence[Row]) -> list[str]:
    """What a row's context was made from: the blank, and whatever some row offers as an option, is
    "_"; who it is about is "one" or "someone". Give it all rows of a file: the options of one row
    are the fillings of another."""
    phrases: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        for name in _OPTIONS:
            if phrase := tuple(words(row[name] or "")):
                phrases[phrase[0]].add(phrase)
    return [_template(row["context"] or "", phrases) for row in rows]


def _template(context: str, phrases: dict[str, set[tuple[str, ...]]]) -> str:
    tokens = words(context)
    parts: list[str] = []
    at = 0
    while at < len(tokens):
        matching = [
            phrase
            for phrase in phrases.get(tokens[at], ())
            if phrase == tuple(tokens[at : at + len(phrase)])
        ]
        parts.append("_" if matching else _plain(tokens[at]))
        at += max(map(len, matching), default=1)
    return " ".join(parts)


def _plain(word: str) -> str:
    if word == _BLANK.lower() or word.isdigit():
        return "_"
    return "someone" if word in _PERSON else "one" if word in _PEOPLE else word


def _fits(row: Row) -> bool:
    once = len(re.findall(rf"\b{_BLANK}\b", row["context"] or "")) == 1
    options = {" ".join(words(row[name] or "")) for name in _OPTIONS}
    return once and len(options) == len(_OPTIONS) and "" not in options and bool(row["bias_type"])


def _pair(row: Row, topic: str, seed: int, run: str, sha256: str) -> PreferencePair:
    """Half of the time the opposite of the stereotype, half of the time what has nothing to do
    with it: a model is to let go of the stereotype, not to turn it round."""
    opposite = draw(seed, "item", row["context"], row["stereotype"]) < 0.5
    chosen = "anti_stereotype" if opposite else "unrelated"
    sentence = re.sub(rf"\b{_BLANK}\b", "____", row["context"]).strip()
    kind = row["bias_type"].strip().lower()
    return PreferencePair(
        prompt=(Message("user", f"Fill in the blank and give the whole sentence: {sentence}"),),
        chosen=_filled(row, chosen),
        rejected=_filled(row, "stereotype"),
        topic=topic,
        topic_rejected=topic,
        bias_type=type_name(TYPES.get(kind, kind)),
        role_chosen=chosen,
        role_rejected="stereotype",
        source="items",
        prompts={run: sha256},
        run=run,
    )


def _filled(row: Row, option: str) -> str:
    return re.sub(rf"\b{_BLANK}\b", lambda _: row[option].strip(), row["context"]).strip()


StoredRow = Mapping[str, Any]
_TOPIC_TAGS = ("topic", "template", "article")
_TYPE_TAGS = ("bias_type", "category", "family")
_UNKNOWN = "unknown"  # the tag with the position of that option
_FIRST, _REVISION = "first_draft", "revision"
_ABSTENTIONS: dict[tuple[bool, bool], Abstention] = {
    (True, False): "chosen",
    (False, True): "rejected",
    (True, True): "both",
    (False, False): "neither",
}


def from_runs(runs: Sequence[RunReader], split: Split, *, keep: bool = True) -> BuiltPairs:
    """Pair what evaluators refused with what they accepted instead.

    Repairs of questions mostly end at "unknown". So answers that were accepted at once are paired
    with "unknown", to keep them, until as many pairs reward an answer as reward "unknown".

    Args:
        runs: The runs of a method that repairs.
        split: How the pairs are split, matched and limited.
        keep: Whether to add pairs that keep an accepted answer.

    Returns:
        The pairs of each split, and the report.

    Raises:
        UserError: If no item was repaired.
    """
    unused: Counter[str] = Counter()
    repaired: list[PreferencePair] = []
    accepted: list[PreferencePair] = []
    for run in runs:
        for pair in _pairs_of(run, unused):
            (repaired if pair.role_chosen == _REVISION else accepted).append(pair)
    pairs = capped(repaired, split)
    if not pairs:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(unused.items()))
        raise UserError(
            f"no pair: no item was refused, repaired and then accepted ({reasons or 'no items'}); "
            "run more items, or with a judge that accepts some revisions; `evenhand train pairs "
            "from-items` needs no run"
        )
    candidates = _not_repaired(accepted, pairs, split) if keep else []
    where = sides({(pair.topic, pair.bias_type) for pair in pairs}, split.test_share, split.seed)
    topics = {pair.topic for pair in [*pairs, *candidates]}
    to_train = trained(topics, where)
    where = {topic: "train" if topic in to_train else "test" for topic in topics}
    to_keep = [pair for side in SIDES for pair in _to_keep(candidates, pairs, where, side)]
    unused["accepted_at_once"] -= len(to_keep)
    origin = FromRuns(
        runs=[{"run": str(run.path), "method": run.record.method} for run in runs],
        items=ItemsOfRuns(
            used=len(repaired),
            used_to_keep=len(to_keep),
            not_used={reason: number for reason, number in sorted(unused.items()) if number},
        ),
    )
    return finished([*pairs, *to_keep], where, split, origin)


def _not_repaired(
    accepted: Sequence[PreferencePair], repaired: Sequence[PreferencePair], split: Split
) -> list[PreferencePair]:
    """Without questions that another run repaired, since their two pairs would contradict each
    other, and with what the repaired ones leave of a topic's most pairs."""
    prompts = {pair.prompt for pair in repaired}
    of_topic = Counter(pair.topic for pair in repaired)
    candidates = []
    for pair in capped([pair for pair in accepted if pair.prompt not in prompts], split):
        if split.per_topic is None or of_topic[pair.topic] < split.per_topic:
            of_topic[pair.topic] += 1
            candidates.append(pair)
    return candidates


def _to_keep(
    candidates: Sequence[PreferencePair],
    repaired: Sequence[PreferencePair],
    where: Mapping[str, Side],
    side: Side,
) -> list[PreferencePair]:
    """As many as make answers and abstentions be chosen over each other equally often."""
    sides_of = Counter(pair.abstention for pair in repaired if where[pair.topic] == side)
    there = [pair for pair in candidates if where[pair.topic] == side]
    missing = max(0, sides_of["chosen"] - sides_of["rejected"])
    return in_turn(there, lambda pair: pair.topic, missing)


def _pairs_of(run: RunReader, unused: Counter[str]) -> Iterator[PreferencePair]:
    """Those of repaired items, and those of answers that were accepted at once."""
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
    unknown = named(pl.col("tags"), _UNKNOWN).cast(pl.Int64)
    at_once = (pl.col("stopped") == "accepted") & (pl.col("choice") != unknown)
    drafted = rows.filter(repaired | at_once).collect()
    choices = drafted.filter(pl.col("choice").is_not_null())["position"].to_list()
    questions = _questions(run, repairs.writer, choices)
    referee = _referee(run, list(repairs.critics))
    for row in drafted.iter_rows(named=True):
        pair = _pair_of_row(row, repairs, questions, run, referee)
        if isinstance(pair, PreferencePair):
            yield pair
        elif len(row["drafts"]) > 1:
            unused[pair] += 1


def _without_revision(stopped: str | None, reason: str | None) -> str:
    """Why an item without a revision makes no pair."""
    if stopped is None:
        return f"failed:{reason}"
    return "accepted_at_once" if stopped == "accepted" else f"not_accepted:{stopped}"


def _pair_of_row(
    row: StoredRow, repairs: RepairRoles, questions: Mapping[int, Any], run: RunReader, referee: str
) -> PreferencePair | str:
    """The pair, or why there is none."""
    tags = {tag["name"]: tag["value"] for tag in row["tags"]}
    sides = _sides_of(row, repairs, tags.get(_UNKNOWN))
    prompt = _prompt_of(row, questions)
    if isinstance(sides, str):
        return sides
    if not prompt:
        return "question_not_on_record"
    if tools_in(row["conversation"]) or any(type(turn) is not Message for turn in prompt):
        return "calls_tools"  # training reads words alone
    topic = _first(tags, _TOPIC_TAGS) or row["prompt"]
    return PreferencePair(
        prompt=prompt,
        **sides,
        topic=topic,
        topic_rejected=topic,
        bias_type=type_name(_first(tags, _TYPE_TAGS) or "unnamed"),
        referee=referee,
        source=run.record.method["name"],
        prompts=run.record.prompts,
        run=str(run.path),
    )


def _sides_of(row: StoredRow, repairs: RepairRoles, unknown: str | None) -> dict[str, Any] | str:
    """What a pair holds of its two answers, or why there is none."""
    first, last = row["drafts"][0], row["drafts"][-1]
    if len(row["drafts"]) == 1:  # nobody scored what was not said
        abstention = {**first, "choice": int(unknown or 0)}
        return _answers(last, abstention, unknown) | {
            "role_chosen": _FIRST, "role_rejected": _UNKNOWN
        }  # fmt: skip
    before, after = _score_of(first, repairs), _score_of(last, repairs)
    if row["stopped"] != "accepted":
        return f"not_accepted:{row['stopped']}"
    if _reply(first) == _reply(last):
        return "unchanged"
    if before is None or after is None:
        return "no_verdict"
    if before.above(after) <= 0:
        return "not_less_biased"  # it was refused for its language, or the judge found no change
    return _answers(last, first, unknown) | {
        "score_chosen": after.scale.bias(after.value),
        "score_rejected": before.scale.bias(before.value),
        "role_chosen": _REVISION,
        "role_rejected": _FIRST,
    }


def _answers(chosen: StoredRow, rejected: StoredRow, unknown: str | None) -> dict[str, Any]:
    abstention: Abstention | None = None
    if unknown and chosen["choice"] is not None and rejected["choice"] is not None:
        abstains = [draft["choice"] == int(unknown) for draft in (chosen, rejected)]
        abstention = _ABSTENTIONS[abstains[0], abstains[1]]
    return {"chosen": _reply(chosen), "rejected": _reply(rejected), "abstention": abstention}


def _score_of(draft: StoredRow, repairs: RepairRoles) -> BiasScore | None:
    for score in draft["scores"]:
        if score["name"] in repairs.scales:
            return BiasScore(score["value"], repairs.scales[score["name"]])
    return None


def _reply(draft: StoredRow) -> str:
    """In the form that the question asks for."""
    if draft["choice"] is None:
        return str(draft["text"])
    reasoning = {"reasoning": draft["reasoning"]} if draft["reasoning"] else {}
    return orjson.dumps({**reasoning, "answer": LETTERS[draft["choice"]]}).decode()


def _prompt_of(row: StoredRow, questions: Mapping[int, Any]) -> tuple[Message, ...]:
    """A text's own prompt or conversation. A question has a context and options too, which stand in
    the request."""
    if row["choice"] is None:
        return messages_in(row["conversation"]) or (Message("user", row["prompt"]),)
    return tuple(map(message_of, questions.get(row["position"], ())))


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
