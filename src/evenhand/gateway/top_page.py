"""The page of `evenhand gateway top`: problems, actions, latency, cost and the last repairs."""

from datetime import UTC, datetime

from evenhand.gateway.top import WRITERS, EachRepair, GatewayFigures, Quantile, RecentRepairs
from evenhand.gateway.verdicts import Action
from evenhand.views.blocks import GAP, Block, Grid, Heading, Line, Page, Tone, diff
from evenhand.views.numbers import duration, money

_TONES: dict[str, Tone] = {Action.NOT_RUN: "bad", Action.BLOCKED: "open", Action.FLAGGED: "open"}
_CAUSES = {
    "screen": "added by the screen",
    "agents": "added by the agents",
    "upstream": "the upstream itself",
    "all": "the whole exchange",
}
_LONGEST = 600  # our choice, in characters of a text


def page(
    address: str,
    figures: GatewayFigures,
    each: EachRepair,
    recent: RecentRepairs | None,
    problem: str = "",
) -> Page:
    """Make the page of an update: problems first, then actions, latency, cost and repairs."""
    blocks: list[Block] = [Heading(f"gateway {address}"), Line(_window(figures), "dim")]
    blocks += [Line(alarm, "bad") for alarm in _alarms(figures, problem)]
    blocks += [GAP, Line(_now(figures)), GAP, _actions(figures), GAP, _refused(figures), GAP]
    blocks += [_latency(figures), GAP, *_agents(figures, each), GAP, *map(Line, _kept(figures))]
    return (*blocks, *(_repairs(recent) if recent else ()))


def _window(figures: GatewayFigures) -> str:
    span = "since start, " if figures.since_start else "the last "
    names = ", ".join(figures.processes)
    of = f"{len(figures.processes)} of {figures.replicas}" if figures.replicas > 1 else "one"
    met = f"{of} process{'es' * (figures.replicas > 1)} ({names})"
    joined = f", {figures.joined} of them from the next update on" if figures.joined else ""
    return f"{span}{duration(figures.seconds)} · {met}{joined}"


def _alarms(figures: GatewayFigures, problem: str) -> list[str]:
    lines = [f"{problem}\nThe figures below are from the last update."] if problem else []
    missed = figures.replicas - len(figures.processes)
    if missed > 0:
        lines.append(
            f"{missed} of {figures.replicas} processes not reached: their figures are missing"
        )
    if figures.breaker.keys() - {"closed"}:
        lines.append("the breaker is open: the upstream fails, so requests pause for two seconds")
    for writer in figures.unhealthy:
        lines.append(f"{writer} cannot be written now")
    for writer, lost in figures.lost.items():
        if lost:
            counts = ", ".join(f"{count:,} {action}" for action, count in lost.items())
            lines.append(f"{writer} lost {sum(lost.values()):,} exchanges since start: {counts}")
    return lines


def _now(figures: GatewayFigures) -> str:
    rate = "?" if figures.a_second is None else f"{figures.a_second:,.2f}"
    states = ", ".join(
        state if len(figures.processes) == 1 else f"{state} in {count}"
        for state, count in figures.breaker.items()
    )
    return f"{rate} requests/s · {figures.in_flight:,} in flight · breaker {states}"


def _actions(figures: GatewayFigures) -> Grid:
    rows, tones = [], []
    for action, count in figures.actions.items():
        share = figures.shares[action]
        rows.append((action, f"{count:,}", "-" if share is None else f"{share:.1%}"))
        tones.append(_TONES.get(action, "plain") if count else "plain")
    return Grid(("action", "exchanges", "share"), tuple(rows), tuple(tones))


def _refused(figures: GatewayFigures) -> Line:
    counts = ", ".join(f"{code} {count:,}" for code, count in figures.refused.items())
    return Line(f"refused: {counts or 'none'}", "open" if counts else "plain")


def _latency(figures: GatewayFigures) -> Grid:
    rows = [
        (label, f"{figures.timed[cause]:,}", *map(_seconds, figures.latency[cause].values()))
        for cause, label in _CAUSES.items()
    ]
    columns = ("seconds (estimates, from buckets)", "timed", "p50", "p99")
    tones: tuple[Tone, ...] = ("plain", "plain", "dim", "dim")
    return Grid(columns, tuple(rows), tones)


def _seconds(quantile: Quantile) -> str:
    if quantile.low is None:
        return "-"
    if quantile.value is None:
        return f"above {quantile.low:g} s"
    if quantile.value < 0.1:
        return f"≈ {quantile.value * 1000:.{0 if quantile.value >= 0.01 else 1}f} ms"
    return (
        f"≈ {quantile.value:.{0 if quantile.value >= 10 else 1 if quantile.value >= 1 else 2}f} s"
    )


def _agents(figures: GatewayFigures, each: EachRepair) -> list[Line]:
    tokens = f"{figures.tokens['in']:,} tokens in, {figures.tokens['out']:,} out"
    lines = [Line(f"agents: {figures.calls:,} calls, {tokens}")]
    if figures.uncounted:
        unknown = (
            f"the tokens of {figures.uncounted:,} exchanges were not counted by their endpoint"
        )
        lines.append(Line(f"{unknown}: this is a lower bound", "open"))
    if each.calls is None or each.tokens is None:
        return [*lines, Line("for each repaired answer: nothing was repaired")]
    least = "at least " if each.at_least else ""
    took = f"{each.calls:,.1f} calls, {least}{each.tokens:,.0f} tokens"
    cost = ""
    if each.cost is not None and each.currency:
        cost = f", {least}{money(each.cost, each.currency)}"
    elif each.currency:
        cost = f" (no price of {', '.join(each.unpriced)})"
    else:
        cost = " (no price file: --prices FILE)"
    return [*lines, Line(f"for each repaired answer: {took}{cost}")]


def _kept(figures: GatewayFigures) -> list[str]:
    lines = []
    for writer in WRITERS:
        if writer not in figures.lost:
            lines.append(f"{writer}: not stored")
        elif not figures.lost[writer]:
            lines.append(f"{writer}: 0 lost, {figures.waiting[writer]:,} waiting")
        else:
            lines.append(f"{writer}: {figures.waiting[writer]:,} waiting; losses are listed above")
    return lines


def _repairs(recent: RecentRepairs) -> list[Block]:
    blocks: list[Block] = [GAP, Heading("last repairs (on record up to a minute later)")]
    if recent.problem:
        blocks.append(Line(recent.problem, "bad"))
    if recent.without_words:
        note = f'{recent.without_words:,} folders store no words: they lack content = "on"'
        blocks.append(Line(note, "dim"))
    if not recent.repairs and not recent.without_words:
        blocks.append(Line("none", "dim"))
    for repair in recent.repairs:
        when = datetime.fromtimestamp(repair.at, UTC).strftime("%H:%M:%S UTC")
        blocks.append(Line(f"{when} · {repair.tenant} · {repair.id}", "dim"))
        blocks.append(diff(repair.before[:_LONGEST], repair.after[:_LONGEST]))
    return blocks
