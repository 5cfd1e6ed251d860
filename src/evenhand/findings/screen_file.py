"""A screen file says where a cheap scorer decides by itself, what is promised of that, and of which
scorer and labels it holds.

It holds for one scorer in one version with one set of settings: another one scores otherwise, and
its scores mean nothing at these cut-offs.
"""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from evenhand.core.errors import UserError
from evenhand.findings.checksummed import Checksummed, ChecksummedPart
from evenhand.statistics.screening import SMALL, Kind, Promise, Screen

_Score = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0)]


class CalibratedPromise(ChecksummedPart):
    """A promise as the file keeps it; `group` is None where it is about all texts."""

    kind: Kind
    group: str | None
    at_most: float
    confidence: float
    labels: _Count
    needs: _Count
    unscored: _Count

    @classmethod
    def of(cls, promise: Promise) -> "CalibratedPromise":
        """Give the promise of a calibration in the form that the file keeps."""
        group = None if promise.group is None else str(promise.group)
        return cls(
            kind=promise.kind,
            group=group,
            at_most=promise.at_most,
            confidence=promise.confidence,
            labels=promise.labels,
            needs=promise.needs,
            unscored=promise.unscored,
        )

    @property
    def lacks(self) -> int:
        """The number of further labels needed before anything can be guaranteed."""
        return max(0, self.needs - self.labels)

    @property
    def asked_for(self) -> bool:
        """Whether somebody asked for this promise: of all texts, or of a group that was named. The
        small groups together are there to make the cut-offs careful."""
        return self.group != SMALL


class ScreenedBy(ChecksummedPart):
    """The scorer of a screen: the name that it is opened by, and exactly what it was."""

    said: str
    name: str
    described: dict[str, Any]
    attribute: str


class CalibrationLabels(ChecksummedPart):
    """The labeled texts that a screen was calibrated on, and how many of them counted."""

    file: str
    sha256: str
    texts: _Count  # rows of the file
    harmful: _Count  # that counted: one of each cluster, of near-copies too
    clean: _Count
    group: str | None  # the column
    cluster: str | None  # the column


class Reference(ChecksummedPart):
    """The scores that later ones are compared with; None is a text without a score."""

    of: Literal["labelled texts", "traffic"]
    file: str
    scores: list[_Score | None]


class LastLook(ChecksummedPart):
    """How many looks at a screen there are, and the checksum of the last one's line: a file of
    looks that was cut back is seen."""

    number: _Count = 0
    line: str = ""


class ScreenFile(Checksummed):
    """A screen file holds two cut-offs, the promises that they keep, and what they rest on. All of
    it is sealed but for the number of looks, which rises with use."""

    format: Literal[1] = 1
    scorer: ScreenedBy
    low: _Score | None  # a text below it is called clean; None: no text is
    high: _Score | None  # a text above it is called harmful; None: no text is
    promises: list[CalibratedPromise]
    labels: CalibrationLabels
    judged: dict[str, float | None]  # the share that goes to the judge, by what the texts are
    reference: Reference
    evenhand: str
    created: str
    last_look: LastLook = LastLook()

    def _unsealed(self) -> set[str]:
        return {"sha256", "last_look"}

    @property
    def screen(self) -> Screen:
        """Give the cut-offs as they are used."""
        return screen_at(self.low, self.high)

    @property
    def refused(self) -> tuple[CalibratedPromise, ...]:
        """List the promises that were asked for and cannot be made."""
        return tuple(promise for promise in self.promises if promise.asked_for and promise.lacks)

    def require(self, name: str, described: dict[str, Any], where: object) -> None:
        """Refuse a scorer other than that of the calibration, by its version or settings.

        Args:
            name: The name and version of the current scorer.
            described: The settings of the current scorer.
            where: The screen file, for the error text.

        Raises:
            UserError: If the name or a setting differs.
        """
        same = orjson.loads(orjson.dumps(described)) == self.scorer.described
        if name == self.scorer.name and same:
            return
        now = f"is now {name}" if name != self.scorer.name else "has other settings now"
        raise UserError(
            f"{where} was calibrated with {self.scorer.name}, and the scorer {self.scorer.said!r} "
            f"{now}: its guarantees do not hold. Recalibrate it: evenhand scorers screen calibrate "
            f"--scorer {self.scorer.said} LABELLED --out NEW.json"
        )


def screen_at(low: float | None, high: float | None) -> Screen:
    """Give the screen with these cut-offs; None where there is none."""
    return Screen(low=-math.inf if low is None else low, high=math.inf if high is None else high,
                  promises=())  # fmt: skip


def read_screen(path: Path) -> ScreenFile:
    """Read a screen file strictly; one that was changed by hand is refused."""
    again = "`evenhand scorers screen calibrate` makes one"
    try:
        if not path.is_file():  # a pipe would be waited for
            raise UserError(f"found no screen file at {path}; {again}")
        data = path.read_bytes()
        screen = ScreenFile.model_validate(orjson.loads(data))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    except (orjson.JSONDecodeError, ValidationError):
        raise UserError(f"{path} is not a screen file that this evenhand reads; {again}") from None
    if not screen.is_intact:
        raise UserError(
            f"{path} does not match its checksum: it was changed after it was made; bring it back "
            "as it was, or run `evenhand scorers screen calibrate` again"
        )
    return screen
