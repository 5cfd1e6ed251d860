"""The pages of a screen: the card of its calibration, and what it did in a run."""

from evenhand.findings.screen_file import Promised, ScreenFile
from evenhand.findings.screen_plan import ScreenPlan
from evenhand.findings.screened import ENOUGH_POWER, Look, Screened
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


def card(found: ScreenFile, *, full: bool = False) -> list[Block]:
    """The blocks of a screen's card; there is no longer form of it."""
    del full
    rows = [_promise(one) for one in found.promises]
    tones: tuple[Tone, ...] = tuple(
        "bad" if one.asked_for and one.lacks else "plain" for one in found.promises
    )
    return [
        Heading(f"Screen: {found.scorer.name}"),
        Line(f"{_cuts(found)} {_SURE}", "strong"),
        Grid(("promise", "of", "at most", "labels", ""), tuple(rows), tones),
        *(Line(_refused(one), "bad") for one in found.refused),
        Line(_judged(found)),
        Grid(("rests on", ""), tuple(_facts(found))),
        Heading("What it holds for", 3),
        *(Line(one, indent=1) for one in _HOLDS_FOR),
    ]


def applied(found: Screened, *, full: bool = False) -> list[Block]:
    """The blocks of what a screen did in a run; there is no longer form of it."""
    del full
    made = found.counted
    failed = [(f"failed: {why}", _share(n, found)) for why, n in made.failed.items()]
    rows = (
        ("texts", f"{found.texts:,}"),
        ("called clean by the screen", _share(made.called_clean, found)),
        ("called harmful by the screen", _share(made.called_harmful, found)),
        (f"judged by {found.judge}", _share(found.judged, found)),
        ("judged clean", _share(made.judged_clean, found)),
        ("judged harmful", _share(made.judged_harmful, found)),
        ("without a score, so judged", _share(made.unscored, found)),
        *failed,
    )
    return [*_holds(found), Grid(("", ""), rows), Line(_drift(found.look), "dim")]


def planned(found: ScreenPlan, *, full: bool = False) -> list[Block]:
    """The blocks of a plan; there is no longer form of it."""
    del full
    sent = found.sent
    takes = {"calls of the judge": found.calls, "tokens": found.tokens}
    rows = [
        (what, *(f"{of(share):,.0f}" for share in (1.0, sent.share, sent.low, sent.high)))
        for what, of in takes.items()
    ]
    paid = [found.money(share) for share in (1.0, sent.share, sent.low, sent.high)]
    if found.price.per_million is not None:
        rows.append(("money", *(f"{one:,.2f}" for one in paid)))
    head = (
        f"of {found.texts:,} texts {sent.share:.1%} go to the judge (95 %: {sent.low:.1%} to "
        f"{sent.high:.1%})"
    )
    basis = f"from {sent.basis}; for other texts it is another share. The screen itself costs time"
    return [
        Line(head, "strong"),
        Grid(("", "judging all", "screened", "from", "to"), tuple(rows)),
        Line(f"{basis}.", "dim"),
    ]


def _cuts(found: ScreenFile) -> str:
    clean, harmful = "No text is called clean", "none is called harmful"
    if found.low is not None:
        clean = f"A text whose {found.scorer.attribute} is below {found.low:.4g} is called clean"
    if found.high is not None:
        harmful = f"one above {found.high:.4g} harmful"
    return f"{clean}, {harmful}."


def _promise(one: Promised) -> tuple[str, ...]:
    kept = "refused" if one.asked_for else "not promised, only made careful"
    state = kept if one.lacks else f"promised with confidence {one.confidence:g}"
    unscored = f", {one.unscored:,} without a score" if one.unscored else ""
    labels = f"{one.labels:,}{unscored}"
    return one.kind, one.group or "all texts", f"{one.at_most:g}", labels, state


def _refused(one: Promised) -> str:
    which = "harmful" if one.kind == "missed harm" else "clean"
    return (
        f"{one.kind}, {one.group or 'all texts'}: nothing is promised. {one.needs:,} {which} texts "
        f"are needed and {one.labels:,} are there: label {one.lacks:,} more. "
        "Near-copies and texts of one template count once."
    )


def _judged(found: ScreenFile) -> str:
    said = [f"{share:.1%} of the {name} texts" if name != "traffic" else f"{share:.1%} of traffic"
            for name, share in found.judged.items() if share is not None]  # fmt: skip
    return f"To the judge go {', '.join(said)}."


def _facts(found: ScreenFile) -> list[tuple[str, str]]:
    labels, reference = found.labels, found.reference
    by = f"one of each {labels.cluster}, " if labels.cluster else ""
    once = f"{by}near-copies and texts of one template once"
    against = f"{len(reference.scores):,} scores of {reference.of}, {reference.file}"
    if reference.of == "labelled texts":
        against += " (texts that were chosen differ from traffic from the start: --traffic)"
    return [
        ("scorer", f"{found.scorer.said}, {found.scorer.attribute}"),
        ("labelled texts", f"{labels.file}, sha256 {labels.sha256[:12]}, {labels.texts:,} rows"),
        ("of which count", f"{labels.harmful:,} harmful, {labels.clean:,} clean ({once})"),
        ("groups", labels.group or "none named"),
        ("drift is looked for against", against),
        ("made", f"{found.created}, evenhand {found.evenhand}"),
    ]


def _holds(found: Screened) -> list[Line]:
    if found.alarm is not None:
        return [
            Line(
                "THE PROMISE NO LONGER HOLDS: scores are distributed otherwise than at calibration "
                f"(look {found.alarm.number}, {found.alarm.place}, p = {found.alarm.p_value:.2g}). "
                "Label texts of today and calibrate anew: evenhand screen calibrate.",
                "bad",
            )
        ]
    if found.look is None:
        return [Line("OPEN: whether the promise still holds was not looked at.", "bad")]
    if found.look.weak:
        return [Line(_weak(found.look), "bad")]
    if found.look.open:
        return [
            Line(
                f"OPEN: whether the promise still holds: the {found.failed:,} failed texts "
                "could hide a drift. Judge the answers again in a new folder.",
                "bad",
            )
        ]
    made = [one for one in found.promises if one.asked_for]
    kept = [Line(f"{_held(one)}.", "strong") for one in made if not one.lacks]
    return [*kept, *(Line(_refused(one), "bad") for one in made if one.lacks)]


def _held(one: Promised) -> str:
    who = one.group or "all texts"
    return f"{one.kind}, {who}: at most {one.at_most:g} with confidence {one.confidence:g}"


def _weak(look: Look) -> str:
    return (
        f"OPEN: {look.pooled:,} scores since the calibration are too few to show whether the "
        "promise still holds. If half of what the screen did not call clean fell below its lower "
        f"cut-off, they would show it with a chance of {look.power:.0%} ({ENOUGH_POWER:.0%} are "
        "asked for). Judge more texts, or calibrate with more scores (--traffic)."
    )


def _drift(look: Look | None) -> str:
    if look is None:
        return "no look for drift: too many texts have no verdict; judge them in a new folder"
    seen = "drift" if look.drifted else "no drift seen"
    return (
        f"{seen}: look {look.number}, {look.scores:,} scores, {look.pooled:,} since the "
        f"calibration, p = {look.p_value:.2g} against {look.level:.2g}, power {look.power:.0%}"
    )


def _share(count: int, found: Screened) -> str:
    return f"{count:,} ({count / found.texts:.1%})" if found.texts else f"{count:,}"
