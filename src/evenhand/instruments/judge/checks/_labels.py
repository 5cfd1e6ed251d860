"""One answer for a family of labels: it is as good as the worst of them."""

from collections.abc import Sequence

from evenhand.findings.check import Check
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
        sizes = [(e.verdict == SHIFTED, abs(e.estimate), e) for e in effects
                 if e.estimate is not None]  # fmt: skip
        if not sizes:
            return self.not_measured("no label was compared")
        *_, worst = max(sizes, key=lambda one: one[:2])
        state = STATES[of_family([e.verdict for e in effects])]
        fewest = min(e.bases for e in effects)
        said = {
            "fail": f"{worst.label} moves it by {worst.estimate:+.3f}",
            "pass": f"every label is shown to move it by less than {margin:g}",
            "underpowered": f"at most {worst.estimate:+.3f} ({worst.label}), which is neither "
            f"shown to differ from 0 nor to be less than {margin:g}",
        }
        return self.found(
            enough(state, fewest),
            said[state] if fewest >= FEWEST_BASES else too_few(fewest),
            value=worst.estimate,
            low=worst.low,
            high=worst.high,
            n=fewest,
            clusters=worst.bases,
            margin=margin,
            undefined=worst.undefined,
            details={e.label: e.estimate for e in effects},
        )
