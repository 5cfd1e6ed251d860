"""Plan how many items, calls, tokens and how much money a comparison or an audit needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.designs import Designs, DesignTexts, Rates, designs
from evenhand.findings.plan import ItemPrice, Plan, RatioPlan, plan, ratio_plan
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.screen_file import read_screen
from evenhand.runs.store import RunReader

_JUDGE_TOKENS = 500.0  # our choice: a prompt of a judge with a text of a few paragraphs


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioQuestion:
    """Which ratio an audit of selection rates must be able to show."""

    groups: int | None = None
    rate: float | None = None
    ratio: float | None = None

    @property
    def is_empty(self) -> bool:
        return (self.groups, self.rate, self.ratio) == (None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignQuestion:
    """What is known of a user's texts and prices, for a table of cheaper designs."""

    texts: int | None = None
    screen: Path | None = None
    harmful: float | None = None
    correlation: float | None = None
    label_price: float | None = None
    judge_tokens: float | None = None
    calls_per_second: float | None = None

    def options(self) -> dict[str, float | Path | None]:
        """The settings that need a number of texts, by their option."""
        return {
            "--texts": self.texts,
            "--screen": self.screen,
            "--harmful": self.harmful,
            "--correlation": self.correlation,
            "--label-price": self.label_price,
            "--judge-tokens": self.judge_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Which change a comparison must be able to detect, and what a call costs."""

    detect: float | None = None
    power: float = 0.8
    family: int | None = None
    pilot: tuple[Sequence[str], Sequence[str]] | None = None  # the runs of both sides
    measure: str | None = None
    price: ItemPrice = field(default_factory=ItemPrice)
    ratios: RatioQuestion = field(default_factory=RatioQuestion)
    designs: bool = False
    texts: DesignQuestion = field(default_factory=DesignQuestion)


def planned(instrument: ScoringSpec, request: PlanRequest) -> Plan | RatioPlan | Designs:
    """Plan a paired comparison, an audit of ratios, or a table of cheaper designs. A setting that
    would change nothing is refused."""
    _refuse_idle(request)
    if not request.ratios.is_empty:
        return _of_ratios(instrument, request.ratios, request.power)
    result = plan(
        instrument,
        detect=request.detect,
        power=request.power,
        family=request.family,
        price=request.price,
        pilot=None if request.pilot is None else _compared(instrument, *request.pilot),
        measure=request.measure,
    )
    if not request.designs:
        return result
    texts, per_million = request.texts, request.price.paid_per_million
    tokens = _JUDGE_TOKENS if texts.judge_tokens is None else texts.judge_tokens
    rates = Rates(
        judge=ItemPrice(tokens=tokens, per_million=per_million),
        label_price=texts.label_price,
        calls_per_second=texts.calls_per_second,
    )
    return designs(result, rates, _texts(texts))


def _refuse_idle(request: PlanRequest) -> None:
    """Refuse a setting that would change nothing."""
    names = [name for name, value in request.texts.options().items() if value is not None]
    if not request.designs and (names or request.texts.calls_per_second is not None):
        raise UserError(
            f"{', '.join(names) or '--calls-per-second'}: only designs that are set side by side "
            "need it; add --designs"
        )
    if names and request.texts.texts is None:
        raise UserError(f"{', '.join(names)}: say how many texts there are, as --texts 10000")


def _texts(question: DesignQuestion) -> DesignTexts | None:
    if question.texts is None:
        return None
    screen = None if question.screen is None else read_screen(question.screen)
    return DesignTexts(
        count=question.texts,
        harmful=question.harmful,
        screen=screen,
        correlation=question.correlation,
    )


def _of_ratios(instrument: ScoringSpec, question: RatioQuestion, power: float) -> RatioPlan:
    if question.groups is None or question.ratio is None:
        raise UserError(
            "an audit of ratios is planned with --groups and --ratio: evenhand plan decisions "
            "--groups 14 --rate 0.3 --ratio 0.8"
        )
    return ratio_plan(
        instrument, groups=question.groups, ratio=question.ratio, rate=question.rate, power=power
    )


def _compared(instrument: ScoringSpec, before: Sequence[str], after: Sequence[str]) -> Comparison:
    if list(before) == list(after):
        raise UserError("--from needs two runs, one for each method to compare. Pass both.")
    return compare(instrument, [*map(RunReader, before)], [*map(RunReader, after)])
