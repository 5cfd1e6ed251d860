"""A dossier holds all that is handed over of some runs: what each showed, what changed between
them, who judged, and answers to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.findings.audit import Audit
from evenhand.findings.comparison import Comparison, compare, same_sample, together
from evenhand.findings.display import Displayable
from evenhand.findings.examples import ChosenExamples, choose
from evenhand.findings.remedy import RemedyJudge
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.summary import Summary
from evenhand.runs.store import RunReader, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run, the instrument that made it, and whether its answers are texts that can be read."""

    instrument: ScoringSpec
    run: RunReader
    readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFolder:
    """A run folder that the dossier was made from: its record, and the hashes of its bytes."""

    run: str
    record: RunRecord
    digests: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedReport(Displayable):
    """A dossier is what a team lead or an auditor is given: one page over several runs.

    >>> evenhand.report("runs/before", "runs/after").save("report.html")
    """

    title: str
    reports: tuple[Report, ...] = ()
    comparisons: tuple[Comparison, ...] = ()  # with Holm over the primary changes of all of them
    not_compared: tuple[str, ...] = ()  # why a run is not compared
    audits: tuple[Audit, ...] = ()
    summaries: tuple[Summary, ...] = ()  # of runs that no instrument measured
    judges: tuple[RemedyJudge, ...] = ()
    choices: tuple[ChosenExamples, ...] = ()
    folders: tuple[SourceFolder, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether a run of it has not come to its end."""
        left = [*(r.not_run for r in self.reports), *(s.not_run for s in self.summaries)]
        return any(left) or any(summary.open for summary in self.summaries)

    def to_dict(self) -> dict[str, Any]:
        """Give the dossier as plain data, for JSON."""
        return {
            "title": self.title,
            "reports": [report.to_dict() for report in self.reports],
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "not_compared": self.not_compared,
            "audits": [audit.to_dict() for audit in self.audits],
            "summaries": [summary.to_dict() for summary in self.summaries],
            "judges": self.judges,
            "choices": self.choices,
            "runs": [
                {"run": folder.run, "sha256": folder.digests, "record": folder.record.model_dump()}
                for folder in self.folders
            ],
        }


def dossier(
    title: str,
    measured: Sequence[MeasuredRun],
    *,
    audits: Sequence[Audit] = (),
    summaries: Sequence[Summary] = (),
    judges: Sequence[RemedyJudge] = (),
    others: Sequence[RunReader] = (),
    examples: Sequence[ChosenExamples] = (),
    prices: Prices | None = None,
) -> CombinedReport:
    """Report every measured run, and compare each with the first one of its benchmark and sample.

    Args:
        title: The title of the report.
        measured: The runs with the benchmark of each, in the order of the report.
        audits: Finished audits to include.
        summaries: Summaries of runs that no benchmark measured.
        judges: What is known of the judges that mitigation methods used.
        others: Folders of runs that no benchmark measured, such as audits.
        examples: Chosen answers of `others`.
        prices: The price table; without one the reports name no costs.

    Returns:
        The combined report. Runs that cannot be compared are listed with the reason.
    """
    comparisons, not_compared, choices = [], [], []
    for index, entry in enumerate(measured):
        baseline: RunReader | None = None
        earlier = [it for it in measured[:index] if it.instrument.name == entry.instrument.name]
        before = next((it for it in earlier if _alike(it, entry)), earlier[0] if earlier else None)
        if before is not None:
            try:
                same_sample(before.run, entry.run)
                comparisons.append(compare(entry.instrument, before.run, entry.run))
                baseline = before.run
            except UserError as error:
                not_compared.append(f"{entry.run.path} and {before.run.path}: {error}")
        if entry.readable:
            choices.append(choose(entry.instrument, entry.run, baseline))
    runs = (*(entry.run for entry in measured), *others)
    return CombinedReport(
        title=title,
        reports=tuple(report(entry.instrument, entry.run, prices) for entry in measured),
        comparisons=tuple(together(comparisons)),
        not_compared=tuple(not_compared),
        audits=tuple(audits),
        summaries=tuple(summaries),
        judges=tuple(judges),
        choices=(*choices, *examples),
        folders=tuple(
            SourceFolder(run=str(run.path), record=run.record, digests=run.digests())
            for run in runs
        ),
    )


def _alike(first: MeasuredRun, other: MeasuredRun) -> bool:
    """Say whether two runs asked the same items."""
    try:
        same_sample(first.run, other.run)
    except UserError:
        return False
    return True
