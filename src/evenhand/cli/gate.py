"""`evenhand gate`: pass, fail or inconclusive, for a change that is about to be made;
`evenhand monitor`: the same items again and again, and an alarm when the answers change."""

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

from evenhand.cli.codes import BELOW_FLOOR, BROKEN, FAILED, INCONCLUSIVE
from evenhand.cli.execution import Terminal, end
from evenhand.cli.options import RunCommand, prepared, with_run_options
from evenhand.cli.screen import err, out, print_finding, print_json, problem
from evenhand.core import environment
from evenhand.core.errors import EvenhandError, UserError
from evenhand.core.prices import Prices
from evenhand.experiments import gating
from evenhand.experiments.gate_file import EXAMPLE, GateFile, GateRun, read
from evenhand.experiments.gating import GateRequest, judged, next_look
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.request import Caps, Request
from evenhand.findings.display import Remark
from evenhand.findings.gate import Gate, Verdict, broken
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
    """What was asked for on the command line, but for how the runs are run."""

    file: Path
    baseline: _Runs
    run: _Runs
    as_baseline: bool
    options: RunCommand


def _gate(
    options: RunCommand,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The checks, in TOML; --init writes an example.")
    ] = FILE,
    baseline: Annotated[
        _Runs | None,
        typer.Option(
            metavar="RUN", help="What to compare with: a gate's folder or a run. May be repeated."
        ),
    ] = None,
    run: Annotated[
        _Runs | None,
        typer.Option(metavar="RUN", help="Judge these finished runs; nothing is asked."),
    ] = None,
    as_baseline: Annotated[
        bool, typer.Option("--as-baseline", help="Run the checks and judge nothing.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write an example of the file, and do nothing else.")
    ] = False,
) -> None:
    """Fail a build when a metric gets worse.

    Runs the checks of a file, or takes finished runs, and holds each against the baseline. Writes
    gate.json, gate.md, junit.xml and gate.sarif into --out; on GitHub also annotations and the
    page of the job. Ends with code 0 if every check passed, 1 if one failed, 4 if it is open, 5 if
    there is nothing to judge by, 3 at a cap.

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
            result = broken(str(error), str(file))
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
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(EXAMPLE)
    except FileExistsError:
        raise UserError(f"{file} is there already: give another name") from None
    out.print(f"{file} is written. Next: evenhand gate {file} --as-baseline --out runs/main")


def _result(arguments: _GateArguments) -> Gate:
    """Run what is to be run, and judge it; a baseline, a pilot or a stop ends the command."""
    file, options = read(arguments.file), arguments.options
    if not (
        arguments.baseline
        or arguments.as_baseline
        or options.settings.dry_run
        or options.settings.pilot
    ):
        raise UserError(
            "nothing to compare with. Keep what is in use as the baseline, then name it:\n"
            f"evenhand gate {arguments.file} --as-baseline --out runs/main\n"
            f"evenhand gate {arguments.file} --baseline runs/main --out runs/now"
        )
    if arguments.run and arguments.as_baseline:
        raise UserError("--as-baseline makes runs and --run takes finished ones: leave one out")
    if arguments.run and options.settings.system is not None:
        raise UserError("--run takes finished runs, which nobody is asked for: leave out --system")
    prices = _prices(options)
    if arguments.run:
        return gating.judge(file, arguments.baseline, arguments.run, prices=prices)
    if arguments.baseline:
        gating.refuse_own_baseline(arguments.baseline, options.out)
    notes = run_checks(file, options, None if arguments.as_baseline else arguments.baseline)
    if arguments.as_baseline:
        _show_baseline(file, arguments)
    return gating.judge(file, arguments.baseline, [options.out], prices=prices, notes=notes)


def _prices(options: RunCommand) -> Prices | None:
    settings = options.load()
    return settings.prices.prices() if settings.prices else None


def run_checks(
    file: GateFile, options: RunCommand, baseline: Sequence[str] | None = None
) -> Sequence[Remark]:
    """Run every run of the file. A dry run, a pilot or a stop ends the command."""

    def prepare(run: GateRun, folder: str) -> tuple[Request, Measurement]:
        replay = options.settings.replay
        within = f"{replay.rstrip('/')}/{run.folder}" if replay else None
        settings = replace(options.settings, out=folder, replay=within)
        run_options = replace(options, settings=settings, method=run.method, set_=list(run.set),
                              model=options.model or run.model)  # fmt: skip
        measurement, request = prepared(run.instrument, run_options, dict(run.options))
        return request, measurement

    prices = _prices(options)
    caps = Caps(
        max_calls=options.settings.max_calls, max_cost=options.settings.max_cost, prices=prices
    )
    request = GateRequest(
        file=file, out=options.out, prepare=prepare, model=options.model, baseline=baseline,
        caps=caps,
    )  # fmt: skip
    if options.settings.dry_run:
        print_finding(asyncio.run(gating.preview_runs(request)), json=options.json)
        _end(INCONCLUSIVE)
    runs = asyncio.run(gating.run_checks(request, Terminal(options.load())))
    if runs.forecast is not None:
        print_finding(runs.forecast, json=options.json)
    end(runs.ended, below_floor=False)
    if options.settings.pilot:
        err.print("a pilot judges nothing")
        _end(INCONCLUSIVE)
    return runs.notes


def _show_baseline(file: GateFile, arguments: _GateArguments) -> NoReturn:
    folder = arguments.options.out
    if arguments.options.json:
        print_json({"baseline": folder, "checks": dict(file.folders)})
    else:
        out.print(f"The baseline is in {folder}. Next:")
        out.print(f"evenhand gate {arguments.file} --baseline {folder} --out runs/now")
    _end(BELOW_FLOOR if gating.has_missing_answers(file, folder) else 0)


def _tell(result: Gate, options: RunCommand) -> None:
    """Show what was found, and write it in every form."""
    print_finding(result, json=options.json)
    page = gating.write_gate(result, options.out)
    summary = environment.github_summary()
    if summary is not None:
        with Path(summary).open("ab") as job_page:
            job_page.write(page)


@contextmanager
def _no_commands_within(stream: TextIO) -> Iterator[None]:
    """On GitHub a line that begins with "::" is a command. What a model, a server or a file name
    says is none: commands are off while it may be printed."""
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


# The file says by which method, and the runs of a gate are small: they stay on this machine.
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
        Path, typer.Argument(metavar="FILE", help="The checks, as of `evenhand gate`.")
    ] = FILE,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Look again and again, such as 24h or 7d; else once."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Ask nothing: judge the looks that are there.")
    ] = False,
    false_alarm_every: Annotated[
        int,
        typer.Option(
            min=10, help="While nothing changes, at most one alarm in so many looks, on average."
        ),
    ] = 1_000,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write it: .html, .md, .json or .pdf.")
    ] = None,
) -> None:
    """Repeat an evaluation and alert on drift.

    Each call is one look into a folder of its own below --out, for cron or with --every. All looks
    are held against each other by a test that holds however often one looks. Ends with code 0 if no
    change is shown, 1 at an alarm, 4 at the first look, 5 if the look cannot be judged.

    Example: evenhand monitor evenhand.gate.toml --every 24h --out runs/monitor
    """
    options = options.into(options.out.rstrip("/"))
    try:  # code 1 is an alarm, and nothing else
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
    """Make a look, show what all of them say, and give the exit code. A look that cannot be made is
    broken, and is no reason to make no further one."""
    try:
        if not show:
            run_checks(checks, options.into(next_look(options.out)))
        result = judged(checks, options.out, false_alarm_every)
    except (EvenhandError, OSError) as error:
        return _broken(error, options)
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


# As of the gate: the file says by which method, and the runs are small. A dry run is the gate's.
_MONITOR_ELSEWHERE = ("method", "wording", "set_", "engine", "actors", "require_certified_judges",
              "dry_run", "pilot", "replay")  # fmt: skip
monitor = with_run_options(_monitor, without=_MONITOR_ELSEWHERE, out="runs/monitor")
