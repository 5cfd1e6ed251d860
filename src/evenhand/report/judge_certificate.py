"""`judge-certificate.json`: what an audit found of a judge, and exactly which judge that was.

It holds for one model under one set of prompts, and for nothing else: another model string, another
wording or another version of the scenarios is another judge. Its checksum shows that bytes were
changed; it is no signature, and does not show by whom it was made.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import UserError

FILE = "judge-certificate.json"

# fail: shown to be outside of what the margin allows. underpowered: neither that nor the opposite
# is shown. measured: a number for which no margin was set.
State = Literal["pass", "fail", "underpowered", "not_measured", "measured"]
Overall = Literal["pass", "fail", "underpowered"]
_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Check(_Part):
    name: str
    state: State
    required: bool
    says: str  # in one line
    unit: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    margin: float | None = None
    details: dict[str, float | int | str | None] = {}


class Judge(_Part):
    model: str
    served_by: list[str]  # what the endpoint itself said that answered
    described: dict[str, Any]  # without the address: the same model elsewhere is the same judge


class Certificate(_Part):
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
    checks: list[Check]
    state: Overall
    sha256: str = ""

    def sealed(self) -> "Certificate":
        return self.model_copy(update={"sha256": self._digest()})

    def to_bytes(self) -> bytes:
        return _json(self.model_dump()) + b"\n"

    def _digest(self) -> str:
        return hashlib.sha256(_json(self.model_dump(exclude={"sha256"}))).hexdigest()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "Certificate":
        """Strictly: also a byte that changes no value, and a state that its checks do not give, is
        refused."""
        try:
            found = cls.model_validate(orjson.loads(data))
        except (orjson.JSONDecodeError, ValidationError):
            raise UserError(f"{where} is no certificate that this evenhand reads") from None
        intact = found.sha256 == found._digest() and found.to_bytes() == data
        if not intact or found.state != overall(found.checks):
            raise UserError(
                f"{where} does not match its checksum: it was changed after it was made; "
                "run `evenhand judge-check` again"
            )
        return found


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


def overall(checks: Sequence[Check]) -> Overall:
    """One failed check is enough to fail. A required one that is missing shows nothing."""
    if any(check.state == "fail" for check in checks):
        return "fail"
    unknown = ("underpowered", "not_measured")
    missing = not checks or any(check.required and check.state in unknown for check in checks)
    return "underpowered" if missing else "pass"


# -- finding the one for a judge -------------------------------------------------------------------


class Wanted(_Part):
    """The judge that a certificate is looked for."""

    model: str
    method: dict[str, Any]
    prompts: dict[str, str]  # those that this evenhand has
    version: str  # of the scenarios


class Found(_Part):
    """The newest certificate that fits, or why there is none."""

    path: Path | None = None
    certificate: Certificate | None = None
    problem: str = ""

    @property
    def passes(self) -> bool:
        return self.certificate is not None and self.certificate.state == "pass"

    @property
    def says(self) -> str:
        if self.certificate is None:
            return f"not certified: {self.problem}"
        bad = [c.name for c in self.certificate.checks if c.state == self.certificate.state]
        why = "" if self.passes else f" ({', '.join(bad)})"
        return f"certificate says {self.certificate.state}{why}, {self.path}"


def find(folder: Path | None, wanted: Wanted) -> Found:
    if folder is None:
        return Found(problem="the config names no folder of certificates")
    problems, fitting = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            certificate = Certificate.from_bytes(path.read_bytes(), str(path))
        except (OSError, UserError) as error:
            problems.append(str(error))
            continue
        reason = why_not(certificate, wanted)
        if reason is None:
            fitting.append((certificate.created, path, certificate))
        elif certificate.judge.model == wanted.model:
            problems.append(f"{path} {reason}")
    if fitting:
        _, path, certificate = max(fitting, key=lambda one: one[:2])
        return Found(path=path, certificate=certificate)
    none = f"{folder} has no certificate of the model {wanted.model!r}"
    return Found(problem="; ".join(problems) or none)


def why_not(certificate: Certificate, wanted: Wanted) -> str | None:
    """Why a certificate does not hold for a judge; None if it does."""
    if certificate.judge.model != wanted.model:
        return f"is for the model {certificate.judge.model!r}, not {wanted.model!r}"
    if certificate.method != wanted.method:
        return f"is for {_method(certificate.method)}, not {_method(wanted.method)}"
    for label, sha in certificate.prompts.items():
        if wanted.prompts.get(label) != sha:
            return f"was made with another wording of the prompt {label}"
    version = certificate.benchmark.get("version")
    if version != wanted.version:
        return f"was made with version {version} of the scenarios, not {wanted.version}"
    return None


def _method(method: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{k}={v}" for k, v in sorted(method["settings"].items()))
    return f"{method['name']} ({settings})"
