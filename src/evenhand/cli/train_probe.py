"""`evenhand train probe-reward`: what a reward model prefers, before it may drive anything."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.instruments.reward.audit import RewardAudit, judged
from evenhand.training.config import prepare
from evenhand.views import terminal_of

_FAILED = 2  # as other commands end that did their work and found too little


def probe_reward(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The `model` folder of `evenhand train reward`.")
    ],
    pairs: Annotated[
        Path, typer.Option(help="The pairs folder that it was trained on; its test side is used.")
    ],
    most: Annotated[
        int, typer.Option(min=1, help="Pairs at most, topics in turn. Each is some 30 texts.")
    ] = 400,
    json: Json = False,
) -> None:
    """Probe a reward model: accuracy, shortcuts, and worthless answers that it may prefer.

    Writes probes.json into the model's folder. `rloo` and `ppo` take no reward model whose probes
    are missing, of other weights, failed or open: fewer than 35 topics cannot pass. Ends with code
    2 unless it passed.

    Example: evenhand train probe-reward runs/reward/model --pairs data/pairs
    """
    result, file = _probed(model, pairs, most)
    if json:
        print_json(result.to_dict())
    else:
        out.print(terminal_of(result))
        out.print(str(file), style="dim", soft_wrap=True)
    if not result.passed:
        raise typer.Exit(_FAILED)


def _probed(model: Path, folder: Path, most: int) -> tuple[RewardAudit, Path]:
    # Imported here: without the train extra the other commands still work.
    prepare()
    from evenhand.training import gate  # noqa: PLC0415
    from evenhand.training.probe_texts import Texts  # noqa: PLC0415
    from evenhand.training.probes import ask, drawn, held_out  # noqa: PLC0415
    from evenhand.training.reward_model import RewardModel  # noqa: PLC0415

    pairs, texts = drawn(held_out(folder), most), Texts.shipped()
    reward_model = RewardModel.load(model)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("texts scored", total=None)
        rewards = ask(
            pairs,
            reward_model.score,
            texts,
            lambda done, planned: progress.update(bar, completed=done, total=planned),
        )
    result = judged(rewards, texts.said(), model=str(model), texts_version=texts.version)
    return result, gate.record(model, folder, result.to_dict())
