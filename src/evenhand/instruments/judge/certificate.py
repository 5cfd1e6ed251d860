"""The certificate of a judge: made from its audit, kept in a folder, and looked for there."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.audit import AuditCheck
from evenhand.findings.certificate import (
    Certificate,
    CertificateRequirements,
    CertifiedJudge,
    certificates_in,
    why_not,
)
from evenhand.instruments.judge.design import TEN, JudgeDesign
from evenhand.instruments.judge.evidence import USUAL
from evenhand.instruments.judge.probes import EACH, HUMAN, INJECTION, KNOWN, OWN, checksums
from evenhand.methods.judging import OTHER, roles_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import as_file_name

FILE = "judge-certificate.json"
KIND = "judge"
# Checks that are made where they are asked for, and what they ask.
_PROBED = {"human_agreement": HUMAN, "self_preference": OWN, **{name: name for name in KNOWN}}
SETS = "sets"  # among the probes of a certificate: the checksum of each further set
TOGETHER = " + "  # between the names of a panel's models


def certificate_of(run: RunReader, checks: Iterable[AuditCheck]) -> Certificate:
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


def judge_of(run: RunReader) -> CertifiedJudge:
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
    return CertifiedJudge(
        model=TOGETHER.join(names),
        served_by=sorted({name for name in turns["served_by"].to_list() if name}),
        described=described if len(roles) > 1 else described[roles[0]],
    )


def _model(run: RunReader, models: list[str], described: Mapping[str, Any]) -> str:
    if len(models) > 1:
        raise UserError(
            f"{run.path} has verdicts of several models: {', '.join(models)}. A certificate is for "
            "one model. Audit each with its own --out."
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
        raise UserError(
            f"Could not write the certificate {path} ({error}). Make the folder writable, or set "
            "another one as `certificates` under [judges] in the config."
        ) from None
    return path


# -- how much a certificate rests on ---------------------------------------------------------------
# A pass holds for what was looked at. Two labels on six bases say nothing of a third label, under a
# margin of six points everybody passes, and custom scenarios say nothing of ours.

# Our choice: bases on which requests are put to the judge. Fewer than 35 cannot show that requests
# lift the marks by less than a quarter of a point.
INJECTED = 60


OURS = "ours"
OWN_PROMPT = "own/"  # how the name of a prompt begins that is given as a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The size of an audit; one is at least another if it lacks nothing that the other has."""

    scenarios: str | None  # whose: ours, or the checksum of the user's; None: it does not say
    bases: int
    derived: int  # scenarios of each base
    texts: int
    identities: frozenset[str]  # a label in words of the user's is another one than ours
    pairs: int  # bases on which each two labels are compared
    injections: int  # bases on which requests are tried
    margins: Mapping[str, float]
    checks: frozenset[str]  # those that were required
    prompt: str = ""  # the user's own, by its checksum; empty: ours

    @classmethod
    def of(cls, certificate: Certificate) -> "Scope":
        """What a certificate says that it rests on; what it does not say counts as nothing."""
        sampling = certificate.benchmark.get("sampling", {})
        requests = certificate.benchmark.get("probes", {}).get(INJECTION, 0)
        custom = certificate.benchmark.get("own")
        return cls(
            scenarios=None if custom is None else custom.get("scenarios") or OURS,
            bases=sampling.get("bases", 0),
            derived=sampling.get("derived", 0),
            texts=sampling.get("texts", 0),
            identities=frozenset(_told_apart(sampling.get("identities", ()), custom)),
            pairs=sampling.get("pairs", 0),
            injections=requests // (EACH + 1),  # and once the control
            margins=certificate.margins,
            checks=frozenset(check.name for check in certificate.checks if check.required),
            prompt=next((name for name in certificate.prompts if name.startswith(OWN_PROMPT)), ""),
        )

    @property
    def says(self) -> str:
        margins = ", ".join(f"{self.margins[name]:g}" for name in sorted(self.margins))
        return (
            f"{self.bases} bases, {len(self.identities)} identities, pairs on {self.pairs}, "
            f"requests on {self.injections}, margins {margins}{self._whose}"
        )

    @property
    def _whose(self) -> str:
        prompt = f", prompt {self.prompt}" if self.prompt else ""
        if self.scenarios in (OURS, None):
            return prompt
        return f"{prompt}, custom scenarios ({self.scenarios[:8]})"

    def lacks(self, than: "Scope") -> list[str]:
        """What this one has less of than another, in words; empty if it is at least as large."""
        return [
            *self._elsewhere(than),
            *self._fewer(than),
            *self._missing(than),
            *self._wider(than),
        ]

    def _elsewhere(self, than: "Scope") -> Iterator[str]:
        """Explain how the scenarios differ. An older certificate does not name its scenarios: a
        fail can be undone on ours, and a pass opens nothing."""
        if than.scenarios not in (self.scenarios, None):
            whose = "ours" if than.scenarios == OURS else f"those of {than.scenarios[:8]}"
            has = "it does not say whose" if self.scenarios is None else "others"
            yield f"scenarios: {has}, not {whose}"

    def _fewer(self, than: "Scope") -> Iterator[str]:
        for name in ("bases", "derived", "texts", "pairs", "injections"):
            has, needs = getattr(self, name), getattr(than, name)
            if has < needs:
                yield f"{name} {has} of {needs}"

    def _missing(self, than: "Scope") -> Iterator[str]:
        if left_out := than.identities - self.identities:
            yield f"no {', '.join(sorted(left_out))}"
        if not_made := than.checks - self.checks:
            yield f"no check of {', '.join(sorted(not_made))}"

    def _wider(self, than: "Scope") -> Iterator[str]:
        for name, most in than.margins.items():
            has = self.margins.get(name)
            if has is None or has > most:
                yield f"margin {name} {'unknown' if has is None else f'{has:g}'}, not {most:g}"


def _told_apart(identities: Iterable[str], custom: Mapping[str, Any] | None) -> Iterator[str]:
    """Each label by its name, and by the checksum of its words too where they are not ours."""
    words = {} if custom is None else custom.get("labels", {})
    for name in identities:
        yield f"{name} in own words ({words[name][:8]})" if name in words else name


# What opens the gate: our choice, the default audit. From 60 bases on an effect at the margin
# passes in at most 5 of 100 audits, also where it is large and rare (design/simulations.md). With
# each two labels on 8 bases every base is in a pair, so that position rests on all of them.
_USUAL = JudgeDesign()
NEEDED = Scope(
    scenarios=OURS,
    bases=_USUAL.bases,
    derived=_USUAL.derived,
    texts=_USUAL.texts,
    identities=frozenset(TEN),
    pairs=_USUAL.pairs,
    injections=INJECTED,
    margins={"score": USUAL.score, "win_rate": USUAL.win_rate},
    checks=frozenset(("coverage", "readability", "scale", "identity", "position", "injection")),
)


# A judge whose prompt shows one text is not asked about pairs.
_NEEDED_OF_ONE_TEXT = replace(NEEDED, pairs=0, checks=NEEDED.checks - {"position"})


def _lacks(certificate: Certificate) -> list[str]:
    """What a certificate has too little of to open the gate. Only this audit has sizes: another
    asks the same of every judge."""
    if certificate.kind != KIND:
        return []
    scope = Scope.of(certificate)
    return scope.lacks(_NEEDED_OF_ONE_TEXT if scope.prompt else NEEDED)


# -- finding the one for a judge ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateLookup:
    """The certificate that decides for a judge, or why there is none."""

    path: Path | None = None
    certificate: Certificate | None = None
    problem: str = ""
    lacks: tuple[str, ...] = ()  # what it has too little of to open the gate
    unreadable: tuple[str, ...] = ()  # other files there: any of them may have been a fail

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
        size = f" for {Scope.of(self.certificate).says}" if self.certificate.kind == KIND else ""
        too_small = f"; too little to rely on: {'; '.join(self.lacks)}" if self.lacks else ""
        message = f"{message}{size}{too_small}, {self.path}"
        if self.unreadable and self.certificate.state != "fail":
            message += f"; but {'; '.join(self.unreadable)}. It may have been a fail: {_MEND}"
        return message


_MEND = "bring it back as it was, or take it out of the folder and audit this judge again"


def find(folder: Path | None, expected: CertificateRequirements) -> CertificateLookup:
    """Look for the certificate of a judge in a folder. A file that cannot be read may have been a
    fail of this judge: it is named, and then nothing passes."""
    if folder is None:
        return CertificateLookup(problem="the config names no folder of certificates")
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
    return CertificateLookup(problem="; ".join([*unreadable, *others]) or none)


def deciding(fitting: list[tuple[Path, Certificate]]) -> CertificateLookup:
    """The certificate that decides, of all that a judge has.

    A fail stands until a later audit of at least its size passes, and in it what failed. Where none
    stands, it is the newest one that is large enough for the gate; where none is, the newest, which
    opens nothing. The gate opens only if more audits of its size passed than did not.
    """
    by_age = sorted(fitting, key=lambda entry: (entry[1].created, entry[0]))
    standing = [entry for entry in by_age if _stands(entry[1], by_age)]
    enough = [entry for entry in by_age if not _lacks(entry[1])]
    path, certificate = (standing or enough or by_age)[-1]
    if certificate.state == "fail":
        return CertificateLookup(path=path, certificate=certificate)
    lacks = (*_lacks(certificate), *_outnumbered([audit for _, audit in enough]))
    return CertificateLookup(path=path, certificate=certificate, lacks=lacks)


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
    """Find whether each failed check passes later; a check outside the design must also be asked as
    often and of the same texts. Otherwise a fail on pairs whose better answer is known, or on texts
    that people scored, would be undone by silence, by other labels or by another sample."""
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
