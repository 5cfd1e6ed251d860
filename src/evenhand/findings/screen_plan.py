"""A plan of a screen says what judging so many texts takes with it, beside judging all of them."""

import math
from dataclasses import dataclass
from typing import Any

from evenhand.core.errors import UserError
from evenhand.findings.display import Displayable
from evenhand.findings.plan import ItemPrice
from evenhand.findings.screen_file import ScreenFile
from evenhand.statistics.proportions import Proportion, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedShare:
    """The share of texts that will go to the judge, with a 95 % interval and what it rests on."""

    share: float
    low: float
    high: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenPlan(Displayable):
    """A plan of a screen holds the judge's calls, tokens and money for a share of the texts."""

    texts: int
    price: ItemPrice
    sent: JudgedShare

    def calls(self, share: float = 1.0) -> float:
        """The calls for this share of the texts; 1 is judging all."""
        return self.texts * share * self.price.calls

    def tokens(self, share: float = 1.0) -> float:
        """The tokens of these calls, in and out."""
        return self.calls(share) * self.price.tokens

    def money(self, share: float = 1.0) -> float | None:
        """The money for these tokens; None without a price."""
        price = self.price.per_million
        return None if price is None else self.tokens(share) / 1e6 * price

    def to_dict(self) -> dict[str, Any]:
        shares = {"all": 1.0, "screened": self.sent.share, "low": self.sent.low,
                  "high": self.sent.high}  # fmt: skip
        return {
            "texts": self.texts,
            "price": self.price,
            "sent": self.sent,
            **{
                name: {
                    "calls": self.calls(share),
                    "tokens": self.tokens(share),
                    "money": self.money(share),
                }
                for name, share in shares.items()
            },
        }


def screen_plan(
    file: ScreenFile, texts: int, price: ItemPrice, harmful: float | None
) -> ScreenPlan:
    """Plan the judging of so many texts. Without scores of traffic in the file, `harmful` has to
    say which share of the texts will be: labelled texts hold more of it than traffic does."""
    if harmful is not None:
        sent = _mixed(file, harmful)
    elif file.reference.of == "traffic":
        scores = [math.nan if score is None else score for score in file.reference.scores]
        judged = file.screen.routes(scores).count("judge")
        sent = _sent(wilson(judged, len(scores)), f"{len(scores):,} texts of traffic")
    else:
        raise UserError(
            "the screen was calibrated without --traffic, so that nobody knows how its texts will "
            "score: say which share of them is harmful, such as --harmful 0.01"
        )
    return ScreenPlan(texts=texts, price=price, sent=sent)


def _sent(proportion: Proportion, basis: str) -> JudgedShare:
    return JudgedShare(
        share=proportion.estimate, low=proportion.low, high=proportion.high, basis=basis
    )


def _mixed(file: ScreenFile, harmful: float) -> JudgedShare:
    """Mix the shares of harmful and of clean labelled texts; both ends of both intervals at once,
    so that it is rather too wide."""
    counts = {"harmful": file.labels.harmful, "clean": file.labels.clean}
    ends = []
    for name, count in counts.items():
        share = file.judged.get(name)
        if share is None:
            raise UserError(f"no labelled text is {name}, so that nothing is known of such texts")
        ends.append(wilson(round(share * count), count))
    bad, good = ends

    def mix(of_harmful: float, of_clean: float) -> float:
        return harmful * of_harmful + (1 - harmful) * of_clean

    return JudgedShare(
        share=mix(bad.estimate, good.estimate),
        low=mix(bad.low, good.low),
        high=mix(bad.high, good.high),
        basis=f"{bad.n:,} harmful and {good.n:,} clean labelled texts, {harmful:.2%} harmful",
    )
