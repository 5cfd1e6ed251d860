"""Debates with other numbers of roles, rounds and topics, and the pairs of each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from evenhand.agents import Limits
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.experiments.caps import left_for, spent_within
from evenhand.experiments.request import Request
from evenhand.experiments.running import RunEnd, execute
from evenhand.experiments.watch import Watch
from evenhand.methods import Method
from evenhand.runs.runners import ItemList, Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.training.debates import dataset
from evenhand.training.debates.building import BuiltPairs, from_statements
from evenhand.training.debates.dataset import UNKNOWN_LICENSE
from evenhand.training.debates.debate import Debate, Statement, first_of, roles_of, statements
from evenhand.training.debates.pairs import Pairing, Split
from evenhand.training.debates.sweep import (
    DebateArm,
    DebateArmResult,
    DebateSweep,
    SweepPlan,
    first_topics,
    share_high,
)
from evenhand.views.files import to_json

_PER_TOPIC = 10  # as `pairs from-debates` has it
RequestFor = Callable[[Source, Method], Request]


def sweep_requests(
    request_for: RequestFor, plan: SweepPlan, items: list[Item]
) -> dict[int, Request]:
    """Make the request of each number of roles, all looked at before the first call.

    Args:
        request_for: Makes the request of items and a method.
        plan: What is varied.
        items: The topics.

    Returns:
        The requests by the number of roles, each in a folder of its own.

    Raises:
        UserError: If a debate cannot come to its end within the limits.
    """
    requests = {}
    for roles, (rounds, topics) in plan.debates().items():
        selected, method = first_topics(items, topics), Debate(rounds=rounds, roles=roles)
        request = request_for(ItemList(selected), method)
        refuse_too_long(method, selected, request.settings.limits)
        out, replay = request.settings.out, request.settings.replay
        settings = replace(
            request.settings,
            out=f"{out}/debates-{roles}",
            replay=replay and f"{replay}/debates-{roles}",
        )
        requests[roles] = replace(request, settings=settings)
    return requests


async def run_debates(requests: Mapping[int, Request], watch: Watch) -> dict[int, RunEnd]:
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
    """Look at every topic before the first call: none without roles, none that cannot end."""
    most = max((len(roles_of(item, method.roles)) for item in items), default=0)
    if not most:
        raise UserError("the file has no topics; `evenhand debate topics` writes them")
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
        dataset.write(folder, built.pairs, built.report, UNKNOWN_LICENSE)
        return
    account = orjson.dumps(built.report.to_dict(), option=orjson.OPT_INDENT_2)
    if (folder / dataset.REPORT_FILE).read_bytes() != account:
        raise UserError(f"{folder} holds the pairs of another plan; name another folder with --out")
