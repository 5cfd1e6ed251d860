"""`evenhand gate`: pass, fail or inconclusive, for a planned change;
`evenhand monitor`: repeat the same items, and alert when the answers change."""

import asyncio
import re
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from evenhand.api.configured import in_config, run_models
from evenhand.cli.codes import BELOW_FLOOR, BROKEN, FAILED, INCONCLUSIVE
from evenhand.cli.execution import Terminal, end
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.cli.screen import err, out, print_finding, print_json, problem
from evenhand.core import environment
from evenhand.core.errors import EvenhandError, UserError
from evenhand.experiments import gating
from evenhand.experiments.config import Config
from evenhand.experiments.gate_file import GateFile, read, write_example
from evenhand.experiments.gating import GateRequest
from evenhand.experiments.measuring import RunModels
from evenhand.findings.gate import Gate, Verdict
from evenhand.findings.monitoring import Monitoring
from evenhand.findings.monitoring import Verdict as WatchVerdict
from evenhand.views import gate_files, save

FILE = Path("evenhand.gate.toml")
_CODES: dict[Verdict, int] = {
    "pass": 0,
    "fail": FAILED,
    "inconclusive": INCONCLUSIVE,
    "error": BROKEN,
}
_Runs = list[str]


@dataclass(frozen=True, slots=True)
class _GateArguments:
    """The command line, without the options of the runs."""

    file: Path
    baseline: _Runs
    run: _Runs
    as_baseline: bool
    options: RunCommand


def _gate(
    options: RunCommand,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Read the checks from this TOML file. --init writes an example."
        ),
    ] = FILE,
    baseline: Annotated[
        _Runs | None,
        typer.Option(metavar="RUN", help="Compare with this gate folder or run. May be repeated."),
    ] = None,
    run: Annotated[
        _Runs | None,
        typer.Option(metavar="RUN", help="Evaluate these finished runs, without model calls."),
    ] = None,
    as_baseline: Annotated[
        bool, typer.Option("--as-baseline", help="Run the checks as a baseline, without a verdict.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Only write an example of the file.")
    ] = False,
) -> None:
    """Fail a build when a metric gets worse.

    The gate runs the checks of a file, or reads finished runs, and compares each with the baseline.
    Writes gate.json, gate.md, junit.xml and gate.sarif into --out; on GitHub also annotations and
    the job summary. Exits with code 0 if every check passed, 1 if a check failed and 3 at a cap.
    Exits with code 4 if the result is inconclusive, and with code 5 if a verdict is impossible.

    Example: evenhand gate evenhand.gate.toml --baseline runs/main --out runs/now
    """
    options, json = options.into(options.out.rstrip("/")), options.json
    arguments = _GateArguments(file, baseline or [], run or [], as_baseline, options)
    with _no_commands_within(sys.stderr if json else sys.stdout):
        if init:
            _write_example(file)
            return
        try:
            result = _result(arguments)
        except (EvenhandError, OSError) as error:
            problem(str(error))
            result = Gate.broken(str(error), str(file))
        try:
            _tell(result, options)
        except (EvenhandError, OSError) as error:
            problem(str(error))
            _end(FAILED if result.verdict == "fail" else BROKEN)
    if environment.on_github():
        stream = sys.stderr if json else sys.stdout
        stream.write(gate_files.annotations(result))
    _end(_CODES[result.verdict])


def _end(code: int) -> NoReturn:
    raise typer.Exit(code)


def _write_example(file: Path) -> None:
    write_example(file)
    out.print(f"wrote {file}. Next: evenhand gate {file} --as-baseline --out runs/main")


def _refuse(arguments: _GateArguments) -> None:
    """Refuse a gate without a baseline, and options that exclude each other."""
    options = arguments.options
    if not (
        arguments.baseline
        or arguments.as_baseline
        or options.settings.dry_run
        or options.settings.pilot
    ):
        raise UserError(
            "The gate needs a baseline. Run the version in use as the baseline, then pass it:\n"
            f"evenhand gate {arguments.file} --as-baseline --out runs/main\n"
            f"evenhand gate {arguments.file} --baseline runs/main --out runs/now"
        )
    if arguments.run and arguments.as_baseline:
        raise UserError("--as-baseline makes runs and --run reads finished runs. Omit one of them")
    if arguments.run and options.settings.system is not None:
        raise UserError("--run reads finished runs and makes no model calls. Omit --system")


def _result(arguments: _GateArguments) -> Gate:
    """Run the checks and evaluate them; a baseline, a pilot or a stop ends the command."""
    file, options = read(arguments.file), arguments.options
    _refuse(arguments)
    config = options.load()
    request = _request(file, options, config, None if arguments.as_baseline else arguments.baseline)
    if options.settings.dry_run and not arguments.run:
        print_finding(asyncio.run(gating.preview_runs(request)), json=options.json)
        _end(INCONCLUSIVE)
    runs = asyncio.run(gating.run_gate(request, arguments.run, Terminal(config)))
    if runs.forecast is not None:
        print_finding(runs.forecast, json=options.json)
    end(runs.ended, below_floor=False)
    if runs.gate is not None:
        return runs.gate
    if options.settings.pilot:
        err.print("a pilot gives no verdict")
        _end(INCONCLUSIVE)
    return _show_baseline(file, arguments)


def _request(
    file: GateFile, options: RunCommand, config: Config, baseline: Sequence[str] | None = None
) -> GateRequest:
    def models(name: str | None) -> RunModels:
        return run_models(replace(options, model=name).load())

    settings = in_config(config, options.run_settings())
    return GateRequest(
        file=file, settings=settings, models=models, model=options.model, baseline=baseline
    )


def _show_baseline(file: GateFile, arguments: _GateArguments) -> NoReturn:
    folder = arguments.options.out
    if arguments.options.json:
        print_json({"baseline": folder, "checks": dict(file.folders)})
    else:
        out.print(f"The baseline is in {folder}. Next:")
        out.print(f"evenhand gate {arguments.file} --baseline {folder} --out runs/now")
    _end(BELOW_FLOOR if gating.has_missing_answers(file, folder) else 0)


def _tell(result: Gate, options: RunCommand) -> None:
    """Show the result, and write it in every format."""
    print_finding(result, json=options.json)
    gating.write_gate(result, options.out)


@contextmanager
def _no_commands_within(stream: TextIO) -> Iterator[None]:
    """Switch off the commands of GitHub, which are lines that begin with "::". Text of models,
    servers and file names must not act as a command."""
    if not environment.on_github():
        yield
        return
    word = secrets.token_hex(16)
    stream.write(f"::stop-commands::{word}\n")
    stream.flush()
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        stream.write(f"::{word}::\n")
        stream.flush()


# The file sets the method, and the runs of a gate are small: they stay on this machine.
_ELSEWHERE = ("method", "wording", "set_", "engine", "actors", "require_certified_judges")
gate = with_run_options(_gate, without=_ELSEWHERE, out="runs/gate")


_WATCH_CODES: dict[WatchVerdict, int] = {
    "pass": 0,
    "fail": FAILED,
    "inconclusive": INCONCLUSIVE,
    "error": BROKEN,
}
_REPORTS = (".html", ".md", ".json", ".pdf")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _monitor(
    options: RunCommand,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Read the checks from this TOML file, as `evenhand gate` does."
        ),
    ] = FILE,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Repeat the look at this interval, such as 24h or 7d. Default: look once.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Evaluate the existing looks, without model calls.")
    ] = False,
    false_alarm_every: Annotated[
        int,
        typer.Option(
            min=10,
            help="Limit false alerts to an average of 1 in this many looks.",
        ),
    ] = 1_000,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write the result to this .html, .md, .json or .pdf file."
        ),
    ] = None,
) -> None:
    """Repeat an evaluation and alert on drift.

    Each call makes one look, with its own folder below --out; start it from cron or with --every. A
    sequential test compares all looks and stays valid for any number of looks. Exits with code 0 if
    the test detects no change, 1 at an alert and 4 at the first look. Exits with code 5 if a look
    has no verdict.

    Example: evenhand monitor evenhand.gate.toml --every 24h --out runs/monitor
    """
    options = options.into(options.out.rstrip("/"))
    try:  # code 1 means an alert, and nothing else
        pause, checks = None if every is None else _pause(every), read(file)
        if report is not None and Path(report).suffix not in _REPORTS:
            raise UserError(f"--report {report}: the name must end in {', '.join(_REPORTS)}")
    except EvenhandError as error:
        raise typer.Exit(_broken(error, options)) from None
    while True:
        code = _looked(checks, options, false_alarm_every, show=show, report=report)
        if pause is None or show:
            raise typer.Exit(code)
        with err.status(f"the next look is in {every}"):
            time.sleep(pause)


def _looked(
    checks: GateFile, options: RunCommand, false_alarm_every: int, *, show: bool, report: str | None
) -> int:
    """Make a look, show the result of all looks, and return the exit code. A failed look is an
    error, and further looks follow."""
    result: Monitoring | None
    try:
        if show:
            result = gating.judged(checks, options.out, false_alarm_every)
        else:
            config = options.load()
            request, watch = _request(checks, options, config), Terminal(config)
            ended, result = asyncio.run(
                gating.look(request, watch, false_alarm_every=false_alarm_every)
            )
            end(ended, below_floor=False)
    except (EvenhandError, OSError) as error:
        return _broken(error, options)
    assert result is not None  # the runs are whole
    print_finding(result, json=options.json)
    try:
        if report is not None:
            save(result, report)
    except (EvenhandError, OSError) as error:
        problem(str(error))
        return FAILED if result.verdict == "fail" else BROKEN
    return _WATCH_CODES[result.verdict]


def _broken(error: Exception, options: RunCommand) -> int:
    problem(str(error))
    if options.json:
        print_json({"verdict": "error", "error": str(error)})
    return BROKEN


def _pause(text: str) -> float:
    matched = re.fullmatch(r"(\d{1,4})([smhd])", text)
    if matched is None or not int(matched[1]):
        raise UserError(f"--every {text}: write a time such as 30m, 24h or 7d")
    return float(int(matched[1]) * _SECONDS[matched[2]])


# As for the gate, the file sets the method and the runs are small. The gate has a dry run.
_MONITOR_ELSEWHERE = ("method", "wording", "set_", "engine", "actors", "require_certified_judges",
              "dry_run", "pilot", "replay")  # fmt: skip
monitor = with_run_options(_monitor, without=_MONITOR_ELSEWHERE, out="runs/monitor")
