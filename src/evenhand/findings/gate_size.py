"""How many more items would decide a check that is open, and what they cost."""

import math
from dataclasses import dataclass

import scipy  # its parts are loaded when first used

from evenhand.core.prices import Prices
from evenhand.findings import cost as costs
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Change
from evenhand.findings.measures import Measure
from evenhand.findings.plan import PilotSpread, PowerTarget, clusters_needed
from evenhand.findings.remarks import Remark
from evenhand.findings.scoring import ScoringSpec
from evenhand.runs.store import RunReader
from evenhand.statistics.proportions import zero_event_upper

POWER = 0.8
_MOST = (
    10**9
)  # our choice, of clusters: nobody has more, and a margin that needs more decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsNeeded:
    """More items would decide a check 4 times in 5: show an unchanged number to be within the
    margin, and one that got worse by the margin to be worse. Nothing is known where `why` says
    so."""

    items: int | None = None  # beside those that there are
    clusters: int | None = None
    calls: float | None = None
    tokens: float | None = None
    cost: float | None = None
    currency: str | None = None
    why: Remark | None = None


def more_to_decide(
    instrument: ScoringSpec,
    measure: Measure,
    change: Change,
    *,
    items: int,
    family: int,
    run: RunReader,
    prices: Prices | None,
) -> ItemsNeeded:
    """Compute it from the spread of these two runs and from what an item of the later one took."""
    if change.difference is None or change.clusters < 2:
        return ItemsNeeded(
            why=Remark("gate.too_few", clusters=change.clusters, unit=instrument.clusters)
        )
    clusters = clusters_to_decide(measure, change, family)
    if clusters is None:
        return ItemsNeeded(why=Remark("gate.no_spread"))
    if instrument.all_clusters is not None and clusters > instrument.all_clusters:
        return ItemsNeeded(
            why=Remark(
                "gate.more_than_there_are",
                clusters=clusters,
                unit=instrument.clusters,
                there_are=instrument.all_clusters,
                margin=measure.margin,
            )
        )
    more = max(0, math.ceil(items * (clusters / change.clusters - 1)))
    took, money = costs.cost(run), costs.money(run, prices)
    done = run.totals().items
    return ItemsNeeded(
        items=more,
        clusters=max(0, clusters - change.clusters),
        calls=None if took.calls.mean is None else more * took.calls.mean,
        tokens=None if took.tokens.mean is None else more * took.tokens.mean,
        cost=None if money.cost is None else more * money.cost / done,
        currency=money.currency,
    )


def clusters_to_decide(measure: Measure, change: Change, family: int) -> int | None:
    """Give the fewest clusters that decide it either way 4 times in 5, if they vary as these do;
    None of a number that neither varied nor has ends."""
    assert measure.margin is not None
    needed: list[int | None] = []
    if change.se:
        spread = PilotSpread(measure=measure.name, runs=("", ""), items=change.n, rows=change.n,
                             clusters=change.clusters, se=change.se)  # fmt: skip
        needed.append(clusters_needed(spread, measure.margin, PowerTarget(POWER, family)))
    if measure.bounded:
        least, most = measure.range
        sd = change.se * math.sqrt(change.clusters)
        needed.append(clusters_to_keep(sd, measure.margin, most - least))
    return None if None in needed else max((count for count in needed if count), default=None)


def clusters_to_keep(sd: float, margin: float, reach: float) -> int | None:
    """Give the fewest clusters that show an unchanged number to be within the margin 4 times in 5.

    It is the test of `rules.kept` in a normal approximation: the flipped sums of margin − change,
    among them one cluster that lost all it could, and so many clusters that a loss which none of
    them shows is within the margin.
    """
    alpha = ALPHA / 2

    def shows(clusters: int) -> bool:
        if reach * zero_event_upper(clusters, 1 - alpha) > margin:
            return False
        total = margin * clusters + float(scipy.special.ndtri(1 - POWER)) * sd * math.sqrt(clusters)
        wide = math.sqrt(clusters * (sd**2 + margin**2)) / 2  # of the sum of a random half
        # With the cluster that lost all.
        lost = float(scipy.special.ndtr((reach - margin - total / 2) / wide))
        return (lost + float(scipy.special.ndtr(-total / 2 / wide))) / 2 <= alpha

    low, high = 1, 2
    while not shows(high):
        if high > _MOST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high
