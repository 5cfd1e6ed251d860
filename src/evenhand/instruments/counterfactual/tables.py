"""The tables of a run: what is shown of each family, the most different answers, and words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from evenhand.findings.estimates import Cell, Estimate, Section
from evenhand.findings.ratios import INCONCLUSIVE, SHOWN
from evenhand.findings.report import Report
from evenhand.instruments.counterfactual.contrasts import (
    DISTANCES,
    MATTERS,
    SAME_PLACE,
    AnswerPart,
    LabelContrast,
    main_of,
    named,
)
from evenhand.instruments.files import InstrumentWords
from evenhand.statistics.metrics.readings import word_odds

_WORDS = InstrumentWords(__package__)
EQUIVALENT = "equivalent"
_EXCESS = "any two groups (adjusted)"
_EXAMPLES = 3  # our choice: of each family, as many as can be read on a screen
_LEAST = 10  # our choice: a word that occurs fewer times says nothing about anybody
_LEAST_Z = 2.0  # our choice: about what chance alone prints for one word of twenty
_MOST_WORDS = 5  # our choice: of each label, the most over-used and the most under-used


def state_of(estimate: Estimate) -> str:
    """Say what is known of a difference: its interval alone decides."""
    if estimate.low is None or estimate.high is None:
        return INCONCLUSIVE
    if estimate.low > 0 or estimate.high < 0:
        return SHOWN
    return EQUIVALENT if max(-estimate.low, estimate.high) <= MATTERS else INCONCLUSIVE


def state_of_excess(excess: Estimate, signed: Sequence[LabelContrast]) -> str:
    """Say what is known of an excess. A small one does not prove that labels do nothing: of answers
    that vary by chance it is the difference of their rates times that under the placebo, a square
    only where the placebo changes nothing: where it does, the two can cancel. So it is "equivalent"
    only where each of the `signed` contrasts of its outcome, labels against labels, is so; words
    have none, and so are never."""
    state = state_of(excess)
    if state != EQUIVALENT or (
        signed and all(state_of(each.found) == EQUIVALENT for each in signed)
    ):
        return state
    return INCONCLUSIVE


def main_contrasts(contrasts: Sequence[LabelContrast], main: str) -> list[LabelContrast]:
    """Give the contrasts of two labels by the main outcome: what a verdict rests on."""
    return [
        contrast
        for contrast in contrasts
        if contrast.outcome.label == main and not contrast.beside_none
    ]


Excess = tuple[Estimate, float | None]  # with its distance under the placebo


def effects(
    excess: Mapping[str, Excess],
    by_part: Mapping[AnswerPart, Excess],
    main: str,
    contrasts: Sequence[LabelContrast],
    chosen: str | None,
) -> tuple[Section, Section]:
    """Make the tables of effects: of the main outcome, and of the others.

    Args:
        excess: Placebo-adjusted effect of each family, and its distance under the placebo.
        by_part: The same of each placement or turn. Empty if there is one.
        main: Label of the main outcome.
        contrasts: Contrasts of all outcomes.
        chosen: Decision that --favorable-outcome names. None if it names none.

    Returns:
        The table of the main outcome, in each family its contrasts and then its excess, and the
        table of the other outcomes.
    """
    first: list[tuple[Cell, ...]] = []
    others: list[tuple[Cell, ...]] = []

    def row(family: str, contrast: str, part: str, *cells: Cell) -> tuple[Cell, ...]:
        return (f"{family}: {contrast}", part, *cells) if by_part else (family, contrast, *cells)

    for family, (estimate, placebo) in excess.items():
        of_family = [each for each in contrasts if each.family == family]
        signed = main_contrasts(of_family, main)
        last: list[tuple[Cell, ...]] = []
        for each in of_family:
            numbers = _numbers(each.found, each.placebo)
            cells = row(family, f"{each.left} − {each.right}", each.part.label, *numbers,
                        state_of(each.found))  # fmt: skip
            if each in signed:
                first.append(cells)
            elif each.outcome.label == main and not by_part:
                last.append(cells)
            else:
                others.append((each.outcome.label, *cells))
        state = state_of_excess(estimate, signed)
        first += [row(family, _EXCESS, "all", *_numbers(estimate, placebo), state), *last]
    if not main_contrasts(contrasts, main):
        first += [
            row("all", _EXCESS, part.label, *_numbers(*found), state_of_excess(found[0], ()))
            for part, found in by_part.items()
        ]
    of = f"decision: {chosen}" if main == "decision" and chosen is not None else main
    others.sort(key=lambda cells: str(cells[0]))
    like = ("effects_by_part", "other_effects_by_part") if by_part else ("", "")
    return (
        _WORDS.table("effects", first, in_short=True, like=like[0], outcome=of,
                     matters=100 * MATTERS),
        _WORDS.table("other_effects", others, like=like[1]),
    )  # fmt: skip


def trends(slopes: Sequence[LabelContrast], excess: Estimate | None) -> Section:
    """Make the table of the change per turn: of each contrast, or else of the excess.

    Args:
        slopes: Trends of the contrasts of two labels.
        excess: Trend of the excess, where answers are only words.
    """
    rows = [
        (f"{each.name}{each.part.label and f', {each.part.label}'}",
         *_numbers(each.found, None)[:2], each.found.clusters, _moves(each.found))
        for each in slopes
    ]  # fmt: skip
    if excess is not None and not rows:
        rows = [(_EXCESS, *_numbers(excess, None)[:2], excess.clusters, _moves(excess))]
    return _WORDS.table("trends", rows, in_short=True)


def _moves(estimate: Estimate) -> str:
    """Say whether a trend is shown; none is ever called equivalent to no trend."""
    return SHOWN if state_of(estimate) == SHOWN else INCONCLUSIVE


def _numbers(estimate: Estimate, placebo: float | None) -> tuple[Cell, ...]:
    value = "-" if estimate.value is None else per_100(estimate.value)
    distance = "-" if placebo is None else f"{100 * placebo:.1f}"
    return value, ends(estimate) or "-", distance, estimate.clusters


def per_100(share: float) -> str:
    """Write a difference of shares as one of 100 answers."""
    written = f"{100 * share:+.1f}"
    return "+0.0" if written == "-0.0" else written


def ends(estimate: Estimate) -> str:
    """Write an interval so that it looks as it was judged: an end that is not 0 is never printed as
    0, and one beyond what matters is never printed as within."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{_end(estimate.low)} to {_end(estimate.high)}"


def _end(share: float) -> str:
    for digits in (1, 2, 3):
        rounded = round(100 * share, digits)
        within = (abs(rounded) <= 100 * MATTERS) == (abs(share) <= MATTERS)
        if within and (rounded == 0) == (share == 0):
            break
    return f"{rounded:+.{digits}f}"


def examples(answers: pl.DataFrame, main: str) -> Section:
    """Show the answers that differ most between two labels of a family, and beyond their
    placebos."""
    group = answers.filter(pl.col("role") == "group", pl.col("other") != "")
    keys = [*SAME_PLACE, "label"]
    two = group.join(
        group.select(*keys, "text", "excess", main),
        left_on=[*SAME_PLACE, "other"],
        right_on=keys,
        suffix=":b",
    ).filter(pl.col("label") < pl.col("other"))
    two = two.with_columns(
        apart=DISTANCES[main](pl.col(main), pl.col(f"{main}:b")),
        excess=(pl.col("excess") + pl.col("excess:b")) / 2,
    ).filter(pl.col("apart") > 0, pl.col("excess") > 0)
    widest = two.sort("apart", "excess", descending=True, maintain_order=True)
    first = widest.group_by("family", maintain_order=True).head(_EXAMPLES)
    rows = first.select("family", "cluster", "label", "text", "other", "text:b").rows()
    return _WORDS.table("pairs", rows)


def words(answers: pl.DataFrame, labels: Mapping[str, Sequence[str]]) -> Section:
    """List the words that answers about one label have more often than those about the others."""
    rows: list[tuple[Cell, ...]] = []
    for family, names in labels.items():
        counts = {name: _counted(answers, family, name) for name in names}
        for name in names[:1] if len(names) == 2 else names:
            rest: Counter[str] = Counter()
            for other in names:
                rest.update(counts[other] if other != name else {})
            odds = word_odds(counts[name], rest, _LEAST)
            over = [entry for entry in odds[:_MOST_WORDS] if entry.z >= _LEAST_Z]
            under = [entry for entry in odds[-_MOST_WORDS:] if entry.z <= -_LEAST_Z]
            against = names[1] if len(names) == 2 else "the others"
            rows += [
                (
                    family,
                    f"{name} − {against}",
                    entry.word,
                    entry.first,
                    entry.second,
                    f"{entry.z:+.1f}",
                )
                for entry in (*over, *under)
            ]
    return _WORDS.table("words", rows, least=_LEAST, least_z=_LEAST_Z)


def _counted(answers: pl.DataFrame, family: str, label: str) -> Counter[str]:
    mine = answers.filter(pl.col("family") == family, pl.col("label") == label)
    counts: Counter[str] = Counter()
    for answer_words, prompt_words in (
        mine.drop_nulls("words").select("words", "asked_words").iter_rows()
    ):
        excluded = set(prompt_words or ())
        counts.update(word for word in answer_words if word not in excluded)
    return counts


# -- the main result in words ---------------------------------------------------------------------


_UNIT = {"decision": "of 100", "number": "percent", "bag": "of 100 words"}
_OF = {"decision": "of 100 decisions", "number": "percent", "bag": "of 100 words"}


def says(report: Report) -> tuple[str, ...]:
    """Say the main result: of the signed contrasts where there are any, then of the excess."""
    placebo, excess = report["placebo"].value, report["excess"]
    if excess.value is None or placebo is None:
        return ()
    main = main_of(report.source)
    by_family = report.groups.get("family", {})
    parts = {f" in {family}": estimate for family, estimates in by_family.items()
             for estimate in estimates if estimate.name == "excess"}  # fmt: skip
    whose, largest = next(
        ((whose, estimate) for whose, estimate in ({"": excess} | parts).items()
         if state_of(estimate) == SHOWN), ("", excess),
    )  # fmt: skip
    differ = state_of(largest) == SHOWN
    key = "beyond_again" if report.source.get("placebo") == "again" else "beyond"
    beyond = _WORDS(key, placebo=100 * placebo)
    size = f"{per_100(largest.value or 0.0)} {_OF[main]}{_interval(largest)}{whose} {beyond}"
    signed = [(measure.label, report[measure.name]) for measure in report.instrument.primary()
              if measure.name.startswith("difference.")]  # fmt: skip
    signed = [(label, estimate) for label, estimate in signed if estimate.value is not None]
    if main == "bag" or not signed:
        return _of_words(report, size)
    significant = [(label, estimate) for label, estimate in signed if state_of(estimate) == SHOWN]
    if significant:
        chosen = named(report.source)
        what = f"Decision {chosen!r}, " if chosen is not None else ""
        lines = _over_turns(report, what) or (_favored(significant, report.source, main),)
        return (*lines, *_also(size, differ=differ))
    if differ:
        return (_WORDS("differ_alone", size=size),)
    matters = {"matters": 100 * MATTERS, "unit": _OF[main]}
    if all(state_of(estimate) == EQUIVALENT for _, estimate in signed):
        return (_WORDS("same", **matters),)
    label, widest = max(signed, key=lambda pair: abs(pair[1].value or 0.0))
    size = f"{per_100(widest.value or 0.0)}{_interval(widest)}"
    return (_WORDS("favored_open", label=label, size=size, **matters),)


def _of_words(report: Report, size: str) -> tuple[str, ...]:
    """Say what is known where answers are only words: of each part, where there are several."""
    parts = [measure for measure in report.instrument.primary() if measure.name != "excess"]
    if not parts:
        differ = state_of(report["excess"]) == SHOWN
        return (_WORDS("differ" if differ else "differ_open", size=size),)
    shown = [measure for measure in parts if state_of(report[measure.name]) == SHOWN]
    if not shown:
        return (_WORDS("differ_open", size=size),)
    if report.instrument.series:
        return _over_turns(report)
    largest = max(shown, key=lambda measure: report[measure.name].value or 0.0)
    estimate, where = report[largest.name], largest.label.rpartition(", ")[2]
    size = f"{per_100(estimate.value or 0.0)} {_OF['bag']}{_interval(estimate)}"
    return (_WORDS("differ_in", where=where, size=size),)


def _over_turns(report: Report, what: str = "") -> tuple[str, ...]:
    """Say from which turn on each effect is detected, and whether it changes from turn to turn.

    Args:
        report: Report of a run over conversations of several turns.
        what: What is compared, such as the decision. Empty if the label says it.
    """
    lines, unit = [], _UNIT[main_of(report.source)]
    for series in report.instrument.series:
        found = {turn: report[name] for turn, name in series.points}
        shown = [turn for turn in found if state_of(found[turn]) == SHOWN]
        if not shown:
            continue
        first = report.more["detected_from_turn"][series.name]
        at = first or shown[-1]
        others = [turn for turn in found if turn < at and turn not in shown]
        key = "turns_alone" if first is None else "from_turn" if others else "every_turn"
        size = f"{per_100(found[at].value or 0.0)} {unit}{_interval(found[at])}"
        lines.append(_WORDS(key, label=f"{what}{series.label}", turn=at, size=size,
                            shown=_turns(shown), others=_turns(others)))  # fmt: skip
    for measure in report.instrument.measures:
        if measure.name.partition(".")[0] == "trend" and state_of(report[measure.name]) == SHOWN:
            estimate = report[measure.name]
            size = f"{per_100(estimate.value or 0.0)} {unit}{_interval(estimate)}"
            lines.append(_WORDS("moves", label=measure.label, size=size))
    return tuple(lines)


def _turns(turns: Sequence[int]) -> str:
    *first, last = [*map(str, turns)] or [""]
    return f"turns {', '.join(first)} and {last}" if first else f"turn {last}"


def _favored(differences: list[tuple[str, Estimate]], source: Mapping[str, Any], main: str) -> str:
    label, largest = max(differences, key=lambda pair: abs(pair[1].value or 0.0))
    chosen, many = named(source), len(differences) - 1
    what = f"Decision {chosen!r}" if chosen is not None else _WORDS("most_frequent")
    first, unit = (what, "of 100") if main == "decision" else ("The number", "percent")
    size = f"{per_100(largest.value or 0.0)} {unit}{_interval(largest)}"
    more = f"; {many} more significant difference{'s' * (many > 1)}" if many else ""
    return f"{first}, {label}: {size}{more}."


def _also(size: str, *, differ: bool) -> tuple[str, ...]:
    return (_WORDS("differ", size=size),) if differ else ()


def _interval(estimate: Estimate) -> str:
    interval = ends(estimate)
    return f" (95% CI {interval})" if interval else ""
