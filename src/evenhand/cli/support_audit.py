"""`evenhand scorers audit-support`: how far to trust the judge of support."""

from typing import Annotated

import typer
from rich.progress import track

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments import config as configuration
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.scorer.support import audit, claims_of, drawn
from evenhand.scorers.support import SupportJudge
from evenhand.views import terminal_of

_BATCH = 256


def audit_support(
    sample: Annotated[
        int, typer.Option(min=0, help="Questions of each template and condition; 0: all.")
    ] = 4,
    json: Json = False,
) -> None:
    """Where the judge of support can be trusted: AUC on BBQ over templates and by category, and
    what a bound lets pass. It was neither trained on BBQ nor chosen by it.

    Needs BBQ: fetched once, or from the folder that EVENHAND_DATA names. Asks no model.

    Example: evenhand scorers audit-support --sample 1
    """
    data = configuration.data_folder()
    records = BbqData(local=data.local, cache=data.cache).records()
    claim_set = claims_of(drawn(records, sample or None))
    judge, scores = SupportJudge(), list[float]()
    batches = range(0, len(claim_set.claims), _BATCH)
    for start in track(
        batches, judge.name, console=err, transient=True, disable=not err.is_terminal
    ):
        scores += judge.of(claim_set.claims[start : start + _BATCH])
    audited = audit(judge.name, claim_set.known, scores)
    if json:
        print_json(audited.to_dict())
    else:
        out.print(terminal_of(audited))
