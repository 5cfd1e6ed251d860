"""Gate a change, and watch what is in use: checks against a baseline and over time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import EvenhandError, UserError
from evenhand.experiments import gating
from evenhand.experiments.gate_file import GateRun, read
from evenhand.experiments.gating import GateRequest, Prepare
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.request import Caps, Request, Watch
from evenhand.experiments.settings import OptionalRunOptions, RunSettings, show_settings
from evenhand.findings.display import Remark
from evenhand.findings.gate import Gate, broken
from evenhand.findings.monitoring import Monitoring
from evenhand.methods.build import build_method
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
        return await _gate(
            Path(file),
            _listed(baseline),
            _listed(run),
            inputs.settings_of({**settings, "out": str(out).rstrip("/")}),
            _GateModels(model, scorers, data),
            watch or Watch(),
        )
    except (EvenhandError, OSError) as error:
        return broken(str(error), str(file))


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
    run_settings = inputs.settings_of({**settings, "out": str(out).rstrip("/")})
    models = _GateModels(model, scorers, data)
    request = _request(Path(file), run_settings, models, None)
    inputs.whole((await gating.run_checks(request, watch or Watch())).ended)
    return {name: f"{request.out}/{run}" for name, run in request.file.folders.items()}


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
    checks = read(Path(file))
    folder = str(out).rstrip("/")
    models = _GateModels(model, scorers, data)
    while True:
        if not show:
            look = inputs.settings_of({**settings, "out": gating.next_look(folder)})
            request = _request(Path(file), look, models, None)
            inputs.whole((await gating.run_checks(request, watch or Watch())).ended)
        result = await asyncio.to_thread(gating.judged, checks, folder, false_alarm_every)
        if looked is not None:
            looked(result)
        if every is None or show:
            return result
        await asyncio.sleep(every)


class _GateModels:
    """What the runs of a gate ask: the model, scorers and data."""

    def __init__(
        self,
        model: Model | None,
        scorers: Mapping[str, Scorer] | None,
        data: str | Path | None,
    ) -> None:
        self._model, self._scorers = model, scorers
        self._data = inputs.folder_of(data)

    def preparing(self, settings: RunSettings) -> Prepare:
        """What makes the request of each run under these settings."""

        def prepare(run: GateRun, folder: str) -> tuple[Request, Measurement]:
            measurement = Measurement(
                instrument=run.instrument,
                options=run.instrument.options_from(run.options),
                services=inputs.Scorers(self._scorers),
            )
            replay = f"{settings.replay.rstrip('/')}/{run.folder}" if settings.replay else None
            method = measurement.method(build_method(run.method, run.set))
            within = measurement.limited(replace(settings, out=folder, replay=replay))
            source = measurement.items(self._data)
            return inputs.request_of(source, method, within, model=self._model), measurement

        return prepare


async def _gate(
    path: Path,
    baseline: list[str],
    runs: list[str],
    settings: RunSettings,
    models: _GateModels,
    watch: Watch,
) -> Gate:
    notes: tuple[Remark, ...] = ()
    file = read(path)
    if not baseline:
        raise UserError("There is no baseline to compare with. Create it with gate_baseline.")
    if not runs:
        gating.refuse_own_baseline(baseline, settings.out)
        ended = await gating.run_checks(_request(path, settings, models, baseline), watch)
        inputs.whole(ended.ended)
        runs, notes = [settings.out], ended.notes
    return await asyncio.to_thread(
        lambda: gating.judge(file, baseline, runs, prices=settings.prices, notes=notes)
    )


def _request(
    path: Path, settings: RunSettings, models: _GateModels, baseline: Sequence[str] | None
) -> GateRequest:
    caps = Caps(max_calls=settings.max_calls, max_cost=settings.max_cost, prices=settings.prices)
    return GateRequest(
        file=read(path),
        out=settings.out,
        prepare=models.preparing(settings),
        baseline=baseline,
        caps=caps,
    )


def _listed(places: Places) -> list[str]:
    named = [places] if isinstance(places, str | Path) else places
    return [str(place).rstrip("/") for place in named]


show_settings(gate, gate_baseline, monitor)
