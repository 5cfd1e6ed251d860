"""What else tells the two sides of the pairs apart: a reward model would learn that instead."""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from evenhand.debates.account import BothSides, Shortcuts
from evenhand.debates.near_duplicates import spelling
from evenhand.debates.openers import has_opener
from evenhand.debates.pairs import Pair

_STEP = math.log(1.25)  # our choice: pairs are matched among those with a like ratio of lengths
_LAST_STEP = 4  # 2.4 times as long and more


def shortcuts(pairs: Sequence[Pair]) -> Shortcuts | None:
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


def _both(pairs: Sequence[Pair], measure: Callable[[str, str], float]) -> BothSides:
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


def matched(pairs: Sequence[Pair], seed: int) -> list[Pair]:
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
