"""The words of reports: verdicts, ratios of groups, runs that stop early, and agreement."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.findings.dependability import LEAST
from evenhand.findings.estimates import Bounds, Estimate, how_sure
from evenhand.findings.ratios import MATTERS
from evenhand.training.rating.findings import LEAST_ALPHA
from evenhand.views.catalog.plurals import counted, counted_columns, listed, plural, spaced


def _shown(label: str) -> Callable[..., str]:
    def sentence(
        *, measure: str, groups: Mapping[str, tuple[str, ...]], looked_at: Mapping[str, int]
    ) -> str:
        named = "; by ".join(f"{column}: {spaced(values)}" for column, values in groups.items())
        first = next(iter(looked_at), "")
        named = named.removeprefix(f"{first}: ") if first in groups else f"by {named}"
        head = f"{measure}, {label}" if measure else label
        return f"{head}: {named} (after correction for {counted_columns(looked_at)})"

    return sentence


def _none_shown(*, looked_at: Mapping[str, int]) -> str:
    looked = counted_columns(looked_at)
    return f"against: none of {looked} is shown after correction for looking at all"


def _phi(
    *, value: float | None, low: float | None, high: float | None, undefined: str | None
) -> str:
    if value is None:
        return f"Φ has no value ({undefined}); it"
    return f"Φ {value:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


def _better(*, better: Sequence[str], worse: Sequence[str], measure: str) -> str:
    are = "is" if len(better) == 1 else "are"
    return f"{listed(better)} {are} better in {measure} than {listed(worse)}."


def _alpha(
    *,
    question: str,
    state: str,
    value: float | None,
    low: float | None,
    high: float | None,
    undefined: str | None,
) -> str:
    if value is None:
        return f"{question}: alpha has no value ({undefined})."
    has_interval = low is not None and high is not None
    ends = f" ({low:.2f} to {high:.2f})" if has_interval else ""
    why = {
        "shown": f"at least {LEAST_ALPHA:g}",
        "not shown": f"below {LEAST_ALPHA:g}, the least for tentative conclusions",
        "not known": f"not shown to be {LEAST_ALPHA:g}, nor to be less",
    }[state]
    open_ = "" if has_interval else f"; {undefined}"
    return f"{question}: alpha {value:.2f}{ends}, {why}{open_}."


def _referee(*, alpha: float | None, undefined: str | None, least: float) -> str:
    reason = undefined if alpha is None else f"ordinal alpha {alpha:.2f}"
    return (
        "The referee scores the same statements otherwise when it sees them in the opposite order "
        f"({reason}; {least} is the least to build on)."
    )


_NOTE = (
    "impact ratio: the rate over the highest rate, a description. vs others: the group's rate over "
    "the rate of all others, with an exact interval. p and the 95% CI are adjusted for all groups "
    "and tests of this page: shown means p at most 0.05, and the interval excludes 1. not shown: "
    f"the interval lies within {MATTERS:g} to {1 / MATTERS:g}. detectable: the ratio below 1 that "
    "would be shown 4 times in 5."
)


def _however(missing: int) -> str:
    if not missing:
        return ""
    outcomes = plural(missing, "outcome")
    many = f"all {missing:,} missing {outcomes}" if missing > 1 else f"the missing {outcomes}"
    return f", also if {many} had gone the other way"


def _differ(*, grouping: str, p: str, missing: int) -> str:
    return (
        f"The groups differ by {grouping} (p {p}){_however(missing)}. No single group is shown to "
        "differ from the others."
    )


def _alike(*, missing: int) -> str:
    return (
        f"Every group's rate lies within {MATTERS:g} to {1 / MATTERS:g} of the rate of the others "
        f"(simultaneous 95% confidence intervals){_however(missing)}."
    )


def _ratios_open(*, groups: Sequence[str]) -> str:
    return (
        f"Inconclusive, as a ratio below {MATTERS:g} or above {1 / MATTERS:g} is not excluded: "
        f"{', '.join(groups) or 'every group'}."
    )


def _group(
    *,
    group: str,
    selected: str,
    often: str,
    rate: str,
    others: str,
    ratio: str,
    interval: str,
    missing: int,
) -> str:
    return (
        f"{group}: {selected} {often} often: {rate} against {others} of the others (ratio {ratio}, "
        f"95% CI {interval}){_however(missing)}."
    )


def _estimate(
    *,
    decided: str,
    measure: str,
    value: float | None,
    low: float | None,
    high: float | None,
    missing: int,
    if_known: tuple[float | None, float | None] | list[float | None] | None,
    signed: bool,
) -> str:
    def written(number: float) -> str:
        return f"{number:+.2f}" if signed else f"{number:.2f}"

    bounds = None
    if if_known is not None:
        bounds = Bounds(missing=missing, low=if_known[0], high=if_known[1])
    estimate = Estimate(name="", value=value, low=low, high=high, bounds=bounds)
    number = "" if value is None else f", {written(value)}"
    return f"{decided}: {measure}{number}{how_sure(estimate, written)}"


def _decided(*, margin: float, more: bool, from_none: bool) -> str:
    how = "more" if more else "less"
    return f"{margin:g} or {how}{' from no bias' if from_none else ''} is shown"


def _goes_on(*, clusters: int, of_clusters: int, unit: str, looks: int) -> str:
    progress = f"{clusters:,} of {of_clusters:,} {unit}"
    return f"{progress} were asked and looked at so far ({counted(looks, 'look')}): it goes on"


def _stopped(
    *,
    clusters: int,
    of_clusters: int,
    unit: str,
    looks: int,
    items: int,
    of_items: int,
    calls_saved: int,
) -> str:
    left = of_items - items
    saved = f", which saved about {calls_saved:,} calls" if calls_saved else ""
    return (
        f"stopped after {clusters:,} of {of_clusters:,} {unit} ({counted(looks, 'look')}), as that "
        f"decided it: {left:,} of {of_items:,} items ({left / of_items:.0%}) were not asked{saved}"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "report.unfinished": "{done:,} of {planned:,} items: no conclusion before all are run.",
    "report.none_scored": "None of {n:,} answers could be scored.",
    "report.picked_by_itself": "These items were picked because this system answered them "
    "{answered}. They say nothing about other items; another system may be measured on them.",
    "report.how_many": "about {times} times as many would tell a bias of {matters:g} from none",
    "report.overturned": "{measure}: not counted as shown, though the answers that there are show "
    "it: at most {overturn:,} of the {missing:,} missing ones would overturn it",
    "groups.against": _shown("against"),
    "groups.other_way": _shown("the other way round"),
    "groups.none_shown": _none_shown,
    "groups.open": lambda *, groups: f"open: {counted_columns(groups)}, too few questions to tell",
    "groups.excluded": lambda *, groups, reach: (
        f"not seen: {counted_columns(groups)}, any bias is smaller than {reach:g}"
    ),
    "phi": _phi,
    "phi.shown": "{phi}: most of what tells {objects} apart in {measure} is their own.",
    "phi.systems": "Φ is the share of the variance of such means that is the systems' own. It says "
    "that some systems differ, not which: each two are compared below.",
    "phi.below": f"{{phi}} of {{measure}} is below {LEAST:g}.",
    "phi.not_shown": f"{{phi}} of {{measure}} is not shown to be {LEAST:g} or more.",
    "phi.no_ranking": "No ranking of {objects} by these runs, nor of this system by one of them.",
    "phi.not_crossed": "The runs are not fully crossed, so order, wording and seed are one facet: "
    "run.",
    "phi.incomplete": "{items:,} items lack an answer in some run; it counts as disagreement.",
    "phi.more_runs": "By its point estimate, the mean of {runs:,} runs, each with an order, a "
    f"wording and a seed of its own, would reach {LEAST:g}.",
    "phi.two_systems": "Two systems: how far systems differ rests on one difference.",
    "systems.better": _better,
    "systems.alike": "Of {first} and {second} neither is shown better.",
    "ratings.alpha": _alpha,
    "ratings.coverage": "Only {percent} of the marks were given.",
    "debates.none": "No debate came to its end: there is nothing to make pairs of.",
    "debates.unreadable": "{debates} debates failed on a reply that could not be read.",
    "debates.one_score": "Every statement has the same score: the referee tells nothing apart.",
    "debates.equal_scores": "In {equal} of {rounds} rounds all statements have the same score: the "
    "referee hardly tells them apart.",
    "debates.same_words": "In {same} of {rounds} rounds two roles said the same words: the model "
    "does not play roles.",
    "debates.referee": _referee,
    "debates.no_pairs": "No topic has a statement above {above} and one at or below it: there are "
    "no pairs within a topic.",
    "lines": lambda *, lines: "\n".join(lines),
    "ratios.note": f"{{rate}} {_NOTE}",
    "ratios.tests_note": "{tests}. adjusted p: the smallest of chi-square's and of the groups' "
    "own, adjusted for all groups and tests of this page.",
    "ratios.differ": _differ,
    "ratios.alike": _alike,
    "ratios.none_shown": "No group is shown to be {selected} more or less often than the others.",
    "ratios.open": _ratios_open,
    "ratios.group": _group,
    "until.for_gate": "asked for a gate, whose checks decide when it stops: {clusters:,} of "
    "{of_clusters:,} {unit} so far",
    "until.estimate": _estimate,
    "until.these": "this is of exactly these {clusters:,} {unit}; of others like them nothing is "
    "claimed",
    "until.left_out": "intervals hold at every look; what has none, such as groups, is left out",
    "until.open": "not decided at a margin of {margin:g}",
    "until.decided": _decided,
    "until.goes_on": _goes_on,
    "until.all_asked": "all of {of_clusters:,} {unit} were asked: no call was saved",
    "until.stopped": _stopped,
    "until.at_any_time": "at whatever look, after {clusters:,} of {of_clusters:,} {unit}: about "
    "{calls_saved:,} calls less than all",
}
