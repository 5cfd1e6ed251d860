"""How a command runs a request: progress, previews of pilots and dry runs, and exit codes."""

import asyncio
import math
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from evenhand.cli.codes import BELOW_FLOOR, CAPPED, STOPPED
from evenhand.cli.screen import err, print_finding, run_progress
from evenhand.core.errors import UserError
from evenhand.experiments import probe, running
from evenhand.experiments.certificates import Certified, JudgeInCast
from evenhand.experiments.config import Config, probe_folder
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.measuring import measure as measured
from evenhand.experiments.request import Request, Watch
from evenhand.experiments.running import RunEnd
from evenhand.experiments.settings import RunSettings
from evenhand.findings.audit import Audit
from evenhand.findings.display import RemarkOrText
from evenhand.findings.forecast import COST, Forecast
from evenhand.findings.report import Report
from evenhand.instruments import Instrument
from evenhand.runs.runners import Progress, StopSignal
from evenhand.views import catalog

_KEPT = ("--config", "--base-url")  # options of the command line that locate the judge
_NO_JUDGE = {  # the meaning of each verdict of the probe for a run
    "at chance": "its verdicts mean nothing",
    "constant": "its verdicts mean nothing",
    "reversed": "its verdicts are reversed",
}


class Terminal(Watch):
    """Prints the progress of an experiment to stderr, and stops it on Ctrl-C."""

    def __init__(self, settings: Config, base_url: str | None = None) -> None:
        """Use this config; `base_url` locates the default model if no option does."""
        self._settings = settings
        self._base_url = base_url

    def note(self, text: RemarkOrText) -> None:
        err.print(Text(catalog.text(text), style="bold"), soft_wrap=True)

    def judges(self, found: Sequence[Certified]) -> None:
        """Print a line per judge: its certificate, the result of its probe, and what to do."""
        for judge, state in found:
            probed, warns = self._probed(judge, certified=state.passes)
            style = "bold yellow" if warns else "dim" if state.passes else "yellow"
            line = f"judge {judge.role} = {judge.model}: {state.says}{probed}"
            err.print(Text(line, style=style), soft_wrap=True)

    def _probed(self, judge: JudgeInCast, *, certified: bool) -> tuple[str, bool]:
        """Return the probe result of a judge, and whether it is a warning. A judge with a
        certificate needs no probe, which reads JSON as the audit does."""
        if judge.by_logprob or not judge.url:
            return "", False
        record = probe.find(probe_folder(), judge.url, judge.model)
        inside = ["--base-url", judge.url, "--model", judge.model]  # of a scorer's own endpoint
        where = inside if judge.within_scorer else self._where(judge)
        command = shlex.join(["evenhand", "doctor", "--probe", *where])
        if record is None:
            return "" if certified else f"; not probed: {command}", False
        summary = f"; the probe of {record.made[:10]} says {record.judge.says}"
        problem = _NO_JUDGE.get(record.judge.verdict)
        if problem is None:
            return summary, False
        advice = f"{problem}. Assign the role to another model, or probe again"
        return f"{summary}: {advice}: {command}", True

    def refuse(self, uncertified: Certified) -> UserError:
        judge, state = uncertified
        run = "Run:"
        if state.certificate is not None:
            run = (
                "Assign the role to another model under [roles] in the config, or audit this model "
                "again:"
            )
        if self._settings.judges is None:
            run = 'Write certificates = "certificates" under [judges] in the config, then run:'
        # The command has a line of its own, to be copied whole.
        message = f"{judge.role} is played by {judge.model!r}: {state.says}. No model was called."
        again = "-again" if state.certificate is not None else ""
        return UserError(f"{message} {run}\n{self._command(judge)}{again}")

    def _command(self, judge: JudgeInCast) -> str:
        words = ["evenhand", "audit", judge.audit, *self._where(judge)]
        slug = "".join(c if c.isalnum() or c in "._-" else "-" for c in judge.model)
        return shlex.join([*words, "--out", f"runs/{judge.audit}-{slug}"])

    def _where(self, judge: JudgeInCast) -> list[str]:
        """Return the options that locate the judge."""
        words = [word for option in _KEPT for word in _typed(option)]
        name = self._settings.roles.get(judge.role, "default")  # in [models] of the config
        if judge.within_scorer or name == "default":
            if self._base_url and not judge.within_scorer:
                words += ["--base-url", self._base_url]
            return [*words, "--model", judge.model]
        return [*words, "--judge", name]

    @asynccontextmanager
    async def progress(self, progress: Progress) -> AsyncIterator[None]:
        async with run_progress(progress):
            yield

    def stop(self) -> StopSignal:
        """Finish the current items on the first Ctrl-C; stop at once on the second."""
        stop = StopSignal()

        def heard() -> None:
            if not stop.soft:
                err.print("stopping after the current items (press Ctrl-C again to stop at once) …")
            stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, heard)
        return stop


def _typed(option: str) -> list[str]:
    for index, word in enumerate(sys.argv):
        if word == option and index + 1 < len(sys.argv):
            return [option, sys.argv[index + 1]]
        if word.startswith(f"{option}="):
            return [word]
    return []


Out = Annotated[
    str,
    typer.Option("--out", "-o", help="Write or resume the run in this folder: a path or a URL."),
]


def show_dry_run(
    requests: Mapping[str, Request], *, json: bool, code: int = 0, **more: Any
) -> NoReturn:
    """Print what these runs will ask, and exit without model calls.

    Args:
        requests: The runs by name.
        json: Print JSON.
        code: The exit code.
        more: Further arguments of `experiments.dry_run`.
    """
    preview = asyncio.run(dry_run(requests, **more))
    print_finding(preview, json=json)
    raise typer.Exit(code)


def execute(request: Request, config: Config, *, json: bool) -> RunEnd:
    """Run a request and print its progress; for a dry run, print what it will ask."""
    if request.settings.dry_run:
        show_dry_run({request.settings.out: request}, json=json)
    return asyncio.run(running.execute(request, Terminal(config)))


def end(ended: RunEnd, *, below_floor: bool) -> None:
    """Exit with the code of the outcome, if it is not 0."""
    if ended.capped_by:
        err.print(
            f"stopped at {ended.capped_by}; raise it and run the command again to resume. The run "
            f"has made {ended.calls:,} calls. It stores the calls of unfinished items, so you do "
            "not pay for them twice."
        )
        raise typer.Exit(CAPPED)
    if ended.stopped:
        err.print("stopped; nothing is lost. Run the same command again to resume.")
        raise typer.Exit(STOPPED)
    if below_floor:
        raise typer.Exit(BELOW_FLOOR)


def show_forecast(settings: RunSettings, ended: RunEnd, *, json: bool) -> None:
    """Print the forecast, and exit with the code of a stopped or capped run."""
    try:
        expected = running.forecast_of(settings, ended)
    except UserError:
        end(ended, below_floor=False)  # a stop explains the error
        raise
    print_finding(replace(expected, next=_next_command(settings, expected)), json=json)
    end(ended, below_floor=False)


def show_measured(
    measurement: Measurement,
    request: Request,
    config: Config,
    conclude: Callable[[Instrument, Any, Report, Path | None], Audit] | None = None,
    *,
    json: bool,
    full: bool,
    written: str = "",
) -> None:
    """Measure what was prepared, show the result, and exit with the code of the outcome.

    Args:
        measurement: The benchmark with its options.
        request: Its items, and how they are asked.
        config: The config.
        conclude: Makes an audit of the report and stores it.
        json: Print JSON.
        full: Print the long page.
        written: The files of a whole run, listed below the page.
    """
    settings = request.settings
    if settings.dry_run:
        show_dry_run({settings.out: request}, json=json)
    result = asyncio.run(measured(measurement, request, Terminal(config)))
    if result.ended.pilot is not None:
        show_forecast(settings, result.ended, json=json)
        return
    if result.report is None:
        end(result.ended, below_floor=True)
        return
    finding: Report | Audit = result.report
    if conclude is not None:
        finding = conclude(
            measurement.instrument, measurement.options, result.report, settings.certificates
        )
    print_finding(finding, json=json, full=full, written="" if result.ended.early else written)
    too_little = result.report.coverage.below_floor
    if isinstance(finding, Audit) and measurement.instrument.must_pass:
        too_little = finding.state != "pass"
    end(result.ended, below_floor=too_little)


def _next_command(settings: RunSettings, expected: Forecast) -> str:
    """Return the command without the pilot, with a cap if prices are known and no cap is set."""
    typed = _without_pilot(sys.argv[1:])
    cost = expected.totals.get(COST)
    most = cost.high if cost is not None else None
    if most and settings.max_cost is None:
        typed += ["--max-cost", f"{two_digits_up(most):g}"]
    return shlex.join(["evenhand", *typed])


def _without_pilot(words: Sequence[str]) -> list[str]:
    """Return the words of a command without `--pilot N` or `--pilot=N`."""
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if before != "--pilot" and word.partition("=")[0] != "--pilot"
    ]


def two_digits_up(amount: float) -> float:
    """Round up: a cap below the upper end of the forecast would stop the run early."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return math.ceil(amount / unit) * unit
