"""The methods of a frontier, from names as they are written or from objects, fitted to calls."""

from collections.abc import Sequence
from dataclasses import fields, replace

from evenhand.core.errors import UserError
from evenhand.experiments.sweep import SweepMethod
from evenhand.findings.frontier import VOTE, odd
from evenhand.findings.scoring import ScoringSpec
from evenhand.methods import Method, within
from evenhand.methods.build import build_method

# All that answer with nothing but a chat endpoint. The last one is a control: if StarDTox without
# the words of its critique does as well, the critique does not matter.
_USUAL = (
    "cot",
    "self_debias_explanation",
    "self_debias_reprompting",
    "fair_thinking",
    "detect_first",
    "self_refine",
    "best_of_n",
    "stardtox",
    "mabrf",
    "stardtox:critique=empty",
)
USUAL = "usual"  # the word for all of them in a list that has others too
_ON_CHOICES_ALONE = {"cot", "self_debias_explanation", "detect_first", "mabrf"}


def listed(text: str | None, calls: int, instrument: ScoringSpec) -> list[SweepMethod]:
    """The methods that are written, e.g. `cot,stardtox:critique=empty+max_iterations=1`, after the
    instrument's references, which are always run; a lender before who borrows from it."""
    written = [name.strip() for name in (text or "").split(",") if name.strip()]
    return chosen(written, calls, instrument)


def chosen(
    methods: Sequence[Method | str], calls: int, instrument: ScoringSpec
) -> list[SweepMethod]:
    """The same from names and objects; those that are usual where there are none."""
    requested = [method for name in methods or (USUAL,) for method in _spelt_out(name, instrument)]
    objects = [
        SweepMethod(name=method.name, method=method)
        for method in requested
        if not isinstance(method, str)
    ]
    names = (
        *instrument.compared_with(),
        *(method for method in requested if isinstance(method, str)),
    )
    fitted = {VOTE: odd(calls)}  # a tie decides nothing, so that a vote is of an odd number
    built = (_built(name, fitted.get(name, calls)) for name in dict.fromkeys(names))
    arms = [*built, *objects]
    for arm in arms:
        if arm.lender is not None and arm.lender not in names:
            raise UserError(
                f"{arm.name} borrows critiques that were made of other items: "
                f"add {arm.lender!r} to --methods"
            )
    folders = [arm.folder for arm in arms]
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice:
        raise UserError(f"two of the methods would be kept in the folder {twice!r}; leave one out")
    return sorted(arms, key=lambda arm: arm.lender is not None)


def _spelt_out(method: Method | str, instrument: ScoringSpec) -> Sequence[Method | str]:
    return _usual(instrument) if method == USUAL else [method]


def _usual(instrument: ScoringSpec) -> list[str]:
    on_text = "choice" not in instrument.columns
    return [name for name in _USUAL if not (on_text and name in _ON_CHOICES_ALONE)]


def _built(written: str, calls: int) -> SweepMethod:
    """With the largest settings that fit the calls; what was set by hand stays as it was set."""
    name, _, rest = written.partition(":")
    assignments = rest.split("+") if rest else []
    method = build_method(name, assignments)
    by_hand = {assignment.partition("=")[0].strip() for assignment in assignments}
    overrides = {f.name: getattr(method, f.name) for f in fields(method) if f.name in by_hand}  # type: ignore[arg-type]
    fitted: Method = replace(within(method, calls), **overrides)
    borrows = getattr(fitted, "critique", None) == "other"
    return SweepMethod(name=written, method=fitted, lender=name if borrows else None)
