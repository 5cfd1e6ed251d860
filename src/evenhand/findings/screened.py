"""What a screen did in a run: what it decided, what went to the judge, and whether scores are still
as they were when it was calibrated."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenhand.findings.checksummed import ChecksummedPart
from evenhand.findings.display import Displayable
from evenhand.findings.estimates import Coverage
from evenhand.findings.scoring import value_named
from evenhand.findings.screen_file import CalibratedPromise, ScreenFile
from evenhand.runs.store import RunReader
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.screening import Drift, has_drifted

# Our choice: they are compared with 2,000 scores at most, so more new scores would add nothing.
_MOST_SCORES = 100_000
ENOUGH_POWER = 0.8  # our choice: as in every plan
_CLEAN, _HARMFUL, _JUDGED = "called_clean", "called_harmful", "judged"  # of `ScreenedRun.stopped`


class ScreenLook(ChecksummedPart):
    """A look is a comparison of the scores of a run, and of all runs since the calibration, with
    those of the calibration."""

    screen: str  # the checksum of the screen file
    run: str  # the checksum of the run's record
    number: int  # from 1: the level shrinks with each
    place: str
    created: str
    scores: int
    pooled: int  # scores of all looks since the calibration, with these
    places: list[int]  # so many scores at each place among the calibration's, as `_places` has them
    places_at_worst: list[int]  # with no score for the failed texts
    p_value: float  # with scores for the failed texts that fit the calibration
    p_at_worst: float  # with none for them
    level: float
    power: float  # the chance of having seen a promise that is broken, as `power_of` has it
    after: str = ""  # the checksum of the line before this one in the file of looks

    @property
    def drifted(self) -> bool:
        """Whether the scores are distributed otherwise than at calibration."""
        return self.p_value <= self.level

    @property
    def hidden(self) -> bool:
        """Whether the failed texts could hide that they are."""
        return not self.drifted and self.p_at_worst <= self.level

    @property
    def weak(self) -> bool:
        """Whether too few scores were seen to show a promise that is broken."""
        return not self.drifted and self.power < ENOUGH_POWER

    @property
    def open(self) -> bool:
        """Whether it is not known if the promise still holds."""
        return self.hidden or self.weak


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenCounts:
    """The counts of a run, and a sample of its scores; None is a text without one."""

    called_clean: int
    called_harmful: int
    judged_clean: int
    judged_harmful: int
    unscored: int  # of those with a verdict: no score of the scorer, so the judge was asked
    failed: dict[str, int]
    scores: list[float | None]  # of texts with a verdict
    unknown: int  # so many failed where `scores` were taken

    def coverage(self, texts: int) -> Coverage:
        """The texts with a verdict among all."""
        scored = texts - sum(self.failed.values())
        return Coverage(n=texts, scored=scored, by_reason=self.failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedRun(Displayable):
    """What a screen did in a run, and whether its promise still holds."""

    run: str
    file: str
    judge: str
    texts: int
    counted: ScreenCounts
    promises: tuple[CalibratedPromise, ...]
    look: ScreenLook | None  # none where too many texts have no verdict
    alarm: (
        ScreenLook | None
    )  # the first look at this screen that found a drift, of this run or before

    @property
    def promise_holds(self) -> bool | None:
        """Whether no look has found a drift; None where this run cannot say, or where nothing was
        promised."""
        if self.alarm is not None:
            return False
        promised = any(promise.asked_for and not promise.lacks for promise in self.promises)
        return None if not promised or self.look is None or self.look.open else True

    @property
    def judged(self) -> int:
        return self.counted.judged_clean + self.counted.judged_harmful

    @property
    def failed(self) -> int:
        return sum(self.counted.failed.values())

    @property
    def sent(self) -> float:
        """The share of the texts that went to the judge; one that failed was not decided by the
        screen either."""
        return (self.judged + self.failed) / self.texts if self.texts else math.nan

    @property
    def coverage(self) -> Coverage:
        return self.counted.coverage(self.texts)

    def to_dict(self) -> dict[str, Any]:
        counts = self.counted
        return {
            "run": self.run,
            "screen": self.file,
            "judge": self.judge,
            "texts": self.texts,
            "called_clean": counts.called_clean,
            "called_harmful": counts.called_harmful,
            "judged": self.judged,
            "judged_clean": counts.judged_clean,
            "judged_harmful": counts.judged_harmful,
            "without_a_score": counts.unscored,
            "failed": self.failed,
            "failed_by_reason": counts.failed,
            "coverage": self.coverage.coverage,
            "sent_to_the_judge": self.sent if self.texts else None,
            "promises": [promise.model_dump() for promise in self.promises],
            "drift": self.look
            and {
                **self.look.model_dump(exclude={"places", "places_at_worst"}),
                "drifted": self.look.drifted,
            },
            "promise_holds": self.promise_holds,
        }


def counted(run: RunReader) -> ScreenCounts:
    """Count what a finished run decided, while its results stream by. The score of a text that
    failed is not kept; that of one without a score is missing, and counts where scores are
    compared."""
    counts, failed, unscored = Counter[tuple[str, bool]](), Counter[str](), 0
    scores, every = list[float | None](), max(1, math.ceil(run.planned / _MOST_SCORES))
    unknown = 0
    for batch in run.result_batches(["position", "reason", "stopped", "scores_after"]):
        rows = batch.with_columns(
            score=value_named("scores_after", "screen"),
            harmful=value_named("scores_after", "harmful") > 0,
        )
        failed.update(rows["reason"].drop_nulls())
        verdicts = rows.filter(pl.col("reason").is_null())
        counts.update(zip(verdicts["stopped"], verdicts["harmful"], strict=True))
        unscored += verdicts["score"].null_count()
        taken = rows.filter(pl.col("position") % every == 0)
        scores += taken.filter(pl.col("reason").is_null())["score"].to_list()
        unknown += taken["reason"].count()
    return ScreenCounts(
        called_clean=counts[_CLEAN, False],
        called_harmful=counts[_HARMFUL, True],
        judged_clean=counts[_JUDGED, False],
        judged_harmful=counts[_JUDGED, True],
        unscored=unscored,
        failed=dict(sorted(failed.items())),
        scores=scores,
        unknown=unknown,
    )


def look_at(
    file: ScreenFile, counts: ScreenCounts, before: Sequence[ScreenLook], **about: str
) -> ScreenLook:
    """Compare the scores of a run, and of all earlier looks, with those of the calibration.

    A text that failed went to the judge, and its score is not kept. Two p-values cover this. The
    first gives these texts scores at even steps of the calibration's own that go to the judge, so
    that an unavailable judge is not a drift. The second gives them no score, so that failures do
    not hide a drift.

    Args:
        file: The calibrated screen.
        counts: The scores of the run, and how many texts have none.
        before: All earlier looks, the oldest first.
        **about: Further fields of the look, such as its run and time.
    """
    calibration = [score for score in file.reference.scores if score is not None]
    routes = zip(calibration, file.screen.routes(calibration), strict=True)
    sent = sorted(score for score, route in routes if route == "judge")
    filled = [sent[len(sent) * step // counts.unknown] if sent else None
              for step in range(counts.unknown)]  # fmt: skip
    now = _places(file, [*counts.scores, *filled])
    at_worst = _places(file, [*counts.scores, *[None] * counts.unknown])
    then = _numbers(file.reference.scores)
    looks = [*(look.places for look in before), now]
    at_worst_looks = [*(look.places_at_worst for look in before), at_worst]
    drift = has_drifted(then, [_scores_at(file, places) for places in looks])
    worst = has_drifted(then, [_scores_at(file, places) for places in at_worst_looks])
    return ScreenLook(screen=file.sha256, number=len(before) + 1, scores=drift.new,
                      pooled=drift.pooled,
                      places=now, places_at_worst=at_worst, p_value=drift.p_value,
                      p_at_worst=worst.p_value, level=drift.level, power=power_of(file, drift),
                      **about)  # fmt: skip


def power_of(file: ScreenFile, drift: Drift) -> float:
    """Give the chance of having seen a promise that is broken: our choice, that half of the texts
    which the screen did not call clean at calibration now score below its lower cut-off. It is 1
    where nothing is called clean."""
    if file.low is None:
        return 1.0
    routes = file.screen.routes(_numbers(file.reference.scores))
    remaining = len(routes) - routes.count("clean")
    return drift.power(remaining / len(routes) / 2) if routes else 0.0


def _numbers(scores: Sequence[float | None]) -> list[float]:
    return [math.nan if score is None else score for score in scores]


def _places(file: ScreenFile, scores: Sequence[float | None]) -> list[int]:
    """Count scores by their place among the calibration's: below the first, at it, between it and
    the next, at that, and so on; at the end those that are missing. The distance of two
    distributions depends on nothing else, so that no more is kept of a run."""
    calibration = _known(file)
    values = np.array([score for score in scores if score is not None], dtype=np.float64)
    at = np.searchsorted(calibration, values, "left") + np.searchsorted(
        calibration, values, "right"
    )
    counts = np.bincount(at, minlength=2 * calibration.size + 1).tolist()
    return [*counts, len(scores) - values.size]


def _scores_at(file: ScreenFile, counts: Sequence[int]) -> FloatArray:
    """Give scores at these places: the calibration's own, values between them, and NaN."""
    calibration = _known(file)
    ends = (
        np.concatenate([[calibration[0] - 1], calibration, [calibration[-1] + 1]])
        if calibration.size
        else np.zeros(2)
    )
    stand_for = np.empty(2 * calibration.size + 2)
    stand_for[:-1:2] = (ends[:-1] + ends[1:]) / 2
    stand_for[1:-1:2] = calibration
    stand_for[-1] = math.nan
    return np.repeat(stand_for, counts)


def _known(file: ScreenFile) -> FloatArray:
    return np.unique([score for score in file.reference.scores if score is not None])
