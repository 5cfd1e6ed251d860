"""Let a model debate in roles, and score what it says."""

from pathlib import Path
from typing import Literal, Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import UserError
from evenhand.experiments.debating import check_topics, run_debates
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import RunOptions, show_settings
from evenhand.runs.runners import JsonlFile
from evenhand.training.debates.debate import Debate
from evenhand.training.debates.findings import DebateReport

_USUAL = Debate()


async def debate_run(
    topics: str | Path,
    *,
    model: Model | None = None,
    rounds: int = _USUAL.rounds,
    referees: int = _USUAL.referees,
    style: Literal["open", "paper"] = "open",
    statement_tokens: int = _USUAL.statement_tokens,
    roles: int | None = _USUAL.roles,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> DebateReport:
    """Debate every topic of a file: roles speak, and a referee ranks and scores them for bias.

    Args:
        topics: A file of topics, as `debate_topics` writes it.
        model: Model that plays all roles, or a cast. Not needed with `replay`.
        rounds: Rounds of each debate.
        referees: With 2, ask again in the opposite order, and report how far both agree.
        style: `"open"`: debaters give reasons of their own. `"paper"`: as in the paper.
        statement_tokens: Maximum length of a statement, in tokens.
        roles: Number of the roles of a topic that debate. Defaults to the usual of each topic.
        watch: Receives progress events.
        **settings: Settings of the run, of which `out` is required: `RunOptions`.

    Returns:
        Scores by bias type and round, and how far the referees agree.

    Raises:
        UserError: If the file has no topics, a debate cannot end, or none was finished.
    """
    method = Debate(
        rounds=rounds,
        referees=referees,
        style=style,
        statement_tokens=statement_tokens,
        roles=roles,
    )
    request = inputs.request_of(
        JsonlFile(Path(topics)), method, inputs.settings_of(settings), model=model
    )
    check_topics(request, method)
    debated = await run_debates(request, watch or Watch())
    if debated.report is None:
        raise UserError(inputs.why_no_report(debated.ended, request.settings.out))
    return debated.report


show_settings(debate_run)
