"""Look at a running gateway: its figures from every process that answers, and its last repairs.

Counters are counted from the start of a process, so a rate is the difference of two looks. Each
process of a gateway counts for itself: the differences are taken process by process, then summed.
"""

import asyncio
import shlex
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

import aiohttp
import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from evenhand.core.errors import EvenhandError, UserError
from evenhand.core.prices import Prices
from evenhand.gateway.metrics import CAUSES
from evenhand.gateway.verdicts import Action
from evenhand.models.http_client import plain_url, read_capped
from evenhand.runs.store import RunReader

Series = tuple[str, frozenset[tuple[str, str]]]
_PREFIX = "evenhand_gateway_"
WRITERS = ("evidence", "audit", "otel")
QUANTILES = {"p50": 0.5, "p99": 0.99}
SPAN = 60.0  # our choice, in seconds: of a window; shares of two seconds would jump


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """What one process said at one moment."""

    at: float  # by the clock of the viewer, in seconds
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
        raise UserError("these are not the metrics of a gateway of this version") from None
    if actions != set(Action):
        raise UserError("the figures do not have every action, and what is missing is not 0")
    return ProcessSnapshot(at, process, up, int(replicas), counts, states)


def by(series: Mapping[Series, float], name: str, label: str) -> Counter[str]:
    """Sum a metric for each value of one of its labels.

    Args:
        series: All values of a snapshot.
        name: The metric's name, without the prefix.
        label: The label to group by.

    Returns:
        The sums.
    """
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
    """The difference of two snapshots of one process. A restarted one counts from its start."""
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


_SECONDS = 5.0  # our choice: figures that take longer are as good as none
_MOST_BODY = 16 * 1024 * 1024
_TRIES = 4  # our choice, for each replica: whichever is free answers, so each is met by luck


def gateway_address(url: str) -> str:
    """The address of a gateway, without a path; one that holds a password is refused."""
    return plain_url(
        url,
        no_address="this is not an address. An example: evenhand gateway top http://127.0.0.1:8088",
        tells_too_much="the address of the gateway must hold no password: name a --key-env",
    ).rstrip("/").removesuffix("/v1")  # fmt: skip


async def figures_of(
    address: str, key: str | None, every: float | None
) -> AsyncIterator[GatewayFigures | UserError]:
    """Give the figures of a gateway, once or every so many seconds.

    Args:
        address: The address of the gateway.
        key: The key of an operator.
        every: Seconds between two looks; None looks once.

    Yields:
        The figures, or the error of a later look: the gateway may come back.

    Raises:
        UserError: If the first look fails.
    """
    headers = {"authorization": f"Bearer {key}"} if key else {}
    memory = SnapshotHistory()
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    # A connection that is kept would lead to the same process again.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(
        headers=headers, timeout=limit, connector=connector
    ) as session:
        yield memory.figures(await looked(session, address))
        while every is not None:
            await asyncio.sleep(every)
            try:
                looks = await looked(session, address)
            except UserError as error:
                yield error
            else:
                yield memory.figures(looks)


async def looked(session: aiohttp.ClientSession, address: str) -> Sequence[ProcessSnapshot]:
    """Look at every process that answers at an address, as far as they can be met."""
    first = await _one(session, address)
    met = {first.process: first}
    if first.replicas > 1:
        tries = (_one(session, address) for _ in range(_TRIES * first.replicas))
        results = await asyncio.gather(*tries, return_exceptions=True)  # who is missing is said
        met |= {look.process: look for look in results if isinstance(look, ProcessSnapshot)}
    return [met[name] for name in sorted(met)]


async def _one(session: aiohttp.ClientSession, address: str) -> ProcessSnapshot:
    try:
        async with session.get(f"{address}/metrics") as response:
            body = await read_capped(response, _MOST_BODY)
    except (aiohttp.ClientError, TimeoutError) as error:
        port = address.rpartition(":")[2]
        where = f" --port {port}" if port.isdigit() else ""
        raise UserError(
            f"{address} does not answer ({type(error).__name__}). If no gateway runs there, start "
            f"one:\nevenhand gateway serve --upstream URL{where}"
        ) from None
    again = shlex.join(["evenhand", "gateway", "top", address, "--key-env", "NAME"])
    if response.status == 401:
        raise UserError(
            f"{address} wants the key of an operator: put the hash of one under operators in the "
            "policy (`evenhand gateway key` makes both), the key itself into an environment "
            f"variable, and run:\n{again}"
        )
    try:
        if response.status != 200 or body is None:
            raise UserError(f"/metrics gave HTTP {response.status}")
        return read(body.decode("utf-8", "replace"), time.monotonic())
    except EvenhandError as error:
        raise UserError(
            f"{address}: {error}. See what is there:\n"
            f"evenhand doctor endpoint --base-url {address}/v1"
        ) from None


MOST = 3  # our choice: repairs on a screen
_BACK = 2_000  # our choice, in items of each folder: a screen must not read a whole day
_DAYS = 2  # our choice: today, and yesterday for the minutes after midnight
_FRESH_SECONDS = 20.0  # our choice: folders are committed once a minute
_COLUMNS = ("position", "item_id", "answer_before", "text", "tags")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """An answer as the upstream said it and as it went out."""

    at: float  # seconds since 1970, when the first agent was asked
    tenant: str
    id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRepairs:
    """The last repairs, the newest first, and why there may be fewer than there were."""

    repairs: tuple[Repair, ...] = ()
    without_words: int = 0  # folders whose policy is to keep no words
    problem: str = ""  # what could not be read


class RepairFolders:
    """The local folders of a gateway's evidence, read again when they may have changed."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        if not folder.is_dir():
            raise UserError(
                f"--evidence {folder} is not a local folder: give the one that the gateway "
                "was started with"
            )
        self._folder, self._clock = folder, clock
        self._found, self._until = RecentRepairs(), 0.0

    def last(self) -> RecentRepairs:
        """The last repairs that are committed, which is up to a minute after they went out."""
        if self._clock() >= self._until:
            self._found = self._read()
            self._until = self._clock() + _FRESH_SECONDS
        return self._found

    def _read(self) -> RecentRepairs:
        repairs: list[Repair] = []
        without, problem = 0, ""
        for path in self._places():
            try:
                run = RunReader(path)
                if run.record.keeps_texts:
                    repairs += _repairs(run)
                else:
                    without += 1
            except EvenhandError as error:
                problem = str(error)
        newest = sorted(repairs, key=lambda repair: repair.at, reverse=True)[:MOST]
        return RecentRepairs(repairs=tuple(newest), without_words=without, problem=problem)

    def _places(self) -> Iterator[Path]:
        """The runs of the newest days: DAY/TENANT, and DAY/TENANT/REPLICA."""
        days = sorted(self._folder.glob("????-??-??"))[-_DAYS:]
        for day in days:
            for depth in ("*", "*/*"):
                yield from (path.parent for path in sorted(day.glob(f"{depth}/run.json")))


def _repairs(run: RunReader) -> list[Repair]:
    positions = [at for first, stop in run.positions() for at in range(first, stop)][-_BACK:]
    changed = run.results_at(positions).filter(pl.col("changed")).select(_COLUMNS).collect()
    rows = [row for row in changed.to_dicts() if _tag(row, "action") == Action.REPAIRED][-MOST:]
    turns = run.turns_at([row["position"] for row in rows]).group_by("position")
    began = dict(turns.agg(pl.col("started_us").min() / 1e6).collect().iter_rows())
    return [
        Repair(
            at=began.get(row["position"], 0.0),
            tenant=_tag(row, "tenant"),
            id=row["item_id"],
            before=row["answer_before"] or "",
            after=row["text"] or "",
        )
        for row in rows
    ]


def _tag(row: dict[str, Any], name: str) -> str:
    return next((tag["value"] for tag in row["tags"] if tag["name"] == name), "")
