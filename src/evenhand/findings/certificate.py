"""A certificate: what an audit found of a judge, and exactly which judge that was, in one file.

It holds for one model under one set of prompts, and for nothing else: another model string, another
wording or another version of the scenarios is another judge. Its checksum shows that bytes were
changed; it is no signature, and does not show by whom it was made.

Every certificate, of a judge or of a harm, is read here and by the same rules.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from evenhand.errors import UserError
from evenhand.findings.audit import Check, Overall, State, overall
from evenhand.findings.checksummed import Part, Sealed
from evenhand.findings.estimates import NO_SPREAD

_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_CLOCK_SKEW = timedelta(hours=1)  # our choice: how far the clock of another machine may be ahead


class CertifiedCheck(Part):
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
    details: dict[str, float | int | str | None] = Field(default_factory=dict)

    @classmethod
    def of(cls, check: Check) -> "CertifiedCheck":
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
            details=dict(check.details),
        )


class Judge(Part):
    """The judge that a certificate is of."""

    model: str
    served_by: list[str]  # what the endpoint itself said that answered
    described: dict[str, Any]  # without the address: the same model elsewhere is the same judge


class Certificate(Sealed):
    """The outcome of an audit, tied to its judge and sealed by a checksum."""

    format: Literal[1] = 1
    judge: Judge
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
    def from_bytes(cls, data: bytes, where: str) -> "Certificate":
        """Read a certificate strictly: also a byte that changes no value, a state that its checks
        do not give, and a date in the future are refused. The newest certificate decides, and one
        from the future would decide for ever."""
        try:
            certificate = cls.model_validate(orjson.loads(data))
        except (orjson.JSONDecodeError, ValidationError):
            raise UserError(
                f"{where} is no certificate that this evenhand reads; "
                "`evenhand judge-check` makes one"
            ) from None
        if not certificate.is_intact(data) or certificate.state != overall(certificate.checks):
            raise UserError(
                f"{where} does not match its checksum: it was changed after it was made; "
                "run `evenhand judge-check` again"
            )
        if not _is_past(certificate.created):
            raise UserError(
                f"{where} is dated {certificate.created[:40]!r}, which is not in the past"
            )
        return certificate


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
                raise UserError(f"{path} is no file")
            yield path, Certificate.from_bytes(path.read_bytes(), str(path))
        except (OSError, UserError) as error:
            yield path, str(error)


def _is_past(created: str) -> bool:
    try:
        return datetime.fromisoformat(created) <= datetime.now(UTC) + _CLOCK_SKEW
    except (ValueError, TypeError):  # no date, or one without a zone
        return False
