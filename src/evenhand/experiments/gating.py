"""Run the checks of a gate's file, find the run of each check and its baseline, and judge them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core import environment
from evenhand.core.errors import CorruptRun, EvenhandError, UserError
from evenhand.core.prices import Prices
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.gate_file import GateFile, GateRun
from evenhand.experiments.measuring import Measurement, RunModels, prepared
from evenhand.experiments.reproducing import RecipeJob, forecasts, run_all
from evenhand.experiments.request import Following, Request, Watch, within
from evenhand.experiments.running import RunEnd
from evenhand.experiments.settings import RunSettings
from evenhand.experiments.stopping import InBlocks, in_blocks
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.forecast import DryRun, FrontierForecast
from evenhand.findings.gate import Gate, GateCheck, gate, is_decided
from evenhand.findings.monitoring import Monitoring, MonitoringLook, monitoring
from evenhand.findings.report import report
from evenhand.findings.sequential import Pair, clusters_asked
from evenhand.methods import settings
from evenhand.methods.baselines.stored_answer import StoredAnswer
from evenhand.methods.build import build_method
from evenhand.runs.runners import Source
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.views import gate_files, markdown, page_of
from evenhand.views.files import to_json

STORED = StoredAnswer.name
CHECKS = "checks.json"  # in the folder of a gate: which check looks at which run


ModelsNamed = Callable[[str | None], RunModels]
"""Gives the models, scorers and data of the caller for a run, by the model that the run names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """The runs of a gate's file, where they go, and how each is asked.

    With a baseline, a run whose checks are `sequential` ends when they are decided. Without one
    (None) the runs become a baseline themselves.
    """

    file: GateFile
    settings: RunSettings  # `out` and `replay` hold all runs, and caps are for all together
    models: ModelsNamed
    model: str | None = None  # its name in notes, in place of the one that a run names
    baseline: Sequence[str] | None = None

    def jobs(self) -> list[RecipeJob]:
        """One job per run of the file; a baseline that the runs would overwrite is refused."""
        if self.baseline:
            refuse_own_baseline(self.baseline, self.settings.out)
        return [self._job(run) for run in self.file.runs]

    def _job(self, run: GateRun) -> RecipeJob:
        if run.instrument.asks != "answers":
            raise UserError(
                f"{run.instrument.name} reads log-probabilities: make its run with `evenhand "
                f"measure {run.instrument.name}`, and give the folder by --run"
            )
        settings = within(self.settings, run.folder)

        def prepare() -> tuple[Request, Measurement]:
            method = build_method(run.method, run.set)
            models = self.models(self.model or run.model)
            measurement, request = prepared(run.instrument, run.options, method, models, settings)
            if not run.sequential or self.baseline is None:
                return request, measurement
            planned = in_blocks_for(self.file, run, request.source, request.settings.seed)
            looks = None
            if self.baseline:
                looks = following(self.file, run, planned, self.baseline, settings.out)
            return replace(request, source=planned, following=looks), measurement

        model = self.model or run.model or "the model"
        return RecipeJob(model=model, run=run.folder, out=settings.out, prepare=prepare)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRuns:
    """The end of a gate's runs. `notes` says which of them were finished before."""

    ended: RunEnd = field(default_factory=RunEnd)
    notes: tuple[Remark, ...] = ()
    forecast: FrontierForecast | None = None  # of a pilot
    gate: Gate | None = None  # None of a baseline, a pilot, or runs that ended early


async def preview_runs(request: GateRequest) -> DryRun:
    """Work out what the runs of a gate would ask, without asking."""
    return await dry_run({job.run: job.prepare()[0] for job in request.jobs()})


async def run_checks(request: GateRequest, watch: Watch) -> GateRuns:
    """Run every run of the file; a run that is finished is not asked again. Only if they did not
    end early and were no pilot, the folder holds a gate's runs that `judge` takes."""
    jobs = request.jobs()
    before = answered(job.out for job in jobs)
    ended, pilots = await run_all(jobs, watch, request.settings)
    if pilots:
        expected = await forecasts(jobs, pilots, request.settings.prices, of="gate")
        return GateRuns(ended=ended, forecast=expected)
    if ended.early or ended.pilot is not None:
        return GateRuns(ended=ended)
    keep(request.file, request.settings.out)
    notes = finished_before(before, answered(job.out for job in jobs))
    return GateRuns(ended=ended, notes=tuple(notes))


async def run_gate(request: GateRequest, runs: Sequence[str], watch: Watch) -> GateRuns:
    """Run the checks, or take finished runs, and compare them with a baseline.

    Args:
        request: The checks. Without a baseline they are only run.
        runs: The folders of finished runs; empty to run the checks.
        watch: Receives progress and remarks.

    Returns:
        How the runs ended, and the result of every check.
    """
    settings, done = request.settings, GateRuns()
    if not runs:
        runs, done = [settings.out], await run_checks(request, watch)
        if request.baseline is None or done.ended.early or settings.pilot:
            return done
    compare = partial(judge, request.file, request.baseline or (), runs, prices=settings.prices)
    return replace(done, gate=await asyncio.to_thread(compare, notes=done.notes))


async def look(
    request: GateRequest, watch: Watch, *, false_alarm_every: int
) -> tuple[RunEnd, Monitoring | None]:
    """Make a look into a folder of its own, and judge all looks.

    Args:
        request: The checks. Its settings hold the folder of the looks.
        watch: Receives progress and remarks.
        false_alarm_every: Average number of looks between two false alarms, at least.

    Returns:
        How the runs ended, and the finding if they did not end early.
    """
    out = request.settings.out
    settings = replace(request.settings, out=next_look(out))
    ended = (await run_checks(replace(request, settings=settings), watch)).ended
    if ended.early:
        return ended, None
    return ended, await asyncio.to_thread(judged, request.file, out, false_alarm_every)


def refuse_own_baseline(baseline: Sequence[str], out: str) -> None:
    """Refuse a baseline that is missing, or that the runs would overwrite."""
    RecordedRuns.at(baseline)
    if place_of(out) in map(place_of, baseline):
        raise UserError(f"{out} is the baseline itself. Pass another folder as --out.")


def has_missing_answers(file: GateFile, out: str) -> bool:
    """Whether a run of the gate in `out` answered fewer than 95% of its items."""
    runs = ((run.instrument, RunReader(f"{out}/{run.folder}")) for run in file.runs)
    return any([report(instrument, run).coverage.below_floor for instrument, run in runs])


def write_gate(result: Gate, out: str) -> None:
    """Write gate.json, gate.md, junit.xml and gate.sarif into a folder, and on GitHub the summary
    of the job."""
    page = markdown.render(page_of(result)).encode()
    outputs = {
        "gate.json": to_json(result),
        "gate.md": page,
        "junit.xml": gate_files.junit(result),
        "gate.sarif": gate_files.sarif(result),
    }
    folder = open_folder(out)
    for name, data in outputs.items():
        folder.replace(name, data)
    summary = environment.github_summary()
    if summary is not None:
        with Path(summary).open("ab") as job_page:
            job_page.write(page)


class _GateRecordCheck(BaseModel):
    model_config = ConfigDict(extra="forbid")
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]  # a folder within
    margin: float
    looks_at: str = ""  # the measure, and the group


class _GateRecord(BaseModel):
    model_config = ConfigDict(extra="forbid")
    format: Annotated[int, Field(ge=1, le=1)] = 1
    checks: dict[str, _GateRecordCheck]


@dataclass(slots=True)
class RecordedRuns:
    """Runs that were kept: those of checks by the check's name, and others by themselves."""

    by_check: dict[str, str] = field(default_factory=dict)  # name -> run folder
    checks: dict[str, _GateRecordCheck] = field(default_factory=dict)
    plain: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, places: Sequence[str]) -> "RecordedRuns":
        """Look into folders, each that of a gate or of a run."""
        kept_runs = cls()
        for location in places:
            folder = open_folder(location)
            if folder.exists(CHECKS):
                manifest = _read(folder.read(CHECKS), location)
                kept_runs.by_check |= {
                    n: f"{location}/{check.run}" for n, check in manifest.checks.items()
                }
                kept_runs.checks |= manifest.checks
            elif folder.exists("run.json"):
                kept_runs.plain.append(location)
            else:
                raise UserError(
                    f"{location} is neither a run nor a folder of the gate. Create it: evenhand "
                    f"gate FILE --as-baseline --out {location}"
                )
        return kept_runs

    def run_of(self, check: GateCheck, like: RunReader | None = None) -> RunReader:
        """Give the run of a check: by its name, else the only one of its instrument that there is,
        over the same items as `like` where that is given."""
        if check.name in self.by_check:
            return RunReader(self.by_check[check.name])
        places = dict.fromkeys([*self.by_check.values(), *self.plain])
        matching = [run for run in map(RunReader, places) if _is_for(run, check, like)]
        if len(matching) == 1:
            return matching[0]
        many = f"{len(matching)} runs" if matching else "no run"
        raise UserError(
            f"there is {many} of {check.instrument.name} for this check in "
            f"{', '.join(places) or 'the folders given'}; a gate's own folder says which is which: "
            "`evenhand gate FILE --as-baseline --out FOLDER` makes one"
        )


def _read(data: bytes, location: str) -> _GateRecord:
    try:
        return _GateRecord.model_validate(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError):
        raise CorruptRun(f"{location}/{CHECKS} cannot be read: make the folder again") from None


def _is_for(run: RunReader, check: GateCheck, like: RunReader | None) -> bool:
    ours = run.record.source
    if ours.get("benchmark") != check.instrument.name:
        return False
    theirs = ours if like is None else like.record.source
    return all(ours.get(key) == theirs.get(key) for key in ("sha256", "sampling"))


def keep(file: GateFile, out: str) -> None:
    """Write which check looks at which run, so that the folder can be a baseline."""
    checks = {
        check.name: {"run": file.folders[check.name], "margin": check.measure.margin,
                     "looks_at": _looks_at(check)}
        for check in file.checks
    }  # fmt: skip
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    written = orjson.dumps({"format": 1, "checks": checks}, option=options)
    open_folder(out).replace(CHECKS, written)


def in_blocks_for(file: GateFile, gate_run: GateRun, source: Source, seed: int | None) -> InBlocks:
    """Plan a run that stops as soon as each of its checks is decided.

    Args:
        file: The gate's file.
        gate_run: The run.
        source: The items of the run.
        seed: The seed of the order in which clusters are asked; None for 0.

    Returns:
        The source, split into blocks.
    """
    needed = [check.measure.name for check in _checks_of(file, gate_run)]
    return in_blocks(gate_run.instrument, source, needed, seed=seed)


def following(
    file: GateFile, gate_run: GateRun, source: InBlocks, baseline: Sequence[str], out: str
) -> Following:
    """Make the function that chooses the next block of a run by comparing it with the baseline.

    Args:
        file: The gate's file, whose number of checks the decision is corrected for.
        gate_run: The run.
        source: The items of the run, in blocks.
        baseline: The folders of the baseline; its runs must exist before anything is asked.
        out: The folder of the run.

    Returns:
        The function. It gives no positions once every check is decided.
    """
    checks, kept_runs = _checks_of(file, gate_run), RecordedRuns.at(baseline)
    before = {check.name: kept_runs.run_of(check) for check in checks}

    def block() -> frozenset[int]:
        if not open_folder(out).exists("run.json"):
            return source.block_after(0)
        run = RunReader(out)
        there = len(clusters_asked(gate_run.instrument.for_run(run), run, source.until))
        decided = there and all(
            is_decided(check, (before[check.name], run), len(file.checks)) for check in checks
        )
        return frozenset() if decided else source.block_after(there)

    return partial(asyncio.to_thread, block)


def _checks_of(file: GateFile, gate_run: GateRun) -> list[GateCheck]:
    return [check for check in file.checks if file.folders[check.name] == gate_run.folder]


def judge(
    file: GateFile,
    baseline: Sequence[str],
    run: Sequence[str],
    *,
    prices: Prices | None = None,
    notes: Sequence[Remark] = (),
) -> Gate:
    """Compare the runs of a gate with its baseline.

    Args:
        file: The gate's file.
        baseline: The folders of the baseline, each of a gate or of a run.
        run: The folders to judge, each of a gate or of a run.
        prices: The prices for costs; None to leave costs out.
        notes: Remarks to show with the result.

    Returns:
        The result of every check.
    """
    before, after = RecordedRuns.at(baseline), RecordedRuns.at(run)
    runs: dict[str, Pair | RemarkOrText] = {}
    lacking = [name for name in before.by_check if name not in file.folders]
    checks = []
    for check in file.checks:
        if after.by_check and check.name not in after.by_check and check.name in before.by_check:
            lacking.append(check.name)
            continue
        checks.append(check)
        gate_run = next(
            gate_run for gate_run in file.runs if gate_run.folder == file.folders[check.name]
        )
        runs[check.name] = _pair(check, gate_run, before, after)
    looked_at = {str(pair[0].path) for pair in runs.values() if not isinstance(pair, RemarkOrText)}
    broken = any(isinstance(pair, RemarkOrText) for pair in runs.values())
    if not broken:  # else nobody knows which run it would have looked at
        lacking += [location for location in before.plain if location not in looked_at]
    return gate(checks, runs, lacking=lacking, file=file.path, prices=prices,
                notes=[*notes, *_changed(file, before.checks)])  # fmt: skip


def _pair(
    check: GateCheck, gate_run: GateRun, before: RecordedRuns, after: RecordedRuns
) -> Pair | RemarkOrText:
    try:
        new = after.run_of(check)
        _refuse_another(gate_run, new)
    except (EvenhandError, OSError) as error:
        return f"this run: {error}"
    try:
        old = before.run_of(check, new)
    except (EvenhandError, OSError) as error:
        return f"the baseline: {error}"
    if place_of(str(old.path)) == place_of(str(new.path)):
        return Remark("gate.baseline_itself", run=str(new.path))
    if old.digests() == new.digests():  # also the time at which it was begun
        return Remark("gate.copy_of_baseline", run=str(old.path))
    return old, new


def _refuse_another(gate_run: GateRun, run: RunReader) -> None:
    """A run that is judged must be by the method that the file names; stored answers have none. Its
    model may be any: a new one is what a gate is for."""
    recorded = run.record.method
    if gate_run.instrument.asks != "answers" or recorded["name"] == STORED:
        return
    expected = build_method(gate_run.method, gate_run.set)
    if recorded["name"] != expected.name:
        raise UserError(
            f"{run.path} is a run of {recorded['name']}, and the gate file asks for "
            f"{expected.name}. Pass another run, or change the file."
        )
    for name, value in settings(expected).items():
        used = recorded["settings"].get(name, value)
        if used != value:
            raise UserError(
                f"{run.path} is a run with {name}={used}, and the gate file asks for "
                f"{name}={value}. Pass another run, or change `set` in the file."
            )


def place_of(path: str) -> str:
    """The one name of a folder, so that it is known again."""
    local = path.removeprefix("file://")
    return local if "://" in local else str(Path(local).resolve())


def answered(places: Iterable[str]) -> dict[str, int]:
    """Count the items of each run that is there."""
    there = [location for location in places if open_folder(location).exists("run.json")]
    return {location: RunReader(location).totals().items for location in there}


def finished_before(before: Mapping[str, int], after: Mapping[str, int]) -> list[Remark]:
    """Say of which runs nothing was asked, because they were finished or decided before."""
    old = [location for location, items in before.items() if items and after.get(location) == items]
    return [Remark("gate.finished_before", run=location) for location in old]


def _looks_at(check: GateCheck) -> str:
    return " ".join([check.measure.name, *(check.group or ())])


def _changed(file: GateFile, recorded: Mapping[str, _GateRecordCheck]) -> list[Remark]:
    """Say which checks look at something else, or allow more, than when the baseline was made."""
    notes = []
    for check in file.checks:
        old = recorded.get(check.name)
        if old is not None and old.looks_at and old.looks_at != _looks_at(check):
            notes.append(Remark("gate.looks_elsewhere", check=check.name, before=old.looks_at,
                                now=_looks_at(check)))  # fmt: skip
        elif old is not None and (check.measure.margin or 0.0) > old.margin:
            notes.append(Remark("gate.wider_margin", check=check.name, before=old.margin,
                                now=check.measure.margin))  # fmt: skip
    return notes


MARKS = "looks"
_NAMED = "%Y-%m-%dT%H-%M-%S.%fZ"


def judged(file: GateFile, out: str, false_alarm_every: int) -> Monitoring:
    """Judge all finished looks in a folder.

    Args:
        file: The checks.
        out: The folder of the looks.
        false_alarm_every: Average number of looks between two false alarms, at least.

    Raises:
        UserError: If no look is finished.
    """
    looks, notes = looks_of(out, file)
    if not looks:
        raise UserError(
            f"{out} has no look yet. Take one: evenhand monitor {file.path} --out {out}"
        )
    return monitoring(file.checks, looks, false_alarm_every=false_alarm_every, notes=notes)


def next_look(out: str) -> str:
    """Give the folder of the next check: one that was interrupted, else a new one."""
    there = _look_names(out)
    if there and not _is_finished(f"{out}/{there[-1]}"):
        return f"{out}/{there[-1]}"
    name = datetime.now(UTC).strftime(_NAMED)
    open_folder(out).create(f"{MARKS}/{name}", b"")
    return f"{out}/{name}"


def looks_of(out: str, file: GateFile) -> tuple[list[MonitoringLook], list[Remark]]:
    """Give every look that is finished, the oldest first, and say which ones are not. A check that
    a look did not have yet has no run in it."""
    looks, notes = [], []
    for name in _look_names(out):
        folder = f"{out}/{name}"
        if not _is_finished(folder):
            notes.append(Remark("look.unfinished", folder=folder))
            continue
        run_by_check = RecordedRuns.at([folder]).by_check
        runs = {
            check.name: RunReader(run_by_check[check.name])
            for check in file.checks
            if check.name in run_by_check
        }
        looks.append(MonitoringLook(began=_began(name, out), place=folder, runs=runs))
    return looks, notes


def _look_names(out: str) -> list[str]:
    return [path.rpartition("/")[2] for path in open_folder(out).names(MARKS)]


def _began(name: str, out: str) -> str:
    try:
        began = datetime.strptime(name, _NAMED).replace(tzinfo=UTC)
    except ValueError:
        raise UserError(
            f"{out}/{MARKS}/{name} is not a marker of a check. Remove it, or choose another --out."
        ) from None
    return began.isoformat(timespec="milliseconds")


def _is_finished(folder: str) -> bool:
    """A gate says which check looks at which run when all of them are run."""
    return open_folder(folder).exists(CHECKS)
