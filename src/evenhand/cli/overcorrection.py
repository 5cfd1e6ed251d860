"""`evenhand overcorrection`: what methods make of benign texts that needed no correction."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.configured import ConfigServices
from evenhand.cli.execution import end
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import out, print_json
from evenhand.cli.watching import Terminal
from evenhand.experiments import config as configuration
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.sweep import FILES, MethodSeries, methods_of, run_overcorrection
from evenhand.instruments.overcorrection.instrument import (
    USUAL,
    OverCorrection,
    OverCorrectionOptions,
)
from evenhand.views import terminal_of
from evenhand.views.files import plain


def _overcorrection(
    options: RunCommand,
    method: Annotated[
        str,
        typer.Option(
            help="Names with commas; settings follow a colon, joined by a plus: "
            "default,stardtox:bias_brain=rule+performance=false. Without it: all that work on "
            "texts and need only a chat endpoint."
        ),
    ] = ",".join(USUAL),
    items: Annotated[int, typer.Option(min=3, help="Texts, a third from each set.")] = 500,
    texts: Annotated[
        Path | None,
        typer.Option(help="Your own texts instead: JSONL with text, identity, family, template."),
    ] = None,
    sample_seed: DrawSeed = 0,
) -> None:
    """Count the benign texts that methods make worse.

    Worse is: refused, emptied, moralised about, or without the identity it spoke of.

    Each method gets a run folder of its own within --out; beside them stand overcorrection.json
    and overcorrection.parquet. Run it again to resume, or with more methods. Caps are for all runs
    together. Ends with code 2 if a method answered fewer than 95 %, with 3 at a cap.

    Example: evenhand overcorrection --method default,fairness,stardtox --out runs/benign
    """
    chosen = methods_of([name.strip() for name in method.split(",") if name.strip()])
    config, instrument = options.load(), OverCorrection()
    measurement = Measurement(
        instrument=instrument,
        options=OverCorrectionOptions(items=items, texts=texts, sample_seed=sample_seed),
        services=ConfigServices(config),
    )
    source = measurement.items(configuration.data_folder())
    request = options.into(options.out.rstrip("/")).request(source, chosen[0].method, config)
    series = MethodSeries(request=request, measurement=measurement, watch=Terminal(config))
    ended, result = asyncio.run(run_overcorrection(series, chosen))
    if result is None:
        end(ended, below_floor=False)
        return
    if options.json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
        out.print(f"{request.settings.out}/{', '.join(FILES)}", style="dim")
    end(ended, below_floor=result.below_floor)


# The methods are several, and each has a folder of its own.
_ELSEWHERE = ("method", "wording", "set_", "dry_run", "pilot", "replay")
overcorrection = with_run_options(_overcorrection, without=_ELSEWHERE)
