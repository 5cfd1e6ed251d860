"""`evenhand gate`: pass, fail or open, for a change that is about to be made."""

import asyncio
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from evenhand import environment
from evenhand.cli.codes import BELOW_FLOOR, BROKEN, FAILED, OPEN
from evenhand.cli.execution import end, show_dry_run
from evenhand.cli.measuring import RunOptions, prepared, with_run_options
from evenhand.cli.screen import err, out, print_json, problem
from evenhand.cli.watching import Terminal
from evenhand.domain.prices import Prices
from evenhand.errors import EvenhandError, UserError
from evenhand.experiments import gating
from evenhand.experiments.caps import Caps
from evenhand.experiments.gate_file import EXAMPLE, GateFile, GateRun, read
from evenhand.experiments.measuring import Measurement
from evenhand.experiments.reproducing import Job, forecasts, run_all
from evenhand.experiments.request import Request
from evenhand.findings.gate import Gate, Verdict, broken
from evenhand.findings.report import report
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.views import annotations, junit, markdown, page_of, sarif, terminal_of
from evenhand.views.files import plain, to_json

FILE = Path("evenhand.gate.toml")
_CODES: dict[Verdict, int] = {"pass": 0, "fail": FAILED, "open": OPEN, "broken": BROKEN}
_Runs = list[str]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for on the command line, but for how the runs are run."""

    file: Path
    baseline: _Runs
    run: _Runs
    as_baseline: bool
    options: RunOptions


def _gate(
    options: RunOptions,
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
    """Say whether a change makes anything worse: pass, fail or open.

    Runs the checks of a file, or takes finished runs, and holds each against the baseline. Writes
    gate.json, gate.md, junit.xml and gate.sarif into --out; on GitHub also annotations and the
    page of the job. Ends with code 0 if every check passed, 1 if one failed, 4 if it is open, 5 if
    there is nothing to judge by, 3 at a cap.

    Example: evenhand gate evenhand.gate.toml --baseline runs/main --out runs/now
    """
    options, json = replace(options, out_=options.out_.rstrip("/")), options.json
    asked = _Asked(file, baseline or [], run or [], as_baseline, options)
    with _no_commands_within(sys.stderr if json else sys.stdout):
        if init:
            _write_example(file)
            return
        try:
            found = _found(asked)
        except (EvenhandError, OSError) as error:
            problem(str(error))
            found = broken(str(error), str(file))
        try:
            _tell(found, options)
        except (EvenhandError, OSError) as error:
            problem(str(error))
            _end(FAILED if found.verdict == "fail" else BROKEN)
    if environment.on_github():
        stream = sys.stderr if json else sys.stdout
        stream.write(annotations.render(found))
    _end(_CODES[found.verdict])


def _end(code: int) -> NoReturn:
    raise typer.Exit(code)


def _write_example(file: Path) -> None:
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(EXAMPLE)
    except FileExistsError:
        raise UserError(f"{file} is there already: give another name") from None
    out.print(f"{file} is written. Next: evenhand gate {file} --as-baseline --out runs/main")


def _found(asked: _Asked) -> Gate:
    """Run what is to be run, and judge it; a baseline, a pilot or a stop ends the command."""
    file, options = read(asked.file), asked.options
    if not (asked.baseline or asked.as_baseline or options.dry_run or options.pilot):
        raise UserError(
            "nothing to compare with. Keep what is in use as the baseline, then name it:\n"
            f"evenhand gate {asked.file} --as-baseline --out runs/main\n"
            f"evenhand gate {asked.file} --baseline runs/main --out runs/now"
        )
    if asked.run and asked.as_baseline:
        raise UserError("--as-baseline makes runs and --run takes finished ones: leave one out")
    if asked.run and options.system is not None:
        raise UserError("--run takes finished runs, which nobody is asked for: leave out --system")
    if asked.run:
        return gating.judge(file, asked.baseline, asked.run, prices=_prices(options))
    if asked.baseline:
        gating.KeptRuns.at(asked.baseline)  # one that is not there is said before anything is paid
        if gating.place_of(options.out_) in map(gating.place_of, asked.baseline):
            raise UserError(f"{options.out_} is the baseline: give --out a folder of its own")
    notes = measured(file, options, None if asked.as_baseline else asked.baseline)
    if asked.as_baseline:
        _keep_baseline(file, asked)
    return gating.judge(file, asked.baseline, [options.out_], prices=_prices(options), notes=notes)


def _prices(options: RunOptions) -> Prices | None:
    settings = options.settings()
    return settings.prices.prices() if settings.prices else None


def measured(
    file: GateFile, options: RunOptions, baseline: Sequence[str] | None = None
) -> list[str]:
    """Run every run of the file; what was finished before is not asked again, and is said. A pilot
    or a stop ends the command. With the baseline that will judge them, checks that say
    `sequential` end their run when they are decided."""
    prices = _prices(options)
    jobs = [_job(file, one, options, baseline) for one in file.runs]
    if options.dry_run:
        show_dry_run({job.run: job.prepare()[0] for job in jobs}, json=options.json, code=OPEN)
    places = [job.out for job in jobs]
    before = gating.answered(places)
    caps = Caps(max_calls=options.max_calls, max_cost=options.max_cost, prices=prices)
    ended, pilots = asyncio.run(run_all(jobs, Terminal(options.settings()), caps))
    if options.pilot:
        expected = asyncio.run(forecasts(jobs, pilots, prices, of="gate")) if pilots else None
        if expected is not None and options.json:
            print_json(plain(expected.to_dict()))
        elif expected is not None:
            out.print(terminal_of(expected))
    end(ended, below_floor=False)
    if options.pilot:
        err.print("a pilot judges nothing")
        _end(OPEN)
    gating.keep(file, options.out_)
    return gating.finished_before(before, gating.answered(places))


def _job(file: GateFile, one: GateRun, options: RunOptions, baseline: Sequence[str] | None) -> Job:
    if one.instrument.asks != "answers":
        raise UserError(
            f"{one.instrument.name} reads log-probabilities: make its run with `evenhand measure "
            f"{one.instrument.name}`, and give the folder by --run"
        )
    place = f"{options.out_}/{one.folder}"

    def prepare() -> tuple[Request, Measurement]:
        replay = f"{options.replay.rstrip('/')}/{one.folder}" if options.replay else None
        own = replace(options, out_=place, method=one.method, set_=list(one.set), replay=replay,
                      model=options.model or one.model)  # fmt: skip
        measurement, order = prepared(one.instrument, own, dict(one.options))
        request = order.request()
        if not one.sequential or baseline is None:
            return request, measurement
        planned = gating.in_blocks_for(file, one, request.source, options.seed)
        looks = gating.following(file, one, planned, baseline, place) if baseline else None
        return replace(request, source=planned, following=looks), measurement

    return Job(model=options.model or one.model or "the model", run=one.folder, out=place,
               prepare=prepare)  # fmt: skip


def _keep_baseline(file: GateFile, asked: _Asked) -> NoReturn:
    place = asked.options.out_
    reports = [report(one.instrument, RunReader(f"{place}/{one.folder}")) for one in file.runs]
    if asked.options.json:
        print_json({"baseline": place, "checks": dict(file.folders)})
    else:
        out.print(f"The baseline is in {place}. Next:")
        out.print(f"evenhand gate {asked.file} --baseline {place} --out runs/now")
    _end(BELOW_FLOOR if any(one.coverage.below_floor for one in reports) else 0)


def _tell(found: Gate, options: RunOptions) -> None:
    """Show what was found, and write it in every form."""
    if options.json:
        print_json(plain(found.to_dict()))
    else:
        out.print(terminal_of(found))
    written = markdown.render(page_of(found)).encode()
    folder = open_folder(options.out_)
    made = {"gate.json": to_json(found), "gate.md": written, "junit.xml": junit.render(found),
            "gate.sarif": sarif.render(found)}  # fmt: skip
    for name, data in made.items():
        folder.replace(name, data)
    summary = environment.github_summary()
    if summary is not None:
        with Path(summary).open("ab") as page:
            page.write(written)


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
