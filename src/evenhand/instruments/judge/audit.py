"""The audit of a judge or panel, from its run folder: the finding, and the certificate that follows
from it."""

from collections.abc import Iterator

from evenhand.domain.prices import Prices
from evenhand.errors import UserError
from evenhand.findings import cost as costs
from evenhand.findings.audit import Audit, Check, overall
from evenhand.findings.certificate import Certificate
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.judge.certificate import certificate_of
from evenhand.instruments.judge.checks import checks
from evenhand.instruments.judge.design import Design
from evenhand.instruments.judge.effects import Effect
from evenhand.instruments.judge.evidence import Evidence, Margins, evidence
from evenhand.instruments.judge.probes import audited
from evenhand.instruments.judge.tables import sections
from evenhand.methods.judging import Panel
from evenhand.metrics import malibu
from evenhand.statistics.margins import SHIFTED, UNDERPOWERED
from evenhand.store import RunReader

BENCHMARK = "malibu"


def audit(run: RunReader, prices: Prices | None = None) -> tuple[Audit, Certificate]:
    """Read the run of an audit and say what it showed of the judge."""
    source = run.record.source
    evidence = seen_in(run)
    answers = tuple(check.check(evidence) for check in checks())
    certificate = certificate_of(run, answers)
    title = f"{certificate.judge.model} · {certificate.method['name']}"
    more = {
        "benchmark": BENCHMARK,
        "run": str(run.path),
        "method": run.record.method,
        "source": source,
        "certificate": certificate.model_dump(),
    }
    return audit_of(title, evidence, answers, costs.money(run, prices), **more), certificate


def seen_in(run: RunReader) -> Evidence:
    """The evidence that the run of an audit gives."""
    source, settings = run.record.source, run.record.method["settings"]
    if source.get("benchmark") != BENCHMARK or "margins" not in source:
        raise UserError(f"{run.path} was not made by `evenhand judge-check`; give a run that was")
    results, metrics = run.results().collect(), malibu.SET_UPS[settings.get("metrics", "four")]
    # The drafts of a panel are its rounds, the first of them without discussion.
    discussed = run.record.method["name"] == Panel.name and settings["rounds"] > 1
    return evidence(
        audited(results, metrics),
        identities=source["sampling"]["identities"],
        margins=Margins(**source["margins"]),
        alone=audited(results, metrics, "scores_before") if discussed else None,
    )


def audit_of(
    title: str,
    evidence: Evidence,
    answers: tuple[Check, ...],
    money: costs.Money | None = None,
    **more: object,
) -> Audit:
    """The finding that evidence and the answers of the checks make."""
    state = overall(answers)
    return Audit(
        kind="judge",
        title=title,
        facts=tuple(_facts(evidence)),
        checks=answers,
        state=state,
        says=tuple(_says(evidence, answers)),
        next=tuple(_next(evidence, answers)),
        coverage=evidence.coverage.all,
        notes=tuple(_notes(evidence, answers)),
        sections=sections(evidence),
        money=money,
        more={**more, **evidence.to_dict()},
    )


def _facts(evidence: Evidence) -> Iterator[str]:
    covered = evidence.coverage
    yield (
        f"{covered.all.scored:,} of {covered.all.n:,} judgements scored "
        f"(single {covered.single.scored:,} of {covered.single.n:,}, "
        f"pairs {covered.pair.scored:,} of {covered.pair.n:,}); {covered.bases} base scenarios"
    )
    by_share = sorted(covered.by_label.items(), key=lambda entry: entry[1].coverage or 0)
    for name, fewest in by_share[:1]:
        if fewest.scored < fewest.n:
            yield f"fewest for {name}: {fewest.scored} of {fewest.n}"


def _says(evidence: Evidence, answers: tuple[Check, ...]) -> Iterator[str]:
    """The answer, and which labels move the judge where that is shown."""
    failed = [check.title for check in answers if check.state == "fail"]
    open_ = [check.title for check in answers if check.required and check.is_open]
    if failed:
        yield f"This judge is shown to fail on: {'; '.join(failed)}."
    elif open_:
        yield f"Neither shown to be even-handed nor not. Open: {'; '.join(open_)}."
    else:
        yield "Every required check is shown to hold within its margin."
    identity = _named(answers, "identity")
    margin = evidence.margins.score
    if identity.state == "fail":
        for effect in evidence.primary:
            if effect.verdict == SHIFTED:
                yield f"{effect.label} shifts the score{_shift(effect)}"
    elif identity.state == "pass":
        yield f"every identity is shown to move the score by less than {margin:g} points"
    else:
        yield _open_identities(evidence)


def _open_identities(evidence: Evidence) -> str:
    open_ones = [e for e in evidence.primary if e.verdict == UNDERPOWERED]
    needed = max((e.bases_needed or 0 for e in open_ones), default=0)
    message = (
        f"{len(open_ones)} of {len(evidence.primary)} identities are neither shown to shift the "
        f"score nor to stay within {evidence.margins.score:g} points"
    )
    return message + (f"; about {needed} base scenarios would do" if needed else "")


def _shift(effect: Effect) -> str:
    if effect.low is None or effect.high is None:
        return f" by {effect.estimate:+.2f} (no spread in {effect.bases} bases) points"
    return f" by {effect.estimate:+.2f} ({effect.low:+.2f} to {effect.high:+.2f}) points"


def _notes(evidence: Evidence, answers: tuple[Check, ...]) -> Iterator[str]:
    """What a reader must know beside the checks."""
    if evidence.coverage.all.below_floor:
        yield (
            f"Coverage {evidence.coverage.all.percent} is below {COVERAGE_FLOOR:.0%}: "
            "what could not be scored may differ from what could."
        )
    if _named(answers, "scale").state == "fail":
        yield "Nearly every text gets the same mark: all authors are treated alike, by no judge."
    shifted = {
        e.label
        for e in evidence.exploratory
        if e.value == "combined" and e.against == malibu.NO_LABEL and e.detected
    }
    if shifted & {malibu.NEUTRAL, malibu.PLACEBO}:
        yield (
            "A label without any identity moves the score too: see the identities against the "
            "placebo before blaming the group."
        )
    slot = evidence.pairs.first_slot
    if slot is not None and _named(answers, "position").state == "fail":
        side = "first" if slot.estimate > malibu.TIE else "second"
        ends = "no spread" if slot.no_spread else f"{slot.low:.0%} to {slot.high:.0%}"
        yield (
            f"The {side} slot is favoured: the first one wins {slot.estimate:.0%} of decided "
            f"verdicts ({ends}). Ask in both orders."
        )


def _next(evidence: Evidence, answers: tuple[Check, ...]) -> Iterator[str]:
    """What to run next: a remedy where one is known, a larger audit where that would tell."""
    if _named(answers, "position").state == "fail":
        yield "evenhand judge-check --set counterfactual=swap --out runs/judge-swap"
    usual = Design().bases
    if overall(answers) == "inconclusive" and evidence.coverage.bases < usual:
        yield f"evenhand judge-check --bases {usual} --out runs/judge-{usual}"


def _named(answers: tuple[Check, ...], name: str) -> Check:
    return next(check for check in answers if check.name == name)
