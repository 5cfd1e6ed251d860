"""Gate a change, and watch what is in use: checks against a baseline and over time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import EvenhandError, UserError
from evenhand.experiments import gating
from evenhand.experiments.gate_file import read
from evenhand.experiments.gating import GateRequest
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import OptionalRunOptions, show_settings
from evenhand.findings.gate import Gate
from evenhand.findings.monitoring import Monitoring
from evenhand.scorers import Scorer

Places = str | Path | Sequence[str | Path]
FILE = "evenhand.gate.toml"


async def gate(
    file: str | Path = FILE,
    *,
    baseline: Places,
    run: Places = (),
    out: str | Path = "runs/gate",
    model: Model | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[OptionalRunOptions],
) -> Gate:
    """Run the checks of a file, or take finished runs, and compare them with a baseline.

    Args:
        file: The checks, in TOML.
        baseline: The folders of a baseline: of `gate_baseline`, of a gate, or of runs.
        run: Finished runs. Nothing is asked then.
        out: Folder of the runs. A gate that was interrupted is resumed.
        model: Model to evaluate, in place of any that the file names.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the runs: `RunOptions`. Caps are for all runs together.

    Returns:
        The verdict of each check, and of the gate. A gate that cannot be judged is "error", with
        the reason; no error is raised for it.

    Example:
        >>> gate = evenhand.gate("evenhand.gate.toml", baseline="runs/main", model=model)
        >>> gate.passed, gate.says
    """
    try:
        request = _request(file, out, settings, model, scorers, data, _listed(baseline))
        if not request.baseline:
            raise UserError("There is no baseline to compare with. Create it with gate_baseline.")
        done = await gating.run_gate(request, _listed(run), watch or Watch())
        inputs.whole(done.ended)
        assert done.gate is not None  # the runs are whole, and no pilot
        return done.gate
    except (EvenhandError, OSError) as error:
        return Gate.broken(str(error), str(file))


async def gate_baseline(
    file: str | Path = FILE,
    *,
    out: str | Path,
    model: Model | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[OptionalRunOptions],
) -> dict[str, str]:
    """Run the checks of a file on what is in use, as the baseline of later gates.

    Args:
        file: The checks, in TOML.
        out: Folder of the runs, to be given as `baseline`.
        model: Model in use.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the runs: `RunOptions`. Caps are for all runs together.

    Returns:
        The run folder of each check by the name of the check.

    Raises:
        UserError: If the file is invalid, or a cap stopped the runs.
    """
    request = _request(file, out, settings, model, scorers, data)
    inputs.whole((await gating.run_checks(request, watch or Watch())).ended)
    return {name: f"{request.settings.out}/{run}" for name, run in request.file.folders.items()}


async def monitor(
    file: str | Path = FILE,
    *,
    out: str | Path,
    model: Model | None = None,
    every: float | None = None,
    show: bool = False,
    false_alarm_every: int = 1_000,
    looked: Callable[[Monitoring], None] | None = None,
    scorers: Mapping[str, Scorer] | None = None,
    data: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[OptionalRunOptions],
) -> Monitoring:
    """Ask the same questions over time, and raise an alarm when the answers change.

    Args:
        file: The checks, in TOML.
        out: Folder of the looks. Each call is one look into a folder of its own.
        model: Model that is watched.
        every: Seconds between two looks. With it the call goes on until it is cancelled.
        show: Judge the looks that are there, without a call.
        false_alarm_every: Average number of looks between two false alarms, at least.
        looked: Receives the finding after each look.
        scorers: Additional scorers by name.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        watch: Receives progress events.
        **settings: Settings of the runs: `RunOptions`.

    Returns:
        What is shown to have changed, since when, and what else changed there.

    Raises:
        UserError: If the look cannot be made or judged.
    """
    request = _request(file, out, settings, model, scorers, data)
    checks, folder = request.file, request.settings.out
    while True:
        if show:
            result = await asyncio.to_thread(gating.judged, checks, folder, false_alarm_every)
        else:
            ended, finding = await gating.look(
                request, watch or Watch(), false_alarm_every=false_alarm_every
            )
            inputs.whole(ended)
            assert finding is not None  # the runs are whole
            result = finding
        if looked is not None:
            looked(result)
        if every is None or show:
            return result
        await asyncio.sleep(every)


def _request(
    file: str | Path,
    out: str | Path,
    settings: OptionalRunOptions,
    model: Model | None,
    scorers: Mapping[str, Scorer] | None,
    data: str | Path | None,
    baseline: Sequence[str] | None = None,
) -> GateRequest:
    models = inputs.run_models(model, scorers, data)
    return GateRequest(
        file=read(Path(file)),
        settings=inputs.settings_of({**settings, "out": str(out).rstrip("/")}),
        models=lambda _: models,
        baseline=baseline,
    )


def _listed(places: Places) -> list[str]:
    named = [places] if isinstance(places, str | Path) else places
    return [str(place).rstrip("/") for place in named]


show_settings(gate, gate_baseline, monitor)
