"""Debates: their topics, a debate about each, and sweeps over roles, rounds and topics."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import UserError
from evenhand.core.new_files import refuse_taken
from evenhand.experiments.debating import (
    Topics,
    ask_topics,
    check_topics,
    own_topics,
    run_debates,
    run_sweep,
    sweep_requests,
    types_named,
)
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import OptionalRunOptions, RunOptions, show_settings
from evenhand.runs.runners import ItemList, JsonlFile
from evenhand.training.debates.debate import Debate
from evenhand.training.debates.findings import DebateReport
from evenhand.training.debates.sweep import DebateSweep, read_plan
from evenhand.training.debates.topics import DebateTopics, bias_types

_USUAL = Debate()


async def train_debate_topics(
    out: str | Path,
    *,
    model: Model | None = None,
    types: Sequence[str] | None = None,
    count: int = 40,
    roles: str | Path | None = None,
    topics: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[OptionalRunOptions],
) -> Topics:
    """Make topics for debates: asked of a model, or from your own list. Near copies count once.

    Args:
        out: A new file, one topic per line. The calls are kept next to it, in a folder
            that ends in .runs.
        model: Model that lists topics. Not needed with `topics` or `replay`.
        types: Bias types. Defaults to the five of the paper.
        count: Number of topics per type.
        roles: A TOML file with your own bias types and roles.
        topics: Your own list, one topic per line, instead of a model.
        watch: Receives progress events.
        **settings: Settings of the run: `RunOptions`, without `out`.

    Returns:
        The topics of each type. `short()` names types with fewer than `count`.

    Raises:
        UserError: If `out` exists, a type is unknown, a file cannot be read, or a cap stopped the
            run.

    Example:
        >>> made = evenhand.train_debate_topics("topics.jsonl", types=["age"], model=model)
        >>> made.numbers()["age"]["topics"]
        40
    """
    file, kinds = Path(out), types_named(types, bias_types(inputs.path_of(roles)))
    refuse_taken(file)
    if topics is not None:
        made = own_topics(Path(topics), kinds)
    else:
        run_settings = inputs.settings_of({**settings, "out": file.with_suffix(".runs")})
        request = inputs.request_of(ItemList([]), DebateTopics(), run_settings, model=model)
        made = await ask_topics(request, kinds, count, watch or Watch())
        inputs.whole(made.ended, "every type had its topics")
    await asyncio.to_thread(made.write, kinds, file)
    return made


async def train_debate_run(
    topics: str | Path,
    *,
    model: Model | None = None,
    rounds: int = _USUAL.rounds,
    referees: int = _USUAL.referees,
    style: Literal["open", "paper"] = "open",
    statement_tokens: int = _USUAL.statement_tokens,
    roles: int | None = _USUAL.roles,
    read: Literal["json", "logprob"] = _USUAL.read,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> DebateReport:
    """Debate every topic of a file: roles speak, and a referee ranks and scores them for bias.

    Args:
        topics: A file of topics, as `debate_topics` writes it.
        model: Model that plays all roles, or a cast. Not needed with `replay`.
        rounds: Rounds of each debate.
        referees: With 2, ask again in the opposite order, and report how far both agree.
        style: `"open"`: debaters choose their reasons. `"paper"`: as in the paper.
        statement_tokens: Maximum length of a statement, in tokens.
        roles: Number of the roles of a topic that debate. Defaults to the usual of each topic.
        read: How the referee is read. `"logprob"`: one digit about each statement alone, by its
            log-probabilities.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        Scores by bias type and round, and how far the referees agree.

    Raises:
        UserError: If the file has no topics, a debate cannot end, or none was finished.

    Example:
        >>> debated = evenhand.train_debate_run("topics.jsonl", model=model, out="runs/debate")
        >>> debated.summary.coverage
    """
    method = Debate(
        rounds=rounds,
        referees=referees,
        style=style,
        statement_tokens=statement_tokens,
        roles=roles,
        read=read,
    )
    request = inputs.request_of(
        JsonlFile(Path(topics)), method, inputs.settings_of(settings), model=model
    )
    check_topics(request, method)
    debated = await run_debates(request, watch or Watch())
    if debated.report is None:
        raise UserError(inputs.why_no_report(debated.ended, request.settings.out))
    return debated.report


async def train_debate_sweep(
    topics: str | Path,
    *,
    model: Model | None = None,
    plan: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> DebateSweep:
    """Debate with other numbers of roles, rounds and topics, and make the pairs of each setting.

    Every number of roles is debated once, in a folder within `out`. Caps are for all debates
    together.

    Args:
        topics: A file of topics, as `debate_topics` writes it.
        model: Model that plays all roles, or a cast. Not needed with `replay`.
        plan: A TOML file with what is varied. Defaults to the plan of the paper.
        watch: Receives progress events.
        **settings: Settings of the runs, of which `out` is required: `RunOptions`.

    Returns:
        The pairs of each setting, or why it has none.

    Raises:
        UserError: If the topics or the plan are invalid, or a cap stopped the debates.

    Example:
        >>> swept = evenhand.train_debate_sweep("topics.jsonl", model=model, out="runs/sweep")
        >>> [(arm.name, arm.train_pairs) for arm in swept.arms]
    """
    run_settings = inputs.settings_of(settings)
    sweep_plan = read_plan(inputs.path_of(plan))
    requests = sweep_requests(
        lambda source, method: inputs.request_of(source, method, run_settings, model=model),
        sweep_plan,
        JsonlFile(Path(topics)),
    )
    swept = await run_sweep(requests, sweep_plan, run_settings.out, watch or Watch())
    inputs.whole(swept.ended, "every number of roles was debated")
    assert swept.sweep is not None  # the debates are whole, and no pilots
    return swept.sweep


show_settings(train_debate_topics, train_debate_run, train_debate_sweep)
