"""The words of reliability, of ratings and of debates."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.findings.dependability import LEAST
from evenhand.training.rating.findings import LEAST_ALPHA
from evenhand.views.catalog.plurals import listed


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


SENTENCES: Mapping[str, str | Callable[..., str]] = {
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
}
