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
        return f"{head}: {named} (Holm-adjusted over {counted_columns(looked_at)})"

    return sentence


def _none_shown(*, looked_at: Mapping[str, int]) -> str:
    return f"No group reached significance (Holm-adjusted over {counted_columns(looked_at)})"


def _phi(
    *, value: float | None, low: float | None, high: float | None, undefined: str | None
) -> str:
    if value is None:
        return f"Φ has no value ({undefined}); it"
    return f"Φ {value:.2f}" + ("" if low is None else f" ({low:.2f} to {high:.2f})")


def _better(*, better: Sequence[str], worse: Sequence[str], measure: str) -> str:
    are = "is" if len(better) == 1 else "are"
    return f"{listed(better)} {are} significantly better in {measure} than {listed(worse)}."


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
        "detected": f"at least {LEAST_ALPHA:g}",
        "ruled_out": f"below {LEAST_ALPHA:g}, the least for tentative conclusions",
        "inconclusive": f"not shown to be {LEAST_ALPHA:g}, nor to be less",
    }[state]
    open_ = "" if has_interval else f"; {undefined}"
    return f"{question}: alpha {value:.2f}{ends}, {why}{open_}."


def _referee(*, alpha: float | None, undefined: str | None, least: float) -> str:
    reason = undefined if alpha is None else f"ordinal alpha {alpha:.2f}"
    return (
        "The referee scores the same statements differently in the opposite order "
        f"({reason}; at least {least} is needed)."
    )


_NOTE = (
    "impact ratio: the rate divided by the highest rate (descriptive). vs others: the group's rate "
    "divided by the rate of all others, with an exact interval. p and the 95% CI are adjusted for "
    "all groups and tests of this page. detected: p is at most 0.05, and the interval excludes 1. "
    f"ruled out: the interval is within {MATTERS:g} to {1 / MATTERS:g}. detectable: the ratio "
    "below "
    "1 that is detected with 80% power."
)


def _however(missing: int) -> str:
    if not missing:
        return ""
    outcomes = plural(missing, "outcome")
    many = f"{missing:,} missing {outcomes}"
    return f", also in the worst case over {many}"


def _differ(*, grouping: str, p: str, missing: int) -> str:
    return (
        f"The groups differ by {grouping} (p {p}){_however(missing)}. No single group differs "
        "significantly from the others."
    )


def _alike(*, missing: int) -> str:
    return (
        f"Every group's rate is within {MATTERS:g} to {1 / MATTERS:g} of the rate of the others "
        f"(simultaneous 95% confidence intervals){_however(missing)}."
    )


def _ratios_open(*, groups: Sequence[str]) -> str:
    return (
        f"Inconclusive, because a ratio below {MATTERS:g} or above {1 / MATTERS:g} is possible: "
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
    return f"{margin:g} or {how}{' from no bias' if from_none else ''} is detected"


def _goes_on(*, clusters: int, of_clusters: int, unit: str, looks: int) -> str:
    progress = f"{clusters:,} of {of_clusters:,} {unit}"
    return f"{progress} asked so far ({counted(looks, 'look')}); the run continues"


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
    saved = f", about {calls_saved:,} calls saved" if calls_saved else ""
    return (
        f"stopped early after {clusters:,} of {of_clusters:,} {unit} ({counted(looks, 'look')}): "
        f"{left:,} of {of_items:,} items ({left / of_items:.0%}) were not needed{saved}"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "report.unfinished": "{done:,} of {planned:,} items done. Conclusions need a finished run.",
    "report.recorded": "Recorded answers to {items:,} of {of:,} items.",
    "report.none_scored": "None of {n:,} answers could be scored.",
    "report.picked_by_itself": "These items were selected because this system answered them "
    "{answered}. They say nothing about other items. Measure another system on them instead.",
    "report.how_many": "To rule out a bias of ±{matters:g}, use about {times:,} times as many "
    "items ({items:,})",
    "report.beyond_items": "To rule out a bias of ±{matters:g} takes about {times:,} times as many "
    "items ({items:,}). The benchmark holds {holds:,}, so it cannot settle the question alone: "
    "pool it with another benchmark, or use another",
    "report.beyond_clusters": "To rule out a bias of ±{matters:g} takes about {times:,} times as "
    "many items ({items:,}, from {clusters:,} {unit}). The benchmark holds {holds:,} {unit}, so it "
    "can hardly settle the question alone: pool it with another benchmark, or use another",
    "report.overturned": "{measure}: significant in the available answers, but not counted: "
    "{overturn:,} of the {missing:,} missing answers could overturn it",
    "groups.against": _shown("bias against"),
    "groups.other_way": _shown("bias in favor of"),
    "groups.none_shown": _none_shown,
    "groups.open": lambda *, groups: f"inconclusive: {counted_columns(groups)}",
    "groups.excluded": lambda *, groups, reach: (
        f"ruled out: {counted_columns(groups)}, any bias is smaller than {reach:g}"
    ),
    "phi": _phi,
    "phi.shown": "{phi}: most of the variance between {objects} in {measure} is theirs.",
    "phi.systems": "Φ is the share of variance that is due to the systems. It shows that some "
    "systems differ, not which ones: pairwise comparisons are below.",
    "phi.below": f"{{phi}} of {{measure}} is below {LEAST:g}.",
    "phi.not_shown": f"{{phi}} of {{measure}} is not significantly above {LEAST:g}.",
    "phi.no_ranking": "These runs cannot rank {objects}, and one run alone cannot rank this "
    "system.",
    "phi.not_crossed": "The runs are not fully crossed, so option order, paraphrase and seed are "
    "one "
    "facet: run.",
    "phi.incomplete": "{items:,} items lack an answer in some run, which counts as disagreement.",
    "phi.more_runs": "By the point estimate, the mean of {runs:,} runs, each with its own order, "
    f"paraphrase and seed, would reach {LEAST:g}.",
    "phi.two_systems": "Two systems: the variance between systems rests on one difference.",
    "systems.better": _better,
    "systems.alike": "{first} and {second} do not differ significantly.",
    "ratings.alpha": _alpha,
    "ratings.coverage": "Only {percent} of the ratings were given.",
    "debates.none": "No debate was completed, so no pairs could be formed.",
    "debates.unreadable": "{debates} debates failed because a reply could not be parsed.",
    "debates.one_score": "Every statement has the same score: the referee does not discriminate.",
    "debates.equal_scores": "In {equal} of {rounds} rounds all statements have the same score: the "
    "referee hardly discriminates.",
    "debates.same_words": "In {same} of {rounds} rounds two roles gave identical statements: the "
    "model "
    "does not follow its roles.",
    "debates.referee": _referee,
    "debates.no_pairs": "No topic has statements on both sides of {above}, so no pairs could be "
    "formed within a topic.",
    "rldf.reward": "The audit of the reward model is {state}: a policy would learn its faults.",
    "rldf.not_trained": "{stage} changed no weights ({outcome}).",
    "lines": lambda *, lines: "\n".join(lines),
    "ratios.note": f"{{rate}} {_NOTE}",
    "ratios.tests_note": "{tests}. adjusted p: the smallest p of the chi-square test and of the "
    "groups, adjusted for all groups and tests of this page.",
    "ratios.differ": _differ,
    "ratios.alike": _alike,
    "ratios.none_shown": "No group is {selected} significantly more or less often than the others.",
    "ratios.open": _ratios_open,
    "ratios.group": _group,
    "until.for_gate": "run for a gate, whose checks decide when it stops: {clusters:,} of "
    "{of_clusters:,} {unit} so far",
    "until.estimate": _estimate,
    "until.these": "this result is about exactly these {clusters:,} {unit}, not about similar ones",
    "until.left_out": "intervals are valid at every look; results without one, such as groups, "
    "are omitted",
    "until.open": "inconclusive at a margin of {margin:g}",
    "until.decided": _decided,
    "until.goes_on": _goes_on,
    "until.all_asked": "all {of_clusters:,} {unit} were asked: no calls saved",
    "until.stopped": _stopped,
    "until.at_any_time": "stopped after {clusters:,} of {of_clusters:,} {unit}: about "
    "{calls_saved:,} calls saved",
}
