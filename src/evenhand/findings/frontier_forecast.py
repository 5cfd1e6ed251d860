"""A forecast says what a whole frontier will cost, from a pilot of each of its methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.findings.display import Displayable

KINDS = ("calls", "prompt_tokens", "completion_tokens", "cost")
_ENDS = ("expected", "low", "high", "so_far")
Ends = Mapping[str, float | None]  # expected, low, high, so_far


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierForecast(Displayable):
    """The forecasts of the methods, and their sum."""

    methods: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, Ends]
    seconds_left: Ends
    currency: str | None
    played_back: tuple[str, ...] = ()  # runs that take every answer from another one
    of: str = "frontier"  # or "table", "gate": runs whose items differ

    def to_dict(self) -> dict[str, Any]:
        return {
            "methods": self.methods,
            "totals": self.totals,
            "seconds_left": self.seconds_left,
            "currency": self.currency,
            "played_back": list(self.played_back),
        }


def whole(
    forecasts: Mapping[str, Mapping[str, Any]],
    of: str = "frontier",
    played_back: Sequence[str] = (),
) -> FrontierForecast:
    """The sum of the methods' forecasts. All saw the same items, so that they err together: the
    ends of the intervals are added up as they are."""
    each = list(forecasts.values())
    return FrontierForecast(
        methods=forecasts,
        totals={kind: _sum([forecast["totals"].get(kind) for forecast in each]) for kind in KINDS},
        seconds_left=_sum([forecast["seconds_left"] for forecast in each]),
        currency=each[0]["currency"],
        of=of,
        played_back=tuple(played_back),
    )


def _sum(parts: Sequence[Ends | None]) -> dict[str, float | None]:
    """None where one of the parts is not known."""
    ends: dict[str, float | None] = {}
    for end in _ENDS:
        values = [None if part is None else part.get(end) for part in parts]
        present = [value for value in values if value is not None]
        ends[end] = sum(present) if len(present) == len(values) else None
    return ends
