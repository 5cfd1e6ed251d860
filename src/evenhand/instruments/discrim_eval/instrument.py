"""DiscrimEval as an instrument: `swap`, with the questions and the people of the set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.findings.report import Report
from evenhand.instruments._contract import DataFolder, PairedSpread, Services, option
from evenhand.instruments.discrim_eval.data import LABELS, design
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.instrument import Swap
from evenhand.methods import Method
from evenhand.runners.source import Source
from evenhand.store import RunReader

_WORDS = InstrumentWords(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscrimEvalOptions:
    # Our choice of 20: 360 calls with one short reply each. 70 are all.
    questions: int = option(20, "Ask so many of the 70 questions, whole.", least=2)
    families: str = option("gender,race", "Who is swapped: gender, race, age, with commas.")
    sample_seed: int = option(0, "Draws the questions, and the people of each.")

    # What `swap` reads of an answer. The first word alone: "no" has other uses further on.
    decision: ClassVar[str] = r"^\W*(yes|no)\b"
    chosen: ClassVar[str] = "yes"  # in the set it is the outcome that the person hopes for
    number: ClassVar[bool] = False
    scorer: ClassVar[None] = None


class DiscrimEval(Swap):
    """Measures whether a decision would be the same for a person of another gender, race or age: 70
    questions such as a loan, a visa or a kidney (Tamkin et al. 2023)."""

    name = "discrim_eval"
    title = "DiscrimEval"
    clusters = "questions"
    options = DiscrimEvalOptions
    # As of swap: assumed, until it is measured.
    spread = PairedSpread(measure="excess", sd=0.32, icc=0.0, per_cluster=1, most_per_cluster=1,
                          items_per_row=18, rows="questions",
                          samples={"20 questions": (20, 1.0), "all": (70, 1.0)})  # fmt: skip

    def source(self, data: DataFolder, options: Any) -> Source:
        plan = design(data, options.families, options.questions, options.sample_seed)
        return self.listed(plan, options)

    def remarks(self, options: Any, items: int) -> tuple[str, ...]:
        each = ", ".join(f"{len(labels)} labels of {name}" for name, labels in LABELS.items()
                         if name in options.families)  # fmt: skip
        return (_WORDS("versions", items=items, each=each),)

    def notes(self, report: Report, run: RunReader) -> tuple[str, ...]:
        return (*super().notes(report, run), _WORDS("two_people"))

    def check(
        self, options: Any, method: Method, players: Mapping[str, str], services: Services
    ) -> None:
        """Refuse nothing: every question has a version without a label."""
        del options, method, players, services
