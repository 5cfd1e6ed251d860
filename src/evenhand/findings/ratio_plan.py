"""A plan of ratios says how many people an audit needs, so that a group that is behind is shown to
be."""

from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import UserError
from evenhand.findings.display import Displayable
from evenhand.findings.scoring import ScoringSpec
from evenhand.statistics.selection import people_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioPlan(Displayable):
    """A plan of ratios says how many people of each group, or how many rankings, show a true ratio
    with the wanted chance."""

    instrument: ScoringSpec
    groups: int
    ratio: float
    rate: float | None  # of the other groups; None where one of several wins
    power: float
    each: int  # people in each group, or rankings with one candidate of each

    @property
    def people(self) -> int:
        """The people of all groups, or the rankings."""
        return self.each if self.rate is None else self.groups * self.each

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.instrument.name,
            "groups": self.groups,
            "ratio": self.ratio,
            "rate": self.rate,
            "power": self.power,
            "in_each_group": self.each,
            "in_all": self.people,
        }


def ratio_plan(
    instrument: ScoringSpec, *, groups: int, ratio: float, rate: float | None, power: float = 0.8
) -> RatioPlan:
    """Plan an audit of equal groups, of which one has this ratio to the others."""
    if instrument.selects is None:
        raise UserError(
            f"--groups, --rate and --ratio plan an audit of ratios, which {instrument.name} does "
            "not make: `evenhand plan decisions` and `evenhand plan rankings` do"
        )
    alone = instrument.selects == "each"
    if alone and rate is None:
        raise UserError("say how many are selected of those who are not behind: --rate 0.3")
    if not alone and rate is not None:
        raise UserError("of a ranking one candidate comes first: leave --rate out")
    each = people_needed(groups, 0.5 if rate is None else rate, ratio, power, each_alone=alone)
    return RatioPlan(
        instrument=instrument, groups=groups, ratio=ratio, rate=rate, power=power, each=each
    )
