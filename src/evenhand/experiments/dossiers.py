"""Run folders of any kind become one dossier: measured runs, audits of judges, and what a remedy
did in other runs and who judged it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments.certificates import certificates_of, expected_of
from evenhand.findings.audit import Audit, audit_of
from evenhand.findings.certificate import Certificate, why_not
from evenhand.findings.combined_report import CombinedReport, MeasuredRun, dossier
from evenhand.findings.display import Remark
from evenhand.findings.examples import choose_changed
from evenhand.findings.remedy import RemedyJudge, RemedySummary, remedy
from evenhand.findings.report import report
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.summary import Summary, summary
from evenhand.instruments import Instrument, instrument_of
from evenhand.instruments.judge.certificate import CertificateLookup, certificate_of, deciding
from evenhand.instruments.judge.instrument import JudgeAudit
from evenhand.instruments.likelihood_sets import runs_at
from evenhand.methods import Method, of_record
from evenhand.runs.runners import replay_of
from evenhand.runs.runners.likelihood import METHOD as READ_OFF
from evenhand.runs.store import RunReader
from evenhand.views import catalog

_MARKS = "marks the answers"
Audited = tuple[RunReader, Audit, Certificate]


def runs_in(location: str) -> list[RunReader]:
    """Open a run folder, or all runs in a folder of likelihood sets."""
    return list(runs_at(location).values()) or [RunReader(location)]


def is_measured(location: str) -> bool:
    """Whether a folder holds one run, of a benchmark."""
    runs = runs_in(location)
    return len(runs) == 1 and bool(runs[0].record.source.get("benchmark"))


def combined_report(folders: Sequence[str]) -> CombinedReport:
    """Read run folders, by path or URL, and collect their findings in one report."""
    return dossier_of([(RunReader(folder), None) for folder in folders])


def dossier_of(
    runs: Sequence[tuple[RunReader, ScoringSpec | None]],
    *,
    title: str | None = None,
    prices: Prices | None = None,
    certificates: Path | None = None,
) -> CombinedReport:
    """Read runs and collect the findings of all of them in one report.

    The first run of an instrument is the baseline that its other runs are compared with. A run
    that is given twice counts once.

    Args:
        runs: Each run with its instrument; None for the installed one that the run names.
        title: The title of the report; None for the default one.
        prices: The prices for costs; None to leave costs out.
        certificates: The folder of the judges' certificates.

    Returns:
        The report.

    Raises:
        UserError: If no run is given.
    """
    if not runs:
        raise UserError("a report needs a run: evenhand report runs/now --out report.html")
    measured: list[MeasuredRun] = []
    audits: list[Audited] = []
    summaries: list[tuple[RunReader, Summary]] = []
    once: dict[str, tuple[RunReader, ScoringSpec | None]] = {}
    for run, instrument in runs:  # a run that is named twice is not compared with itself
        once.setdefault(str(run.path), (run, instrument))
    for run, instrument in once.values():
        made_by = run.record.source.get("benchmark")
        if instrument is None and made_by == JudgeAudit.name:
            audits.append((run, *_audit(run, prices)))
        elif instrument is None and not made_by:
            remedy = remedy_of(run, certificates)
            summaries.append((run, summary(run, prices, remedy)))
        else:
            measured.append(_measured(run, instrument))
    judges = [
        judge
        for measurement in measured
        for judge in _judges(measurement.instrument, measurement.run, certificates, audits)
    ]
    judges += [
        judge for _, overview in summaries if overview.remedy for judge in overview.remedy.judges
    ]
    return dossier(
        title or catalog.text(Remark("dossier.title")),
        measured,
        audits=[audit for _, audit, _ in audits],
        summaries=[overview for _, overview in summaries],
        judges=judges,
        others=[*(run for run, _, _ in audits), *(run for run, _ in summaries)],
        examples=[choose_changed(run) for run, _ in summaries if run.record.keeps_texts],
        prices=prices,
    )


def _audit(run: RunReader, prices: Prices | None) -> tuple[Audit, Certificate]:
    audit = audit_of(report(JudgeAudit(), run, prices))
    certificate = certificate_of(run, audit.checks)
    return replace(audit, more={**audit.more, "certificate": certificate.model_dump()}), certificate


def _measured(run: RunReader, supplied: ScoringSpec | None) -> MeasuredRun:
    instrument = supplied or instrument_of(run)
    texts = not isinstance(instrument, Instrument) or instrument.asks == "answers"
    return MeasuredRun(instrument=instrument, run=run, readable=texts)


def _judges(
    instrument: ScoringSpec, run: RunReader, folder: Path | None, audits: Sequence[Audited]
) -> Iterator[RemedyJudge]:
    """Say who judged in a run, by its record, and what is known of them: by the certificates in a
    folder, else by the audits that are handed over together with it."""
    path = str(run.path)
    marker = instrument.judge_of(run)
    within = instrument.certified_within(run) if isinstance(instrument, Instrument) else None
    if within is not None:
        for judge, standing in certificates_of(within[1], replay_of(within[0].path), folder):
            yield RemedyJudge(
                run=path,
                role=judge.role,
                model=judge.model,
                says=standing.says,
                passes=standing.passes,
            )
    elif marker is not None:
        yield RemedyJudge(
            run=path, role=_MARKS, model=marker, says=Remark("judge.not_covered"), passes=False
        )
    if not run.totals().calls or run.record.method == READ_OFF:
        return  # nobody was asked for words
    try:
        method = method_of(run)
    except UserError as error:
        yield RemedyJudge(
            run=path, role="not known", model="not known", says=str(error), passes=False
        )
        return
    for judge, standing in certificates_of(method, replay_of(run.path), folder):
        best = (
            standing if standing.certificate is not None else _audited(method, judge.model, audits)
        )
        statement = (best or standing).says
        passes = (best or standing).passes
        yield RemedyJudge(
            run=path, role=judge.role, model=judge.model, says=statement, passes=passes
        )


def _audited(method: Method, model: str, audits: Sequence[Audited]) -> CertificateLookup | None:
    """What the audits among the runs of a pack say of a judge, by the rules of the gate."""
    fitting = [
        (Path(run.path), certificate)
        for run, _, certificate in audits
        if why_not(certificate, expected_of(method, model)) is None
    ]
    return deciding(fitting) if fitting else None


PROGRAM = Remark("judge.program")


def method_of(run: RunReader) -> Method:
    """The method that made a run, from its record."""
    try:
        return of_record(run.record.method)
    except (UserError, ValidationError):
        raise UserError(
            f"the method {run.record.method['name']!r} is not installed here as it was, so it is "
            "not known which judges it asked"
        ) from None


def summary_at(
    location: str, certificates: Path | None = None, prices: Prices | None = None
) -> Summary:
    """Summarize a run: how much was answered, what the method did, and what it cost.

    Args:
        location: The folder of a run.
        certificates: The folder with the certificates of judges.
        prices: Prices by model.

    Returns:
        The summary.
    """
    run = RunReader(location)
    return summary(run, prices, remedy_of(run, certificates))


def remedy_of(run: RunReader, certificates: Path | None = None) -> RemedySummary | None:
    """What the method of a run did to its answers, by the certificates in a folder; None where it
    judges no draft."""
    try:
        method = method_of(run)
    except UserError:
        return None
    judges = evaluators_of(run, method, certificates)
    if not hasattr(method, "bounds"):
        return remedy(run, (), judges) if run.totals().outcomes else None
    return remedy(run, method.bounds(), judges)


def evaluators_of(run: RunReader, method: Method, folder: Path | None) -> Sequence[RemedyJudge]:
    """List everything that judged in a run: language models and programs.

    Args:
        run: The run.
        method: The run's method.
        folder: The folder of certificates; None if there is none.

    Returns:
        The judges, each model with the state of its certificate.
    """
    path, cast = str(run.path), replay_of(run.path)
    judges = [
        RemedyJudge(
            run=path, role=judge.role, model=judge.model, says=standing.says, passes=standing.passes
        )
        for judge, standing in certificates_of(method, cast, folder)
    ]
    covered = {judge.role for judge in judges}
    roles = dict.fromkeys(agent.role for agent in method.agents() if agent.judges)
    return [
        *judges,
        *(
            RemedyJudge(
                run=path, role=role, model=cast.model_for(role).name, says=PROGRAM, passes=False
            )
            for role in roles
            if role not in covered and role in run.record.cast
        ),
    ]
