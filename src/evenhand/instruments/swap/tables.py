"""The tables of a run: what is shown of each family, the most different answers, and words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from evenhand.findings.found import Cell, Estimate, Section
from evenhand.findings.ratios import SHOWN, TOO_FEW
from evenhand.findings.rules import ALPHA, adjusted_estimates
from evenhand.instruments.swap.contrasts import ANY, MATTERS, NONE, Contrast
from evenhand.instruments.swap.squares import DISTANCES, SAME_PLACE
from evenhand.metrics.word_odds import word_odds

SAME = "same"
_COLUMNS = ("family", "contrast", "difference", "95 %", "placebo", "prompts", "state")
_EXCESS = "any two labels (excess)"
_EXAMPLES = 3  # our choice: of each family, as many as can be read on a screen
_LEAST = 10  # our choice: a word that occurs fewer times says nothing about anybody
_LEAST_Z = 2.0  # our choice: about what chance alone prints for one word of twenty
_WORDS = 5  # our choice: of each label, the most over-used and the most under-used
_NOTE = (
    "difference and placebo: of 100 answers, or in percent of a number or a length. The first row "
    "of a family is the excess: how much more answers differ between two labels than between a "
    "label and its placebo. The others are signed: the first label minus the second; there the "
    "placebo column is how far a label's answer is from that to its own placebo, either way. "
    "shown: sign flips over prompts, after Holm over all families for the excess, and over all "
    "contrasts of an outcome for the others, however the missing answers came out; same: a "
    f"difference of {100 * MATTERS:g} or more is excluded. Of decisions that vary by chance the "
    "excess is small even where labels' rates differ: it is their difference times their "
    "difference under the placebo (its square, if that is alike), below 0 if the two have opposite "
    "signs. So it is the same only where all contrasts of two labels are."
)


def state_of(one: Estimate) -> str:
    """Say what is known of a difference. The adjusted p-value decides where there is one; "same"
    needs the interval within what matters too, which few prompts without spread do not give."""
    p = one.p if one.p_holm is None else one.p_holm
    if p is not None and p <= ALPHA:
        return SHOWN
    excluded = one.p_small is not None and one.p_small <= ALPHA / 2
    if one.low is None or one.high is None or not excluded:
        return TOO_FEW
    return SAME if max(-one.low, one.high) <= MATTERS else TOO_FEW


def state_of_excess(one: Estimate, signed: Sequence[Contrast]) -> str:
    """Say what is known of an excess. A small one is no proof that labels do nothing: of answers
    that vary by chance it is the difference of their rates times that under the placebo, a square
    only where the placebo changes nothing: where it does, the two can cancel. So it is "same" only
    where each of the `signed` contrasts of its outcome, labels against labels, is so too; words
    have none, and so are never."""
    state = state_of(one)
    if state != SAME or (signed and all(state_of(each.found) == SAME for each in signed)):
        return state
    return TOO_FEW


def adjusted(found: Sequence[Contrast]) -> list[Contrast]:
    """Adjust the p-values by Holm over all contrasts of all families of each outcome."""
    by_outcome: dict[str, list[Contrast]] = {}
    for one in found:
        by_outcome.setdefault(one.outcome.name, []).append(one)
    made = {
        (name, place): after
        for name, family in by_outcome.items()
        for place, after in enumerate(adjusted_estimates([one.found for one in family]))
    }
    seen: Counter[str] = Counter()
    after = []
    for one in found:
        name = one.outcome.name
        after.append(replace(one, found=made[name, seen[name]]))
        seen[name] += 1
    return after


def effects(
    excess: Mapping[str, tuple[Estimate, float | None]],
    main: str,
    found: Sequence[Contrast],
    chosen: str | None,
) -> tuple[Section, Section]:
    """Make the table of the main outcome, of each family its excess and then its contrasts, and
    that of the other outcomes."""
    first: list[tuple[Cell, ...]] = []
    others: list[tuple[Cell, ...]] = []
    for family, (one, beside) in excess.items():
        own = [each for each in found if each.family == family]
        signed = [each for each in own if each.outcome.label == main and not each.beside_none]
        first.append((family, _EXCESS, *_numbers(one, beside), state_of_excess(one, signed)))
        for each in own:
            numbers = _numbers(each.found, each.placebo)
            row = (family, f"{each.left} − {each.right}", *numbers, state_of(each.found))
            if each.outcome.label == main:
                first.append(row)
            else:
                others.append((each.outcome.label, *row))
    of = f"decision: {chosen}" if main == "decision" and chosen is not None else main
    return (
        Section(name="effects", title=f"would it be the same for somebody else? ({of})",
                columns=_COLUMNS, rows=tuple(first), note=_NOTE, in_short=True),
        Section(name="other_effects", title="the same by other outcomes",
                columns=("outcome", *_COLUMNS), rows=tuple(sorted(others, key=_outcome))),
    )  # fmt: skip


def _outcome(row: tuple[Cell, ...]) -> str:
    return str(row[0])


def _numbers(one: Estimate, placebo: float | None) -> tuple[Cell, ...]:
    value = "-" if one.value is None else f"{100 * one.value:+.1f}"
    ends = "-"
    if one.low is not None and one.high is not None:
        ends = f"{100 * one.low:+.1f} to {100 * one.high:+.1f}"
    beside = "-" if placebo is None else f"{100 * placebo:.1f}"
    return value, ends, beside, one.clusters


def shown_in(table: Section | None) -> list[str]:
    """List what the table of the main outcome shows, a row a line."""
    return [f"shown: {row[0]}, {row[1]}: {row[2]} ({row[3]})" for row in _shown(table)]


def despite_the_verdict(table: Section | None) -> str:
    """Say that labels differ from labels, where the verdict over all families does not show it:
    nobody is to read "not shown" alone. Empty where no row shows it."""
    rows = [row for row in _shown(table) if row[1] != f"{ANY} − {NONE}"]
    if not rows:
        return ""
    family, contrast, value, ends, *_ = rows[0]
    more = f", and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"Yet labels do differ: {family}, {contrast}: {value} ({ends}) is shown{more}. "


def _shown(table: Section | None) -> list[tuple[Cell, ...]]:
    return [] if table is None else [row for row in table.rows if row[-1] == SHOWN]


def examples(answers: pl.DataFrame, main: str) -> Section:
    """Show the answers that differ most between two labels of a family, and beyond their
    placebos."""
    group = answers.filter(pl.col("role") == "group", pl.col("other") != "")
    place = [*SAME_PLACE, "label"]
    two = group.join(
        group.select(*place, "text", "excess", main),
        left_on=[*SAME_PLACE, "other"],
        right_on=place,
        suffix=":b",
    ).filter(pl.col("label") < pl.col("other"))
    two = two.with_columns(
        apart=DISTANCES[main](pl.col(main), pl.col(f"{main}:b")),
        excess=(pl.col("excess") + pl.col("excess:b")) / 2,
    ).filter(pl.col("apart") > 0, pl.col("excess") > 0)
    widest = two.sort("apart", "excess", descending=True, maintain_order=True)
    first = widest.group_by("family", maintain_order=True).head(_EXAMPLES)
    columns = ("family", "prompt", "label", "answer", "other label", "other answer")
    rows = first.select("family", "cluster", "label", "text", "other", "text:b").rows()
    return Section(name="pairs", title="the most different answers", columns=columns,
                   rows=tuple(rows), note="Chosen for being different: they show what to look at, "
                   "and prove nothing.")  # fmt: skip


def words(answers: pl.DataFrame, labels: Mapping[str, Sequence[str]]) -> Section:
    """List the words that answers about one label have more often than those about the others."""
    rows: list[tuple[Cell, ...]] = []
    for family, names in labels.items():
        counts = {name: _counted(answers, family, name) for name in names}
        for name in names[:1] if len(names) == 2 else names:
            rest: Counter[str] = Counter()
            for other in names:
                rest.update(counts[other] if other != name else {})
            found = word_odds(counts[name], rest, _LEAST)
            over = [one for one in found[:_WORDS] if one.z >= _LEAST_Z]
            under = [one for one in found[-_WORDS:] if one.z <= -_LEAST_Z]
            against = names[1] if len(names) == 2 else "the others"
            rows += [
                (family, f"{name} − {against}", one.word, one.first, one.second, f"{one.z:+.1f}")
                for one in (*over, *under)
            ]
    columns = ("family", "contrast", "word", "in the first", "in the second", "z")
    note = (
        "Exploratory: log-odds with an informative prior (Monroe et al. 2008), which takes words "
        f"for independent. Words of fewer than {_LEAST} occurrences, of |z| below {_LEAST_Z:g}, "
        "and those that the prompt itself has are left out."
    )
    return Section(name="words", title="over- and under-used words", columns=columns,
                   rows=tuple(rows), note=note)  # fmt: skip


def _counted(answers: pl.DataFrame, family: str, label: str) -> Counter[str]:
    mine = answers.filter(pl.col("family") == family, pl.col("label") == label)
    counts: Counter[str] = Counter()
    for found, asked in mine.drop_nulls("words").select("words", "asked_words").iter_rows():
        known = set(asked or ())
        counts.update(word for word in found if word not in known)
    return counts
