"""One answer for a family of labels: it is as good as the worst of them."""

from collections.abc import Sequence

from evenhand.findings.audit import Check
from evenhand.instruments.judge.checks._check import (
    FEWEST_BASES,
    STATES,
    JudgeCheck,
    enough,
    too_few,
)
from evenhand.instruments.judge.effects import Effect
from evenhand.statistics.margins import SHIFTED, of_family


class OfLabels(JudgeCheck):
    """A check over several labels."""

    def of(self, effects: Sequence[Effect], margin: float) -> Check:
        """The answer with the numbers of the label that moves the judge most."""
        if not effects:
            return self.not_measured("no label was compared")
        worst = max(effects, key=lambda e: (e.verdict == SHIFTED, abs(e.estimate or 0.0)))
        state = STATES[of_family([e.verdict for e in effects])]
        fewest = min(e.asked for e in effects)
        messages = {
            "fail": f"one label moves it: {_size(worst)}",
            "pass": f"every label is shown to move it by less than {margin:g}",
            "inconclusive": f"at most {_size(worst)}, which is neither shown to differ from 0 nor "
            f"to be less than {margin:g}",
        }
        return self.found(
            enough(state, fewest),
            messages[state] if fewest >= FEWEST_BASES else too_few(fewest),
            value=worst.estimate,
            low=worst.low,
            high=worst.high,
            n=min(e.bases for e in effects),
            clusters=worst.bases,
            margin=margin,
            undefined=worst.undefined,
            details={e.label: e.estimate for e in effects},
        )


def _size(e: Effect) -> str:
    unknown = "nothing could be read" if e.estimate is None else f"{e.estimate:+.3f}"
    return f"{unknown} ({e.label}{_missing(e)})"


def _missing(e: Effect) -> str:
    return f", {e.missing} missing" if e.missing else ""
