"""A plan of a gateway says how many cores, replicas and agent calls a traffic needs, and its price,
from what was measured of the gateway itself."""

import math
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.core.errors import UserError, choices_for
from evenhand.findings.display import Displayable
from evenhand.findings.plan import ItemPrice
from evenhand.statistics.proportions import clopper_pearson

_MEASURED = Path(__file__).with_name("gateway_measured.toml")
_DAY = 86_400.0
FEWEST_REPLICAS = 2  # our choice: one may be replaced at any time


class Range(NamedTuple):
    """A figure and the least and greatest that the measurements leave."""

    middle: float
    low: float
    high: float

    def times(self, factor: float) -> "Range":
        """The range of a multiple."""
        return Range(*(factor * end for end in self))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTraffic:
    """The traffic that a gateway is planned for."""

    answers_per_day: float
    characters: int = 230
    peak: float = 3.0  # our choice: the busiest minute, by the mean
    load: float = 0.6  # our choice: the share of a core in use at the peak
    screen: str = "offline"
    to_agents: float | None = None  # the share of answers; None: as measured on harmless texts


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan(Displayable):
    """What a traffic needs of a gateway."""

    traffic: GatewayTraffic
    price: ItemPrice  # of an answer that goes to the agents
    cpu_ms: Range  # of one answer
    cores: Range  # at the peak
    replicas: int  # of one core each, for the greatest of these
    to_agents: Range  # the share of answers that the agents decide about
    calls: Range  # of agents, a day
    tokens: Range
    money: Range | None  # a day; None without a price
    measured: str  # when and on what

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def gateway_plan(traffic: GatewayTraffic, price: ItemPrice) -> GatewayPlan:
    """Plan a gateway.

    Args:
        traffic: The traffic.
        price: What an answer costs that goes to the agents.

    Returns:
        The plan.

    Raises:
        UserError: The traffic is not one, or its screen was not measured.
    """
    if not traffic.answers_per_day > 0 or not math.isfinite(traffic.answers_per_day):
        raise UserError("--answers-per-day is a positive number")
    if not traffic.peak >= 1 or not 0 < traffic.load <= 1 or traffic.characters < 1:
        raise UserError("--peak is 1 or more, --load above 0 and at most 1, --characters 1 or more")
    figures = measured()
    cpu = _cpu_ms(figures, traffic.screen, traffic.characters)
    share = _to_agents(figures, traffic.to_agents)
    cores = cpu.times(traffic.answers_per_day / _DAY * traffic.peak / 1000 / traffic.load)
    calls = share.times(traffic.answers_per_day * price.calls)
    tokens = calls.times(price.tokens)
    paid = price.paid_per_million
    return GatewayPlan(
        traffic=traffic,
        price=price,
        cpu_ms=cpu,
        cores=cores,
        replicas=max(FEWEST_REPLICAS, math.ceil(cores.high)),
        to_agents=share,
        calls=calls,
        tokens=tokens,
        money=None if paid is None else tokens.times(paid / 1e6),
        measured=f"{figures['date']}, {figures['machine']}",
    )


@cache
def measured() -> dict[str, Any]:
    """What was measured of the gateway: `python -m bench.gateway_cpu` writes it."""
    return tomllib.loads(_MEASURED.read_text("utf-8"))


def _to_agents(figures: dict[str, Any], share: float | None) -> Range:
    if share is not None:
        if not 0 <= share <= 1:
            raise UserError("--to-agents is a share between 0 and 1")
        return Range(share, share, share)
    found = clopper_pearson(figures["to_agents"]["events"], figures["to_agents"]["texts"])
    return Range(found.estimate, found.low, found.high)


def _cpu_ms(figures: dict[str, Any], screen: str, characters: int) -> Range:
    """The CPU of one answer, between the lengths that were measured on a line. Beyond them the cost
    of the shortest counts, and the longest is scaled up."""
    if screen not in figures["cpu_ms"]:
        raise UserError(
            f"the screen {screen!r} was not measured{choices_for(screen, figures['cpu_ms'])}"
        )
    rows = [(int(row[0]), Range(*row[1:])) for row in figures["cpu_ms"][screen]]
    (shortest, least), (longest, most) = rows[0], rows[-1]
    if characters <= shortest:
        return least
    if characters >= longest:
        return most.times(characters / longest)
    (start, below), (stop, above) = next(
        pair for pair in pairwise(rows) if pair[0][0] <= characters <= pair[1][0]
    )
    part = (characters - start) / (stop - start)
    return Range(*(low + part * (high - low) for low, high in zip(below, above, strict=True)))
