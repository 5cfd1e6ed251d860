"""A property is judged by its checks: each holds a number that a tool printed against what it must
be. What a tool does not print is "does not say", and never a fault."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict

from evenhand.core.conclusions import ChangeResult

State = Literal["holds", "broken", "does not say"]
SURE = 0.05  # the level at which a change counts as shown


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NumberBounds(_Strict):
    """Bounds are what a number could be if the missing answers were known."""

    low: float
    high: float


class Number(_Strict):
    """A number is a value with what the tool says about it; a value of None is "undefined"."""

    value: float | None
    low: float | None = None  # of the interval
    high: float | None = None
    p: float | None = None
    bounds: NumberBounds | None = None
    shown: ChangeResult | None = None  # of a change


class CaseScores(_Strict):
    """What a tool says of one case."""

    numbers: dict[str, Number]
    missing: int | None = None  # answers that it could not read, where it says so
    not_run: int | None = None  # items that were not asked, where it says so


class ToolScores(_Strict):
    """What a tool says of all cases; a change is named "BEFORE -> AFTER"."""

    tool: str
    cases: dict[str, CaseScores]
    changes: dict[str, dict[str, Number]] = {}

    def number(self, case: str, name: str) -> Number | None:
        """Give a number of a case or of a change; None where the tool has none."""
        if "->" in case:
            return self.changes.get(case, {}).get(name)
        return self.cases[case].numbers.get(name) if case in self.cases else None


class ConformanceCheck(_Strict):
    """A check is one comparison; `kind` names how it is made, see `KINDS`."""

    kind: str
    case: str
    number: str = ""
    value: float = 0.0
    tolerance: float = 1e-9
    other: str = ""  # another case


class Property(_Strict):
    """A property is a sentence about any right scorer, with the checks that it consists of."""

    name: str
    says: str
    because: str
    checks: tuple[ConformanceCheck, ...]


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """A judged property says whether it holds for a tool, and what was got."""

    name: str
    state: State
    got: str


Made = tuple[bool | None, str]  # whether it holds, and what was got


def judge(properties: Sequence[Property], scores: ToolScores) -> list[PropertyResult]:
    """Judge a tool by every property. One broken check breaks a property; a check that the tool has
    no number for is left out."""
    return [_judged(prop, scores) for prop in properties]


def _judged(prop: Property, scores: ToolScores) -> PropertyResult:
    outcomes = [(KINDS[check.kind](check, scores), check) for check in prop.checks]
    broken = [got for (holds, got), _ in outcomes if holds is False]
    held = [check for (holds, _), check in outcomes if holds]
    if broken:
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        return PropertyResult(prop.name, "broken", broken[0] + more)
    names = dict.fromkeys(check.number.partition("/")[0] or check.kind for check in held)
    return PropertyResult(prop.name, "holds" if held else "does not say", ", ".join(names))


def _value(check: ConformanceCheck, scores: ToolScores) -> Made:
    """The number is this value."""
    number = scores.number(check.case, check.number)
    if number is None or number.value is None:
        return None, ""
    holds = abs(number.value - check.value) <= check.tolerance
    return holds, f"{check.case}: {check.number} {number.value:+.3f}, not {check.value:+.3f}"


def _same(check: ConformanceCheck, scores: ToolScores, sign: int = 1) -> Made:
    """The number is the same in another case; with a sign of −1, its negative."""
    number, reference = (scores.number(case, check.number) for case in (check.case, check.other))
    if number is None or reference is None or number.value is None or reference.value is None:
        return None, ""
    holds = abs(number.value - sign * reference.value) <= check.tolerance
    return holds, f"{check.number} {reference.value:+.3f} becomes {number.value:+.3f}"


def _reaches(check: ConformanceCheck, scores: ToolScores, sign: int = 1) -> Made:
    """The number, or its worst bound, is at least what it is in a case with all answers; with a
    sign of −1, at most."""
    number, reference = (scores.number(case, check.number) for case in (check.case, check.other))
    if number is None or reference is None or number.value is None or reference.value is None:
        return None, ""
    ends = (number.bounds.low, number.bounds.high) if number.bounds else ()
    worst = max(sign * end for end in (number.value, *ends))
    holds = worst >= sign * reference.value - check.tolerance
    return holds, f"{check.number} {reference.value:+.3f} becomes {sign * worst:+.3f} at worst"


def _p(check: ConformanceCheck, scores: ToolScores) -> Made:
    """The p-value is small."""
    number = scores.number(check.case, check.number)
    if number is None or number.p is None:
        return None, ""
    return number.p <= check.value, f"{check.case}: p of {check.number} is {number.p:.3f}"


def _not_better(check: ConformanceCheck, scores: ToolScores) -> Made:
    """The change is not said to be shown better."""
    number = scores.number(check.case, check.number)
    if number is None or number.shown is None:
        return None, ""
    return number.shown != "improved", f"{check.case}: {check.number} is shown better"


def _as_wide(check: ConformanceCheck, scores: ToolScores) -> Made:
    """The interval is at least so many times as wide as in another case."""
    width, reference = (
        _width(scores.number(case, check.number)) for case in (check.case, check.other)
    )
    if width is None or not reference:
        return None, ""
    return (
        width / reference >= check.value,
        f"interval of {check.number} is {width / reference:.2f} as wide",
    )


def _some_width(check: ConformanceCheck, scores: ToolScores) -> Made:
    """The interval, if there is one, has a width."""
    width = _width(scores.number(check.case, check.number))
    return None if width is None else width > check.tolerance, f"{check.number} ± 0 of {check.case}"


def _width(number: Number | None) -> float | None:
    if number is None or number.low is None or number.high is None:
        return None
    return number.high - number.low


def _count(check: ConformanceCheck, scores: ToolScores, what: str) -> Made:
    """The tool reports the right number of missing answers, or of items that were not asked."""
    reported = getattr(scores.cases.get(check.case), what, None)
    holds = None if reported is None else reported == check.value
    return holds, f"{check.case}: says {reported} of {check.value:.0f}"


def _told_apart(check: ConformanceCheck, scores: ToolScores) -> Made:
    """Some number over all items differs from that of another case by this much."""
    case_scores, other_scores = (scores.cases.get(case) for case in (check.case, check.other))
    if case_scores is None or other_scores is None:
        return None, ""
    both = [
        (case_scores.numbers[name].value, other_scores.numbers[name].value)
        for name in case_scores.numbers
        if "/" not in name and name in other_scores.numbers
    ]
    most = max((abs(a - b) for a, b in both if a is not None and b is not None), default=0.0)
    return most >= check.value, f"no number differs by more than {most:.3f}"


KINDS: dict[str, Callable[[ConformanceCheck, ToolScores], Made]] = {
    "value": _value,
    "same": _same,
    "negated": partial(_same, sign=-1),
    "reaches": _reaches,
    "falls": partial(_reaches, sign=-1),
    "p": _p,
    "not better": _not_better,
    "as wide": _as_wide,
    "some width": _some_width,
    "missing": partial(_count, what="missing"),
    "not run": partial(_count, what="not_run"),
    "told apart": _told_apart,
}
