"""What two looks at `/metrics` say: rates, shares, latency, and what was lost or not run.

Counters are counted from the start of a process, so a rate is the difference of two looks. Each
process of a gateway counts for itself: the differences are taken process by process, then summed.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from evenhand.domain.prices import Prices
from evenhand.errors import UserError
from evenhand.gateway.metrics import CAUSES
from evenhand.gateway.verdicts import Action

Series = tuple[str, frozenset[tuple[str, str]]]
_PREFIX = "evenhand_gateway_"
WRITERS = ("evidence", "audit", "otel")
QUANTILES = {"p50": 0.5, "p99": 0.99}
SPAN = 60.0  # our choice, in seconds: of a window; shares of two seconds would jump


@dataclass(frozen=True, slots=True)
class Look:
    """What one process said at one moment."""

    at: float  # by the clock of whoever looks, in seconds
    process: str
    up: float  # how long this process has counted, in seconds
    replicas: int  # how many there are, as it was told
    counts: Mapping[Series, float]  # these only rise
    states: Mapping[Series, float]


def read(text: str, at: float) -> Look:
    """Read the figures of a gateway. Whatever lacks an action is none: missing is not 0."""
    counts: dict[Series, float] = {}
    states: dict[Series, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            kept = states if family.type == "gauge" else counts
            for one in family.samples:
                if not isfinite(one.value):
                    raise ValueError("no count")
                name = one.name.removeprefix(_PREFIX)
                kept[name, frozenset(one.labels.items())] = float(one.value)
        [(process, up)] = by(states, "process_seconds", "process").items()
        [replicas] = _matching(states, "replicas")
        actions = set(by(counts, "requests_total", "action"))
    except (ValueError, KeyError):
        raise UserError("what is there are no figures of a gateway of this version") from None
    if actions != set(Action):
        raise UserError("the figures do not have every action, and what is missing is not 0")
    return Look(at, process, up, int(replicas), counts, states)


def by(series: Mapping[Series, float], name: str, label: str) -> Counter[str]:
    """The sums of a figure by one of its labels."""
    found: Counter[str] = Counter()
    for (its_name, labels), value in series.items():
        if its_name == name:
            found[dict(labels)[label]] += value  # type: ignore[assignment]
    return found


def _matching(series: Mapping[Series, float], name: str, **labels: str) -> list[float]:
    wanted = labels.items()
    return [one for (its, had), one in series.items() if its == name and wanted <= had]


@dataclass(frozen=True, slots=True)
class Window:
    """What a process counted between two looks, or since it started."""

    seconds: float
    since_start: bool
    counts: Mapping[Series, float]


def between(before: Look | None, now: Look) -> Window:
    """The difference of two looks at one process. One that began anew counts from its start."""
    if before is None or began_anew(before, now):
        return Window(now.up, True, now.counts)
    rise = {key: value - before.counts.get(key, 0) for key, value in now.counts.items()}
    return Window(now.at - before.at, False, rise)


def began_anew(before: Look, now: Look) -> bool:
    """Whether a look is at another process of the same name: its clock or a count went back."""
    fell = any(now.counts.get(key, 0) < value for key, value in before.counts.items())
    return fell or now.up < before.up


@dataclass(frozen=True, slots=True)
class Quantile:
    """An estimate: the true value is above `low` and not above `high`, the bucket that it fell
    into. Without a `high` it is above all buckets; without both nothing was timed."""

    value: float | None
    low: float | None
    high: float | None


def quantile(buckets: Mapping[float, float], share: float) -> Quantile:
    """Estimate a quantile of a histogram, whose buckets count all that is not above their end.
    Within its bucket the values are taken to be spread evenly."""
    ends = sorted(buckets)
    whole = buckets[ends[-1]] if ends else 0
    low, below = 0.0, 0.0
    for end in ends:
        if whole and buckets[end] >= share * whole:
            if end == inf:
                return Quantile(None, low, None)
            part = (share * whole - below) / (buckets[end] - below)
            return Quantile(low + (end - low) * part, low, end)
        low, below = end, buckets[end]
    return Quantile(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is known of a gateway after a look; counts are those of the window but where it says
    otherwise."""

    seconds: float  # of the window
    since_start: bool
    processes: tuple[str, ...]  # those that answered
    replicas: int  # those that there are
    joined: int  # those that answered for the first time: they are in the window from the next look
    requests: int
    a_second: float | None
    actions: Mapping[str, int]
    shares: Mapping[str, float | None]
    refused: Mapping[str, int]  # by the code of the error
    latency: Mapping[str, Mapping[str, Quantile]]  # by cause
    timed: Mapping[str, int]
    calls: int  # of agents
    tokens: Mapping[str, int]  # in and out
    uncounted: int  # exchanges with agents whose tokens nobody counted
    tokens_of: Mapping[str, Mapping[str, int]]  # by model
    in_flight: int  # now
    breaker: Mapping[str, int]  # now: processes by state
    lost: Mapping[str, Mapping[str, int]]  # since start, by writer and action
    waiting: Mapping[str, int]  # now, by writer
    unhealthy: tuple[str, ...]  # now: writers that cannot write


class Memory:
    """The looks of the last minute, by process."""

    def __init__(self, span: float = SPAN) -> None:
        self._span = span
        self._looks: dict[str, deque[Look]] = {}

    def figures(self, looks: Sequence[Look]) -> Figures:
        """What these looks, at one process each, say together with those before them."""
        windows = [self._window(look) for look in looks]
        known = [one for one in windows if not one.since_start] or windows
        counts = _summed(one.counts for one in known)
        states = _summed(look.states for look in looks)
        totals = _summed(look.counts for look in looks)
        actions = {one: int(n) for one, n in by(counts, "requests_total", "action").items()}
        requests = sum(actions.values())
        writers = [one for one in WRITERS if _matching(states, f"{one}_healthy")]
        return Figures(
            seconds=max(one.seconds for one in known),
            since_start=known[0].since_start,
            processes=tuple(look.process for look in looks),
            replicas=max(look.replicas for look in looks),
            joined=len(windows) - len(known),
            requests=requests,
            a_second=_rate(known),
            actions={one.value: actions[one] for one in Action},
            shares={one.value: actions[one] / requests if requests else None for one in Action},
            refused=_whole(by(counts, "refused_total", "code")),
            latency={cause: _latency(counts, cause) for cause in CAUSES},
            timed={one: int(sum(_matching(counts, "seconds_count", cause=one))) for one in CAUSES},
            calls=int(by(counts, "agent_calls_total", "tenant").total()),
            tokens=_directions(counts, "agent_tokens_total"),
            uncounted=int(by(counts, "agent_tokens_unknown_total", "tenant").total()),
            tokens_of={
                model: _directions(counts, "model_tokens_total", model=model)
                for model in sorted(by(counts, "model_tokens_total", "model"))
            },
            in_flight=int(sum(_matching(states, "in_flight"))),
            breaker=_whole(by(states, "breaker", f"{_PREFIX}breaker")),
            lost={one: _whole(by(totals, f"{one}_lost_total", "action")) for one in writers},
            waiting={one: int(sum(_matching(states, f"{one}_waiting"))) for one in writers},
            unhealthy=tuple(
                one for one in writers if sum(_matching(states, f"{one}_healthy")) < len(looks)
            ),
        )

    def _window(self, look: Look) -> Window:
        kept = self._looks.setdefault(look.process, deque())
        if kept and began_anew(kept[-1], look):
            kept.clear()
        while len(kept) > 1 and kept[1].at <= look.at - self._span:
            kept.popleft()
        window = between(kept[0] if kept else None, look)
        kept.append(look)
        return window


def _summed(several: Iterable[Mapping[Series, float]]) -> dict[Series, float]:
    found: dict[Series, float] = {}
    for one in several:
        for key, value in one.items():
            found[key] = found.get(key, 0) + value
    return found


def _rate(windows: Sequence[Window]) -> float | None:
    """Requests a second: each process by its own window."""
    if any(one.seconds <= 0 for one in windows):
        return None
    return sum(sum(_matching(one.counts, "requests_total")) / one.seconds for one in windows)


def _latency(counts: Mapping[Series, float], cause: str) -> dict[str, Quantile]:
    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in counts.items()
        if name == "seconds_bucket" and ("cause", cause) in labels
    }
    return {name: quantile(buckets, share) for name, share in QUANTILES.items()}


def _directions(counts: Mapping[Series, float], name: str, **labels: str) -> dict[str, int]:
    return {
        one: int(sum(_matching(counts, name, direction=one, **labels))) for one in ("in", "out")
    }


def _whole(counted: Mapping[str, float]) -> dict[str, int]:
    return {name: int(counted[name]) for name in sorted(counted) if counted[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class EachRepair:
    """What the agents took for each answer that was repaired: all their work of the window, also
    that on answers which passed or were blocked, shared by the repaired ones."""

    calls: float | None  # None: nothing was repaired
    tokens: float | None
    cost: float | None  # None: nothing was repaired, or a price is not known
    currency: str | None
    at_least: bool  # not all tokens were counted
    unpriced: tuple[str, ...] = field(default=())  # models without a price


def each_repair(seen: Figures, prices: Prices | None) -> EachRepair:
    """Share the work of the agents among the answers that were repaired."""
    repaired = seen.actions[Action.REPAIRED]
    used = {model: spent for model, spent in seen.tokens_of.items() if any(spent.values())}
    unpriced = tuple(one for one in used if prices is None or one not in prices.models)
    cost = None
    if prices is not None and not unpriced:
        cost = sum(prices.cost(one, spent["in"], spent["out"]) for one, spent in used.items())

    def shared(amount: Any) -> float | None:
        return amount / repaired if repaired and amount is not None else None

    return EachRepair(
        calls=shared(seen.calls),
        tokens=shared(sum(seen.tokens.values())),
        cost=shared(cost),
        currency=prices.currency if prices else None,
        at_least=bool(seen.uncounted),
        unpriced=unpriced,
    )
