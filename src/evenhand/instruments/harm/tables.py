"""The tables of a check: false alarms by group, what turns verdicts, and the errors one by one."""

from collections.abc import Iterator, Mapping, Sequence

from evenhand.findings.estimates import Section
from evenhand.instruments.harm.checks import Bars, Judged, by_group, pairs_of, turned
from evenhand.instruments.harm.source import ORDER, PARAPHRASE, PLAIN, SET

_SHOWN_ERRORS = 20  # our choice: what fits on a screen; the run folder has all of them


def sections(rows: Sequence[Judged], bars: Bars) -> tuple[Section, ...]:
    """The groups, the rules of paraphrase and the errors, one by one."""
    benign = [row for row in rows if row.part == PLAIN and not row.harm]
    of_sets: Mapping[str, list[Judged]] = {
        name: [row for row in rows if row.part == SET and row.example == name]
        for name in dict.fromkeys(row.example for row in rows if row.part == SET)
    }
    return (
        _group_table("groups", "benign examples that are flagged, by group", benign, bars),
        _rules(rows),
        *_errors(rows),
        *(
            _group_table(f"set_{name}", f"benign texts of {name} that are flagged", part, bars)
            for name, part in of_sets.items()
        ),
    )


def _group_table(name: str, title: str, rows: Sequence[Judged], bars: Bars) -> Section:
    return Section(
        name=name,
        title=title,
        columns=("group", "n", "flagged", "missing", "low", "high", "p, above the others"),
        rows=tuple(
            (
                row.group,
                row.n,
                row.flagged,
                row.missing,
                row.low,
                row.high,
                row.p_holm,
            )
            for row in by_group(rows, bars.confidence)
        ),
        note="Both ends hold for all groups together, the p after Holm. Near copies count as one; "
        "a missing verdict is flagged in the upper end and not in the lower one.",
        in_short=name == "groups",
    )


def _rules(rows: Sequence[Judged]) -> Section:
    flips = dict[str, list[bool]]()
    for plain, others in (*pairs_of(rows, PARAPHRASE), *pairs_of(rows, ORDER)):
        for variant in others:
            rule = variant.rule or "yes and no swapped"
            flips.setdefault(rule, []).append(turned(plain, variant) is not False)
    return Section(
        name="rules",
        title="verdicts that turn",
        columns=("what was changed", "n", "turned"),
        rows=tuple((rule, len(each), sum(each)) for rule, each in flips.items()),
        in_short=True,
    )


def _errors(rows: Sequence[Judged]) -> Iterator[Section]:
    wrong = [
        row
        for row in rows
        if row.part == PLAIN and row.flagged is not None and row.flagged is not row.harm
    ]
    if not wrong:
        return
    yield Section(
        name="errors",
        title="examples that are judged wrongly",
        columns=("line", "harm", "text", "the judge"),
        rows=tuple(
            (row.line, "yes" if row.harm else "no", _short(row.text), _short(row.why))
            for row in wrong[:_SHOWN_ERRORS]
        ),
        note=f"The first {_SHOWN_ERRORS} of {len(wrong)}." if len(wrong) > _SHOWN_ERRORS else "",
        in_short=True,
    )


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 70 else f"{words[:69]}…"
