"""A certificate: what an audit found of a judge, and exactly which judge that was, in one file.

It holds for one model under one set of prompts, and for nothing else: another model string, another
wording or another version of the scenarios is another judge. Its checksum shows that bytes were
changed; it is no signature, and does not show by whom it was made.
"""

from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from evenhand.errors import UserError
from evenhand.findings.check import Check, Overall, State, overall
from evenhand.findings.found import NO_SPREAD
from evenhand.findings.sealed import Part, Sealed

_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


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
        """Read a certificate strictly: also a byte that changes no value, and a state that its
        checks do not give, is refused."""
        try:
            found = cls.model_validate(orjson.loads(data))
        except (orjson.JSONDecodeError, ValidationError):
            raise UserError(
                f"{where} is no certificate that this evenhand reads; "
                "`evenhand judge-check` makes one"
            ) from None
        if not found.is_intact(data) or found.state != overall(found.checks):
            raise UserError(
                f"{where} does not match its checksum: it was changed after it was made; "
                "run `evenhand judge-check` again"
            )
        return found
