"""A run becomes files in the form of another tool, all of them or none; and a log of another tool
finds the instrument that scores it."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from evenhand import interop as foreign
from evenhand.core import registry
from evenhand.core.errors import UserError, choices_for
from evenhand.findings.report import report
from evenhand.findings.scoring import values_per_item
from evenhand.findings.sequential import refuse
from evenhand.instruments import DataFolder, instrument_named, instrument_of
from evenhand.instruments._contract import Instrument
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import as_file_name
from evenhand.training.debates.dataset import REPORT_FILE
from evenhand.views.export import FORMS, ExportedRun, ExportFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What an export has written."""

    run: str
    form: str
    is_: str
    files: dict[str, int]  # path -> bytes
    items: int
    not_run: int  # items of the plan that the run has not come to


def export(location: str, out: Path, data: DataFolder, form: str | None = None) -> ExportResult:
    """Write a run in the format of another tool. Existing files are never overwritten.

    Args:
        location: The run folder.
        out: The file to write, or the folder for a format of several files.
        data: The folder of datasets.
        form: The name of the format. Without it, the ending of `out` names it.

    Returns:
        What was written, and how many items are missing.

    Raises:
        UserError: If the format does not exist, or the output does.
    """
    form = form or _form_of(out)
    if form not in FORMS:
        raise UserError(f"unknown format {form!r}. {choices_for(form, FORMS)}")
    chosen_form = FORMS[form]
    _refuse_pairs(location)
    _refuse_name(out, chosen_form, location, form)
    of = _exported(RunReader(location), chosen_form, data)
    above = out.parent if chosen_form.ending else out
    above.mkdir(parents=True, exist_ok=True)
    # Where the files will lie, so that they get their names in one step.
    with tempfile.TemporaryDirectory(prefix=".evenhand-export-", dir=above) as workdir:
        targets = {
            Path(workdir, name): out if chosen_form.ending else out / name
            for name in chosen_form.write(of, Path(workdir))
        }
        for path in targets.values():
            _refuse_taken(path)
        for hidden, path in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(hidden, path)
    return ExportResult(
        run=location,
        form=form,
        is_=chosen_form.is_,
        files={str(path): path.stat().st_size for path in targets.values()},
        items=of.run.totals().items,
        not_run=of.not_run,
    )


def _form_of(out: Path) -> str:
    for name, form in FORMS.items():
        if form.ending == out.suffix and out.name:
            return name
    endings = ", ".join(dict.fromkeys(form.ending for form in FORMS.values() if form.ending))
    raise UserError(
        f"{out}: no format has this ending. Use {endings}, or name the format with --to: "
        f"{', '.join(FORMS)}"
    )


def _exported(run: RunReader, form: ExportFormat, data: DataFolder) -> ExportedRun:
    """Read what a form needs of a run, and refuse one that lacks it."""
    if not run.totals().items:
        raise UserError(
            f"{run.path} has no finished item yet. Resume it with the command that started it."
        )
    as_table = f"evenhand runs export {run.path} --out items.csv"
    if form.texts and not run.record.keeps_texts:
        raise UserError(f"{run.path} holds no texts, and {form.is_} shows them. What it does hold: "
                        f"{as_table}")  # fmt: skip
    measured = bool(run.record.source.get("benchmark"))
    if form.report and not measured:
        raise UserError(f"{run.path} was not made by `evenhand measure`, so it has no numbers for "
                        f"{form.is_}. What it does hold: {as_table}")  # fmt: skip
    if form.report:
        refuse(run)
    name = as_file_name(Path(run.path).resolve().name)
    of = ExportedRun(run=run, name=name, evenhand=version("evenhand"), report=None, values=None,
                     asked=None)  # fmt: skip
    if not measured:
        return of
    instrument = instrument_of(run)
    result = report(instrument, run)
    # By the name of the folder alone: where it lies here is nobody's business.
    result = replace(result, side=replace(result.side, run=f"runs/{name}"))
    questions = instrument.asked(run, data) if form.texts else None
    if form.asked and questions is None:
        raise UserError(f"{form.is_[0].upper()}{form.is_[1:]} are written of bbq alone, and "
                        f"{run.path} is of {instrument.name}: {as_table}")  # fmt: skip
    values = None if form.report else values_per_item(result.instrument, run)
    return replace(of, report=result, values=values, asked=questions)


def _refuse_pairs(location: str) -> None:
    if Path(location, REPORT_FILE).is_file():
        raise UserError(
            f"{location} is a folder of pairs, which `datasets.load_dataset` opens as it is; to "
            f"have it on the Hub: hf upload NAME {location} --repo-type dataset"
        )


def _refuse_name(out: Path, form: ExportFormat, location: str, name: str) -> None:
    if re.match(r"[A-Za-z][\w+.-]+:/", str(out)):  # a path has lost the second slash
        raise UserError(f"{out}: an export is written to this machine: give --out a path")
    if form.ending and not out.name:
        raise UserError(f"{out} is a folder, and --to {name} writes a file: evenhand runs export "
                        f"{location} --to {name} --out items{form.ending}")  # fmt: skip
    if form.ending is None:
        if out.exists() and not out.is_dir():
            raise UserError(
                f"{out} is a file, and --to {name} writes a folder. Choose another --out."
            )
        return
    if out.suffix != form.ending:
        suggestion = out.with_suffix(form.ending)
        raise UserError(f"{out}: the name must end in {form.ending}: "
                        f"evenhand runs export {location} "
                        f"--to {name} --out {suggestion}")  # fmt: skip
    _refuse_taken(out)


def _refuse_taken(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise UserError(f"{path} already exists. Choose another place with --out.")


def instrument_for(log: Path, name: str | None = None) -> Instrument:
    """Find the instrument that scores a log: the one of this name, else by the log's task."""
    if not log.is_file():
        raise UserError(f"{log} is not a file")
    instrument = instrument_named(name) if name else _by_task(log)
    if not instrument.elsewhere:
        raise UserError(
            f"{instrument.name} cannot score logs of other tools. Use --instrument bbq."
        )
    return instrument


def _by_task(log: Path) -> Instrument:
    """Find the instrument that has the task of a log among its names elsewhere."""
    foreign_log = foreign.read(log)
    if foreign_log is None:
        raise UserError(
            f"{log} is not a log of Inspect (.eval) or lm-evaluation-harness (samples_*.jsonl). "
            "For your own answers, name the benchmark that scores them: evenhand measure bbq "
            "--answers FILE --out runs/theirs"
        )
    task = foreign_log.origin.task.rpartition("/")[2]
    instruments = list(_loaded())
    for instrument in instruments:
        if any(task == name or task.startswith(f"{name}_") for name in instrument.elsewhere):
            return instrument
    those = ", ".join(name for instrument in instruments for name in instrument.elsewhere)
    raise UserError(
        f"{log} is of the task {task[:60]!r}; what can be scored: {those}. If it is one of these "
        "under another name, say so with --instrument"
    )


def _loaded() -> Iterator[Instrument]:
    """All instruments but those of other packages that cannot be loaded."""
    for name in registry.names("instruments"):
        with suppress(UserError):
            yield instrument_named(name)
