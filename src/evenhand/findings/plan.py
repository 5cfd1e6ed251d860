"""A plan says how large a comparison must be to show a change that matters, before anything is
spent."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from evenhand.core.errors import UserError, choices_for
from evenhand.core.prices import BATCH_FACTOR
from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import ALPHA, in_unit
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.estimates import NO_SPREAD
from evenhand.findings.measures import PairedSpread
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.screen_file import ScreenFile
from evenhand.statistics._shared import fewest
from evenhand.statistics.planning import design_effect, detectable_change, items_needed, rounded_up
from evenhand.statistics.proportions import Proportion, wilson
from evenhand.statistics.selection import people_needed
from evenhand.statistics.sign_flips import least_p


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotSpread:
    """A pilot's spread says how much a paired change varied between two of the user's runs."""

    measure: str
    runs: tuple[str, str]
    items: int
    rows: int  # that the measure is about
    clusters: int
    se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPrice:
    """A price says what an item costs: calls, tokens of a call, and money for a million tokens."""

    calls: float = 1.0
    tokens: float = 220.0
    per_million: float | None = None
    batched: bool = False  # asked in batches, at their part of the price

    @property
    def paid_per_million(self) -> float | None:
        """The money for a million tokens, as they are asked."""
        if self.per_million is None:
            return None
        return self.per_million * (BATCH_FACTOR if self.batched else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Displayable):
    """A plan says how many items, calls and tokens two runs need to show a change, and how much
    money.

    The numbers are None where even all the data could not show it; `too_small` then says why.
    """

    instrument: ScoringSpec
    measure: str
    detect: float
    power: float
    family: int  # of so many changes that are looked at at once, corrected by Holm
    rows: int | None  # that the measure is about
    items: int | None
    clusters: int | None  # that the items must come from; None where the default sample has them
    price: ItemPrice
    assumed: PairedSpread | PilotSpread
    what_samples_can_show: Mapping[str, float]
    too_small: Remark | None = None

    @property
    def calls(self) -> float | None:
        """The calls of both runs."""
        return None if self.items is None else 2 * self.items * self.price.calls

    @property
    def tokens(self) -> float | None:
        """The tokens of both runs."""
        return None if self.calls is None else self.calls * self.price.tokens

    @property
    def money(self) -> float | None:
        """The money for both runs; None without a price."""
        if self.tokens is None or self.price.paid_per_million is None:
            return None
        return self.tokens / 1e6 * self.price.paid_per_million

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.instrument.name,
            "measure": self.measure,
            "detect": self.detect,
            "power": self.power,
            "family": self.family,
            "rows": self.rows,
            "items": self.items,
            "clusters": self.clusters,
            "runs": 2,
            "calls": self.calls,
            "tokens": self.tokens,
            "money": self.money,
            "too_small": self.too_small,
            "assumed": asdict(self.assumed),
            "what_samples_can_show": self.what_samples_can_show,
        }


def plan(
    instrument: ScoringSpec,
    *,
    detect: float | None = None,
    power: float = 0.8,
    price: ItemPrice | None = None,
    family: int | None = None,
    pilot: Comparison | None = None,
    measure: str | None = None,
) -> Plan:
    """Plan a paired comparison. The variance is what the benchmark declares, or that of two pilot
    runs.

    Args:
        instrument: The benchmark.
        detect: The smallest change to detect, in the unit of the metric. Defaults to the smallest
            effect of interest that the benchmark declares.
        power: The chance of detecting that change.
        price: What an item costs. Defaults to one call of 220 tokens, without an amount of money.
        family: How many changes will be tested at once. Defaults to the number that `compare`
            tests.
        pilot: The comparison of two pilot runs; None to use the declared variance.
        measure: The metric to plan for. Defaults to the one whose variance is known.

    Raises:
        UserError: If the variance of the metric has not been measured, or the pilot does not show
            it.
    """
    aim = PowerTarget(power, max(1, len(instrument.primary())) if family is None else family)
    price = price or ItemPrice()
    if pilot is not None:
        instrument = pilot.instrument  # with the measures of the groups that the runs have
        spread = pilot_spread(instrument, pilot, measure)
        target = _wanted(instrument, spread.measure, detect)
        return _from_pilot(instrument, target, aim, price, spread)
    declared = instrument.spread
    if declared is None or measure not in (None, declared.measure):
        raise UserError(
            f"how much {measure or 'a change'} varies on {instrument.name} has not been measured: "
            f"make two small runs and say `evenhand plan {instrument.name} --from RUN_A RUN_B`"
        )
    target = _wanted(instrument, declared.measure, detect)
    rows = _rows_needed(declared, instrument.all_clusters, target, aim)
    return Plan(
        instrument=instrument,
        measure=declared.measure,
        detect=target,
        power=aim.power,
        family=aim.family,
        rows=rows,
        items=None if rows is None else declared.items_per_row * rows,
        clusters=None,
        price=price,
        assumed=declared,
        what_samples_can_show={
            name: _shown_by(n, shared, declared, aim)
            for name, (n, shared) in declared.samples.items()
        },
        too_small=None
        if rows
        else Remark("plan.instrument_too_small", instrument=instrument.title),
    )


def detectable(instrument: ScoringSpec, items: int, power: float = 0.8) -> float | None:
    """Give the smallest change that two runs over so many items show, by the spread that the
    instrument declares.

    Args:
        instrument: One that has measured its spread; of another it is None.
        items: Those that are asked in each run.
        power: The chance with which the change is shown.
    """
    spread = instrument.spread
    if spread is None:
        return None
    aim = PowerTarget(power, max(1, len(instrument.primary())))
    rows = items // spread.items_per_row
    return _shown_by(rows, spread.per_cluster, spread, aim) if rows else math.inf


class PowerTarget(NamedTuple):
    """The aim of a plan: with what chance a change is to be shown, after Holm over how many."""

    power: float
    family: int

    def shown(self, se: float, clusters: float) -> float:
        """The smallest change that is shown so; none at all is by so few clusters that sign flips
        could not show it either."""
        if clusters < 2 or least_p(math.floor(clusters)) > ALPHA / self.family:
            return math.inf
        return detectable_change(se, clusters - 1, family=self.family, power=self.power)


def _shown_by(rows: int, per_cluster: float, spread: PairedSpread, aim: PowerTarget) -> float:
    """The smallest change that so many rows would show, `per_cluster` of each cluster."""
    se = spread.sd * math.sqrt(design_effect(per_cluster, spread.icc) / rows)
    return aim.shown(se, rows / per_cluster)


def _wanted(instrument: ScoringSpec, name: str, detect: float | None) -> float:
    if detect is None:
        return in_unit(instrument.matters, instrument.measure(name))
    if not 0 < detect < math.inf:
        raise UserError(f"--detect {detect}: a change that can be seen is above 0")
    return detect


def _rows_needed(
    spread: PairedSpread, all_clusters: int | None, detect: float, aim: PowerTarget
) -> int | None:
    """In the default sample, or, with every cluster in use, with more rows of each: these are more
    alike. None if all there are could not show it."""
    each = spread.per_cluster
    alpha = ALPHA / aim.family
    rows = rounded_up(items_needed(detect, spread.sd, each, spread.icc, alpha, aim.power))
    while _shown_by(rows, each, spread, aim) > detect:  # t takes a few more than the normal
        rows += 1
    if all_clusters is None or rows <= all_clusters * each:
        return rows
    for more in range(each, spread.most_per_cluster + 1):
        if _shown_by(more * all_clusters, more, spread, aim) <= detect:
            return more * all_clusters
    return None


def pilot_spread(instrument: ScoringSpec, pilot: Comparison, measure: str | None) -> PilotSpread:
    """Read how much a metric varies from the comparison of two pilot runs.

    Args:
        instrument: The benchmark of the pilot.
        pilot: The comparison of the two runs.
        measure: The metric; None for the one that the benchmark declares.

    Raises:
        UserError: If the benchmark has no such metric, or the pilot shows no variance.
    """
    declared = instrument.spread.measure if instrument.spread else None
    name = measure or declared or instrument.harm or instrument.primary()[0].name
    names = [m.name for m in instrument.measures]
    if name not in names:
        raise UserError(f"{instrument.name} has no measure {name!r}. {choices_for(name, names)}")
    change = pilot[name]
    if not change.se:
        alike = f"all {change.clusters} clusters changed alike"
        reason = alike if change.undefined == NO_SPREAD else change.undefined
        raise UserError(
            f"these two runs do not show how much {name} varies ({reason}): make a larger pilot, "
            "or one of two methods that answer differently"
        )
    return PilotSpread(
        measure=name,
        runs=(pilot.before.run, pilot.after.run),
        items=pilot.items,
        rows=change.n,
        clusters=change.clusters,
        se=change.se,
    )


def _from_pilot(
    instrument: ScoringSpec, detect: float, aim: PowerTarget, price: ItemPrice, spread: PilotSpread
) -> Plan:
    """n grows with (standard error / wanted one)²: as many rows to a cluster as in the pilot."""
    clusters, most = clusters_needed(spread, detect, aim), instrument.all_clusters
    times = clusters / spread.clusters
    enough = most is None or clusters <= most
    too_small = Remark(
        "plan.too_few_clusters",
        clusters=clusters,
        unit=instrument.clusters,
        there_are=most,
        more_rows=None if instrument.spread is None else instrument.name,
    )
    return Plan(
        instrument=instrument,
        measure=spread.measure,
        detect=detect,
        power=aim.power,
        family=aim.family,
        rows=rounded_up(spread.rows * times) if enough else None,
        items=rounded_up(spread.items * times) if enough else None,
        clusters=clusters if enough else None,
        price=price,
        assumed=spread,
        what_samples_can_show={"the pilot": aim.shown(spread.se, spread.clusters)},
        too_small=None if enough else too_small,
    )


def clusters_needed(spread: PilotSpread, detect: float, aim: PowerTarget) -> int:
    """Return the fewest clusters that detect a change, if they vary as those of the pilot do. Fewer
    clusters vary more, and have a t with longer tails.

    Args:
        spread: The variance that the pilot showed.
        detect: The change to detect, in the unit of the metric.
        aim: The power, and the number of simultaneous tests.
    """

    def shows(clusters: int) -> bool:
        se = spread.se * math.sqrt(spread.clusters / clusters)
        return aim.shown(se, clusters) <= detect * (1 + 1e-9)

    clusters = fewest(shows)
    assert clusters is not None
    return clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioPlan(Displayable):
    """A plan of ratios says how many people of each group, or how many rankings, show a true ratio
    with the wanted chance."""

    instrument: ScoringSpec
    groups: int
    ratio: float
    rate: float | None  # of the other groups; None where one of several wins
    power: float
    each: int  # people in each group, or rankings with one candidate of each

    @property
    def people(self) -> int:
        """The people of all groups, or the rankings."""
        return self.each if self.rate is None else self.groups * self.each

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.instrument.name,
            "groups": self.groups,
            "ratio": self.ratio,
            "rate": self.rate,
            "power": self.power,
            "in_each_group": self.each,
            "in_all": self.people,
        }


def ratio_plan(
    instrument: ScoringSpec, *, groups: int, ratio: float, rate: float | None, power: float = 0.8
) -> RatioPlan:
    """Plan an audit of selection rates for groups of equal size, of which one has a lower rate.

    Args:
        instrument: The audit, which must compute impact ratios.
        groups: The number of groups.
        ratio: The impact ratio to detect: the rate of that group divided by the rate of the others.
        rate: The selection rate of the other groups; None for a ranking, where one candidate comes
            first.
        power: The chance of detecting the ratio.

    Raises:
        UserError: If the audit has no ratios, or `rate` is missing or does not apply.
    """
    if instrument.selects is None:
        raise UserError(
            f"--groups, --rate and --ratio plan an audit of ratios, which {instrument.name} does "
            "not make: `evenhand plan decisions` and `evenhand plan rankings` do"
        )
    alone = instrument.selects == "each"
    if alone and rate is None:
        raise UserError("say how many are selected of those who are not behind: --rate 0.3")
    if not alone and rate is not None:
        raise UserError("of a ranking one candidate comes first: leave --rate out")
    each = people_needed(groups, 0.5 if rate is None else rate, ratio, power, each_alone=alone)
    return RatioPlan(
        instrument=instrument, groups=groups, ratio=ratio, rate=rate, power=power, each=each
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedShare:
    """The share of texts that will go to the judge, with a 95% interval and what it rests on."""

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
    """Plan the judging of texts by a calibrated two-stage screening.

    Args:
        file: The calibrated screen.
        texts: The number of texts to come.
        price: What the judge costs per text.
        harmful: The share of harmful texts. Required without scores of traffic in the file, since
            labeled texts hold more harm than traffic does.

    Raises:
        UserError: If `harmful` is required and missing.
    """
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
    """Mix the shares of harmful and of clean labeled texts; both ends of both intervals at once,
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
