"""Several judges who gave the same judgements, in one table: what each does, and what a later one
does otherwise than the first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import polars as pl

from evenhand.errors import UserError
from evenhand.findings.audit import Audit, Check, overall
from evenhand.findings.estimates import Cell, Section
from evenhand.instruments.judge.audit import seen_in
from evenhand.instruments.judge.certificate import judge_of
from evenhand.instruments.judge.changes import Changes, changes
from evenhand.instruments.judge.checks import checks
from evenhand.instruments.judge.effects import Effect
from evenhand.instruments.judge.evidence import Evidence
from evenhand.instruments.judge.probes import DESIGN
from evenhand.instruments.judge.tables import effect_row, estimate_row, range_of, wide
from evenhand.metrics import malibu
from evenhand.statistics.margins import EQUIVALENT, SHIFTED
from evenhand.store import RunReader

_EFFECT = ("shift", "95 %", "p", "bases", "shown to be")
_BOTH = ("what was asked", "margins", "metrics")
_OVERALL = {
    "marks": "mean mark",
    "marks_moved": "share of texts with another mark",
    "first_slot": "first slot's win rate",
    "verdicts_turned": "share of pairs with another verdict",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """A judge has a letter, since names of models are too long for a column."""

    letter: str
    run: RunReader
    model: str
    evidence: Evidence
    checks: tuple[Check, ...]

    @property
    def says(self) -> str:
        method, covered = self.run.record.method["name"], self.evidence.coverage.all
        return (
            f"{self.letter}: {self.model} · {method} · {self.run.path}: {overall(self.checks)}, "
            f"{covered.scored:,} of {covered.n:,} judgements scored"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "judge": self.letter,
            "model": self.model,
            "method": self.run.record.method,
            "run": str(self.run.path),
            "state": overall(self.checks),
            **self.evidence.to_dict(),
        }


def side_by_side(runs: Sequence[RunReader]) -> Audit:
    """Compare the judges of several audits; the first is the one that the others are held
    against."""
    if not 2 <= len(runs) <= len(ascii_uppercase):
        raise UserError("give the folders of two audits or more, the one to compare with first")
    for run in runs:
        _require_same(runs[0], run)
    judges = [_judge(*entry) for entry in zip(ascii_uppercase, runs, strict=False)]
    first, *others = judges
    by_letter = {judge.letter: _changes(first, judge) for judge in others}
    return Audit(
        kind="judges",
        title=", ".join(judge.letter for judge in judges),
        facts=tuple(judge.says for judge in judges),
        checks=(),
        state=None,
        says=tuple(_said(first.letter, letter, change) for letter, change in by_letter.items()),
        sections=tuple(table for table in _sections(judges, by_letter) if table.rows),
        more={
            "judges": [judge.to_dict() for judge in judges],
            "changes": [
                {"judge": letter, "against": first.letter, **change.to_dict()}
                for letter, change in by_letter.items()
            ],
        },
    )


def _require_same(first: RunReader, run: RunReader) -> None:
    """Refuse judges who were not asked the same, and a run that has not asked all of it yet."""
    if run.totals().items < run.record.source.get("items", 0):
        raise UserError(f"{run.path} is not finished; run its command again")
    compared = [
        (reader.record.source.get("sha256"), reader.record.source.get("margins"), _metrics(reader))
        for reader in (first, run)
    ]
    for name, *both in zip(_BOTH, *compared, strict=True):
        if both[0] != both[1]:
            raise UserError(
                f"{first.path} and {run.path} differ in {name}: audit both judges with the same "
                "options and the same --sample-seed"
            )


def _metrics(run: RunReader) -> str:
    return str(run.record.method["settings"].get("metrics", "four"))


def _judge(letter: str, run: RunReader) -> _Judge:
    evidence = seen_in(run)
    answers = tuple(check.check(evidence) for check in checks())
    model = judge_of(run).model
    return _Judge(letter=letter, run=run, model=model, evidence=evidence, checks=answers)


def _changes(first: _Judge, other: _Judge) -> Changes:
    before, after = (
        judge.evidence.rows.filter(pl.col("check") == DESIGN) for judge in (first, other)
    )
    margins = first.evidence.margins
    return changes(before, after, margin=margins.score, margin_wins=margins.win_rate)


def _said(first: str, letter: str, changes: Changes) -> str:
    moved = [e for e in changes.labels if e.verdict == SHIFTED]
    if moved:
        shifted = ", ".join(f"{e.label}{_size(e)}" for e in moved)
        return f"Identities move {letter} otherwise than {first}: {shifted}."
    if all(e.verdict == EQUIVALENT for e in changes.labels):
        margin = changes.labels[0].margin
        return f"Every identity moves {letter} as it moves {first}, to within {margin:g} points."
    open_ = sum(e.verdict != EQUIVALENT for e in changes.labels)
    return (
        f"Whether identities move {letter} otherwise than {first} is open for {open_} of "
        f"{len(changes.labels)}."
    )


def _size(e: Effect) -> str:
    return f" (with {e.missing} missing at their worst)" if e.missing else f" {e.estimate:+.2f}"


def _sections(judges: list[_Judge], changes: dict[str, Changes]) -> Iterator[Section]:
    first = judges[0].letter
    measured = [(j, check) for j in judges for check in j.checks if check.state != "not_measured"]
    yield Section(
        name="checks",
        title="the checks of each judge",
        columns=("check", "judge", "state", "value", "95 %"),
        rows=tuple(
            (check.title, j.letter, check.state, check.value, range_of(check.low, check.high))
            for j, check in sorted(measured, key=lambda entry: entry[1].title)
        ),
        in_short=True,
    )
    yield Section(
        name="identities",
        title="identities against no label, mean of all marks (p after Holm for each judge)",
        columns=("label", "judge", *_EFFECT),
        rows=_by_label(judges[0].evidence.primary, {j.letter: j.evidence.primary for j in judges}),
        in_short=True,
    )
    yield Section(
        name="changes",
        title=f"the same, each judge minus {first} (p after Holm for each)",
        columns=("label", "judge", *_EFFECT),
        rows=_by_label(
            judges[0].evidence.primary, {x: change.labels for x, change in changes.items()}
        ),
        note=f"How often they agree, and how much higher they mark than {first}: --full.",
        in_short=True,
    )
    yield Section(
        name="win_rates",
        title="win rates in pairs; either label had either text in either slot",
        columns=("label", "judge", "win rate", "95 %", "bases"),
        rows=tuple(
            (e.label, j.letter, *_win_rate(e))
            for label in sorted(e.label for e in _wins(judges[0]))
            for j in judges
            for e in _wins(j)
            if e.label == label
        ),
        in_short=True,
    )
    yield from _figures(judges)
    yield Section(
        name="agreement",
        title=f"marks and verdicts, each judge minus {first}",
        columns=("", "judge", "change", "95 %", "n", "bases"),
        rows=tuple(
            (name, letter, *estimate_row(getattr(change, field)))
            for field, name in _OVERALL.items()
            for letter, change in changes.items()
        ),
    )


def _by_label(
    order: Sequence[Effect], of: dict[str, tuple[Effect, ...]]
) -> tuple[tuple[Cell, ...], ...]:
    """One row per label and judge, the judges of a label below each other."""
    return tuple(
        (e.label, letter, *effect_row(e)[1:])
        for label in (effect.label for effect in order)
        for letter, effects in of.items()
        for e in effects
        if e.label == label
    )


def _wins(judge: _Judge) -> list[Effect]:
    effects = judge.evidence.exploratory
    return [e for e in effects if e.value == "win" and e.against == "all others"]


def _win_rate(e: Effect) -> tuple[Cell, ...]:
    if e.estimate is None:
        return ("-", e.undefined or "", e.bases)
    low, high = (None if end is None else end + malibu.TIE for end in (e.low, e.high))
    return (f"{e.estimate + malibu.TIE:.1%}", range_of(low, high) or "no spread", e.bases)


def _figures(judges: list[_Judge]) -> Iterator[Section]:
    means = {j.letter: wide(j.evidence.figures) for j in judges}
    metrics, rows = next(iter(means.values()))
    yield Section(
        name="means",
        title="mean marks by label and metric, ± half of the 95 % interval over bases",
        columns=("label, judge", *metrics),  # in one: there is no room for a column more
        rows=tuple((f"{x} {of}", *cells[x]) for x in rows for of, (_, cells) in means.items()),
    )
    yield Section(
        name="differences",
        title="mean marks, label minus label, on the same texts",
        columns=("labels", "judge", "difference", "95 %", "marks", "bases"),
        rows=tuple(
            (f"{gaps[0].label} – {gaps[0].other}", j.letter, *estimate_row(gap.difference))
            for gaps in zip(*(j.evidence.figures.gaps for j in judges), strict=True)
            for j, gap in zip(judges, gaps, strict=True)
        ),
    )
