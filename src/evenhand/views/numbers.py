"""Numbers are written here, the same on every page."""

from evenhand.findings.cost import Money
from evenhand.findings.estimates import NO_SPREAD, Bounds, Change, Estimate
from evenhand.findings.measures import Measure

_NO_SPREAD = " (no spread)"  # after what clusters that are all alike still allow


def digits(measure: Measure | None, *, full: bool = False) -> int:
    if measure is not None and measure.unit != "share":
        return 2 if measure.unit == "nats" else 1
    return 3 if full else 2


def value(number: float | None, measure: Measure | None, *, full: bool = False) -> str:
    if number is None:
        return "-"
    sign = "+" if measure is not None and measure.signed else ""
    return _written(number, sign, digits(measure, full=full))


def _written(number: float, sign: str, places: int) -> str:
    """Write a number so that what is not 0 does not look like 0: an interval from +0.002 to +0.06
    holds no 0. Less than a millionth is a rounding error of the computer's."""
    while abs(number) >= 1e-6 and places < 6 and not f"{number:.{places}f}".strip("-0."):
        places += 1
    return no_minus_zero(f"{number:{sign}.{places}f}")


def no_minus_zero(text: str) -> str:
    """Write no sign before what is rounded to 0."""
    return text.removeprefix("-") if not text.strip("-0.") else text


def interval(estimate: Estimate, measure: Measure | None, *, full: bool = False) -> str:
    """Write the ends of an interval, or the reason why there is none. A single cluster allows
    nearly any value, so its interval is not written.

    Args:
        estimate: The estimate.
        measure: The metric, which decides on unit and digits; None for a plain number.
        full: Whether to write more digits.
    """
    if estimate.clusters == 1 and estimate.value is not None:
        return "one cluster only"
    if estimate.low is not None and estimate.high is not None:
        ends = (
            f"{value(estimate.low, measure, full=full)} to "
            f"{value(estimate.high, measure, full=full)}"
        )
        return f"{ends}{_NO_SPREAD if estimate.undefined == NO_SPREAD else ''}"
    if estimate.undefined == NO_SPREAD:
        return f"no spread in {estimate.clusters}"
    reason = estimate.undefined or ""
    return "one cluster only" if reason.startswith("one cluster") else reason


def if_known(bounds: Bounds | None, measure: Measure | None, *, full: bool = False) -> str:
    """Write the worst-case bounds: what a number could be if the missing answers were known.

    Args:
        bounds: The bounds; None without missing answers.
        measure: The metric, which decides on unit and digits; None for a plain number.
        full: Whether to write more digits.

    Returns:
        The text; empty without missing answers.
    """
    if bounds is None or not bounds.missing:
        return ""
    if bounds.low is None or bounds.high is None:
        return "anything"
    return f"{value(bounds.low, measure, full=full)} to {value(bounds.high, measure, full=full)}"


def spread(number: float, measure: Measure | None) -> str:
    """Write a standard deviation: it has no sign."""
    return _written(number, "", digits(measure, full=True))


def signed(number: float | None, measure: Measure | None, *, full: bool = False) -> str:
    return "-" if number is None else _written(number, "+", digits(measure, full=full))


def change_interval(change: Change, measure: Measure | None, *, full: bool = False) -> str:
    if change.difference is None:
        return change.undefined or ""
    if change.clusters == 1:
        return "one cluster only"
    alike = change.undefined == NO_SPREAD
    if change.interval is None:
        return f"the same in all {change.clusters}" if alike else change.undefined or ""
    low, high = change.interval
    ends = f"{_end(low, measure, full=full)} to {_end(high, measure, full=full)}"
    return f"{ends}{_NO_SPREAD if alike else ''}"


def _end(number: float, measure: Measure | None, *, full: bool) -> str:
    """Write an end of an interval; one that the test puts next to 0 is not written as 0."""
    if 0 < abs(number) < 1e-6:
        return "above 0" if number > 0 else "below 0"
    return signed(number, measure, full=full)


def p_value(p: float | None) -> str:
    return "-" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


def ideal(measure: Measure) -> str:
    best = {"lower": "0", "zero": "0", "fifty": "50", "none": ""}
    if measure.better == "higher":
        return "1" if measure.unit == "share" else "100" if measure.unit == "percent" else ""
    return best[measure.better]


def count(n: float | None, word: str) -> str:
    return f"{n:,.0f} {word}" if n is not None else f"{word} not counted"


def money(amount: float, currency: str) -> str:
    """Write an amount: cents where there are any, more digits where there are none."""
    decimals = 2 if amount >= 1 or not amount else 4 if amount >= 0.01 else 6
    return f"{amount:,.{decimals}f} {currency}"


def paid(money_paid: Money, otherwise: str = "no price file (--prices FILE)") -> str:
    """Write what was paid, or why that is not known."""
    if money_paid.cost is None or money_paid.currency is None:
        return otherwise
    return money(money_paid.cost, money_paid.currency)


def plus_minus(
    number: float | None,
    low: float | None,
    high: float | None,
    measure: Measure | None,
    *,
    change: bool = False,
) -> str:
    """Write a number with half the width of its interval, or alone where it has none.

    Args:
        number: The number; None where it is undefined.
        low: The lower end of the interval.
        high: The upper end of the interval.
        measure: The metric, which decides on unit and digits; None for a plain number.
        change: Whether the number is a change, which is written with its sign.
    """
    if number is None:
        return "undefined"
    text = signed(number, measure) if change else value(number, measure)
    if low is None or high is None:
        return text
    return f"{text} ±{(high - low) / 2:.{digits(measure)}f}"


def duration(seconds: float) -> str:
    """A span of time in the unit that a person would use."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{1 if unit in ('days', 'h') else 0}f} {unit}"
    return f"{seconds:.0f} s"
