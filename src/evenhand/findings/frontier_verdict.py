"""The verdict of a frontier names the method to take, or says that none is shown to be worth it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Verdict
from evenhand.findings.remarks import Remark, RemarkOrText
from evenhand.findings.verdicts import State

if TYPE_CHECKING:
    from evenhand.findings.frontier import Frontier
    from evenhand.findings.frontier_entry import FrontierEntry


def of_frontier(frontier: "Frontier") -> Verdict:
    """Choose the method to take: the winner; else a reference that is shown to help; else none, or
    it is open."""
    judged = frontier.judged()
    taken = frontier.winner()
    open_ = [entry for entry, judgement in judged if judgement.kind == "cannot tell"]
    if taken is not None:
        return _of_winner(frontier, taken)
    if frontier.instrument.utility is None:
        remarks = [Remark("frontier.no_utility"), _less_harm(frontier)]
    else:
        remarks = [Remark("frontier.none"), *_references(frontier)]
    if open_:
        names = tuple(entry.name for entry in open_)
        remarks.append(Remark("frontier.cannot_tell", methods=names))
    helping = any(_helps(frontier, entry)[0] == "open" for entry in frontier.entries)
    state: State = "not known" if open_ or helping else "not shown"
    return Verdict(state=state, says=tuple(remarks), next=_plan_of(frontier, open_))


def _of_winner(frontier: "Frontier", taken: "FrontierEntry") -> Verdict:
    """Say which method won, and what a fresh sample says of it: who is chosen as the best of
    several looks better where it was chosen."""
    names = [entry.name for entry, judgement in frontier.judged() if judgement.kind == "worth it"]
    first = Remark("frontier.take", method=taken.name, shown=tuple(names))
    again = frontier.confirmation
    fresh = None if again is None else again[taken.name].worth
    if again is None or fresh is None:
        says = (first, Remark("frontier.chosen_here"))
        return Verdict(state="shown", says=says, next=(Remark("next.confirm"),))
    sample = Remark("frontier.sample", shared=frontier.shared, items=again.source["items"])
    if fresh.kind == "worth it":
        says = (first, Remark("frontier.confirmed", sample=sample))
        return Verdict(state="shown", says=says)
    says = (
        Remark("frontier.not_confirmed", method=taken.name),
        Remark("frontier.fresh", sample=sample, kind=str(fresh.kind), why=fresh.why),
    )
    return Verdict(state="not known", says=says)


def _plan_of(frontier: "Frontier", open_: Sequence["FrontierEntry"]) -> tuple[Remark, ...]:
    """Name the command that says how many items would tell, from the runs themselves: of the first
    method that is open and the reference that it could be told from least."""
    family = sum(len(entry.harm_against) for entry in frontier.entries)
    for entry in open_:
        spread = {name: c for name, c in entry.harm_against.items() if c.se}
        if spread:
            widest = max(spread, key=lambda name: spread[name].se)
            return (
                Remark(
                    "next.plan_frontier",
                    instrument=frontier.instrument.name,
                    measure=frontier.instrument.harm,
                    family=family,
                    runs=(frontier[widest].report.side.run, entry.report.side.run),
                ),
            )
    return ()


def _less_harm(frontier: "Frontier") -> Remark:
    """Of an instrument without a utility: who is shown to do less harm than the plain prompt."""
    less = []
    for entry in frontier.entries:
        compared = entry.against_default
        if compared is None or entry.role == "vote":
            continue
        measure = frontier.instrument.measure(compared.harm.name)
        if direction(compared.harm, measure) == "better":
            less.append(entry.name)
    return Remark("frontier.less_harm", methods=tuple(less))


def _references(frontier: "Frontier") -> list[Remark]:
    """Name the reference to take, or say that there is none, and of which it is open."""
    outcomes = {entry.name: _helps(frontier, entry) for entry in frontier.entries}
    helping = [name for name, (state, _) in outcomes.items() if state == "shown"]
    if helping:
        return [Remark("frontier.take_reference", method=helping[0])]
    lines = [Remark("frontier.keep_plain")]
    for name, (state, why) in outcomes.items():
        if state == "open":
            lines.append(Remark("frontier.reference_open", method=name, why=why))
    return lines


def _helps(
    frontier: "Frontier", entry: "FrontierEntry"
) -> tuple[Literal["shown", "open", "no"], RemarkOrText]:
    """Say whether a reference is shown to lower harm without crossing a red line, of which utility
    is one; it is open while any of them is, and the first of these says why."""
    compared, instrument = entry.against_default, frontier.instrument
    if entry.role != "reference" or compared is None or instrument.utility is None:
        return "no", ""
    lines = compared.comparison.red_lines
    less = direction(compared.harm, instrument.measure(compared.harm.name)) == "better"
    if not less or any(line.state == "crossed" for line in lines):
        return "no", ""
    open_ = [line.says for line in lines if line.state == "open"]
    return ("open", open_[0]) if open_ else ("shown", "")
