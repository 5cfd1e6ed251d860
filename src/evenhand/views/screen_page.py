"""The pages of a screen: the card of its calibration, and what it did in a run."""

from evenhand.findings.plan import ScreenPlan
from evenhand.findings.screen_file import CalibratedPromise, ScreenFile
from evenhand.findings.screened import ENOUGH_POWER, ScreenedRun, ScreenLook
from evenhand.views.blocks import Block, Grid, Heading, Line, Tone

_SURE = "All others, and texts without a score, go to the judge."
_HOLDS_FOR = (
    "It holds for texts that are drawn as the labelled ones were; for others nothing is promised.",
    "It is a share of the harmful (or clean) texts, not of all texts, and rests on the labels "
    "being right.",
    "It is about what the screen calls clean; what the judge misses comes on top.",
    "It holds for this scorer in this version with these settings; another one is refused.",
    "The drift check sees that scores have changed. Harm of a new kind that scores low needs new "
    "labels to be seen.",
)


def card(screen: ScreenFile) -> list[Block]:
    """The blocks of a screen's card."""
    rows = [_promise(promise) for promise in screen.promises]
    tones: tuple[Tone, ...] = tuple(
        "bad" if promise.asked_for and promise.lacks else "plain" for promise in screen.promises
    )
    return [
        Heading(f"Screen: {screen.scorer.name}"),
        Line(f"{_cuts(screen)} {_SURE}", "strong"),
        Grid(("promise", "of", "at most", "labels", ""), tuple(rows), tones),
        *(Line(_refused(promise), "bad") for promise in screen.refused),
        Line(_judged(screen)),
        Grid(("rests on", ""), tuple(_facts(screen))),
        Heading("What it holds for", 3),
        *(Line(line, indent=1) for line in _HOLDS_FOR),
    ]


def applied(screened: ScreenedRun) -> list[Block]:
    """The blocks of what a screen did in a run."""
    counts = screened.counted
    failed = [(f"failed: {why}", _share(n, screened)) for why, n in counts.failed.items()]
    rows = (
        ("texts", f"{screened.texts:,}"),
        ("called clean by the screen", _share(counts.called_clean, screened)),
        ("called harmful by the screen", _share(counts.called_harmful, screened)),
        (f"judged by {screened.judge}", _share(screened.judged, screened)),
        ("judged clean", _share(counts.judged_clean, screened)),
        ("judged harmful", _share(counts.judged_harmful, screened)),
        ("without a score, so judged", _share(counts.unscored, screened)),
        *failed,
    )
    return [*_holds(screened), Grid(("", ""), rows), Line(_drift(screened.look), "dim")]


def planned(plan: ScreenPlan) -> list[Block]:
    """The blocks of a plan."""
    sent = plan.sent
    takes = {"calls of the judge": plan.calls, "tokens": plan.tokens}
    rows = [
        (what, *(f"{of(share):,.0f}" for share in (1.0, sent.share, sent.low, sent.high)))
        for what, of in takes.items()
    ]
    paid = [plan.money(share) for share in (1.0, sent.share, sent.low, sent.high)]
    if plan.price.per_million is not None:
        rows.append(("money", *(f"{amount:,.2f}" for amount in paid)))
    head = (
        f"of {plan.texts:,} texts {sent.share:.1%} go to the judge (95% CI {sent.low:.1%} to "
        f"{sent.high:.1%})"
    )
    basis = f"from {sent.basis}; for other texts it is another share. The screen itself costs time"
    return [
        Line(head, "strong"),
        Grid(("", "judging all", "screened", "from", "to"), tuple(rows)),
        Line(f"{basis}.", "dim"),
    ]


def _cuts(screen: ScreenFile) -> str:
    clean, harmful = "No text is called clean", "none is called harmful"
    if screen.low is not None:
        clean = f"A text whose {screen.scorer.attribute} is below {screen.low:.4g} is called clean"
    if screen.high is not None:
        harmful = f"one above {screen.high:.4g} harmful"
    return f"{clean}, {harmful}."


def _promise(promise: CalibratedPromise) -> tuple[str, ...]:
    status = "refused" if promise.asked_for else "not promised, only made careful"
    state = status if promise.lacks else f"promised with confidence {promise.confidence:g}"
    unscored = f", {promise.unscored:,} without a score" if promise.unscored else ""
    labels = f"{promise.labels:,}{unscored}"
    return promise.kind, promise.group or "all texts", f"{promise.at_most:g}", labels, state


def _refused(promise: CalibratedPromise) -> str:
    which = "harmful" if promise.kind == "missed harm" else "clean"
    return (
        f"{promise.kind}, {promise.group or 'all texts'}: nothing is promised. "
        f"{promise.needs:,} {which} texts are needed and {promise.labels:,} are there: "
        f"label {promise.lacks:,} more. "
        "Near-copies and texts of one template count once."
    )


def _judged(screen: ScreenFile) -> str:
    shares = [f"{share:.1%} of the {name} texts" if name != "traffic" else f"{share:.1%} of traffic"
            for name, share in screen.judged.items() if share is not None]  # fmt: skip
    return f"To the judge go {', '.join(shares)}."


def _facts(screen: ScreenFile) -> list[tuple[str, str]]:
    labels, reference = screen.labels, screen.reference
    by = f"one of each {labels.cluster}, " if labels.cluster else ""
    once = f"{by}near-copies and texts of one template once"
    against = f"{len(reference.scores):,} scores of {reference.of}, {reference.file}"
    if reference.of == "labelled texts":
        against += " (texts that were chosen differ from traffic from the start: --traffic)"
    return [
        ("scorer", f"{screen.scorer.said}, {screen.scorer.attribute}"),
        ("labelled texts", f"{labels.file}, sha256 {labels.sha256[:12]}, {labels.texts:,} rows"),
        ("of which count", f"{labels.harmful:,} harmful, {labels.clean:,} clean ({once})"),
        ("groups", labels.group or "none named"),
        ("drift is looked for against", against),
        ("made", f"{screen.created}, evenhand {screen.evenhand}"),
    ]


def _holds(screened: ScreenedRun) -> list[Line]:
    if screened.alarm is not None:
        return [
            Line(
                "THE PROMISE NO LONGER HOLDS: scores are distributed otherwise than at calibration "
                f"(look {screened.alarm.number}, {screened.alarm.place}, "
                f"p = {screened.alarm.p_value:.2g}). "
                "Label current texts and recalibrate: evenhand scorers screen calibrate.",
                "bad",
            )
        ]
    if screened.look is None:
        return [Line("OPEN: whether the promise still holds was not looked at.", "bad")]
    if screened.look.weak:
        return [Line(_weak(screened.look), "bad")]
    if screened.look.open:
        return [
            Line(
                f"OPEN: whether the promise still holds: the {screened.failed:,} failed texts "
                "could hide a drift. Judge the answers again in a new folder.",
                "bad",
            )
        ]
    requested = [promise for promise in screened.promises if promise.asked_for]
    lines = [Line(f"{_held(promise)}.", "strong") for promise in requested if not promise.lacks]
    return [*lines, *(Line(_refused(promise), "bad") for promise in requested if promise.lacks)]


def _held(promise: CalibratedPromise) -> str:
    who = promise.group or "all texts"
    return (
        f"{promise.kind}, {who}: at most {promise.at_most:g} with confidence {promise.confidence:g}"
    )


def _weak(look: ScreenLook) -> str:
    return (
        f"OPEN: {look.pooled:,} scores since the calibration are too few to show whether the "
        "promise still holds. If half of what the screen did not call clean fell below its lower "
        f"cut-off, they would show it with a chance of {look.power:.0%} ({ENOUGH_POWER:.0%} are "
        "asked for). Judge more texts, or calibrate with more scores (--traffic)."
    )


def _drift(look: ScreenLook | None) -> str:
    if look is None:
        return "no look for drift: too many texts have no verdict; judge them in a new folder"
    outcome = "drift" if look.drifted else "no drift seen"
    return (
        f"{outcome}: look {look.number}, {look.scores:,} scores, {look.pooled:,} since the "
        f"calibration, p = {look.p_value:.2g} against {look.level:.2g}, power {look.power:.0%}"
    )


def _share(count: int, screened: ScreenedRun) -> str:
    return f"{count:,} ({count / screened.texts:.1%})" if screened.texts else f"{count:,}"
