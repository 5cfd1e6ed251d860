"""The demo plays recorded runs back, which are part of this package: it needs no model, no network
and no data. Every number is computed when it is shown, from the folders."""

import shlex
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict

from evenhand.core.errors import UserError
from evenhand.experiments.dossiers import dossier_of
from evenhand.findings.audit import Audit
from evenhand.findings.combined_report import CombinedReport
from evenhand.findings.comparison import Comparison
from evenhand.findings.display import Remark
from evenhand.findings.examples import ChosenExamples
from evenhand.findings.plan import Plan, plan
from evenhand.findings.report import Report
from evenhand.instruments.bbq.drafts import repaired
from evenhand.runs.store import RunReader
from evenhand.views import catalog, save

__all__ = ["Demo", "DemoPart", "Model", "PlayedPart", "parts_of_the_package"]

MARK = "evenhand-demo.json"  # says that a folder is the demo's own
_MARKED = orjson.dumps({"made_by": "evenhand demo"}) + b"\n"
_BESIDE = ("LICENCES.md", "APACHE-2.0.txt")  # go with the runs wherever they go
Finding = ChosenExamples | Comparison | Audit | Report | Plan


class _Declared(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Model(_Declared):
    """A model that made a recorded run."""

    says: str
    sha256: str | None = None  # of its weights, where they are public


class DemoPart(_Declared):
    """A part of the demo: what it shows, the run folders it is computed from, how to repeat it."""

    kind: Literal["conversation", "comparison", "sample_size", "audit", "report"]
    title: str
    says: str
    runs: list[str]
    model: str
    again: list[str]
    full_only: bool = False
    measure: str | None = None  # of a sample size: what it is for
    detect: float | None = None  # of a sample size: the change to detect


class _DemoParts(_Declared):
    models: dict[str, Model]
    parts: list[DemoPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPart:
    """A part with what came out of it."""

    part: DemoPart
    model: Model
    runs: tuple[str, ...]
    finding: Finding


def parts_of_the_package() -> _DemoParts:
    """Read which parts there are."""
    return _DemoParts.model_validate(tomllib.loads((_here() / "parts.toml").read_text("utf-8")))


def play(out: Path) -> tuple[PlayedPart, ...]:
    """Copy the recorded runs into a folder, compute every part, and write the page.

    Raises:
        UserError: If the folder holds something else.
    """
    demo = Demo(out)
    demo.copy()
    parts = tuple(demo.played())
    demo.write_page()
    return parts


class Demo:
    """The demo in a folder: the runs are copied there, and the page is written next to them."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.page = out / "report.html"
        self._declared = parts_of_the_package()
        self.parts = self._declared.parts

    def copy(self) -> None:
        """Put the recorded runs into the folder. What else is in it stays."""
        runs = {name: self._run(name) for part in self.parts for name in part.runs}
        _claim(self.out, [self.out / "runs", *runs.values()], self.page)
        for name, target in runs.items():
            if target.exists():
                shutil.rmtree(target)
            _copy(_here() / "recorded" / name, target)
        for name in _BESIDE:
            (self.out / name).write_bytes((_here() / name).read_bytes())

    def played(self, *, full: bool = True) -> Iterator[PlayedPart]:
        """Compute the parts one by one.

        Args:
            full: Whether to compute the parts that only --full shows.
        """
        for part in self.parts:
            if part.full_only and not full:
                continue
            runs = tuple(str(self._run(name)) for name in part.runs)
            model = self._declared.models[part.model]
            yield PlayedPart(part=part, model=model, runs=runs, finding=self._finding(part, runs))

    def write_page(self) -> None:
        """Write the page of all that is computed."""
        save(self.dossier, str(self.page))

    @cached_property
    def dossier(self) -> CombinedReport:
        """What the runs of all parts but the conversations show, each computed once."""
        names = [name for part in self.parts if part.kind != "conversation" for name in part.runs]
        runs = [RunReader(str(self._run(name))) for name in dict.fromkeys(names)]
        return dossier_of([(run, None) for run in runs], title=catalog.text(Remark("demo.title")))

    def _finding(self, part: DemoPart, runs: tuple[str, ...]) -> Finding:
        dossier = self.dossier if part.kind != "conversation" else None
        if dossier is None:
            return repaired(RunReader(runs[0]))
        if part.kind in ("comparison", "sample_size"):
            pairs = {
                (comparison.before.run, comparison.after.run): comparison
                for comparison in dossier.comparisons
            }
            pilot = pairs[runs[0], runs[1]]
            if part.kind == "comparison":
                return pilot
            return plan(pilot.instrument, detect=part.detect, pilot=pilot, measure=part.measure)
        if part.kind == "audit":
            return next(audit for audit in dossier.audits if audit.more["run"] == runs[0])
        return next(report for report in dossier.reports if report.side.run == runs[0])

    def _run(self, name: str) -> Path:
        return self.out / "runs" / name


def _here() -> Traversable:
    return resources.files(__package__)


def _claim(out: Path, folders: Sequence[Path], page: Path) -> None:
    """Take a folder that is new, empty or the demo's own; refuse any other, and in it any link, any
    file in the place of a folder and the other way round: what is written and deleted is the
    demo's."""
    mark = out / MARK
    files = (mark, page, *(out / name for name in _BESIDE))
    linked = [path for path in (out, *files, *folders) if path.is_symlink()]
    if linked:
        raise UserError(
            f"{linked[0]} is a link, which is not followed: evenhand demo --out new-folder"
        )
    odd = [path for path in files if path.is_dir()] + [path for path in folders if path.is_file()]
    if odd:
        raise UserError(
            f"{odd[0]} is a {'folder' if odd[0].is_dir() else 'file'}, and the demo writes a "
            f"{'file' if odd[0].is_dir() else 'folder'} there: evenhand demo --out new-folder"
        )
    is_ours = mark.is_file() and mark.read_bytes() == _MARKED
    if out.exists() and not is_ours and (not out.is_dir() or any(out.iterdir())):
        other = shlex.quote(f"{out}-demo")
        raise UserError(
            f"{out} is there already and is not the demo's: evenhand demo --out {other}"
        )
    out.mkdir(parents=True, exist_ok=True)
    mark.write_bytes(_MARKED)


def _copy(source: Traversable, target: Path) -> None:
    """Copy a folder out of the package, which need not be one of plain files."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.is_dir():
            _copy(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())
