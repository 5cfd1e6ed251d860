"""A frontier whose changes are judged by t and McNemar over complete pairs, and whose front is of
the answers that there are, as they were."""

from dataclasses import replace

from evenhand.findings.comparison import Comparison
from evenhand.findings.found import Change
from evenhand.findings.frontier import Frontier
from evenhand.findings.frontier_entry import Entry
from evenhand.findings.rules import adjusted
from evenhand.findings.worth import regressions, worth
from evenhand.statistics.paired import mcnemar_p, sign_flip_without_spread
from evenhand.statistics.pareto import front
from same_numbers.as_before.shapes import p_of_t


def by_t(found: Frontier) -> Frontier:
    """The frontier with the p-values of before, and Holm over the families that there were."""
    entries = list(found.entries)
    compared = {
        e.name: _compared(e.against_default.comparison) for e in entries if e.against_default
    }
    named = [e for e in entries if e.against_default and e.role != "vote"]
    harms = adjusted([_plain(e.against_default.harm) for e in named if e.against_default])
    harm = {e.name: one for e, one in zip(named, harms, strict=True)}
    pairs = [(e.name, other, c) for e in entries for other, c in e.harm_against.items()]
    against: dict[str, dict[str, Change]] = {}
    for (name, other, _), one in zip(pairs, adjusted([_plain(c) for *_, c in pairs]), strict=True):
        against.setdefault(name, {})[other] = one
    for place, e in enumerate(entries):
        if e.against_default is None:
            continue
        comparison = compared[e.name]
        unnamed = _plain(e.against_default.harm)
        old = replace(
            e.against_default,
            comparison=comparison,
            harm=harm.get(e.name, unnamed),
            regressions=regressions(comparison),
        )
        held = against.get(e.name, {})
        named_ = {in_words(found[other]): change for other, change in held.items()}
        utility = comparison["accuracy_disambiguated"]
        judged = e.worth and worth(found.instrument, named_, utility, family=max(len(pairs), 1))
        entries[place] = replace(e, against_default=old, harm_against=held, worth=judged)
    on_front = _front(found)
    return replace(found, entries=tuple(replace(e, pareto=e.name in on_front) for e in entries))


def _front(found: Frontier) -> set[str]:
    """The front of cost, harm and utility, with the missing answers left out."""
    points = {
        e.name: (
            e.cost[found.cost_axis].mean,
            e.report["unsupported_attribution"].value,
            e.report["accuracy_disambiguated"].value,
        )
        for e in found.entries
    }
    known = {
        name: (cost, harm, -right)
        for name, (cost, harm, right) in points.items()
        if cost is not None and harm is not None and right is not None
    }
    names = list(known)
    return {names[place] for place in front(list(known.values()))}


def in_words(one: Entry) -> str:
    """A reference as a verdict names it."""
    calls = one.report.side.method["settings"].get("calls")
    if one.name == "fairness":
        return "the fairness prompt"
    return one.name if calls is None else f"self-consistency at {calls} call{'s' * (calls > 1)}"


def _plain(one: Change) -> Change:
    p = None if one.difference is None else p_of_t(one)
    if one.difference is not None and p is None:
        p = sign_flip_without_spread(one.difference, one.clusters)
    return replace(
        one, p=p, p_holm=None, p_bh=None, evidence=None, evidence_adjusted=None, bounds=None
    )


def _compared(found: Comparison) -> Comparison:
    return replace(
        found,
        primary=tuple(adjusted([_plain(one) for one in found.primary])),
        secondary=tuple(map(_plain, found.secondary)),
        flips={
            name: replace(one, p=mcnemar_p(one.fixed, one.broken))
            for name, one in found.flips.items()
        },
    )
