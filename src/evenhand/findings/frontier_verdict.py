"""The verdict of a frontier names the method to take, or says that none is shown to be worth it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from evenhand.findings.decision_rules import direction
from evenhand.findings.estimates import Verdict
from evenhand.findings.verdicts import State

if TYPE_CHECKING:
    from evenhand.findings.frontier import Frontier
    from evenhand.findings.frontier_entry import Entry


def of_frontier(frontier: "Frontier") -> Verdict:
    """Choose the method to take: the winner; else a reference that is shown to help; else none, or
    it is open."""
    judged = frontier.judged()
    taken = frontier.winner()
    open_ = [entry for entry, judgement in judged if judgement.kind == "cannot tell"]
    if taken is not None:
        return _of_winner(frontier, taken)
    if frontier.instrument.utility is None:
        sentence = "none can be called worth its calls: utility is not measured here"
        sentences = [sentence, *_less_harm(frontier)]
    else:
        sentences = ["none is shown to be worth its calls", *_references(frontier)]
    if open_:
        sentences.append(f"cannot tell: {', '.join(entry.name for entry in open_)}")
    helping = any(_helps(frontier, entry)[0] == "open" for entry in frontier.entries)
    state: State = "not known" if open_ or helping else "not shown"
    return Verdict(state=state, says=tuple(sentences), next=_plan_of(frontier, open_))


def _of_winner(frontier: "Frontier", taken: "Entry") -> Verdict:
    """Say which method won, and what a fresh sample says of it: who is chosen as the best of
    several looks better where it was chosen."""
    names = [entry.name for entry, judgement in frontier.judged() if judgement.kind == "worth it"]
    alone = "it alone is shown to be worth its calls"
    why = f"the cheapest of those shown to be worth it ({', '.join(names)})"
    first = f"take {taken.name}: {why if names[1:] else alone}"
    again = frontier.confirmation
    fresh = None if again is None else again[taken.name].worth
    if again is None or fresh is None:
        sentence = "it was chosen here, so that its gain is likely overstated"
        next_ = "the same command with --confirm    (measures it on a fresh sample)"
        return Verdict(state="shown", says=(first, sentence), next=(next_,))
    sample = "on a fresh sample"
    if frontier.shared:
        sample += f" ({frontier.shared:,} of its {again.source['items']:,} items were in the first)"
    if fresh.kind == "worth it":
        return Verdict(state="shown", says=(first, f"confirmed {sample}"))
    sentence = f"{taken.name} was worth its calls where it was chosen, and is not confirmed"
    return Verdict(state="not known", says=(sentence, f"{sample}: {fresh.kind}: {fresh.why}"))


def _plan_of(frontier: "Frontier", open_: Sequence["Entry"]) -> tuple[str, ...]:
    """Name the command that says how many items would tell, from the runs themselves: of the first
    method that is open and the reference that it could be told from least."""
    family = sum(len(entry.harm_against) for entry in frontier.entries)
    for entry in open_:
        spread = {name: c for name, c in entry.harm_against.items() if c.se}
        if spread:
            widest = max(spread, key=lambda name: spread[name].se)
            runs = f"{frontier[widest].report.side.run} {entry.report.side.run}"
            options = f"--measure {frontier.instrument.harm} --family {family} --from {runs}"
            command = f"evenhand plan {frontier.instrument.name} {options}"
            return (f"{command}    (how many items would tell)",)
    return ()


def _less_harm(frontier: "Frontier") -> list[str]:
    """Of an instrument without a utility: who is shown to do less harm than the plain prompt."""
    less = []
    for entry in frontier.entries:
        compared = entry.against_default
        if compared is None or entry.role == "vote":
            continue
        measure = frontier.instrument.measure(compared.harm.name)
        if direction(compared.harm, measure) == "better":
            less.append(entry.name)
    if not less:
        return ["less harm than by the plain prompt is shown for none"]
    return [f"less harm than by the plain prompt is shown for: {', '.join(less)}"]


def _references(frontier: "Frontier") -> list[str]:
    """Name the reference to take, or say that there is none, and of which it is open."""
    outcomes = {entry.name: _helps(frontier, entry) for entry in frontier.entries}
    helping = [name for name, (state, _) in outcomes.items() if state == "shown"]
    if helping:
        return [f"take {helping[0]}: it is shown to do less harm than the plain prompt"]
    lines = ["keep the plain prompt: no reference is shown to do better either"]
    for name, (state, why) in outcomes.items():
        if state == "open":
            lines.append(f"open: {name} does less harm than the plain prompt, but {why}")
    return lines


def _helps(frontier: "Frontier", entry: "Entry") -> tuple[Literal["shown", "open", "no"], str]:
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
