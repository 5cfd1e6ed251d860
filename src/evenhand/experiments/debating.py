"""Debates: their topics, a run over topics and its report, and sweeps over numbers of roles, rounds
and topics with the pairs of each."""

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import orjson
import polars as pl

from evenhand.agents import Limits
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.new_files import write_new
from evenhand.experiments.request import Request, Watch, left_for, spent_within, within
from evenhand.experiments.running import RunEnd, execute, is_done
from evenhand.methods import Method
from evenhand.runs.runners import ItemList, Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.spending import Spent, spent_on
from evenhand.training.debates import dataset
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.debate import Debate, Statement, first_of, roles_of, statements
from evenhand.training.debates.findings import DebateReport, debates
from evenhand.training.debates.pairs import Pairing, Split
from evenhand.training.debates.sweep import (
    DebateArm,
    DebateArmResult,
    DebateSweep,
    SweepPlan,
    first_topics,
    share_high,
)
from evenhand.training.debates.topics import (
    PER_BATCH,
    BiasType,
    Distinct,
    batch,
    debate_items,
    listed,
)
from evenhand.views.files import to_json

_TRIES = 3  # ours: how often topics are asked for where too many were the same
_SURPLUS = 1.25  # ours: about a fifth of what models list is a repetition


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics of each bias type, and how the runs ended that asked for them."""

    by_type: Mapping[str, Distinct]
    count: int | None = None  # of each type, as it was asked for
    ended: RunEnd = field(default_factory=RunEnd)

    def chosen(self) -> dict[str, list[str]]:
        """Return the topics of each type, at most as many as were asked for."""
        return {name: list(distinct.kept[: self.count]) for name, distinct in self.by_type.items()}

    def numbers(self) -> dict[str, dict[str, int | None]]:
        """Count, for each type, what was listed, repeated, and taken."""
        chosen = self.chosen()
        return {
            name: {
                "listed": distinct.seen,
                "duplicates": distinct.duplicates,
                "topics": len(chosen[name]),
                "wanted": self.count,
            }
            for name, distinct in self.by_type.items()
        }

    def short(self) -> list[str]:
        """Name the types that have too few topics."""
        count = self.count or 0
        return [name for name, topics in self.chosen().items() if len(topics) < count]

    def write(self, kinds: Mapping[str, BiasType], path: Path) -> None:
        """Write the topics as items of a debate, one a line, into a new file."""
        chosen = self.chosen()
        lines = chain.from_iterable(debate_items(name, kinds[name], chosen[name]) for name in kinds)
        write_new(path, b"".join(orjson.dumps(line) + b"\n" for line in lines))


def types_named(
    types: Sequence[str] | None, available: Mapping[str, BiasType]
) -> dict[str, BiasType]:
    """Choose bias types by their names; all without names."""
    if types is None:
        return dict(available)
    names = list(dict.fromkeys(types))
    unknown = [name for name in names if name not in available]
    if unknown or not names:
        raise UserError(
            f"--types names the unknown bias type {(unknown[0] if unknown else 'nothing')}. "
            f"Available: {', '.join(available)}. For others, pass a file with --roles."
        )
    return {name: available[name] for name in names}


def own_topics(path: Path, kinds: Iterable[str]) -> Topics:
    """Read a list of the user's, one topic a line, for each bias type."""
    try:
        topics = listed(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Could not read {path} ({error}). Check the path.") from None
    if not topics:
        raise UserError(f"{path} has no topics. Write one topic per line.")
    by_type = {name: Distinct() for name in kinds}
    for distinct in by_type.values():
        distinct.add(topics)
    return Topics(by_type=by_type)


async def ask_topics(
    request: Request, kinds: Mapping[str, BiasType], count: int, watch: Watch
) -> Topics:
    """Ask for topics until every bias type has enough.

    What is missing after a run is asked for by a next one with other batches, each in a folder of
    its own. A run that brings nothing is the last.

    Args:
        request: The request; its items are replaced by batches.
        kinds: The bias types.
        count: Topics of each type.
        watch: Receives progress events.

    Returns:
        The topics. `ended` says whether a cap or a signal stopped the runs.
    """
    by_type = {name: Distinct() for name in kinds}
    batch_counts = dict.fromkeys(kinds, 0)
    spent, ended = Spent(), RunEnd()
    for number in range(1, _TRIES + 1):
        items = []
        for name, kind in kinds.items():
            missing = max(0, count - len(by_type[name].kept))
            batches = math.ceil(missing * _SURPLUS / PER_BATCH)
            items += [batch(name, kind, batch_counts[name] + n) for n in range(batches)]
            batch_counts[name] += batches
        if not items:
            break
        attempt = _attempt(request, number, spent, ItemList(items))
        ended = await execute(attempt, watch)
        spent += spent_on(attempt.settings.out, attempt.settings.prices)
        if ended.early:
            return Topics(by_type=by_type, count=count, ended=replace(ended, calls=spent.calls))
        before = sum(len(distinct.kept) for distinct in by_type.values())
        _collect(RunReader(attempt.settings.out), by_type)
        if sum(len(distinct.kept) for distinct in by_type.values()) == before:
            break
    return Topics(by_type=by_type, count=count, ended=ended)


def _attempt(request: Request, number: int, spent: Spent, source: ItemList) -> Request:
    """The request of one attempt, with what the earlier ones left of the caps."""
    settings = within(request.settings, str(number))
    return left_for(replace(request, source=source, settings=settings), settings, spent)


def _collect(run: RunReader, by_type: Mapping[str, Distinct]) -> None:
    answered = run.results().filter(pl.col("status") == "answered").select("drafts", "tags")
    for drafts, tags in answered.collect().iter_rows():
        name = next(tag["value"] for tag in tags if tag["name"] == "bias_type")
        by_type[name].add(draft["text"] for draft in drafts)


_PER_TOPIC = 10  # as `train pairs from-debates` has it
RequestFor = Callable[[Source, Method], Request]


def sweep_requests(request_for: RequestFor, plan: SweepPlan, source: Source) -> dict[int, Request]:
    """Make the request of each number of roles, all looked at before the first call.

    Args:
        request_for: Makes the request of items and a method.
        plan: What is varied.
        source: The topics.

    Returns:
        The requests by the number of roles, each in a folder of its own.

    Raises:
        UserError: If a debate cannot come to its end within the limits.
    """
    items, requests = list(source.read(0, len(source))), {}
    for roles, (rounds, topics) in plan.debates().items():
        selected, method = first_topics(items, topics), Debate(rounds=rounds, roles=roles)
        request = request_for(ItemList(selected), method)
        refuse_too_long(method, selected, request.settings.limits)
        settings = within(request.settings, f"debates-{roles}")
        requests[roles] = replace(request, settings=settings)
    return requests


async def run_debates_of_sweep(requests: Mapping[int, Request], watch: Watch) -> dict[int, RunEnd]:
    """Run the debates of each number of roles until all are done, or one ended early. Caps are for
    all of them together."""
    endings = {}
    for roles, request in requests.items():
        watch.note(f"debates of {roles} roles")
        others = (other.settings.out for other in requests.values() if other is not request)
        spent = spent_within(request.settings, others)
        endings[roles] = await execute(left_for(request, request.settings, spent), watch)
        if endings[roles].early:
            break
    return endings


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateSweepResult:
    """The end of a sweep. Without the pairs the debates ended early, or were pilots."""

    endings: Mapping[int, RunEnd]  # by the number of roles
    sweep: DebateSweep | None = None

    @property
    def ended(self) -> RunEnd:
        """The end of the last debates."""
        return list(self.endings.values())[-1]


async def run_sweep(
    requests: Mapping[int, Request], plan: SweepPlan, out: str, watch: Watch
) -> DebateSweepResult:
    """Run the debates of a sweep, and make the pairs of each setting.

    Args:
        requests: The requests by the number of roles.
        plan: What is varied.
        out: The folder of it all.
        watch: Receives progress events.

    Returns:
        How the debates ended, and the pairs of each setting.
    """
    endings = await run_debates_of_sweep(requests, watch)
    if any(ended.early or ended.pilot is not None for ended in endings.values()):
        return DebateSweepResult(endings=endings)
    sweep = await asyncio.to_thread(pairs_of_sweep, requests, plan, out)
    return DebateSweepResult(endings=endings, sweep=sweep)


def pairs_of_sweep(requests: Mapping[int, Request], plan: SweepPlan, out: str) -> DebateSweep:
    """Make the pairs of each setting from debates that were run, and write what came of it.

    Args:
        requests: The requests by the number of roles.
        plan: What is varied.
        out: The folder of it all.

    Returns:
        The pairs of each setting, or why it has none.
    """
    by_roles = {roles: statements(RunReader(request.settings.out))
                for roles, request in requests.items()}  # fmt: skip
    arms = plan.arms().items()
    result = DebateSweep(
        arms=tuple(_swept(name, arm, by_roles[arm.roles], Path(out)) for name, arm in arms)
    )
    open_folder(out).replace("sweep.json", to_json(result))
    return result


def refuse_too_long(method: Debate, items: Iterable[Item], limits: Limits) -> None:
    """Check every topic before the first call: each needs roles and enough calls to finish.

    Args:
        method: The debate.
        items: The topics.
        limits: The limits per item.

    Raises:
        UserError: If the topics lack roles, or a debate needs more calls than an item may make.
    """
    most = max((len(roles_of(item, method.roles)) for item in items), default=0)
    if not most:
        raise UserError("The file has no topics. Create them with `evenhand train debate topics`.")
    needed, allowed = method.calls(most), limits.calls
    if needed > allowed:
        raise UserError(
            f"a debate of {most} roles over {method.rounds} rounds makes {needed} calls, and an "
            f"item may make {allowed}: take fewer rounds, or write `calls = {2 * needed}` under "
            "[limits] in the config"
        )


def _swept(name: str, arm: DebateArm, every: list[Statement], folder: Path) -> DebateArmResult:
    selected = first_of(every, rounds=arm.rounds, topics=arm.topics)
    path = folder / "pairs" / name
    split = Split(per_topic=_PER_TOPIC, train_pairs=arm.pairs)
    sides, why = {"train": 0, "test": 0}, None
    try:
        built = from_statements(selected, Pairing(), split)
    except UserError as problem:
        why = str(problem)
    else:
        sides = {side: len(pairs) for side, pairs in built.pairs.items()}
        write_once(path, built)
    return DebateArmResult(
        name=name,
        setting=arm,
        statements=len(selected),
        high=share_high(selected),
        train_pairs=sides["train"],
        test_pairs=sides["test"],
        folder=None if why else str(path),
        why=why,
    )


def write_once(folder: Path, built: BuiltPairs) -> None:
    """Write a folder of pairs, or leave the one that is there if it is the same."""
    if not folder.exists():
        dataset.write(folder, built.pairs, built.report, UNKNOWN_LICENSE, built.low)
        return
    account = orjson.dumps(built.report.to_dict(), option=orjson.OPT_INDENT_2)
    if (folder / dataset.REPORT_FILE).read_bytes() != account:
        raise UserError(
            f"{folder} has the pairs of another plan. Choose another folder with --out."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateResult:
    """The end of debates. Without a report nothing was finished, or it was a pilot."""

    ended: RunEnd
    report: DebateReport | None = None


def check_topics(request: Request, method: Debate) -> None:
    """Refuse topics without roles, or debates that need more calls than an item may make."""
    source = request.source
    refuse_too_long(method, source.read(0, len(source)), request.settings.limits)


async def run_debates(request: Request, watch: Watch) -> DebateResult:
    """Run a debate per topic and report them; debates.json goes into the run folder."""
    ended = RunEnd() if await is_done(request) else await execute(request, watch)
    run = RunReader(request.settings.out)
    if ended.pilot is not None or not run.totals().items:
        return DebateResult(ended=ended)
    report = debates(run, request.settings.prices)
    open_folder(request.settings.out).replace("debates.json", to_json(report))
    return DebateResult(ended=ended, report=report)
