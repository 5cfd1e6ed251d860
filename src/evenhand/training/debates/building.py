"""From statements to two sides of pairs, with an account of all that was left out."""

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.core.errors import UserError
from evenhand.training.debates.near_duplicates import copies, spelling
from evenhand.training.debates.pairs import (
    STRATEGIES,
    BothSides,
    Candidates,
    FromDebates,
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
from evenhand.training.debates.read import Statement
from evenhand.training.debates.splits import SIDES, Side, in_turn, sides, trained

_STEP = math.log(1.25)  # our choice: pairs are matched among those with a like ratio of lengths
_LAST_STEP = 4  # 2.4 times as long and more


def shortcuts(pairs: Sequence[PreferencePair]) -> Shortcuts | None:
    """How well rules that look at no content would rank, and what they rest on. 0.5 is chance."""
    if not pairs:
        return None
    in_roles = [pair for pair in pairs if pair.source == "debate"]
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
    """Pairs on their sides, matched if that is wanted, and reported."""
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
            f"none of {total} pairs can be matched in length: the chosen ones are all shorter, or "
            "all longer; leave --match-lengths away"
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
    """So many of each topic, in their order; the same words twice count once."""
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
        raise UserError(f"a bias type cannot be called {bias_type!r}; name it otherwise")
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
