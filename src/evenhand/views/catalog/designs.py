"""The words of plans and of designs."""

from collections.abc import Callable, Mapping, Sequence

_REPLAY = (
    "replay a full run of yours to see what it takes: a gate of {measure} with sequential = true, "
    "and `evenhand gate FILE --baseline RUN --replay RUNS`"
)


def _screened(
    *,
    promises: Sequence[tuple[str, str, float, float]],
    share: float,
    low: float,
    high: float,
) -> str:
    promised = "; ".join(
        f"{kind}, {group or 'all texts'}: at most {at_most:g} with confidence {confidence:g}"
        for kind, group, at_most, confidence in promises
    )
    return (
        f"{promised or 'nothing, as it has too few labels'}. {share:.1%} go to the judge "
        f"(95 %: {low:.1%} to {high:.1%}; all, where scores change); scoring every text comes on "
        "top"
    )


def _labels_alone(*, reach: float, harmful: float | None, by_judge: bool) -> str:
    basis = "at any share"
    if harmful is not None:
        basis = f"on average, if {harmful:.1%} are harmful; wider where more are"
    return f"± {reach:g} with 95 %, {basis}{_whose(by_judge=by_judge)}"


def _with_predictions(
    *, reach: float, correlation: float, alone: int, fewer: int, by_judge: bool
) -> str:
    promise = "as labels alone, since no fewer are enough"
    if fewer < alone:
        promise = (
            f"± {reach:g} with 95 %, in about 4 of 5 draws, if the scorer's numbers have a "
            f"correlation of {correlation:g} with the labels; if less, it is wider, and at "
            f"worst {alone:,} labels are needed"
        )
    return f"{promise}{_whose(by_judge=by_judge)}. Scoring every text comes on top"


def _whose(*, by_judge: bool) -> str:
    return ". The judge labels: it is the share that the judge calls harmful" if by_judge else ""


def _too_few_clusters(*, clusters: int, unit: str, there_are: int, more_rows: str | None) -> str:
    text = f"it would take {clusters:,} {unit}, and there are {there_are}"
    if more_rows is not None:
        text += f"; `evenhand plan {more_rows}` says what more rows of each would do"
    return text


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "plan.instrument_too_small": "{instrument} is too small: even all its rows could not show it",
    "plan.too_few_clusters": _too_few_clusters,
    "design.asks_change": "has {measure} got worse from one run to the next, by {detect:g}?",
    "design.asks_each_text": "which of {count:,} texts are harmful? Every text gets a verdict",
    "design.asks_share": "which share of {count:,} texts, and others like them, is harmful, to ± "
    "{detect:g}?",
    "design.fixed": "a change of {detect:g} is shown with a chance of {power:.0%}, after "
    "correction for {family}",
    "design.sequential": "decided in {decided:.0%} of the drawn runs (fixed: {fixed:.0%}), after "
    "{share:.0%} of the new run on average",
    "design.judging_all": "the judge's verdict on every text",
    "design.screened": _screened,
    "design.labels_alone": _labels_alone,
    "design.with_predictions": _with_predictions,
    "left_out.change": "a change: {why}",
    "left_out.sequential": "sequential: {why}",
    "left_out.cannot_stop": "{measure} cannot stop a run, as {why}",
    "left_out.side_of_null": "a gate of {measure} also has to show on which side of “no bias” it "
    f"is, which takes longer than can be drawn beforehand; {_REPLAY}",
    "left_out.uneven": "a gate bets less on small {clusters} than on large ones, and these are "
    f"not known to have about as many answers each; {_REPLAY}",
    "left_out.no_texts": "screened, and labels with predictions: say how many texts there are with "
    "--texts",
    "left_out.no_screen": "screened: give --screen FILE, as `evenhand screen calibrate` writes it",
    "left_out.too_few_texts": "a share: {texts:,} texts are too few to know it to ± {reach:g}",
    "left_out.no_correlation": "labels with predictions: say how the scorer goes with the labels: "
    "--correlation 0.8",
    "until.no_mean": "it is no mean over answers",
    "until.no_ends": "it has no smallest or no largest value",
    "until.also_alike": "answers are alike in other ways than by {clusters}",
    "until.no_item": "no item is about it",
    "until.answers_decide": "the answers decide which of them it is about",
}
