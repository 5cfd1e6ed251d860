"""What a remedy did in a run, and who judged it."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments.certificates import certificates_of
from evenhand.findings.display import Remark
from evenhand.findings.remedy import RemedyJudge, RemedySummary, remedy
from evenhand.findings.summary import Summary, summary
from evenhand.methods import Method, of_record
from evenhand.runs.runners import replay_of
from evenhand.runs.store import RunReader

PROGRAM = Remark("judge.program")


def method_of(run: RunReader) -> Method:
    """The method that made a run, from its record."""
    try:
        return of_record(run.record.method)
    except (UserError, ValidationError):
        raise UserError(
            f"the method {run.record.method['name']!r} is not installed here as it was, so it is "
            "not known which judges it asked"
        ) from None


def summary_of(
    run: RunReader, certificates: Path | None = None, prices: Prices | None = None
) -> Summary:
    """Summarize a run: how much was answered, what the method did, and what it cost.

    Args:
        run: A run.
        certificates: The folder with the certificates of judges.
        prices: Prices by model.

    Returns:
        The summary.
    """
    return summary(run, prices, remedy_of(run, certificates))


def remedy_of(run: RunReader, certificates: Path | None = None) -> RemedySummary | None:
    """What the method of a run did to its answers; None where it judges no draft.

    Args:
        run: A finished run, or one that is under way.
        certificates: The folder with the certificates of judges.
    """
    try:
        method = method_of(run)
    except UserError:
        return None
    judges = evaluators_of(run, method, certificates)
    if not hasattr(method, "bounds"):
        return remedy(run, (), judges) if run.totals().outcomes else None
    return remedy(run, method.bounds(), judges)


def evaluators_of(run: RunReader, method: Method, folder: Path | None) -> Sequence[RemedyJudge]:
    """Everybody who judged in a run: language models with their certificates, and programs."""
    path, cast = str(run.path), replay_of(run.path)
    judges = [
        RemedyJudge(
            run=path, role=judge.role, model=judge.model, says=standing.says, passes=standing.passes
        )
        for judge, standing in certificates_of(method, cast, folder)
    ]
    covered = {judge.role for judge in judges}
    roles = dict.fromkeys(agent.role for agent in method.agents() if agent.judges)
    return [
        *judges,
        *(
            RemedyJudge(
                run=path, role=role, model=cast.model_for(role).name, says=PROGRAM, passes=False
            )
            for role in roles
            if role not in covered and role in run.record.cast
        ),
    ]
