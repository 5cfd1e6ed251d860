"""The certificate of a judge: made from its audit, kept in a folder, and looked for there."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.errors import UserError
from evenhand.findings.audit import Check
from evenhand.findings.certificate import (
    Certificate,
    Expected,
    Judge,
    certificates_in,
    why_not,
)
from evenhand.instruments.judge.probes import HUMAN, KNOWN, OWN, checksums
from evenhand.instruments.judge.scope import NEEDED, Scope
from evenhand.methods.panel import roles_of
from evenhand.methods.self_preference import OTHER
from evenhand.store import RunReader
from evenhand.store.folder import as_file_name

FILE = "judge-certificate.json"
KIND = "judge"
# Checks that are made where they are asked for, and what they ask.
_PROBED = {"human_agreement": HUMAN, "self_preference": OWN, **{name: name for name in KNOWN}}
SETS = "sets"  # among the probes of a certificate: the checksum of each further set
TOGETHER = " + "  # between the names of a panel's models


def certificate_of(run: RunReader, checks: Iterable[Check]) -> Certificate:
    """The sealed certificate of the judge that a run audited."""
    record = run.record
    benchmark = {k: v for k, v in record.source.items() if k not in ("prompt", "margins", "kind")}
    other = str(record.cast.get(OTHER, {}).get("model", ""))
    if sets := checksums(run.results().select("prompt", "tags").collect(), other):
        benchmark["probes"] = {**benchmark["probes"], SETS: sets}
    return Certificate.of_run(
        run,
        kind=KIND,
        judge=judge_of(run),
        checks=checks,
        method=record.method,
        prompts={**record.prompts, **record.source["prompt"]},
        benchmark=benchmark,
        margins=record.source["margins"],
    )


def judge_of(run: RunReader) -> Judge:
    """Who answered, as the turns say: the config could have changed since. A panel of mixed models
    is one judge, whose name is theirs in the order of their seats."""
    roles = roles_of(run.record.method["settings"].get("models", 1))
    turns = (
        run.turns()
        .filter(pl.col("role").is_in(roles) & pl.col("error").is_null())
        .select("role", "model", "served_by")
        .unique()
        .collect()
    )
    cast = {role: run.record.cast.get(role, run.record.cast["default"]) for role in roles}
    described = {
        role: {k: v for k, v in description.items() if k != "url"}
        for role, description in cast.items()
    }
    names = [
        _model(run, turns.filter(role=role)["model"].unique().to_list(), described[role])
        for role in roles
    ]
    return Judge(
        model=TOGETHER.join(names),
        served_by=sorted({name for name in turns["served_by"].to_list() if name}),
        described=described if len(roles) > 1 else described[roles[0]],
    )


def _model(run: RunReader, models: list[str], described: Mapping[str, Any]) -> str:
    if len(models) > 1:
        raise UserError(
            f"{run.path} holds verdicts of several models: {', '.join(models)}; "
            "audit each with an --out of its own"
        )
    return models[0] if models else str(described.get("model", ""))


def keep(certificate: Certificate, folder: Path) -> Path:
    """Put a certificate into a folder, each in a file of its own: no audit takes the place of an
    earlier one, so that a fail cannot be audited away."""
    name = as_file_name(certificate.judge.model)
    when = re.sub(r"[^0-9TZ]+", "", certificate.created)
    told_apart = f"{certificate.method['name']}-{when}-{certificate.sha256[:8]}"
    path = folder / f"{name}-{told_apart}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(certificate.to_bytes())
    except OSError as error:
        raise UserError(f"[judges] certificates: {path} cannot be written: {error}") from None
    return path


# -- finding the one for a judge -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The certificate that decides for a judge, or why there is none."""

    path: Path | None = None
    certificate: Certificate | None = None
    problem: str = ""
    lacks: tuple[str, ...] = ()  # what it has too little of to open the gate
    unreadable: tuple[str, ...] = ()  # files beside it: any of them may have been a fail

    @property
    def passes(self) -> bool:
        certificate = self.certificate
        return (
            certificate is not None
            and certificate.state == "pass"
            and not (self.lacks or self.unreadable)
        )

    @property
    def says(self) -> str:
        if self.certificate is None:
            return f"not certified: {self.problem}"
        message = f"certificate says {self.certificate.state}{self.certificate.decided_by}"
        too_small = f"; too little to rely on: {'; '.join(self.lacks)}" if self.lacks else ""
        message = f"{message} for {Scope.of(self.certificate).says}{too_small}, {self.path}"
        if self.unreadable and self.certificate.state != "fail":
            message += f"; but {'; '.join(self.unreadable)}. It may have been a fail: {_MEND}"
        return message


_MEND = "bring it back as it was, or take it out of the folder and audit this judge again"


def find(folder: Path | None, expected: Expected) -> Found:
    """Look for the certificate of a judge in a folder. A file that cannot be read may have been a
    fail of this judge: it is named, and beside it nothing passes."""
    if folder is None:
        return Found(problem="the config names no folder of certificates")
    unreadable, others, fitting = [], [], []
    for path, certificate in certificates_in(folder):
        if isinstance(certificate, str):
            unreadable.append(certificate)
            continue
        reason = why_not(certificate, expected)
        if reason is None:
            fitting.append((path, certificate))
        elif certificate.judge.model == expected.model:
            others.append(f"{path} {reason}")
    if fitting:
        return replace(deciding(fitting), unreadable=tuple(unreadable))
    none = f"{folder} has no certificate of the model {expected.model!r}"
    return Found(problem="; ".join([*unreadable, *others]) or none)


def deciding(fitting: list[tuple[Path, Certificate]]) -> Found:
    """The certificate that decides, of all that a judge has.

    A fail stands until a later audit of at least its size passes, and in it what failed. Where none
    stands, it is the newest one that is large enough for the gate; where none is, the newest, which
    opens nothing. The gate opens only if more audits of its size passed than did not.
    """
    by_age = sorted(fitting, key=lambda entry: (entry[1].created, entry[0]))
    standing = [entry for entry in by_age if _stands(entry[1], by_age)]
    enough = [entry for entry in by_age if not Scope.of(entry[1]).lacks(NEEDED)]
    path, certificate = (standing or enough or by_age)[-1]
    if certificate.state == "fail":
        return Found(path=path, certificate=certificate)
    lacks = (*Scope.of(certificate).lacks(NEEDED), *_outnumbered([audit for _, audit in enough]))
    return Found(path=path, certificate=certificate, lacks=lacks)


def _outnumbered(audits: Iterable[Certificate]) -> Iterator[str]:
    """Why audits large enough for the gate do not open it together; nothing where they do.

    Trying again has its price. A judge that should not pass does so in at most 1 of 20 audits; that
    its passes ever outnumber the others then happens in at most 1 of 19 cases (gambler's ruin,
    p/(1 − p)), however often it is audited. An audit whose replies could not be read had no chance
    to pass and does not count.
    """
    states = list({audit.sha256: audit.state for audit in audits if _is_read(audit)}.values())
    passed, others = states.count("pass"), len(states) - states.count("pass")
    if passed and passed <= others:
        yield f"{passed} of {len(states)} audits of this size passed, and more than half have to"


def _is_read(certificate: Certificate) -> bool:
    return any(check.name == "coverage" and check.state == "pass" for check in certificate.checks)


def _stands(failed: Certificate, others: Iterable[tuple[Path, Certificate]]) -> bool:
    """Whether a certificate is a fail that no later pass of at least its size has undone."""
    return failed.state == "fail" and not any(
        later.state == "pass"
        and later.created > failed.created
        and not Scope.of(later).lacks(Scope.of(failed))
        and _asked_again(later, failed)
        for _, later in others
    )


def _asked_again(later: Certificate, failed: Certificate) -> bool:
    """Whether each check that failed passes later; if it was made beside the design, asked as often
    and of the same texts. Else a fail on pairs whose better answer is known, or on texts that
    people marked, would be undone by silence, by other labels or by another draw."""
    names = {check.name for check in failed.checks if check.state == "fail"}
    passed = {check.name for check in later.checks if check.state == "pass"}
    then, now = (certificate.benchmark.get("probes", {}) for certificate in (failed, later))
    return names <= passed and all(
        now.get(probe, 0) >= then.get(probe, 0) and _same(probe, then, now)
        for probe in (_PROBED[name] for name in names & _PROBED.keys())
    )


def _same(probe: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a later audit asked the texts that an earlier one did."""
    return bool(now.get(SETS, {}).get(probe) == then.get(SETS, {}).get(probe))
