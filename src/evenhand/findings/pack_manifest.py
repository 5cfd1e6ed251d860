"""Evidence is the first page of a pack: what is in it, with the SHA-256 of each file, what it was
made from, and which pack came before."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import CorruptArchive
from evenhand.core.prices import BATCH_FACTOR, Price, Prices
from evenhand.findings.display import Displayable, Remark

EVIDENCE, SIGNATURE, PUBLIC_KEY = "evidence.json", "evidence.sig", "evidence.pub.pem"
FIGURES, PAGE, PRICES = "figures.json", "report.html", "prices.toml"
CERTIFICATES = "certificates/given"  # those of the folder that was named; audits bring their own
_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Stamp(Protocol):
    """What a file that leaves the house says of its making."""

    @property
    def title(self) -> str: ...
    @property
    def evenhand(self) -> str: ...  # the version that made it
    @property
    def newest_run(self) -> str: ...  # when the last of its runs was begun


class _ManifestPart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PackedFile(_ManifestPart):
    """A file of the pack."""

    sha256: _Sha
    bytes: int


class PackedRun(_ManifestPart):
    """A run that the pack was made from, whether its folder is in the pack or not."""

    run: Annotated[str, Field(pattern=r"^runs/[A-Za-z0-9_-][A-Za-z0-9_.-]*$")]  # within the pack
    model: str
    method: str
    created: str
    planned: int
    not_run: int
    sha256: dict[str, _Sha]  # of run.json, and of all committed answers
    left_out: list[str] = []  # other files in the run folder, which the pack does not hold


class PackedPrice(_ManifestPart):
    """What a million tokens of a model were said to cost."""

    per_million_prompt_tokens: float
    per_million_completion_tokens: float
    batch_factor: float = BATCH_FACTOR  # older packs, without batches, have none


class PackedPrices(_ManifestPart):
    """The prices by which the runs of a pack were paid."""

    currency: str
    models: dict[str, PackedPrice]

    @classmethod
    def of(cls, prices: Prices | None) -> "PackedPrices | None":
        """Give the form in which a pack keeps prices."""
        if prices is None:
            return None
        models = {name: PackedPrice(**asdict(price)) for name, price in prices.models.items()}
        return cls(currency=prices.currency, models=models)

    def prices(self) -> Prices:
        """Give the prices themselves."""
        by_model = {name: Price(**price.model_dump()) for name, price in self.models.items()}
        return Prices(by_model, self.currency)


class Previous(_ManifestPart):
    """The pack before this one, by the SHA-256 of its evidence.json."""

    title: str
    sha256: _Sha


class PackManifest(_ManifestPart):
    """What a pack says of itself. The clock has no part in it, so that the same runs give the same
    bytes: the date is left to its signer."""

    format: Literal[1] = 1
    title: str
    evenhand: str  # the version that made it, and that repeats its figures
    newest_run: str  # when the last of its runs was begun
    charts: str  # the versions of what drew the pictures of the page; empty where none are drawn
    light: bool  # the run folders are not in it
    signed: bool  # a signature belongs to it: taking it away is found
    certificates: bool  # a folder of certificates was given
    prices: PackedPrices | None
    frameworks: list[str]
    previous: Previous | None
    runs: list[PackedRun]
    unfinished: list[str]  # of the runs, those that had not come to their end
    figures: int  # numbers in figures.json
    says: list[str]  # what a reader must know before using it
    files: dict[str, PackedFile]

    def to_bytes(self) -> bytes:
        """Write the evidence, the same of the same."""
        return orjson.dumps(self.model_dump(), option=_OPTIONS) + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> "PackManifest":
        """Read evidence strictly: a byte that changes no value is refused too."""
        try:
            evidence = cls.model_validate(orjson.loads(data))
            same = evidence.to_bytes() == data
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, ValidationError):
            same = False
        if not same:
            raise CorruptArchive(f"{EVIDENCE} is not as this evenhand writes it")
        return evidence


_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS


# holds: looked at, and as it should be. differs: it is not. open: it could not be looked at.
State = Literal["holds", "differs", "not_checked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFinding:
    """One thing that was looked at in a pack, and what was seen."""

    name: str
    state: State
    says: Remark
    seen: tuple[Remark, ...] = ()  # each thing that differs, or could not be looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class PackCheck(Displayable):
    """A check of a pack holds all that was looked at; what could not be is never called intact."""

    pack: str
    title: str
    sha256: str  # of its evidence.json, which the next pack names
    looked: tuple[PackFinding, ...]

    @property
    def state(self) -> State:
        states = [check.state for check in self.looked]
        return (
            "differs"
            if "differs" in states
            else "not_checked"
            if "not_checked" in states
            else "holds"
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the check as plain data, for JSON."""
        return {
            "pack": self.pack,
            "title": self.title,
            "sha256": self.sha256,
            "state": self.state,
            "looked": self.looked,
        }
