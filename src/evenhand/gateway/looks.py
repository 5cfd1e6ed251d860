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

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.gateway.metrics import CAUSES
from evenhand.gateway.verdicts import Action

Series = tuple[str, frozenset[tuple[str, str]]]
_PREFIX = "evenhand_gateway_"
WRITERS = ("evidence", "audit", "otel")
QUANTILES = {"p50": 0.5, "p99": 0.99}
SPAN = 60.0  # our choice, in seconds: of a window; shares of two seconds would jump


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """What one process said at one moment."""

    at: float  # by the clock of whoever looks, in seconds
    process: str
    up: float  # how long this process has counted, in seconds
    replicas: int  # how many there are, as it was told
    counts: Mapping[Series, float]  # these only rise
    states: Mapping[Series, float]


def read(text: str, at: float) -> ProcessSnapshot:
    """Read the figures of a gateway. Whatever lacks an action is none: missing is not 0."""
    counts: dict[Series, float] = {}
    states: dict[Series, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            series = states if family.type == "gauge" else counts
            for sample in family.samples:
                if not isfinite(sample.value):
                    raise ValueError("no count")
                name = sample.name.removeprefix(_PREFIX)
                series[name, frozenset(sample.labels.items())] = float(sample.value)
        [(process, up)] = by(states, "process_seconds", "process").items()
        [replicas] = _matching(states, "replicas")
        actions = set(by(counts, "requests_total", "action"))
    except (ValueError, KeyError):
        raise UserError("what is there are no figures of a gateway of this version") from None
    if actions != set(Action):
        raise UserError("the figures do not have every action, and what is missing is not 0")
    return ProcessSnapshot(at, process, up, int(replicas), counts, states)


def by(series: Mapping[Series, float], name: str, label: str) -> Counter[str]:
    """The sums of a figure by one of its labels."""
    sums: Counter[str] = Counter()
    for (its_name, labels), value in series.items():
        if its_name == name:
            sums[dict(labels)[label]] += value  # type: ignore[assignment]
    return sums


def _matching(series: Mapping[Series, float], name: str, **labels: str) -> list[float]:
    required = labels.items()
    return [value for (its, had), value in series.items() if its == name and required <= had]


@dataclass(frozen=True, slots=True)
class CountWindow:
    """What a process counted between two looks, or since it started."""

    seconds: float
    since_start: bool
    counts: Mapping[Series, float]


def between(before: ProcessSnapshot | None, now: ProcessSnapshot) -> CountWindow:
    """The difference of two looks at one process. One that began anew counts from its start."""
    if before is None or began_anew(before, now):
        return CountWindow(now.up, True, now.counts)
    rise = {key: value - before.counts.get(key, 0) for key, value in now.counts.items()}
    return CountWindow(now.at - before.at, False, rise)


def began_anew(before: ProcessSnapshot, now: ProcessSnapshot) -> bool:
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
    total = buckets[ends[-1]] if ends else 0
    low, below = 0.0, 0.0
    for end in ends:
        if total and buckets[end] >= share * total:
            if end == inf:
                return Quantile(None, low, None)
            part = (share * total - below) / (buckets[end] - below)
            return Quantile(low + (end - low) * part, low, end)
        low, below = end, buckets[end]
    return Quantile(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayFigures:
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


class SnapshotHistory:
    """The looks of the last minute, by process."""

    def __init__(self, span: float = SPAN) -> None:
        self._span = span
        self._looks: dict[str, deque[ProcessSnapshot]] = {}

    def figures(self, looks: Sequence[ProcessSnapshot]) -> GatewayFigures:
        """What these looks, at one process each, say together with those before them."""
        windows = [self._window(look) for look in looks]
        measured = [window for window in windows if not window.since_start] or windows
        counts = _summed(window.counts for window in measured)
        states = _summed(look.states for look in looks)
        totals = _summed(look.counts for look in looks)
        actions = {action: int(n) for action, n in by(counts, "requests_total", "action").items()}
        requests = sum(actions.values())
        writers = [writer for writer in WRITERS if _matching(states, f"{writer}_healthy")]
        return GatewayFigures(
            seconds=max(window.seconds for window in measured),
            since_start=measured[0].since_start,
            processes=tuple(look.process for look in looks),
            replicas=max(look.replicas for look in looks),
            joined=len(windows) - len(measured),
            requests=requests,
            a_second=_rate(measured),
            actions={action.value: actions[action] for action in Action},
            shares={
                action.value: actions[action] / requests if requests else None for action in Action
            },
            refused=_whole(by(counts, "refused_total", "code")),
            latency={cause: _latency(counts, cause) for cause in CAUSES},
            timed={
                cause: int(sum(_matching(counts, "seconds_count", cause=cause))) for cause in CAUSES
            },
            calls=int(by(counts, "agent_calls_total", "tenant").total()),
            tokens=_directions(counts, "agent_tokens_total"),
            uncounted=int(by(counts, "agent_tokens_unknown_total", "tenant").total()),
            tokens_of={
                model: _directions(counts, "model_tokens_total", model=model)
                for model in sorted(by(counts, "model_tokens_total", "model"))
            },
            in_flight=int(sum(_matching(states, "in_flight"))),
            breaker=_whole(by(states, "breaker", f"{_PREFIX}breaker")),
            lost={
                writer: _whole(by(totals, f"{writer}_lost_total", "action")) for writer in writers
            },
            waiting={
                writer: int(sum(_matching(states, f"{writer}_waiting"))) for writer in writers
            },
            unhealthy=tuple(
                writer
                for writer in writers
                if sum(_matching(states, f"{writer}_healthy")) < len(looks)
            ),
        )

    def _window(self, look: ProcessSnapshot) -> CountWindow:
        looks = self._looks.setdefault(look.process, deque())
        if looks and began_anew(looks[-1], look):
            looks.clear()
        while len(looks) > 1 and looks[1].at <= look.at - self._span:
            looks.popleft()
        window = between(looks[0] if looks else None, look)
        looks.append(look)
        return window


def _summed(several: Iterable[Mapping[Series, float]]) -> dict[Series, float]:
    sums: dict[Series, float] = {}
    for series in several:
        for key, value in series.items():
            sums[key] = sums.get(key, 0) + value
    return sums


def _rate(windows: Sequence[CountWindow]) -> float | None:
    """Requests a second: each process by its own window."""
    if any(window.seconds <= 0 for window in windows):
        return None
    return sum(
        sum(_matching(window.counts, "requests_total")) / window.seconds for window in windows
    )


def _latency(counts: Mapping[Series, float], cause: str) -> dict[str, Quantile]:
    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in counts.items()
        if name == "seconds_bucket" and ("cause", cause) in labels
    }
    return {name: quantile(buckets, share) for name, share in QUANTILES.items()}


def _directions(counts: Mapping[Series, float], name: str, **labels: str) -> dict[str, int]:
    return {
        direction: int(sum(_matching(counts, name, direction=direction, **labels)))
        for direction in ("in", "out")
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


def each_repair(figures: GatewayFigures, prices: Prices | None) -> EachRepair:
    """Share the work of the agents among the answers that were repaired."""
    repaired = figures.actions[Action.REPAIRED]
    used = {model: spent for model, spent in figures.tokens_of.items() if any(spent.values())}
    unpriced = tuple(model for model in used if prices is None or model not in prices.models)
    cost = None
    if prices is not None and not unpriced:
        cost = sum(prices.cost(model, spent["in"], spent["out"]) for model, spent in used.items())

    def shared(amount: Any) -> float | None:
        return amount / repaired if repaired and amount is not None else None

    return EachRepair(
        calls=shared(figures.calls),
        tokens=shared(sum(figures.tokens.values())),
        cost=shared(cost),
        currency=prices.currency if prices else None,
        at_least=bool(figures.uncounted),
        unpriced=unpriced,
    )
