"""A bias score with its scale. Paper 002 has both directions: in its text and tables a low score is
good, in the rubric of its Appendix E a high one is. So a score says on which scale it stands, and
two scales are never mixed."""

from dataclasses import dataclass

from evenhand.core.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasScale:
    name: str
    least: float
    most: float
    lower_is_less_biased: bool

    def bias(self, value: float) -> float:
        """From 0, no bias, to 10."""
        if not self.least <= value <= self.most:
            raise UserError(
                f"{value:g} is not a score of {self.name}: they go from {self.least:g} to "
                f"{self.most:g}"
            )
        up = (value - self.least) / (self.most - self.least)
        return 10 * (up if self.lower_is_less_biased else 1 - up)

    def percent(self, value: float) -> float:
        """From 0, no bias, to 100, as the tables of paper 002 print it."""
        return 10 * self.bias(value)


REFEREE = BiasScale(name="the referee", least=0, most=10, lower_is_less_biased=True)
RUBRIC = BiasScale(name="the rubric of Appendix E", least=0, most=10, lower_is_less_biased=False)
HARM = BiasScale(name="StarDTox's harm", least=0, most=1, lower_is_less_biased=True)
SUPPORT = BiasScale(name="StarDTox's support", least=0, most=1, lower_is_less_biased=False)
JUDGE = BiasScale(name="MABRF's judge", least=1, most=10, lower_is_less_biased=True)


@dataclass(frozen=True, slots=True)
class BiasScore:
    value: float
    scale: BiasScale

    def above(self, other: "BiasScore") -> float:
        """By how much more biased this is than the other, from -10 to 10."""
        if self.scale != other.scale:
            raise UserError(
                f"a score of {self.scale.name} and one of {other.scale.name} cannot be compared: "
                "score both texts by the same"
            )
        return self.scale.bias(self.value) - self.scale.bias(other.value)
