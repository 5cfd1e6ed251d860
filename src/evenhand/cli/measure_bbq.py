"""`evenhand measure bbq`."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand import config as configuration
from evenhand.cli.measuring import Reporting, RunOptions
from evenhand.cli.sampling import PerCategory, Preset, PresetName, SampleSeed
from evenhand.instruments.bbq import BbqSource, Sampling, sample, with_answers
from evenhand.methods import StoredAnswer
from evenhand.report import bbq_report

_REPORTING = Reporting(
    measure=bbq_report.measure, write=bbq_report.write, render=bbq_report.render_measure
)


def bbq(
    options: RunOptions,
    preset: PresetName = Preset.TEMPLATES,
    per_category: PerCategory = None,
    sample_seed: SampleSeed = 0,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Score these stored answers instead of asking: JSON lines with "
            "category, example_id, answer."
        ),
    ] = None,
) -> None:
    """Measure bias on BBQ: scores with intervals over templates, coverage and cost.

    Writes report.json and report.parquet into the run folder. Ends with code 2 if fewer than 95 %
    of the answers could be scored, with 3 at a cap.

    Example: evenhand measure bbq --method default --per-category 8 --out runs/bbq-default
    """
    sampling = Sampling(preset=preset.value, per_category=per_category, seed=sample_seed)
    source = _source(sampling, answers)
    order = options.order(source, StoredAnswer() if answers else None)
    _REPORTING.run(order, json=options.json)


def _source(sampling: Sampling, answers: Path | None) -> BbqSource:
    records = configuration.bbq_data().records()
    drawn = with_answers(records, answers) if answers else sample(records, sampling)
    return BbqSource(drawn, sampling)
