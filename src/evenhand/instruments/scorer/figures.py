"""The figures of an audit of a scorer, typed: what it was given, and what was found of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.findings.estimates import Coverage
from evenhand.metrics.scorer_intervals import Ends, IfKnown
from evenhand.metrics.scorer_quality import Bin


@dataclass(frozen=True, slots=True)
class Column:
    """What one scorer gave to the texts of one set, in their order: one of its attributes."""

    values: Sequence[float | None]
    reasons: Mapping[str, int] = field(default_factory=dict)  # why some are None


@dataclass(frozen=True, slots=True)
class Tricks:
    """Toxic texts as they are and with each trick, and harmless ones with emoji."""

    plain: Column
    tricked: Mapping[str, Column]
    emoji: Column


@dataclass(frozen=True, slots=True)
class GivenScores:
    """All that one scorer gave."""

    name: str
    described: Mapping[str, Any]
    attributes: Sequence[str]
    sets: Mapping[str, Column]
    tricks: Tricks | None
    texts_per_second: float

    def seen(self, name: str) -> str:
        """How much of a set it was trained on: "", "all", or "held_out": all but that fifth."""
        return str(self.described.get("trained_on", {}).get(name, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFit:
    """How well a scorer tells toxic from not in one set; None where the formula has no value."""

    set: str
    n: int
    toxic: int
    seen: str
    auc: float | None
    kappa: float | None
    clusters: int
    intervals: Mapping[str, Ends | None]  # of auc and kappa; None where there is none to print
    if_known: IfKnown | None  # the auc with texts that have no score; None where all have one


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far the scores are from Perspective's, as recorded in one set."""

    set: str
    n: int
    seen: str
    ece: float | None  # expected calibration error; None where no text has a score
    spearman: float | None
    curve: Sequence[Bin]
    clusters: int
    intervals: Mapping[str, Ends | None]  # of ece and spearman
    if_known: IfKnown | None  # the ece


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongShare:
    """The share of a set's texts that is judged wrongly: of all, of a kind, or about a group. Texts
    of one template may be alike. None where too few have a score to show it."""

    set: str
    by: Literal["all", "function", "group"]
    kind: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int
    if_known: IfKnown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tricked:
    """How much is still caught with one trick, of what is caught in plain writing; with Wilson's
    interval."""

    trick: str
    n: int
    plain: int
    caught: int  # of those that are caught in plain writing
    kept: float | None
    ends: Ends | None
    if_known: IfKnown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Emoji:
    """How many harmless texts with emoji were scored, how many of them called toxic, and how many
    have no score."""

    n: int
    flagged: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All that is known of one scorer, each part the worst first."""

    name: str
    described: Mapping[str, Any]
    attributes: Sequence[str]
    coverage: Coverage
    texts_per_second: float
    labels: Sequence[LabelFit]
    calibration: Sequence[Calibration]
    false_positives: Sequence[WrongShare]
    misses: Sequence[WrongShare]
    tricks: Sequence[Tricked]
    emoji: Emoji | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two scorers agree on the texts of a set that both scored."""

    first: str
    second: str
    set: str
    n: int
    spearman: float | None
    kappa: float | None
    intervals: Mapping[str, Ends | None]  # of spearman and kappa
