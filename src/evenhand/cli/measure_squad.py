"""`evenhand measure squad`."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.measuring import Reporting, RunOptions
from evenhand.cli.sampling import DrawSeed
from evenhand.instruments.squad import Sampling, SquadSource, sample, with_answers
from evenhand.methods import StoredAnswer
from evenhand.report import squad_report

_REPORTING = Reporting(
    measure=squad_report.measure, write=squad_report.write, render=squad_report.render
)


def squad(
    options: RunOptions,
    questions: Annotated[
        int, typer.Option(min=2, help="So many questions, spread over all 35 articles.")
    ] = 300,
    all_: Annotated[bool, typer.Option("--all", help="All 11,873 questions.")] = False,
    sample_seed: DrawSeed = 0,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Score these stored answers instead of asking: SQuAD's own form, one JSON object "
            'of question ids and answers, "" for no answer; .gz is fine.'
        ),
    ] = None,
) -> None:
    """Measure whether answers stay right, on SQuAD v2: exact match and F1, with an answer and
    without, over-abstention; intervals over articles.

    Half of the questions have no answer in their passage. Writes report.json and report.parquet
    into the run folder. Ends with code 2 if fewer than 95 % could be scored, with 3 at a cap.

    Example: evenhand measure squad --method stardtox --out runs/squad-stardtox
    """
    sampling = Sampling(questions=None if all_ else questions, seed=sample_seed)
    order = options.order(_source(sampling, answers), StoredAnswer() if answers else None)
    _REPORTING.run(order, json=options.json)


def _source(sampling: Sampling, answers: Path | None) -> SquadSource:
    records = configuration.squad_data().records()
    drawn = with_answers(records, answers) if answers else sample(records, sampling)
    return SquadSource(drawn, sampling)
