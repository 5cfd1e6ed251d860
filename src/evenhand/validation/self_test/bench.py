"""The bench runs controls as a user runs a model: by `measure`, `compare` and `frontier`, with run
folders on the disk."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy  # its parts are loaded when first used

from evenhand.api import findings, measuring
from evenhand.findings.comparison import Comparison
from evenhand.findings.estimates import Estimate
from evenhand.findings.frontier import Frontier
from evenhand.findings.report import Report
from evenhand.instruments import DataFolder
from evenhand.validation.controls.model import ControlQuestions, control_model, remedy_named
from evenhand.validation.controls.policies import Control

_CHANCE_OF_A_FALSE_ALARM = 0.001  # our choice, for each number that is compared with chance
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class ControlClaim:
    """A claim is a sentence that is true if the instrument reads a control rightly."""

    says: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReading:
    """A reading says what was planted in a control, what was read, and which claims about that do
    not hold."""

    control: str
    planted: str
    read: str
    misread: tuple[str, ...]

    @property
    def good(self) -> bool:
        return not self.misread

    @classmethod
    def of(
        cls, control: str, planted: str, read: str, claims: Iterable[ControlClaim]
    ) -> "ControlReading":
        misread = tuple(claim.says for claim in claims if not claim.holds)
        return cls(control=control, planted=planted, read=read, misread=misread)


class Bench:
    """Runs controls in a folder. `replications` is how often a number that varies by chance is
    looked at."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int = 0,
        replications: int = 20,
        questions: ControlQuestions | None = None,
    ) -> None:
        self.replications = replications
        self.questions = questions or ControlQuestions()
        self.runs = 0
        self._folder = folder
        self._seed = seed

    async def measure(
        self,
        control: Control,
        draw: int | str = 0,
        *,
        questions: ControlQuestions | None = None,
        max_calls: int | None = None,
        **options: Any,
    ) -> Report:
        """Measure a control in a new run folder.

        Args:
            control: The control.
            draw: The seed of its answers; another one is another model of the same behavior.
            questions: The instrument; None for the one of this bench.
            max_calls: The cap of calls.
            **options: Options of the instrument.

        Returns:
            The report.
        """
        instrument = questions or self.questions
        settings = instrument.options_from(options)
        source = instrument.questions(_NO_DATA, settings)
        self.runs += 1
        return await measuring.measure(
            instrument,
            model=control_model(control, source, instrument.generated, f"{self._seed}:{draw}"),
            out=self._folder / f"{self.runs}",
            max_calls=max_calls,
            options=options,
        )

    async def several(self, control: Control, *, same_items: bool = False) -> list[Report]:
        """Measure a control as often as there are replications, on a block of each template; on
        other items each time, unless the same ones are asked for."""
        return [
            await self.measure(
                control,
                draw,
                sample_seed=0 if same_items else draw,
                per_category=self.questions.half,
            )
            for draw in range(self.replications)
        ]

    async def compare(self, before: Report, after: Report) -> Comparison:
        return await findings.compare(before, after)

    async def frontier(self, plain: Control, remedies: Mapping[str, Control]) -> Frontier:
        """Run the plain prompt, the references and the remedies: a control plays the model, and
        another one takes over where it is asked by a remedy."""
        instrument = self.questions
        options: dict[str, Any] = {"per_category": instrument.half}
        source = instrument.questions(_NO_DATA, instrument.options_from(options))
        self.runs += 1
        return await measuring.frontier(
            instrument,
            methods=[remedy_named(name) for name in remedies],
            calls=3,
            model=control_model(plain, source, instrument.generated, self._seed, remedies),
            out=self._folder / f"{self.runs}",
            options=options,
        )


_NO_DATA = DataFolder(local=None, cache=Path())  # the questions are generated


def holds(estimate: Estimate, truth: float) -> bool:
    """Say whether the interval of an estimate holds the truth. One without an interval must be the
    truth itself."""
    if estimate.value is None:
        return False
    if estimate.low is None or estimate.high is None:
        return math.isclose(estimate.value, truth, abs_tol=_EQUAL)
    return estimate.low - _EQUAL <= truth <= estimate.high + _EQUAL


def too_seldom(hits: int, of: int, chance: float) -> bool:
    """Say whether the number of hits is significantly low.

    Args:
        hits: The number of hits.
        of: The number of trials.
        chance: The chance of a hit in each trial.

    Returns:
        True if chance would give so few hits in fewer than one of 1,000 cases.
    """
    return _at_most(hits, of, chance) < _CHANCE_OF_A_FALSE_ALARM


def too_often(hits: int, of: int, chance: float) -> bool:
    """Say whether the number of hits is significantly high.

    Args:
        hits: The number of hits.
        of: The number of trials.
        chance: The highest acceptable chance of a hit in each trial.

    Returns:
        True if chance would give as many hits in fewer than one of 1,000 cases.
    """
    return 1 - _at_most(hits - 1, of, chance) < _CHANCE_OF_A_FALSE_ALARM


def _at_most(hits: int, of: int, chance: float) -> float:
    """The binomial probability of so many hits or fewer."""
    return float(scipy.special.bdtr(hits, of, chance)) if hits >= 0 else 0.0
