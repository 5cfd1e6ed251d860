"""A check of a pack says whether it is what it was: its files, its runs, its figures, and who
signed it."""

from dataclasses import dataclass
from typing import Any, Literal

from evenhand.findings.display import Displayable
from evenhand.findings.remarks import Remark

# holds: looked at, and as it should be. differs: it is not. open: it could not be looked at.
State = Literal["holds", "differs", "open"]


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
        return "differs" if "differs" in states else "open" if "open" in states else "holds"

    def to_dict(self) -> dict[str, Any]:
        """Give the check as plain data, for JSON."""
        return {
            "pack": self.pack,
            "title": self.title,
            "sha256": self.sha256,
            "state": self.state,
            "looked": self.looked,
        }
