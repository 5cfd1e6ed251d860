"""`evenhand train rldf`: RLDF from topics to measured weights, in one command."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from evenhand.api.configured import in_config, run_models
from evenhand.cli.codes import INCONCLUSIVE, UNFINISHED
from evenhand.cli.execution import Terminal, end
from evenhand.cli.options import RunCommand, names_in, with_run_options
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.train import TrainingDisplay
from evenhand.experiments.training import Reinforcement, Rldf, RldfRecipe, RldfResult
from evenhand.views import catalog, terminal_of
from evenhand.views.files import plain


def _rldf(
    options: RunCommand,
    weights: Annotated[
        Path, typer.Option(help="Train the model in this Hugging Face folder: the student.")
    ],
    pairs: Annotated[
        Path | None, typer.Option(help="Train on these preference pairs instead of debates.")
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(help="Select bias types, separated by commas. Default: the paper's five."),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, help="Set the number of topics per bias type. The paper: 2000.")
    ] = 40,
    rounds: Annotated[int, typer.Option(min=1, help="Set the number of rounds per debate.")] = 5,
    rl: Annotated[
        Reinforcement, typer.Option(help="Choose the last stage. The paper: ppo.")
    ] = "ppo",
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights instead of a LoRA adapter.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.NAME=VALUE",
            help="Set a number of a recipe, such as sft.max_steps=100. May be repeated.",
        ),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(
            help="Measure these log-probability datasets, separated by commas. Default: as "
            "`evenhand measure likelihood`."
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=2, help="Limit the items per dataset.")] = 1_600,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Go on past a referee or a reward model that does not pass its gate."
        ),
    ] = False,
) -> None:
    """Run RLDF from topics to measured weights.

    The steps are debates, pairs, SFT, reward model, RL and benchmarks.

    The model of the endpoint is the teacher, the weights are the student. The recipe is the
    paper's: SFT on all statements of low bias, a reward loss without a margin, PPO. Stops with
    code 2 if the referee does not agree with itself in the opposite order (alpha below 0.6), if
    the reward model does not pass its audit, or if a training changes no weights. Run the command
    again to resume. Exits with code 3 at a cap, with 4 if an improvement of loss or reward is
    inconclusive.

    Example: evenhand train rldf --weights smollm2-hf --model teacher --out runs/rldf
    """
    config = options.load()
    recipe = RldfRecipe(
        weights=weights,
        pairs=pairs,
        types=None if types is None else tuple(names_in(types)),
        count=count,
        rounds=rounds,
        rl=rl,
        full=full,
        settings=tuple(set_ or ()),
        sets=None if sets is None else tuple(names_in(sets)),
        sample=sample,
    )
    settings = in_config(config, replace(options.run_settings(), out=options.out.rstrip("/")))
    with TrainingDisplay() as display:
        loop = Rldf(
            recipe=recipe,
            models=run_models(config),
            settings=settings,
            watch=Terminal(config),
            force=force,
            tell=display,
        )
        result = asyncio.run(loop.run())
    _show(result, json=options.json)


def _show(result: RldfResult, *, json: bool) -> None:
    if json:
        print_json(plain(result.to_dict()))
    else:
        for name, comparisons in result.comparisons.items():
            out.print(f"base → {name}")
            for comparison in comparisons:
                out.print(terminal_of(comparison))
    if result.stopped is not None:
        err.print(f"stopped: {catalog.text(result.stopped)}", style="yellow", soft_wrap=True)
        raise typer.Exit(UNFINISHED)
    end(result.ended, below_floor=False)
    if "inconclusive" in result.outcomes.values():
        raise typer.Exit(INCONCLUSIVE)


# The recipe sets the prompts; a dry run or pilot of the debates is one of `train debate run`.
rldf = with_run_options(_rldf, without=("method", "wording", "system", "dry_run", "pilot"))
