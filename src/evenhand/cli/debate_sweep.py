"""`evenhand debate sweep`: debates with other numbers of roles, rounds, topics and pairs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import orjson
import typer

from evenhand.cli.execution import Ended, Order, end, execute, show_dry_run
from evenhand.cli.forecast import show_forecast
from evenhand.cli.measuring import RunOptions
from evenhand.cli.screen import err, out, print_json
from evenhand.debates import dataset
from evenhand.debates.account import Pairing, Split
from evenhand.debates.building import Built, from_statements
from evenhand.debates.card import UNKNOWN_LICENSE
from evenhand.debates.debate import Debate, roles_of
from evenhand.debates.read import first_of, statements
from evenhand.debates.statement import Statement
from evenhand.debates.sweep import Arm, SweepPlan, first_topics, read_plan
from evenhand.domain import Item
from evenhand.errors import UserError
from evenhand.experiments.caps import left_for, spent_within
from evenhand.findings.debate_sweep import DebateSweep, SweptArm, share_high
from evenhand.runners import ItemList, JsonlFile
from evenhand.store import RunReader
from evenhand.views import terminal_of
from evenhand.views.files import plain, to_json

_PER_TOPIC = 10  # as `pairs from-debates` has it


def sweep(
    options: RunOptions,
    file: Annotated[
        Path, typer.Argument(metavar="TOPICS", help="A file that `evenhand debate topics` wrote.")
    ],
    plan: Annotated[
        Path | None, typer.Option(help="A TOML file with what is varied. Default: the paper's.")
    ] = None,
) -> None:
    """Debate with other numbers of roles, rounds and topics, and make pairs of each.

    One thing is varied at a time. Every number of roles is debated once, in OUT/debates-N; fewer
    rounds, topics and pairs are taken from these. The pairs of each setting are in OUT/pairs. Run
    it again to resume; --max-calls and --max-cost are for all of it. Ends with code 3 at a cap.

    Example: evenhand debate sweep topics.jsonl --plan plan.toml --out runs/sweep
    """
    sweep_plan = read_plan(plan)
    source = JsonlFile(file)
    items = list(source.read(0, len(source)))
    orders = _orders(options, sweep_plan, items)
    if options.dry_run:
        show_dry_run({order.out: order.request() for order in orders.values()}, json=options.json)
    runs: dict[int, RunReader] = {}
    for roles, order in orders.items():
        err.print(f"debates of {roles} roles", style="dim")
        ended = execute(_within_caps(order, orders))
        if ended.pilot is not None:
            show_forecast(order, ended, json=options.json)
            continue
        if ended.early:
            end(ended, below_floor=False)
        runs[roles] = RunReader(order.out)
    if options.pilot:
        return
    by_roles = {roles: statements(run) for roles, run in runs.items()}
    arms = sweep_plan.arms().items()
    result = DebateSweep(
        arms=tuple(_swept(name, arm, by_roles[arm.roles], Path(options.out_)) for name, arm in arms)
    )
    (Path(options.out_) / "sweep.json").write_bytes(to_json(result))
    if options.json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
    end(Ended(), below_floor=any(arm.folder is None for arm in result.arms))


def _orders(options: RunOptions, plan: SweepPlan, items: list[Item]) -> dict[int, Order]:
    """An order for each number of roles. All are looked at before the first call."""
    orders = {}
    for roles, (rounds, topics) in plan.debates().items():
        selected, method = first_topics(items, topics), Debate(rounds=rounds, roles=roles)
        order = options.order(ItemList(selected), method)
        refuse_too_long(method, selected, order)
        orders[roles] = replace(
            order,
            out=f"{order.out}/debates-{roles}",
            replay=order.replay and f"{order.replay}/debates-{roles}",
        )
    return orders


def refuse_too_long(method: Debate, items: Iterable[Item], order: Order) -> None:
    """Look at every topic before the first call: none without roles, none that cannot end."""
    most = max((len(roles_of(item, method.roles)) for item in items), default=0)
    if not most:
        raise UserError("the file has no topics; `evenhand debate topics` writes them")
    needed, allowed = method.calls(most), order.settings.limits.calls
    if needed > allowed:
        raise UserError(
            f"a debate of {most} roles over {method.rounds} rounds makes {needed} calls, and an "
            f"item may make {allowed}: take fewer rounds, or write `calls = {2 * needed}` under "
            "[limits] in the config"
        )


def _within_caps(order: Order, every: Mapping[int, Order]) -> Order:
    """The order, with what the others left of the caps."""
    others = (other.out for other in every.values() if other is not order)
    return left_for(order, order, spent_within(order, others))


def _swept(name: str, arm: Arm, every: list[Statement], folder: Path) -> SweptArm:
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
    return SweptArm(
        name=name,
        setting=arm,
        statements=len(selected),
        high=share_high(selected),
        train_pairs=sides["train"],
        test_pairs=sides["test"],
        folder=None if why else str(path),
        why=why,
    )


def write_once(folder: Path, built: Built) -> None:
    """Write a folder of pairs, or leave the one that is there if it is the same."""
    if not folder.exists():
        dataset.write(folder, built.pairs, built.report, UNKNOWN_LICENSE)
        return
    account = orjson.dumps(built.report.to_dict(), option=orjson.OPT_INDENT_2)
    if (folder / dataset.REPORT_FILE).read_bytes() != account:
        raise UserError(f"{folder} holds the pairs of another plan; name another folder with --out")
