"""What "nothing improves" means, layer by layer: of two findings, the second of a run that lost
more answers."""

from collections.abc import Iterator
from math import inf

from evenhand.findings.comparison import Comparison
from evenhand.findings.cost_effectiveness import CostVerdict
from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Estimate
from evenhand.findings.frontier import Frontier
from evenhand.findings.report import Report
from evenhand.views import catalog
from tests.coded import codes

_SMALL = 1e-9


def report(old: Report, new: Report) -> None:
    """Bounds only widen, of everything and of each group; no verdict is gained; and the headline
    says what may be missing from it."""
    before, after = dict(_estimates(old)), dict(_estimates(new))
    assert before.keys() == after.keys()
    for key, one in before.items():
        if one.value is None and one.bounds is None:
            continue  # it has no number, and nothing is missing from it
        low, high = _ends(one)
        wider_low, wider_high = _ends(after[key])
        assert wider_low <= low + _SMALL, (key, one, after[key])
        assert wider_high >= high - _SMALL, (key, one, after[key])
    if new.verdict.state in ("detected", "ruled_out"):
        assert new.verdict.state == old.verdict.state
    lost = [one for one in (new[m.name] for m in new.instrument.primary()) if one.bounds]
    headline = new.instrument.says(new)
    if headline and len(lost) == len(new.instrument.primary()):
        assert any("known" in catalog.text(line) for line in headline), headline


def _estimates(found: Report) -> Iterator[tuple[tuple[str, ...], Estimate]]:
    for one in found.estimates:
        yield (one.name,), one
    for column, values in found.groups.items():
        for value, estimates in values.items():
            for one in estimates:
                yield (column, value, one.name), one


def _ends(one: Estimate) -> tuple[float, float]:
    """What it lies between if the missing were known; a number without a value may be any."""
    if one.bounds is None:
        return (-inf, inf) if one.value is None else (one.value, one.value)
    low, high = one.bounds.low, one.bounds.high
    return -inf if low is None else low, inf if high is None else high


def after(old: Comparison, new: Comparison) -> None:
    """The run after lost answers: a claim stays or becomes open, whichever way it went."""
    for name, was, now in _directions(old, new):
        assert now in (was, "inconclusive"), (name, was, now)
    lines = {line.name: line for line in new.guardrails}
    for line in old.guardrails:
        if line.name in lines and line.state != "non_inferior":
            assert lines[line.name].state != "non_inferior", (line, lines[line.name])
    for value, names in new.regressions.items():
        assert set(names) <= set(old.regressions.get(value, ()))
    if old.verdict.state == "inconclusive" and new.verdict.state == "detected":
        assert "comparison.better" not in codes(new.verdict.says)


def before(old: Comparison, new: Comparison) -> None:
    """The run before lost answers: no claim in favour of the run after appears."""
    for name, was, now in _directions(old, new):
        assert now != "improved" or was == "improved", name
    lines = {line.name: line for line in old.guardrails}
    for line in new.guardrails:
        if line.state == "non_inferior" and line.name != "missing":
            assert lines[line.name].state == "non_inferior", (lines[line.name], line)


def _directions(old: Comparison, new: Comparison) -> Iterator[tuple[str, str, str]]:
    known = {measure.name: measure for measure in old.instrument.measures}
    for was in (*old.primary, *old.secondary):
        measure = known.get(was.name)
        if measure is not None and measure.bounded:
            yield was.name, direction(was, measure), direction(new[was.name], measure)


def frontier(old: Frontier, new: Frontier) -> None:
    """One run of a frontier lost answers: no method becomes worth it, and no winner appears."""
    for entry, was in old.judged():
        now = new[entry.name].worth
        assert now is not None
        if now.kind in (CostVerdict.WORTH_IT, CostVerdict.UTILITY_NOT_MEASURED):
            assert was.kind is now.kind, (was, now)
    winner = new.winner()
    assert winner is None or old.winner() is not None
