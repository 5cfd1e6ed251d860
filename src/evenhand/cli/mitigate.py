"""`evenhand mitigate`: a file of prompts through a method into a run folder."""

from typing import Annotated

import typer

from evenhand.cli.codes import NOT_ACCEPTED
from evenhand.cli.execution import end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.screen import err, out, print_json
from evenhand.experiments.dossiers import summary_of
from evenhand.findings.remedy import MIN_ACCEPTED
from evenhand.runs.runners.prompt_files import PROMPT, source_of
from evenhand.runs.store import RunReader
from evenhand.views import terminal_of


def _mitigate(
    options: RunCommand,
    prompts: Annotated[
        str,
        typer.Argument(
            help='A file of lines like {"prompt": "…"}, or Parquet: a file, a folder, a URL.'
        ),
    ],
    prompt_column: Annotated[str, typer.Option(help="Of Parquet: what to answer.")] = PROMPT,
    answer_column: Annotated[
        str | None, typer.Option(help="Of Parquet: an answer that is to be repaired.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Of Parquet: the item's id.")] = None,
    context_column: Annotated[
        str | None, typer.Option(help="Of Parquet: what the question is about.")
    ] = None,
    min_accepted: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of answers that the evaluators must accept."),
    ] = MIN_ACCEPTED,
) -> None:
    """Answer every prompt of a file with a method.

    The answer is the best draft by the method's own evaluators; a stored answer within the bounds
    of harm is not changed. Run it again to resume. Ends with code 2 if fewer than 95 % were
    answered, with 3 at a cap, with 4 if fewer than --min-accepted were accepted.

    Example: evenhand mitigate prompts.jsonl --method stardtox --out runs/first
    """
    columns = {
        "prompt_column": prompt_column,
        "answer_column": answer_column,
        "id_column": id_column,
        "context_column": context_column,
    }
    config = options.load()
    request = options.request(source_of(prompts, columns), config=config)
    ended, settings = execute(request, config, json=options.json), request.settings
    if ended.pilot is not None:
        show_forecast(settings, ended, json=options.json)
        return
    result = summary_of(RunReader(settings.out), settings.certificates, settings.prices)
    if options.json:
        print_json(result.to_dict())
    else:
        out.print(terminal_of(result))
    end(ended, below_floor=result.coverage.below_floor)
    remedy = result.remedy
    if remedy is not None and remedy.accepted is not None and remedy.accepted < min_accepted:
        err.print(
            f"{remedy.accepted:.1%} of the answers were accepted, fewer than {min_accepted:.0%} "
            "(--min-accepted)"
        )
        raise typer.Exit(NOT_ACCEPTED)


mitigate = with_run_options(_mitigate, method="stardtox")
