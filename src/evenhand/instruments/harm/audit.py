"""The check of a harm, from its run folder: what was found, and the certificate that follows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.errors import UserError
from evenhand.findings.audit import Audit, Check, overall
from evenhand.findings.certificate import Certificate, Judge
from evenhand.instruments.harm.certificate import METHOD, looks_before
from evenhand.instruments.harm.checks import Bars, Judged, checks
from evenhand.instruments.harm.examples import near_copy_key
from evenhand.instruments.harm.source import KIND, PLAIN
from evenhand.instruments.harm.tables import sections
from evenhand.methods.harm_check import AS_WRITTEN, SCORE
from evenhand.store import RunReader


def audit(run: RunReader, folder: Path) -> tuple[Audit, Certificate]:
    """Read the run of a check and say what it showed. `folder` has the certificates of the checks
    before it."""
    source = run.record.source
    if source.get("kind") != KIND:
        raise UserError(f"{run.path} was not made by `evenhand harms check`; give a run that was")
    name, texts = source["asked"]["harm"], frozenset(source["texts"])
    look = 1 + looks_before(texts, run.record.created, folder)
    rows, bars = judged(run.results().collect()), Bars(**source["bars"], look=look)
    answers = checks(rows, bars)
    certificate = _certificate(run, answers, look)
    result = Audit(
        kind="harm",
        title=f"{name} · {certificate.judge.model}",
        facts=tuple(_facts(rows, bars)),
        checks=answers,
        state=overall(answers),
        says=tuple(_says(answers)),
        next=tuple(_next(name, answers)),
        notes=tuple(_notes(rows, look, source["asked"])),
        sections=sections(rows, bars),
        more={
            "run": str(run.path),
            "source": source,
            "look": look,
            "missing": sum(row.flagged is None for row in rows),
            "certificate": certificate.model_dump(),
        },
    )
    return result, certificate


def judged(results: pl.DataFrame) -> list[Judged]:
    """One row per text that was asked about."""
    if results.is_empty():
        raise UserError("the run has no finished item yet")
    verdicts = []
    for row in results.sort("position").iter_rows(named=True):
        tags = {tag["name"]: tag["value"] for tag in row["tags"]}
        marks = {score["name"]: score["value"] for score in row["scores_after"] or ()}
        mark = marks.get(SCORE)
        verdicts.append(
            Judged(
                part=tags["part"],
                example=tags["example"],
                harm=tags["harm"] == "true",
                group=tags["group"],
                rule=tags["rule"],
                line=tags["line"],
                text=row["prompt"],
                flagged=None if mark is None else mark >= 0.5,  # a verdict is 0 or 1
                why=(row["text"] or "") if mark is not None else f"missing: {row['reason']}",
            )
        )
    return verdicts


def _certificate(run: RunReader, answers: Sequence[Check], look: int) -> Certificate:
    record, source = run.record, run.record.source
    model: dict[str, Any] = record.cast[AS_WRITTEN.role]["scorer"]["model"]
    benchmark = {key: source[key] for key in ("kind", "items", "sha256", "examples", "texts")}
    return Certificate.of_run(
        run,
        kind=METHOD,
        judge=Judge(
            model=model["model"],
            served_by=[],
            described={key: value for key, value in model.items() if key != "url"},
        ),
        checks=answers,
        method={"name": METHOD, "settings": source["asked"]},
        prompts=source["hashes"],
        benchmark={**benchmark, "look": look},
        margins=source["bars"],
    )


def _facts(rows: Sequence[Judged], bars: Bars) -> Iterator[str]:
    plain = [row for row in rows if row.part == PLAIN]
    harmful, benign = (
        len({near_copy_key(row.text) for row in plain if row.harm is harm})
        for harm in (True, False)
    )
    copies = len(plain) - harmful - benign
    near = f"; {copies} more are near copies and count with the one they copy" if copies else ""
    yield (
        f"{harmful + benign} examples ({harmful} harmful, {benign} benign), asked about in "
        f"{len(rows):,} forms{near}"
    )
    if bars.look > 1:
        yield (
            f"check {bars.look} on these examples: each passes by its "
            f"{100 * bars.confidence:g} % interval, so that looking again is no way to pass"
        )


def _notes(rows: Sequence[Judged], look: int, settings: Mapping[str, Any]) -> Iterator[str]:
    if settings.get("orders") == "both":
        yield (
            "Both orders of yes and no are in every verdict. So the check that swaps them asks the "
            "same again, and shows only whether the judge says the same twice."
        )
    missing = Counter(row.why for row in rows if row.flagged is None)
    if missing:
        reasons = ", ".join(f"{n:,} {why.removeprefix('missing: ')}" for why, n in missing.items())
        yield (
            f"Verdicts are missing ({reasons}): none of them helps the judge to pass, and none "
            "makes it fail."
        )
    if look > 3:
        yield "The policy was chosen by these examples again and again: label new ones."


def _says(answers: Sequence[Check]) -> Iterator[str]:
    failed = [check.title for check in answers if check.state == "fail"]
    open_ = [check.title for check in answers if check.required and check.is_open]
    if failed:
        yield f"As this policy is worded, its judge is shown to fail on: {'; '.join(failed)}."
    elif open_:
        yield f"Neither shown to be good enough nor not. Too few to tell: {'; '.join(open_)}."
    else:
        yield "Every check is shown to hold: the harm may be used as long as nothing of it changes."


def _next(name: str, answers: Sequence[Check]) -> Iterator[str]:
    if overall(answers) == "pass":
        yield f"evenhand scorers score harm:{name} TEXT"
    else:
        yield f"evenhand harms check {name} --out runs/harm-{name}-edited   # after an edit"
