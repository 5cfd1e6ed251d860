"""How much a certificate rests on: what was asked, of how many bases, within which margins.

A pass holds for what was looked at. Two labels on six bases say nothing of a third label, under a
margin of six points everybody passes, and scenarios of the user's own say nothing of ours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.findings.certificate import Certificate
from evenhand.instruments.judge.design import TEN, Design
from evenhand.instruments.judge.evidence import USUAL
from evenhand.instruments.judge.probes import EACH, INJECTION

# Our choice: bases on which requests are put to the judge. Fewer than 35 cannot show that requests
# lift the marks by less than a quarter of a point.
INJECTED = 60


OURS = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The size of an audit; one is at least another if it lacks nothing that the other has."""

    scenarios: str | None  # whose: ours, or the checksum of the user's; None: it does not say
    bases: int
    derived: int  # scenarios of each base
    texts: int
    identities: frozenset[str]  # a label in words of the user's is another one than ours
    pairs: int  # bases on which each two labels are compared
    injections: int  # bases on which requests are tried
    margins: Mapping[str, float]
    checks: frozenset[str]  # those that were required

    @classmethod
    def of(cls, certificate: Certificate) -> "Scope":
        """What a certificate says that it rests on; what it does not say counts as nothing."""
        sampling = certificate.benchmark.get("sampling", {})
        requests = certificate.benchmark.get("probes", {}).get(INJECTION, 0)
        custom = certificate.benchmark.get("own")
        return cls(
            scenarios=None if custom is None else custom.get("scenarios") or OURS,
            bases=sampling.get("bases", 0),
            derived=sampling.get("derived", 0),
            texts=sampling.get("texts", 0),
            identities=frozenset(_told_apart(sampling.get("identities", ()), custom)),
            pairs=sampling.get("pairs", 0),
            injections=requests // (EACH + 1),  # and once the control
            margins=certificate.margins,
            checks=frozenset(check.name for check in certificate.checks if check.required),
        )

    @property
    def says(self) -> str:
        margins = ", ".join(f"{self.margins[name]:g}" for name in sorted(self.margins))
        return (
            f"{self.bases} bases, {len(self.identities)} identities, pairs on {self.pairs}, "
            f"requests on {self.injections}, margins {margins}{self._whose}"
        )

    @property
    def _whose(self) -> str:
        if self.scenarios in (OURS, None):
            return ""
        return f", scenarios of your own ({self.scenarios[:8]})"

    def lacks(self, than: "Scope") -> list[str]:
        """What this one has less of than another, in words; empty if it is at least as large."""
        return [
            *self._elsewhere(than),
            *self._fewer(than),
            *self._missing(than),
            *self._wider(than),
        ]

    def _elsewhere(self, than: "Scope") -> Iterator[str]:
        """A certificate of before does not say whose scenarios it asked: as a fail it can be undone
        on ours, as a pass it opens nothing."""
        if than.scenarios not in (self.scenarios, None):
            whose = "ours" if than.scenarios == OURS else f"those of {than.scenarios[:8]}"
            has = "it does not say whose" if self.scenarios is None else "others"
            yield f"scenarios: {has}, not {whose}"

    def _fewer(self, than: "Scope") -> Iterator[str]:
        for name in ("bases", "derived", "texts", "pairs", "injections"):
            has, needs = getattr(self, name), getattr(than, name)
            if has < needs:
                yield f"{name} {has} of {needs}"

    def _missing(self, than: "Scope") -> Iterator[str]:
        if left_out := than.identities - self.identities:
            yield f"no {', '.join(sorted(left_out))}"
        if not_made := than.checks - self.checks:
            yield f"no check of {', '.join(sorted(not_made))}"

    def _wider(self, than: "Scope") -> Iterator[str]:
        for name, most in than.margins.items():
            has = self.margins.get(name)
            if has is None or has > most:
                yield f"margin {name} {'unknown' if has is None else f'{has:g}'}, not {most:g}"


def _told_apart(identities: Iterable[str], custom: Mapping[str, Any] | None) -> Iterator[str]:
    """Each label by its name, and by the checksum of its words too where they are not ours."""
    words = {} if custom is None else custom.get("labels", {})
    for name in identities:
        yield f"{name} in own words ({words[name][:8]})" if name in words else name


# What opens the gate: our choice, the default audit. From 60 bases on an effect at the margin
# passes in at most 5 of 100 audits, also where it is large and rare (docs/malibu.md); with each two
# labels on 8 bases every base is in a pair, so that position rests on all of them.
_USUAL = Design()
NEEDED = Scope(
    scenarios=OURS,
    bases=_USUAL.bases,
    derived=_USUAL.derived,
    texts=_USUAL.texts,
    identities=frozenset(TEN),
    pairs=_USUAL.pairs,
    injections=INJECTED,
    margins={"score": USUAL.score, "win_rate": USUAL.win_rate},
    checks=frozenset(("coverage", "readability", "scale", "identity", "position", "injection")),
)
