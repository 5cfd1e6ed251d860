"""A certificate: what an audit found of a judge, and exactly which judge that was, in one file.

It holds for one model under one method and one set of prompts, and for nothing else: another model
string, another wording or another version of the scenarios is another judge. It is tied to the run
that it was made of by the digests of the run. Its checksum shows that a value was changed; it is no
signature, and does not show by whom it was made.

Every certificate, of a judge, a harm policy or a reward model, is read here and by the same rules.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.findings.audit import OPEN, AuditCheck, Overall, State, overall
from evenhand.findings.checksummed import Checksummed, ChecksummedPart
from evenhand.findings.estimates import NO_SPREAD
from evenhand.runs.store import RunReader

_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_CLOCK_SKEW = timedelta(hours=1)  # our choice: how far the clock of another machine may be ahead


class CertifiedCheck(ChecksummedPart):
    """A check as a certificate of format 1 keeps it. There a value without spread has itself as
    both ends of its interval."""

    name: str
    state: State
    required: bool
    says: str
    unit: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    margin: float | None = None
    bar: str = ""
    details: dict[str, float | int | str | None] = Field(default_factory=dict)

    @classmethod
    def of(cls, check: AuditCheck) -> "CertifiedCheck":
        no_spread = check.undefined == NO_SPREAD
        return cls(
            name=check.name,
            state=check.state,
            required=check.required,
            says=check.says,
            unit=check.unit,
            estimate=check.value,
            low=check.value if no_spread else check.low,
            high=check.value if no_spread else check.high,
            n=check.n,
            margin=check.margin,
            bar=check.bar,
            details=dict(check.details),
        )


class CertifiedJudge(ChecksummedPart):
    """The judge that a certificate is of; a reward model judges too."""

    model: str
    served_by: list[str]  # what the endpoint itself said that answered
    described: dict[str, Any]  # without the address: the same model elsewhere is the same judge


class Certificate(Checksummed):
    """The outcome of an audit, tied to its judge and sealed by a checksum."""

    format: Literal[1] = 1
    kind: str  # of the audit: "judge", "harm", "reward"
    run: dict[str, _Sha]  # the digests of the run that it was made of
    judge: CertifiedJudge
    method: dict[str, Any]  # name and settings
    prompts: dict[str, _Sha]  # of the method and of the items
    benchmark: dict[str, Any]  # version, sample, hashes of the items
    margins: dict[str, float]
    limits: dict[str, Any]
    seed: int | None
    evenhand: str
    created: str
    calls: int
    checks: list[CertifiedCheck]
    state: Overall

    @classmethod
    def of_run(
        cls,
        run: RunReader,
        *,
        kind: str,
        judge: CertifiedJudge,
        checks: Iterable[AuditCheck],
        method: Mapping[str, Any],
        prompts: Mapping[str, str],
        benchmark: Mapping[str, Any],
        margins: Mapping[str, float],
    ) -> "Certificate":
        """Return the sealed certificate of an audit.

        Args:
            run: The run of the audit.
            kind: The name of the audit.
            judge: Who was audited.
            checks: What was found.
            method: How it was asked: name and settings.
            prompts: The checksum of each prompt that it was asked with.
            benchmark: What it was asked: version, sample, checksums.
            margins: What the checks allow.
        """
        certified = [CertifiedCheck.of(check) for check in checks]
        record = run.record
        return cls(
            kind=kind,
            run=run.digests(),
            judge=judge,
            method=dict(method),
            prompts=dict(prompts),
            benchmark=dict(benchmark),
            margins=dict(margins),
            limits=record.limits,
            seed=record.seed,
            evenhand=record.versions["evenhand"],
            created=record.created,
            calls=run.totals().calls,
            checks=certified,
            state=overall(certified),
        ).sealed()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "Certificate":
        """Read a certificate strictly: a changed value, a state that its checks do not give, and a
        date in the future are refused. The newest certificate decides, and one from the future
        would decide for ever."""
        try:
            certificate = cls.model_validate(orjson.loads(data))
        except (orjson.JSONDecodeError, ValidationError):
            raise UserError(
                f"{where} is not a certificate that this version reads. Run the audit again."
            ) from None
        if not certificate.is_intact or certificate.state != overall(certificate.checks):
            raise UserError(
                f"{where} does not match its checksum, so it was changed later. Run the audit "
                "again."
            )
        if not _is_past(certificate.created):
            raise UserError(
                f"{where} is dated {certificate.created[:40]!r}, which is not in the past"
            )
        return certificate

    @property
    def decided_by(self) -> str:
        """The checks that kept it from passing, in brackets; empty where it passed."""
        if self.state == "pass":
            return ""
        failed = [check.name for check in self.checks if check.state == "fail"]
        unsure = [c.name for c in self.checks if c.required and c.state in OPEN]
        return f" ({', '.join(failed or unsure) or 'no check at all'})"

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Return the checks that it does not require, of those that it must."""
        return sorted({*names} - {check.name for check in self.checks if check.required})


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequirements:
    """What a certificate must be of, to hold where it is used."""

    kind: str
    model: str
    method: Mapping[str, Any]
    prompts: Mapping[str, str]  # those that this evenhand has
    benchmark: Mapping[str, Any] = field(default_factory=dict)  # what of it must be the same
    margins: Mapping[str, float] | None = None  # None: the size of the audit is looked at instead
    checks: frozenset[str] = frozenset()  # the required ones


def why_not(certificate: Certificate, expected: CertificateRequirements) -> str | None:
    """Say why a certificate does not hold; None if it does."""
    if certificate.kind != expected.kind:
        return f"is of the audit {certificate.kind!r}, not {expected.kind!r}"
    if certificate.judge.model != expected.model:
        return f"is for the model {certificate.judge.model!r}, not {expected.model!r}"
    if certificate.method != expected.method:
        return f"is for {_in_words(certificate.method)}, not {_in_words(expected.method)}"
    return next(_differs(certificate, expected), None)


def _differs(certificate: Certificate, expected: CertificateRequirements) -> Iterator[str]:
    for label, sha in certificate.prompts.items():
        if expected.prompts.get(label) != sha:
            yield f"was made with another wording of the prompt {label}"
    for name, value in expected.benchmark.items():
        there = certificate.benchmark.get(name)
        if there != value:
            yield f"was made with {name} {_short(there)}, not {_short(value)}"
    if expected.margins is not None and certificate.margins != expected.margins:
        yield "was made with other margins"
    if lacking := certificate.lacking(expected.checks):
        yield f"has no check of {', '.join(lacking)}"


def _in_words(method: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{k}={v}" for k, v in sorted(method.get("settings", {}).items()))
    return f"{method.get('name')} ({settings})"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 20 else text[:8]


def certificates_in(folder: Path) -> Iterator[tuple[Path, Certificate | str]]:
    """Read every certificate of a folder, by the names of the files.

    Args:
        folder: The folder that the config names under `[judges]`.

    Yields:
        The path, and the certificate or why it is refused.
    """
    for path in sorted(folder.glob("*.json")):
        try:
            if not path.is_file():  # a pipe would be waited for
                raise UserError(
                    f"{path} is not a regular file. Remove it, or restore the certificate."
                )
            yield path, Certificate.from_bytes(path.read_bytes(), str(path))
        except (OSError, UserError) as error:
            yield path, str(error)


def _is_past(created: str) -> bool:
    try:
        return datetime.fromisoformat(created) <= datetime.now(UTC) + _CLOCK_SKEW
    except (ValueError, TypeError):  # no date, or one without a zone
        return False
