"""The page of `evenhand gateway top`: one look at a gateway as lines and tables."""

from datetime import UTC, datetime

from evenhand.gateway.looks import WRITERS, EachRepair, Figures, Quantile
from evenhand.gateway.repairs import Found
from evenhand.gateway.verdicts import Action
from evenhand.views.blocks import GAP, Block, Grid, Heading, Line, Page, Tone
from evenhand.views.diffs import diff
from evenhand.views.numbers import duration, money

_TONES: dict[str, Tone] = {Action.NOT_RUN: "bad", Action.BLOCKED: "open", Action.FLAGGED: "open"}
_CAUSES = {
    "screen": "added by the screen",
    "agents": "added by the agents",
    "upstream": "the upstream itself",
    "all": "the whole exchange",
}
_LONGEST = 600  # our choice, in signs of a text


def page(
    address: str, seen: Figures, each: EachRepair, found: Found | None, problem: str = ""
) -> Page:
    """Say what a look found: what is wrong first, then what was done, what it took, and repairs."""
    blocks: list[Block] = [Heading(f"gateway {address}"), Line(_window(seen), "dim")]
    blocks += [Line(one, "bad") for one in _alarms(seen, problem)]
    blocks += [GAP, Line(_now(seen)), GAP, _actions(seen), GAP, _refused(seen), GAP]
    blocks += [_latency(seen), GAP, *_agents(seen, each), GAP, *map(Line, _kept(seen))]
    return (*blocks, *(_repairs(found) if found else ()))


def _window(seen: Figures) -> str:
    span = "since start, " if seen.since_start else "the last "
    names = ", ".join(seen.processes)
    of = f"{len(seen.processes)} of {seen.replicas}" if seen.replicas > 1 else "one"
    met = f"{of} process{'es' * (seen.replicas > 1)} ({names})"
    joined = f", {seen.joined} of them from the next look on" if seen.joined else ""
    return f"{span}{duration(seen.seconds)} · {met}{joined}"


def _alarms(seen: Figures, problem: str) -> list[str]:
    said = [f"{problem}\nWhat follows is the last look before."] if problem else []
    missed = seen.replicas - len(seen.processes)
    if missed > 0:
        said.append(f"{missed} of {seen.replicas} processes not met: their figures are not in here")
    if seen.breaker.keys() - {"closed"}:
        said.append("the breaker is open: the upstream fails, and is left alone for two seconds")
    for writer in seen.unhealthy:
        said.append(f"{writer} cannot be written just now")
    for writer, lost in seen.lost.items():
        if lost:
            listed = ", ".join(f"{count:,} {action}" for action, count in lost.items())
            said.append(f"{writer} lost {sum(lost.values()):,} exchanges since start: {listed}")
    return said


def _now(seen: Figures) -> str:
    rate = "?" if seen.a_second is None else f"{seen.a_second:,.2f}"
    states = ", ".join(
        state if len(seen.processes) == 1 else f"{state} in {count}"
        for state, count in seen.breaker.items()
    )
    return f"{rate} requests/s · {seen.in_flight:,} in flight · breaker {states}"


def _actions(seen: Figures) -> Grid:
    rows, tones = [], []
    for action, count in seen.actions.items():
        share = seen.shares[action]
        rows.append((action, f"{count:,}", "-" if share is None else f"{share:.1%}"))
        tones.append(_TONES.get(action, "plain") if count else "plain")
    return Grid(("action", "exchanges", "share"), tuple(rows), tuple(tones))


def _refused(seen: Figures) -> Line:
    listed = ", ".join(f"{code} {count:,}" for code, count in seen.refused.items())
    return Line(f"refused: {listed or 'none'}", "open" if listed else "plain")


def _latency(seen: Figures) -> Grid:
    rows = [
        (said, f"{seen.timed[cause]:,}", *map(_seconds, seen.latency[cause].values()))
        for cause, said in _CAUSES.items()
    ]
    columns = ("seconds (estimates, from buckets)", "timed", "p50", "p99")
    tones: tuple[Tone, ...] = ("plain", "plain", "dim", "dim")
    return Grid(columns, tuple(rows), tones)


def _seconds(one: Quantile) -> str:
    if one.low is None:
        return "-"
    if one.value is None:
        return f"above {one.low:g} s"
    if one.value < 0.1:
        return f"≈ {one.value * 1000:.{0 if one.value >= 0.01 else 1}f} ms"
    return f"≈ {one.value:.{0 if one.value >= 10 else 1 if one.value >= 1 else 2}f} s"


def _agents(seen: Figures, each: EachRepair) -> list[Line]:
    tokens = f"{seen.tokens['in']:,} tokens in, {seen.tokens['out']:,} out"
    said = [Line(f"agents: {seen.calls:,} calls, {tokens}")]
    if seen.uncounted:
        unknown = f"the tokens of {seen.uncounted:,} exchanges were not counted by their endpoint"
        said.append(Line(f"{unknown}: what stands here is the least", "open"))
    if each.calls is None or each.tokens is None:
        return [*said, Line("for each repaired answer: nothing was repaired")]
    least = "at least " if each.at_least else ""
    took = f"{each.calls:,.1f} calls, {least}{each.tokens:,.0f} tokens"
    cost = ""
    if each.cost is not None and each.currency:
        cost = f", {least}{money(each.cost, each.currency)}"
    elif each.currency:
        cost = f" (no price of {', '.join(each.unpriced)})"
    else:
        cost = " (no price file: --prices FILE)"
    return [*said, Line(f"for each repaired answer: {took}{cost}")]


def _kept(seen: Figures) -> list[str]:
    said = []
    for writer in WRITERS:
        if writer not in seen.lost:
            said.append(f"{writer}: not kept")
        elif not seen.lost[writer]:
            said.append(f"{writer}: 0 lost, {seen.waiting[writer]:,} waiting")
        else:
            said.append(f"{writer}: {seen.waiting[writer]:,} waiting; what is lost stands above")
    return said


def _repairs(found: Found) -> list[Block]:
    blocks: list[Block] = [GAP, Heading("last repairs (on record up to a minute later)")]
    if found.problem:
        blocks.append(Line(found.problem, "bad"))
    if found.without_words:
        kept = f'{found.without_words:,} folders keep no words: their policy is not content = "on"'
        blocks.append(Line(kept, "dim"))
    if not found.repairs and not found.without_words:
        blocks.append(Line("none that could be found", "dim"))
    for one in found.repairs:
        when = datetime.fromtimestamp(one.at, UTC).strftime("%H:%M:%S UTC")
        blocks.append(Line(f"{when} · {one.tenant} · {one.id}", "dim"))
        blocks.append(diff(one.before[:_LONGEST], one.after[:_LONGEST]))
    return blocks
