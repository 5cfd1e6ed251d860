"""`evenhand watch`: the same questions again and again, and an alarm when the answers change."""

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.codes import BROKEN, FAILED, OPEN
from evenhand.cli.gate import FILE, run_checks
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.screen import err, out, print_json, problem
from evenhand.core.errors import EvenhandError, UserError
from evenhand.experiments.gate_file import GateFile, read
from evenhand.experiments.gating import judged, next_look
from evenhand.findings.monitoring import Verdict
from evenhand.views import save, terminal_of
from evenhand.views.files import plain

_CODES: dict[Verdict, int] = {"steady": 0, "alarm": FAILED, "open": OPEN, "broken": BROKEN}
_REPORTS = (".html", ".md", ".json", ".pdf")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def _watch(
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
    """Ask the same questions over time; an alarm when answers change.

    Each call is one look into a folder of its own below --out, for cron or with --every. All looks
    are held against each other by a test that holds however often one looks. Ends with code 0 if no
    change is shown, 1 at an alarm, 4 at the first look, 5 if the look cannot be judged.

    Example: evenhand watch evenhand.gate.toml --every 24h --out runs/watch
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
    if options.json:
        print_json(plain(result.to_dict()))
    else:
        out.print(terminal_of(result))
    try:
        if report is not None:
            save(result, report)
    except (EvenhandError, OSError) as error:
        problem(str(error))
        return FAILED if result.verdict == "alarm" else BROKEN
    return _CODES[result.verdict]


def _broken(error: Exception, options: RunCommand) -> int:
    problem(str(error))
    if options.json:
        print_json({"verdict": "broken", "error": str(error)})
    return BROKEN


def _pause(text: str) -> float:
    matched = re.fullmatch(r"(\d{1,4})([smhd])", text)
    if matched is None or not int(matched[1]):
        raise UserError(f"--every {text}: write a time such as 30m, 24h or 7d")
    return float(int(matched[1]) * _SECONDS[matched[2]])


# As of the gate: the file says by which method, and the runs are small. A dry run is the gate's.
_ELSEWHERE = ("method", "wording", "set_", "engine", "actors", "require_certified_judges",
              "dry_run", "pilot", "replay")  # fmt: skip
watch = with_run_options(_watch, without=_ELSEWHERE, out="runs/watch")
